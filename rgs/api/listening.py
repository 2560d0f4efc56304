"""Why an address cannot be listened at: something that may pass, or the setting."""

from __future__ import annotations

import errno
from typing import Final

from rgs.core.errors import InvalidFieldError, UnavailableError

_MAY_PASS: Final = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL})
"""A port that another process holds; an address that the machine does not have yet."""


def not_listening(error: OSError, what: str, *, field: str, listen: str) -> UnavailableError | InvalidFieldError:
    """The error of the setting `field`: UnavailableError if a later start may succeed without a change."""
    kind = UnavailableError if error.errno in _MAY_PASS else InvalidFieldError
    return kind(f"{what} {listen}: {error.strerror or type(error).__name__}", field=field, value=listen)
