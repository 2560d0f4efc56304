"""Processes that can be interrupted, though the tests cannot: what a shell puts into the background ignores SIGINT."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """A process begun inside takes SIGINT as one in the foreground does: a handler here is the default there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
