"""Replay: the numbered verification of exported statements, line by line (docs/verify.md).

Everything is computed again and compared. Only a root fingerprint from outside is trusted. There is no clock, file or
network here.
"""

from rgs.core.replay.checks import CHECKS
from rgs.core.replay.keys import KeyBook
from rgs.core.replay.procedure import Replay, Summary
from rgs.core.replay.reading import HashedEntry
from rgs.core.replay.revocations import Place, Witnessed
from rgs.core.replay.rules import Rulebook

__all__ = ["CHECKS", "HashedEntry", "KeyBook", "Place", "Replay", "Rulebook", "Summary", "Witnessed"]
