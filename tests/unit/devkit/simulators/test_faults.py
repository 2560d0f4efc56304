"""Plans of faults: read strictly, and the same calls go wrong in every run."""

from __future__ import annotations

import json

import pytest

from rgs.core.errors import InvalidFieldError, UnknownFieldError
from rgs.devkit.simulators.faults import Call, Fault, FaultPlan, Faults, Planned, chance, parse_plan, parse_planned

TOML = """
seed = "s"
until_call = 5
[per_mille]
lost_reply = 50
delay = 950
[[schedule]]
fault = "outage"
method = "Debit"
call = 3
calls = 7
[[schedule]]
fault = "duplicate"
"""
PLAN = FaultPlan(
    (Planned(Fault.OUTAGE, "Debit", 3, 7), Planned(Fault.DUPLICATE)),
    ((Fault.LOST_REPLY, 50), (Fault.DELAY, 950)),
    "s",
    5,
)


def test_toml_and_json_say_the_same() -> None:
    assert parse_plan(TOML) == PLAN
    rows = [{"fault": "outage", "method": "Debit", "call": 3, "calls": 7}, {"fault": "duplicate"}]
    result = {"seed": "s", "until_call": 5, "per_mille": {"lost_reply": 50, "delay": 950}, "schedule": rows}
    assert parse_plan(json.dumps(result)) == PLAN
    assert parse_plan("") == FaultPlan()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("seed = 1", "seed"),
        ("until_call = -1", "until_call"),
        ("per_mille = 3", "per_mille"),
        ("[per_mille]\nlost_reply = 600\ndelay = 401", "per_mille"),
        ("[per_mille]\nlost_reply = 0.5", "per_mille"),
        ("[per_mille]\nlost_reply = true", "per_mille"),
        ("schedule = 3", "schedule"),
        ("schedule = [3]", "schedule"),
        ("[[schedule]]\nmethod = 'Debit'", "fault"),
        ("[[schedule]]\nfault = 'lost'", "fault"),
        ("[[schedule]]\nfault = 'delay'\ncall = -1", "call"),
        ("[[schedule]]\nfault = 'delay'\ncalls = 0", "calls"),
        ("{", "faults"),
        ("=", "faults"),
    ],
)
def test_a_plan_that_is_none_is_refused(text: str, field: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_plan(text)
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["sed = 's'", "[per_mille]\nlost = 3", "[[schedule]]\nfault = 'delay'\ncal = 3"])
def test_unknown_keys_are_refused(text: str) -> None:
    with pytest.raises(UnknownFieldError):
        parse_plan(text)


def test_a_row_of_the_command_line() -> None:
    assert parse_planned("Debit:3:lost_reply") == Planned(Fault.LOST_REPLY, "Debit", 3)
    assert parse_planned("*:*:duplicate") == Planned(Fault.DUPLICATE)
    for text in ("Debit:lost_reply", "Debit:x:lost_reply", "Debit:1:lost", "Debit:-1:delay"):
        with pytest.raises(InvalidFieldError):
            parse_planned(text)


def test_calls_are_counted_by_method() -> None:
    faults = Faults(FaultPlan((Planned(Fault.DELAY, "Debit", 2), Planned(Fault.DUPLICATE, "", 1))))
    result = [(call.number, set(call.faults)) for call in map(faults.next, ("Debit", "Credit", "Debit", "Debit"))]
    assert result == [(1, {Fault.DUPLICATE}), (1, {Fault.DUPLICATE}), (2, {Fault.DELAY}), (3, set())]


def test_faults_end_at_a_call_and_can_be_switched() -> None:
    faults = Faults(FaultPlan((Planned(Fault.DELAY),), until_call=3))
    assert [bool(faults.next("Debit").faults) for _ in range(4)] == [True, True, True, False]
    faults = Faults(FaultPlan((Planned(Fault.DELAY),)))
    faults.is_on = False
    assert faults.next("Debit") == Call("Debit", 1, frozenset())
    faults.is_on = True
    assert faults.next("Debit").faults == {Fault.DELAY}


def test_chance_is_the_same_in_every_run_and_keeps_its_shares() -> None:
    shares = ((Fault.LOST_REPLY, 100), (Fault.DELAY, 50))
    drawn = [chance("seed", "Debit", number, shares) for number in range(1, 4001)]
    assert drawn == [chance("seed", "Debit", number, shares) for number in range(1, 4001)]
    # Fixed by the seed, so these are no bounds on chance but what SHA-256 gives.
    assert 340 <= drawn.count(Fault.LOST_REPLY) <= 460
    assert 150 <= drawn.count(Fault.DELAY) <= 250
    assert drawn != [chance("other", "Debit", number, shares) for number in range(1, 4001)]
    assert drawn != [chance("seed", "Credit", number, shares) for number in range(1, 4001)]
    assert {chance("seed", "Debit", number, ((Fault.DELAY, 1000),)) for number in range(100)} == {Fault.DELAY}
