"""When a witness must have seen an entry, to the millisecond, for a revocation to leave it standing."""

from __future__ import annotations

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import Place, Witnessed
from rgs.core.replay.revocations import Revocations
from rgs.core.times import format_time

ORIGIN = "rgs.example/rounds/2026h2"
REVOKED_MS = 1_795_000_000_000


def revocations(*seen_ms: int) -> Revocations:
    """Key `k` revoked from entry 10 on; the first 10 entries were seen at these times."""
    found = Revocations([Witnessed(ORIGIN, 10, format_time(time_ms)) for time_ms in seen_ms])
    found.add({"key": "k", "origin": ORIGIN, "size": "10", "time": format_time(REVOKED_MS)})
    return found


@pytest.mark.parametrize(("late_ms", "stands"), [(-1, True), (0, True), (1, False), (1_000, False)])
def test_seen_at_the_very_moment_of_the_revocation_still_counts_and_later_does_not(late_ms: int, stands: bool) -> None:
    revoked = revocations(REVOKED_MS + late_ms)
    if stands:
        revoked.verify("k", Place(ORIGIN, 9))
        return
    with pytest.raises(VerificationError, match="no outside witness had seen entry 9 before"):
        revoked.verify("k", Place(ORIGIN, 9))


def test_one_witness_in_time_is_enough_whichever_stands_first() -> None:
    for times in ((REVOKED_MS + 1, REVOKED_MS), (REVOKED_MS, REVOKED_MS + 1)):
        revocations(*times).verify("k", Place(ORIGIN, 9))


def test_without_a_revocation_there_is_nothing_to_ask() -> None:
    assert not Revocations([Witnessed(ORIGIN, 10, format_time(REVOKED_MS))])
    revoked = revocations()
    assert revoked
    revoked.verify("another", None)
    assert [body["key"] for body in revoked.of("k")] == ["k"]
    assert revoked.of("another") == ()
