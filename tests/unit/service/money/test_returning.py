"""Which operations are gone on with in a pass of recovery: by their own time and the connection of their peer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rgs.ports.readings import REGULATOR, CircuitReading, CircuitState
from rgs.service.money.returning import Returning
from rgs.service.money.transfers import gap_ms
from rgs.store.changes import Operation

READING = CircuitReading("wallet of op-1", CircuitState.CLOSED, 0, 0, 0, None)
OPERATION = Operation(
    operation_id="A", session_id="S", kind="purchase", status="pending", party="op-1", method="BuyParticipation",
    request_id="r", digest=b"", amount_minor=1, purchase_no=1, created_ms=0, attempts=9, next_ms=300_000,
    reason="WALLET_UNAVAILABLE",
)  # fmt: skip
OTHERS = (replace(OPERATION, operation_id="B"), replace(OPERATION, operation_id="C"))


class Peers:
    def __init__(self, *readings: CircuitReading) -> None:
        self.now = list(readings)

    def returning(self) -> Returning:
        """After the first pass of a process."""
        made = Returning(lambda: tuple(self.now))
        made.begin()
        return made


def due(returning: Returning, *operations: Operation, now_ms: int = 0) -> str:
    returning.begin()
    return "".join(operation.operation_id for operation in operations if returning.is_due(operation, now_ms))


def test_a_closed_circuit_leaves_it_to_the_operations_time() -> None:
    returning = Peers(READING).returning()
    assert due(returning, OPERATION, now_ms=299_999) == ""
    assert due(returning, OPERATION, now_ms=300_000) == "A"


def test_the_longest_gap_that_is_given_is_waited_for() -> None:
    """A time further ahead than any gap was stored before the clock was set back: that one is due."""
    gaps = {str(number): gap_ms(str(number), 20) for number in range(200)}
    assert max(gaps.values()) > 370_000
    returning = Peers(READING).returning()
    waiting = [replace(OPERATION, operation_id=name, next_ms=gap) for name, gap in gaps.items()]
    assert due(returning, *waiting) == ""
    assert due(returning, replace(OPERATION, next_ms=400_000)) == "A"


def test_an_open_circuit_is_not_asked_and_costs_no_attempt() -> None:
    peers = Peers(replace(READING, state=CircuitState.OPEN))
    assert due(peers.returning(), OPERATION, now_ms=300_000) == ""


def test_one_operation_a_pass_is_the_probe_though_it_is_not_due() -> None:
    peers = Peers(replace(READING, state=CircuitState.HALF_OPEN))
    returning = peers.returning()
    assert due(returning, OPERATION, *OTHERS) == "A"
    assert due(returning, *OTHERS) == "B"


def test_when_it_has_answered_all_of_them_are_due_once() -> None:
    peers = Peers(replace(READING, state=CircuitState.HALF_OPEN))
    returning = peers.returning()
    returning.begin()
    assert returning.is_due(OPERATION, 0)
    peers.now[0] = replace(READING, closings=1)  # the probe was answered
    assert [returning.is_due(other, 0) for other in OTHERS] == [True, True]
    assert due(returning, OPERATION, *OTHERS) == "ABC", (
        "the pass after it, too: those before the probe were passed over"
    )
    assert due(returning, OPERATION, *OTHERS) == ""


def test_whatever_a_process_finds_at_its_start_is_due() -> None:
    returning = Returning(lambda: (READING,))
    assert due(returning, OPERATION, *OTHERS) == "ABC"
    assert due(returning, OPERATION, *OTHERS) == ""


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (replace(OPERATION, reason="REGULATOR_UNAVAILABLE"), "A"),
        (replace(OPERATION, party="op-2"), ""),
        (replace(OPERATION, reason="WALLET_REFUSED"), ""),
        (replace(OPERATION, reason="", next_ms=0), "A"),
    ],
)
def test_another_peer_says_nothing_of_this_one(operation: Operation, expected: str) -> None:
    regulator = replace(READING, name=REGULATOR, state=CircuitState.HALF_OPEN)
    peers = Peers(replace(READING, state=CircuitState.OPEN), regulator)
    assert due(peers.returning(), operation) == expected
