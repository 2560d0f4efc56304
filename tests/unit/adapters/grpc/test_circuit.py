"""The circuit: when it opens, lets a probe through, and closes; what it counts."""

from __future__ import annotations

import asyncio

import pytest
import structlog
import structlog.testing

from rgs.adapters.grpc.circuit import Circuit
from rgs.core.errors import WalletUnavailableError
from rgs.ports.readings import CircuitState
from tests.support.clocks import ManualClock


def make(clock: ManualClock, **options: int) -> Circuit:
    return Circuit("peer", clock.now_ms, WalletUnavailableError, **{"failures_max": 3, "open_ms": 100, **options})


def use(circuit: Circuit, *, answered: bool) -> None:
    with circuit.call() as outcome:
        if answered:
            outcome.is_answered = True


def refused(circuit: Circuit) -> WalletUnavailableError:
    with pytest.raises(WalletUnavailableError) as error, circuit.call():
        pytest.fail("the call was let through")
    return error.value


def test_it_opens_after_so_many_silent_calls_in_a_row() -> None:
    clock = ManualClock(1_000)
    circuit = make(clock)
    for answered in (False, False, True, False, False):
        use(circuit, answered=answered)
    assert circuit.reading().state is CircuitState.CLOSED
    assert circuit.reading().silent_since_ms == 1_000
    clock.time_ms = 1_010
    use(circuit, answered=False)
    reading = circuit.reading()
    assert (reading.state, reading.unknown, reading.silent_since_ms) == (CircuitState.OPEN, 5, 1_000)
    assert refused(circuit).metadata["retry_after_ms"] == "100"
    assert circuit.reading().turned_away == 1


@pytest.mark.parametrize("answered", [False, True])
def test_one_probe_decides(answered: bool) -> None:
    clock = ManualClock(1_000)
    circuit = make(clock)
    for _ in range(3):
        use(circuit, answered=False)
    clock.time_ms += 99
    refused(circuit)
    clock.time_ms += 1
    assert circuit.reading().state is CircuitState.HALF_OPEN
    with circuit.call() as outcome:
        refused(circuit)  # a second call beside the probe
        if answered:
            outcome.is_answered = True
    assert circuit.reading().state is (CircuitState.CLOSED if answered else CircuitState.OPEN)
    if answered:
        use(circuit, answered=True)
        assert circuit.reading().silent_since_ms is None
    else:
        refused(circuit)


def test_a_cancelled_probe_is_unknown_and_leaves_room_for_the_next() -> None:
    clock = ManualClock(1_000)
    circuit = make(clock)
    for _ in range(3):
        use(circuit, answered=False)
    clock.time_ms += 100
    with pytest.raises(asyncio.CancelledError), circuit.call():
        raise asyncio.CancelledError
    assert circuit.reading().unknown == 4
    use(circuit, answered=True)
    assert circuit.reading().state is CircuitState.CLOSED


def test_an_error_before_the_answer_counts_as_silence() -> None:
    circuit = make(ManualClock(1_000), failures_max=1)
    with pytest.raises(ValueError, match="not understood"), circuit.call():
        raise ValueError("not understood")
    assert circuit.reading().state is CircuitState.OPEN


def test_no_more_calls_in_flight_than_allowed() -> None:
    circuit = make(ManualClock(1_000), in_flight_max=2)
    with circuit.call() as first, circuit.call() as second:
        assert refused(circuit).metadata == {"limit": "2", "value": "2"}
        first.is_answered = True
        second.is_answered = True
    use(circuit, answered=True)
    assert circuit.reading().in_flight == 0


def test_opening_is_a_warning_and_closing_a_line_of_information() -> None:
    """One each, however often a probe fails between."""
    clock = ManualClock(0)  # the silence begins at 0, where a monotonic clock may stand
    circuit = make(clock)
    with structlog.testing.capture_logs() as lines:
        for answered in (False, False):
            use(circuit, answered=answered)
        assert lines == []
        for _ in range(3):  # the third silence, and two probes
            use(circuit, answered=False)
            clock.time_ms += 100
        use(circuit, answered=True)
        use(circuit, answered=True)
    assert [(line["log_level"], line["event"], line["peer"]) for line in lines] == [
        ("warning", "circuit_open", "peer"),
        ("info", "circuit_closed", "peer"),
    ]
    assert (lines[0]["failures"], lines[0]["open_ms"], lines[1]["silent_ms"]) == (3, 100, 300)
    assert circuit.reading().closings == 1
