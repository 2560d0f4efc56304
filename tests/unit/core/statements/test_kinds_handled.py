"""A kind of statement that a place does not know is refused there, in replay, reconciliation, recovery and audit."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from certification.findings import AuditFindings
from rgs.core import recovery as core_recovery
from rgs.core.ledger import Participation
from rgs.core.reconcile.extract import Extract
from rgs.core.replay import KeyBook, Replay, Rulebook, procedure, times
from rgs.core.replay.keys import SigningKey
from rgs.core.replay.reading import Statement
from rgs.core.replay.registered import Registered
from rgs.core.replay.scope import NumberSequence
from rgs.core.replay.sessions import Chain
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import KINDS, KeyRole, Kind, UnhandledKindError, kinds
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from rgs.core.statements.shapes import Record, one_of
from rgs.service.admin import recovery as service_recovery
from rgs.store.recovery import Import, InstanceState
from rgs.tlog.gap import Missing
from tests.support.records.factory import RecordFactory

ROOT = Path(__file__).parents[4]
MADE_UP = "made_up"
TIME = "2026-11-18T00:00:00.000Z"
KEY = SigningKey(KeyRole.INSTANCE, bytes(32), "i", "", False, TIME)
LINKED = frozenset(name for name, kind in KINDS.items() if kind.linked)
NUMBERED = frozenset(name for name, kind in KINDS.items() if kind.numbered)


def made_up_of(model: str) -> Kind:
    """A kind with the fields of another one."""
    shape = KINDS[model].shape
    return replace(
        KINDS[model], name=MADE_UP, shape=Record({**shape.required, "kind": one_of(MADE_UP)}, shape.optional)
    )


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> Kind:
    return add(monkeypatch, "session_close")


def add(monkeypatch: pytest.MonkeyPatch, model: str) -> Kind:
    kind = made_up_of(model)
    monkeypatch.setitem(kinds.KINDS, MADE_UP, kind)
    monkeypatch.setitem(KIND_OF_PAYLOAD_TYPE, kind.payload_type, kind)
    return kind


def statement(kind: Kind) -> Statement:
    body = {"instance": "i", "link_no": "1", "previous": "", "session_id": "S", "statement_no": "2", "time": TIME}
    return Statement(kind, {"kind": kind.name, **body}, "00" * 32, KEY, "k", None, "")


def chain() -> Chain:
    return Chain("S", NumberSequence(is_whole=True, head=0))


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(UnhandledKindError) as raised:
        act()
    assert MADE_UP in str(raised.value)
    return str(raised.value).partition(" in ")[2].partition(":")[0]


# --- what stands in an export ---


def replayed(*, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An honest export, with one signed statement of a made-up kind in it."""
    add(monkeypatch, model)
    factory = RecordFactory()
    worker = factory.start("i-1")
    player = factory.open(worker)
    if model == "session_close":
        factory.link(worker, player, MADE_UP, {"reason": "X", "rounds": "0"})
    elif model == "draw_window":
        factory.numbered(worker, MADE_UP, {"draws_in_flight_max": "8"})
    else:
        body = {"name": "x", "sha256": "00" * 32}
        factory.line(factory.seal(factory.nodes[worker.node], MADE_UP, body))
    replay = Replay(KeyBook(factory.keys()), Rulebook())
    for line in factory.lines:
        replay.feed(line)


