"""A probe that is silent opens the circuit again, also where an older call was answered while it ran."""

from __future__ import annotations

from rgs.ports.readings import CircuitState
from tests.support.clocks import ManualClock
from tests.unit.adapters.grpc.test_circuit import make, refused, use


def test_a_silent_probe_opens_it_again_though_an_older_call_was_answered_meanwhile() -> None:
    clock = ManualClock(1_000)
    circuit = make(clock)  # three silent calls open it
    older = circuit.call()
    answer = older.__enter__()
    for _ in range(3):
        use(circuit, answered=False)
    clock.time_ms += 100
    with circuit.call():  # the probe, which stays silent
        answer.is_answered = True
        older.__exit__(None, None, None)
        assert circuit.reading().state is CircuitState.CLOSED
    assert circuit.reading().state is CircuitState.OPEN
    assert refused(circuit).metadata["retry_after_ms"] == "100"
