"""Which affairs are gone on with in a pass of recovery: by their own time and the connection of their peer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.ports.readings import CENTRAL_SYSTEM, CircuitReading, CircuitState
from rgs.service.money.returning import Returning
from rgs.store.changes import Affair

READING = CircuitReading("wallet of op-1", CircuitState.CLOSED, 0, 0, 0, None)
AFFAIR = Affair(
    affair_id="A", session_id="S", kind="purchase", status="pending", party="op-1", method="BuyParticipation",
    request_id="r", digest=b"", amount_minor=1, purchase_no=1, created_ms=0, attempts=9, next_ms=300_000,
    reason="WALLET_UNAVAILABLE",
)  # fmt: skip
OTHERS = (replace(AFFAIR, affair_id="B"), replace(AFFAIR, affair_id="C"))


class Peers:
    def __init__(self, *readings: CircuitReading) -> None:
        self.now = list(readings)

    def returning(self) -> Returning:
        """After the first pass of a process."""
        made = Returning(lambda: tuple(self.now))
        made.begin()
        return made


def due(returning: Returning, *affairs: Affair, now_ms: int = 0) -> str:
    returning.begin()
    return "".join(affair.affair_id for affair in affairs if returning.is_due(affair, now_ms))


def test_a_closed_circuit_leaves_it_to_the_affairs_time() -> None:
    returning = Peers(READING).returning()
    assert due(returning, AFFAIR, now_ms=299_999) == ""
    assert due(returning, AFFAIR, now_ms=300_000) == "A"


def test_an_open_circuit_is_not_asked_and_costs_no_attempt() -> None:
    peers = Peers(replace(READING, state=CircuitState.OPEN))
    assert due(peers.returning(), AFFAIR, now_ms=300_000) == ""


def test_one_affair_a_pass_is_the_probe_though_it_is_not_due() -> None:
    peers = Peers(replace(READING, state=CircuitState.HALF_OPEN))
    returning = peers.returning()
    assert due(returning, AFFAIR, *OTHERS) == "A"
    assert due(returning, *OTHERS) == "B"


def test_when_it_has_answered_all_of_them_are_due_once() -> None:
    peers = Peers(replace(READING, state=CircuitState.HALF_OPEN))
    returning = peers.returning()
    returning.begin()
    assert returning.is_due(AFFAIR, 0)
    peers.now[0] = replace(READING, closings=1)  # the probe was answered
    assert [returning.is_due(other, 0) for other in OTHERS] == [True, True]
    assert due(returning, AFFAIR, *OTHERS) == "ABC", "the pass after it, too: those before the probe were passed over"
    assert due(returning, AFFAIR, *OTHERS) == ""


def test_whatever_a_process_finds_at_its_start_is_due() -> None:
    returning = Returning(lambda: (READING,))
    assert due(returning, AFFAIR, *OTHERS) == "ABC"
    assert due(returning, AFFAIR, *OTHERS) == ""


@pytest.mark.parametrize(
    ("affair", "expected"),
    [
        (replace(AFFAIR, reason="REGULATOR_UNAVAILABLE"), "A"),
        (replace(AFFAIR, party="op-2"), ""),
        (replace(AFFAIR, reason="WALLET_REFUSED"), ""),
        (replace(AFFAIR, reason="", next_ms=0), "A"),
    ],
)
def test_another_peer_says_nothing_of_this_one(affair: Affair, expected: str) -> None:
    central = replace(READING, name=CENTRAL_SYSTEM, state=CircuitState.HALF_OPEN)
    peers = Peers(replace(READING, state=CircuitState.OPEN), central)
    assert due(peers.returning(), affair) == expected
