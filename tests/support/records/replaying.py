"""Replay of what a factory signed or of a file, and what was said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from tests.support.records.factory import RecordFactory
from tests.support.records.planted import PLANTED


@dataclass(frozen=True)
class Verdict:
    """What a replay said."""

    failures: list[VerificationError]
    summary: Summary

    @property
    def checks(self) -> list[str]:
        """The labels of the failed checks, in the order in which they were found."""
        return [failure.metadata["check"] for failure in self.failures]

    @property
    def rounds(self) -> tuple[int, int, int]:
        """Verified, failed, open."""
        return self.summary.rounds_verified, self.summary.rounds_failed, self.summary.rounds_open


RULEBOOK = Rulebook()


def replay_file(data: bytes, keys: bytes, rulebook: Rulebook = RULEBOOK) -> Verdict:
    """A file as the command reads it."""
    replay = Replay(KeyBook(keys), rulebook)
    failures: list[VerificationError] = []
    for line in data.splitlines(keepends=True):
        failures += replay.feed(line[:-1]) if line.endswith(b"\n") else replay.refuse("cut off")
    return Verdict([*failures, *replay.finish()], replay.summary)


def replay_lines(factory: RecordFactory, lines: Sequence[bytes] | None = None) -> Verdict:
    """A factory's lines, or others under its keys."""
    return replay_file(b"".join(line + b"\n" for line in (factory.lines if lines is None else lines)), factory.keys())


def words(verdict: Verdict) -> list[str]:
    """The failures, in words."""
    return [failure.message for failure in verdict.failures]


def planted(name: str) -> list[str]:
    """The failures of a planted fault, in words."""
    (one,) = [each for each in PLANTED if each.name == name]
    factory = one.build()
    return words(replay_file(one.exporting(factory), factory.keys()))