@pytest.mark.parametrize("model", ["session_close", "draw_window", "report"])
def test_a_replay_does_not_take_times_that_it_may_not_know(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(lambda: replayed(model=model, monkeypatch=monkeypatch)) == "rgs.core.replay.times.verify_times"


@pytest.mark.parametrize(
    ("model", "place"),
    [("session_close", "_link"), ("draw_window", "_take_unlinked"), ("report", "_take_unnumbered")],
)
def test_a_replay_takes_no_kind_in_silence(model: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "ONE_TIME", times.ONE_TIME | {MADE_UP})
    result = refusal(lambda: replayed(model=model, monkeypatch=monkeypatch))
    assert result == f"{procedure.__name__}.Replay.{place}"


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_scope_cuts_an_export_and_no_log(goes_on: bool) -> None:
    factory = RecordFactory()
    worker = factory.start("i-1")
    replay = Replay(KeyBook(factory.keys()), Rulebook(), goes_on=goes_on)
    scope = factory.scope([{"first": "1", "instance": worker.name, "last": "1"}])
    assert [failure for line in (scope, factory.lines[0]) for failure in replay.feed(line)] == []
    assert replay.finish() == []
    assert replay.summary.is_cut is not goes_on


def test_no_chain_advances_over_it(linked: Kind) -> None:
    assert refusal(lambda: chain().advance(statement(linked))) == "rgs.core.replay.sessions.Chain.advance"


def test_no_ids_are_taken_of_it(linked: Kind) -> None:
    verify = Registered().verify
    result = refusal(lambda: verify(statement(linked), chain(), Rulebook()))
    assert result == "rgs.core.replay.registered.Registered.verify"


def test_reconciliation_takes_it_for_no_close(linked: Kind) -> None:
    extract = Extract(Rulebook())
    result = refusal(lambda: list(extract.take(statement(linked), is_sound=True)))
    assert result == "rgs.core.reconcile.extract.Extract.take"


@pytest.mark.parametrize(("model", "place"), [("session_close", "_take_link"), ("draw_window", "_take_unlinked")])
def test_the_audit_of_a_log_finds_it(model: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = AuditFindings(Rulebook(), {})
    result = refusal(lambda: list(findings.take(statement(add(monkeypatch, model)))))
    assert result == f"certification.findings.AuditFindings.{place}"


# --- recovery ---


def session() -> Session:
    return Session(
        session_id="S", operator="op-1", player="p", operator_reference="", ruleset_id="uth-solo",
        jurisdiction_id="demo", currency="EUR", status=SessionStatus.OPEN, open_ms=1, last_ms=1, test_regulator=True,
        participation=Participation(),
    )  # fmt: skip


def missing(kind: Kind) -> Missing:
    return Missing(kind.name, statement(kind).body, bytes(32), b"")


def test_recovery_closes_no_session_by_it(linked: Kind) -> None:
    body = statement(linked).body
    result = refusal(lambda: core_recovery.advance_session(session(), MADE_UP, body, {}, bytes(32)))
    assert result == "rgs.core.recovery.advance_session"


def test_recovery_counts_no_draw_past_it(linked: Kind) -> None:
    planned = Import(instances={"i": InstanceState("n", 1, 0, 1, 1, 0)})
    assert refusal(lambda: service_recovery._count(planned, missing(linked))) == "rgs.service.admin.recovery._count"


def test_recovery_writes_no_rows_without_a_case_for_it(linked: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_recovery, "advance_session", lambda session, *_: session)
    planned = Import(sessions={"S": session()})
    reads: Any = SimpleNamespace()
    result = refusal(lambda: asyncio.run(service_recovery._link(planned, reads, reads, missing(linked))))
    assert result == "rgs.service.admin.recovery._link"


# --- every place there is ---


def kinds_of(match: ast.Match) -> frozenset[str]:
    """The kinds that the patterns of a match name."""
    texts = (node.value for case in match.cases for node in ast.walk(case.pattern) if isinstance(node, ast.Constant))
    return frozenset(text for text in texts if isinstance(text, str) and text in KINDS)


def matches(source: str) -> list[ast.Match]:
    """The matches over kinds of statement: those that name two or more."""
    if "match " not in source:
        return []
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Match) and len(kinds_of(node)) > 1]


def refuses(match: ast.Match) -> bool:
    """Whether the last case takes whatever is left, and raises."""
    last = match.cases[-1]
    is_rest = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    return is_rest and isinstance(last.body[-1], ast.Raise)


def all_matches() -> dict[str, ast.Match]:
    files = [path for room in ("rgs", "certification") for path in sorted((ROOT / room).rglob("*.py"))]
    return {
        f"{path.relative_to(ROOT)}:{match.lineno}": match
        for path in files
        for match in matches(path.read_text("utf-8"))
    }


def test_every_match_over_kinds_refuses_the_rest_and_names_all_of_its_own() -> None:
    found = all_matches()
    assert len(found) >= 10, sorted(found)
    assert [place for place, match in found.items() if not refuses(match)] == []
    unlinked, start = NUMBERED - LINKED, {"instance_start"}
    whole = {LINKED, unlinked, NUMBERED, NUMBERED - start, frozenset(KINDS) - NUMBERED}
    assert {place: kinds_of(match) for place, match in found.items() if kinds_of(match) not in whole} == {}


def test_every_kind_that_there_is_has_its_times_looked_at() -> None:
    named = times.ONE_TIME | {"round_opening", "round_final", "seat_final", "table_final", "table_round", "free_bet"}
    assert named == frozenset(KINDS)
    assert {name for name in times.ONE_TIME if count_times(KINDS[name].shape) > 1} == set()
    assert count_times(KINDS["round_opening"].shape) == 2


def count_times(shape: Any) -> int:
    """The times that a shape has at any depth."""
    if isinstance(shape, Record):
        return sum(count_times(inner) for inner in (*shape.required.values(), *shape.optional.values()))
    return count_times(shape.of) if hasattr(shape, "of") else int(shape is kinds.TIME)


@pytest.mark.parametrize(
    "source",
    [
        "match k:\n case 'purchase': a()\n case 'session_open': b()",
        "match k:\n case 'purchase': a()\n case 'session_open': b()\n case _: pass",
        "match k:\n case 'purchase': a()\n case 'session_open': b()\n case _ if c: raise E",
    ],
)
def test_a_match_that_takes_the_rest_in_silence_is_seen(source: str) -> None:
    (match,) = matches(source)
    assert not refuses(match)
