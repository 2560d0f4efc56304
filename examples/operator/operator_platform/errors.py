"""Refusals of the platform: a stable reason, a message for people, and the facts as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PlatformError(Exception):
    """A refusal. `status` is that of HTTP; a page gets reason, message and metadata either way."""

    def __init__(
        self,
        reason: str,
        message: str,
        status: int = 400,
        metadata: Mapping[str, object] | None = None,
        value: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.status = status
        self.metadata = {name: str(fact) for name, fact in (metadata or {}).items()}
        self.value = value

    def as_json(self) -> dict[str, Any]:
        """What the page gets."""
        found: dict[str, Any] = {"reason": self.reason, "message": self.message, "metadata": self.metadata}
        if self.value is not None:
            found["value"] = self.value
        return found


def invalid(field: str, message: str, **metadata: object) -> PlatformError:
    """A field is missing, malformed or outside its limit."""
    return PlatformError("INVALID_FIELD", message, 400, {"field": field, **metadata})


class OutcomeUnknownError(PlatformError):
    """The game server has not answered: it may have happened. The same request may be sent again under its id."""

    def __init__(self, cause: str = "") -> None:
        message = "the game server has not answered; send the same request again"
        super().__init__("OUTCOME_UNKNOWN", message, 503, {"cause": cause} if cause else {})
