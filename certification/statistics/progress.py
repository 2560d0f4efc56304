"""A progress bar on standard error; nothing where standard error is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

_WIDTH: Final = 40
Reported = Callable[[str, int, int], None]
"""What is counted, how far it is, how far it goes."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


def show(what: str, done: int, total: int) -> None:
    """Draw the bar, over the one before; wipe it when all is done."""
    if not sys.stderr.isatty():
        return
    filled = _WIDTH * done // total
    bar = f"{what} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,} of {total:,}"
    sys.stderr.write("\r\x1b[K" + ("" if done >= total else bar))
    sys.stderr.flush()
