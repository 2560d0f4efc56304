"""The errors of this room, and the base of all errors. They are here because this room is usable alone.

`rgs.core.errors` has them, too, with all others.
"""

from __future__ import annotations

from typing import ClassVar


class RgsError(Exception):
    """Base. `reason` is stable (UPPER_SNAKE, at most 63 characters); the message may change, the reason may not.

    `metadata` repeats every number and name of the message as text; `field` names the request field at fault, where
    one is. A class below names its reason in its first line; without one it has that of its base.
    """

    reason: ClassVar[str] = "INTERNAL"

    def __init_subclass__(cls, *, reason: str = "") -> None:
        if reason:
            cls.reason = reason

    def __init__(self, message: str, *, field: str | None = None, **metadata: object) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.metadata = {key: str(value) for key, value in metadata.items()}


class FormatError(RgsError, reason="MALFORMED"):
    """A document is not in its one canonical form."""


class VerificationError(RgsError, reason="VERIFICATION_FAILED"):
    """A check of the replay procedure failed; `metadata["check"]` is its number and name."""
