"""The circuit as it is where nobody says otherwise, and what it counts and tells to the last call."""

from __future__ import annotations

import pytest

from rgs.adapters.grpc.circuit import Circuit
from rgs.adapters.grpc.peer import PeerSettings
from rgs.core.errors import WalletUnavailableError
from rgs.ports.readings import CircuitState
from tests.support.clocks import ManualClock


def silent(circuit: Circuit, times: int = 1) -> None:
    for _ in range(times):
        with circuit.call():
            pass


def turned_away(circuit: Circuit) -> dict[str, str]:
    with pytest.raises(WalletUnavailableError) as error, circuit.call():
        pytest.fail("the call was let through")
    return error.value.metadata


def test_five_silent_calls_open_it_for_five_seconds() -> None:
    clock = ManualClock(1_000)
    circuit = Circuit("peer", clock.now_ms, WalletUnavailableError)
    silent(circuit, 4)
    assert circuit.reading().state is CircuitState.CLOSED
    silent(circuit)
    assert circuit.reading().state is CircuitState.OPEN
    assert turned_away(circuit) == {"retry_after_ms": "5000"}
    clock.time_ms += 4_999
    assert turned_away(circuit) == {"retry_after_ms": "1"}
    clock.time_ms += 1
    assert circuit.reading().state is CircuitState.HALF_OPEN
    silent(circuit)


def test_the_settings_of_a_peer_are_those_of_the_circuit() -> None:
    settings = PeerSettings("peer:1", b"", b"", b"")
    assert (settings.failures_max, settings.open_ms, settings.in_flight_max) == (5, 5_000, 256)
    assert (settings.deadline_ms, settings.server_name) == (3_000, "")
    assert "key=" not in repr(settings)


def test_the_two_hundred_and_fifty_seventh_call_at_once_is_turned_away() -> None:
    circuit = Circuit("peer", ManualClock(1_000).now_ms, WalletUnavailableError)
    calls = [circuit.call() for _ in range(256)]
    outcomes = [call.__enter__() for call in calls]
    assert turned_away(circuit) == {"limit": "256", "value": "256"}
    assert turned_away(circuit) == {"limit": "256", "value": "256"}
    reading = circuit.reading()
    assert (reading.in_flight, reading.turned_away, reading.unknown) == (256, 2, 0)
    for call, outcome in zip(calls, outcomes, strict=True):
        outcome.is_answered = True
        call.__exit__(None, None, None)
    assert circuit.reading().in_flight == 0


def test_beside_a_probe_others_are_told_to_come_again_in_a_millisecond_and_are_counted() -> None:
    clock = ManualClock(1_000)
    circuit = Circuit("peer", clock.now_ms, WalletUnavailableError, failures_max=1, open_ms=100)
    silent(circuit)
    clock.time_ms += 150
    with circuit.call() as probe:
        assert circuit.reading().state is CircuitState.HALF_OPEN
        assert turned_away(circuit) == {"retry_after_ms": "1"}
        assert turned_away(circuit) == {"retry_after_ms": "1"}
        probe.is_answered = True
    reading = circuit.reading()
    assert (reading.turned_away, reading.unknown, reading.silent_since_ms) == (2, 1, None)
    silent(circuit)
    assert circuit.reading().silent_since_ms == 1_150, "a new silence has its own beginning"
