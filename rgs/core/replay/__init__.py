"""Replay: the numbered verification of exported statements, pure and line by line (docs/verify.md).

Recomputes and compares; refuses to trust anything but a root fingerprint brought from outside, and to touch clock,
files or network.
"""

from rgs.core.replay.checks import CHECKS, Check
from rgs.core.replay.keys import KeyBook
from rgs.core.replay.procedure import Replay, Summary
from rgs.core.replay.reading import HashedEntry
from rgs.core.replay.revocations import Place, Witnessed
from rgs.core.replay.rules import Rulebook

__all__ = ["CHECKS", "Check", "HashedEntry", "KeyBook", "Place", "Replay", "Rulebook", "Summary", "Witnessed"]
