"""Replay: the numbered verification of exported statements, line by line (docs/verify.md).

Everything is computed again and compared. Only a root fingerprint from outside is trusted. There is no clock, file or
network here. A server needs the keys alone: what only a replay needs is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rgs.core.replay.checks import CHECKS
from rgs.core.replay.keys import KeyBook
from rgs.core.replay.reading import HashedEntry
from rgs.core.replay.revocations import Place, Witnessed

if TYPE_CHECKING:
    from rgs.core.replay.procedure import Replay, Summary
    from rgs.core.replay.rules import Rulebook

__all__ = ["CHECKS", "HashedEntry", "KeyBook", "Place", "Replay", "Rulebook", "Summary", "Witnessed"]


def __getattr__(name: str) -> Any:
    if name in ("Replay", "Summary"):
        from rgs.core.replay import procedure  # noqa: PLC0415 - as said above

        return getattr(procedure, name)
    if name == "Rulebook":
        from rgs.core.replay import rules  # noqa: PLC0415

        return rules.Rulebook
    raise AttributeError(f"module {__name__} has no {name}", name=name)
