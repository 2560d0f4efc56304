"""Who gets which statements of a table that two operators share: an operator its own seats and what all share, never
the seats of others nor how many they are; those who read all get all. Every call that gives statements is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rgs.api.audit import audit_methods
from rgs.api.auth import ROLES
from rgs.api.history import history_methods
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.statements import format_canonical, leaf_hash
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.tables.machine import State
from rgs.core.times import format_date
from rgs.core.tlog.merkle import verify_inclusion
from rgs.service.audit.log import PublicLog
from rgs.service.callers import Caller, Role
from rgs.service.play.history import RoundsFilter
from rgs.store.interface import StatementRow
from rgs.v1 import audit_pb2, history_pb2
from tests.support.service.harness import OPERATOR, ServiceHarness, key_bundle, open_harness, read_statement
from tests.support.service.oracles import stored_statements
from tests.support.service.places import sequence
from tests.support.service.table_records import AUDITOR, OTHER, REGULATOR, STRANGER, SharedEvening

LAB = Caller("lab-1", Role.LAB, "")
SHARED = ("table_round", "table_deal", "table_final")
NOTHING: dict[str, Any] = {"session_id": "", "round_id": "", "instance": "", "first_no": 0, "last_no": 0}


class Night:
    """One round of all, one of OTHER alone, one in play; and whose statements these are."""

    def __init__(self, harness: ServiceHarness, evening: SharedEvening, rounds: list[str]) -> None:
        self.harness, self.evening, self.rounds = harness, evening, rounds
        self.rows = stored_statements(harness.folder)
        self.own = {sitter.session_id for sitter in evening.own}
        self.others = {sitter.session_id for sitter in evening.others}

    def allowed(self, caller: Caller, row: StatementRow) -> bool:
        """What the pages say (docs/audit.md)."""
        if caller.role is not Role.OPERATOR:
            return True
        sessions = {OPERATOR.party: self.own, OTHER.party: self.others}.get(caller.party, set())
        if row.kind in SHARED:
            return caller.party in {OPERATOR.party, OTHER.party}
        return row.session_id in sessions or row.kind in {"instance_start", "instance_end", "instance_lost", "artifact"}

    async def pages(self, caller: Caller, size: int, **given: Any) -> list[list[StatementRow]]:
        found: list[list[StatementRow]] = []
        token = ""
        while not found or token:
            rows, token = await self.harness.audit.list_statements(
                caller, **{**NOTHING, **given}, page_size=size, page_token=token
            )
            found.append(list(rows))
        return found


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    async with open_harness(tmp_path, ended=False) as harness:
        evening = await SharedEvening(harness, "uth-seven-box").gather()
        rounds = [await evening.play(), await evening.play(*evening.others)]
        await evening.bet()
        await evening.until(State.DECIDING)
        rounds.append((await evening.row()).table.round_id)
        yield Night(harness, evening, rounds)


CALLERS = pytest.mark.parametrize(
    "caller", [OPERATOR, OTHER, STRANGER, AUDITOR, REGULATOR, LAB], ids=lambda one: one.party
)


@CALLERS
async def test_one_by_hash_or_number(night: Night, caller: Caller) -> None:
    seen = Counter[str]()
    for row in night.rows:
        for named in (
            {"hash": row.hash, "instance": "", "statement_no": 0},
            {"hash": b"", "instance": row.instance, "statement_no": row.statement_no},
        ):
            if night.allowed(caller, row):
                assert (await night.harness.audit.get_statement(caller, **named)).envelope == row.envelope  # type: ignore[arg-type]
                seen[row.kind] += 1
            else:
                with pytest.raises(NotFoundError):
                    await night.harness.audit.get_statement(caller, **named)  # type: ignore[arg-type]
    expected = {OPERATOR.party: (0, 6, 8), OTHER.party: (0, 6, 12), STRANGER.party: (0, 0, 0)}
    assert (seen["table_seats"], seen["table_round"], seen["seat_opening"]) == expected.get(caller.party, (6, 6, 20))


@CALLERS
@pytest.mark.parametrize("size", [1, 3, 200])
async def test_lists(night: Night, caller: Caller, size: int) -> None:
    instance = night.rows[0].instance
    listed = [row for page in await night.pages(caller, size, instance=instance) for row in page]
    assert [row.hash for row in listed] == [row.hash for row in night.rows if night.allowed(caller, row)]
    for round_id in night.rounds:
        pages = await night.pages(caller, size, round_id=round_id)
        rows = [row for row in night.rows if row.round_id == round_id and row.kind.startswith(("table_", "seat_"))]
        expected = [row for row in rows if night.allowed(caller, row)]
        assert [row.hash for page in pages for row in page] == [row.hash for row in expected]
        # Nor do the pages show how many statements there are that the caller may not see.
        assert len(pages) == max(1, -(-len(expected) // size))
    for session in night.own | night.others:
        links = [row for row in night.rows if row.session_id == session]
        if night.allowed(caller, links[0]):
            found = [row for page in await night.pages(caller, size, session_id=session) for row in page]
            assert [row.hash for row in found] == [row.hash for row in links if row.link_no]
        else:
            with pytest.raises(NotFoundError):
                await night.pages(caller, size, session_id=session)


@CALLERS
async def test_those_of_a_seat(night: Night, caller: Caller) -> None:
    for round_id in night.rounds:
        for session in night.own | night.others:
            rows = {
                row.kind: row
                for row in night.rows
                if row.round_id == round_id and (row.session_id == session or row.kind in SHARED)
            }
            for kind in ("seat_opening", "seat_final", *SHARED):
                is_there = kind in rows and "seat_opening" in rows and night.allowed(caller, rows[kind])
                requested = night.harness.audit.statement_of_seat(
                    caller, round_id=round_id, session_id=session, kind=kind
                )
                if is_there:
                    assert (await requested).hash == rows[kind].hash
                else:
                    with pytest.raises(NotFoundError):
                        await requested


@CALLERS
async def test_history_has_own_seats_with_what_all_share(night: Night, caller: Caller) -> None:
    history, named = night.harness.history, {"player": "", "date": "", "game_code": ""}
    sessions = {OPERATOR.party: night.own, OTHER.party: night.others, STRANGER.party: set()}
    seen = sessions.get(caller.party, night.own | night.others)
    for round_id in night.rounds:
        there = {row.session_id for row in night.rows if (row.kind, row.round_id) == ("seat_opening", round_id)} & seen
        if not there:
            with pytest.raises(NotFoundError):
                await history.get_records(caller, round_id=round_id, **named)
            continue
        records = await history.get_records(caller, round_id=round_id, **named)
        assert {record.summary.session.session_id for record in records} == there
        for record in records:
            (again,) = await history.get_records(
                caller, round_id=round_id, session_id=record.summary.session.session_id, **named
            )
            assert again == record
            shared = {row.kind: row.envelope for row in night.rows if row.round_id == round_id and row.kind in SHARED}
            assert record.shared == shared
            fixed, opening = read_statement(shared["table_round"]), read_statement(record.opening)
            leaf, seat_no = _leaf(opening["seat"]), int(opening["seat"]["seat_no"])
            verify_inclusion(leaf, seat_no - 1, int(fixed["leaves"]), record.path, bytes.fromhex(fixed["seats_root"]))
            assert bool(record.final) is ("table_final" in shared)
    for session in (night.own | night.others) - seen:
        with pytest.raises(NotFoundError):
            await history.get_records(caller, round_id=night.rounds[0], session_id=session, **named)


async def test_the_seats_of_others_do_not_use_up_the_records(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.service.play.history.RECORDS_MAX", 2)
    for caller, sessions in ((OPERATOR, night.own), (OTHER, night.others)):
        found = await night.harness.history.get_records(
            caller, round_id=night.rounds[0], player="", date="", game_code=""
        )
        assert {record.summary.session.session_id for record in found} == sessions


async def test_messages_carry_paths_and_what_all_share(night: Night, tmp_path: Path) -> None:
    log = PublicLog(audit=night.harness.audit, folder=tmp_path, vkey_of=lambda _: "")
    methods: dict[str, Any] = {**audit_methods(night.harness.audit, log), **history_methods(night.harness.history)}
    listed = audit_pb2.ListStatementsResponse.FromString(
        await methods["ListStatements"].answer(
            OPERATOR, audit_pb2.ListStatementsRequest(round_id=night.rounds[0], page_size=200)
        )
    )
    assert [len(one.path) for one in listed.statements if one.kind == "seat_opening"] == [6, 6]
    assert not any(one.path for one in listed.statements if one.kind != "seat_opening")
    (opening, *_) = [one for one in listed.statements if one.kind == "seat_opening"]
    got = audit_pb2.GetStatementResponse.FromString(
        await methods["GetStatement"].answer(OPERATOR, audit_pb2.GetStatementRequest(hash=opening.hash))
    )
    assert got.statement == opening
    request = history_pb2.GetRoundRecordRequest(round_id=night.rounds[0], session_id=opening.session_id)
    (record,) = history_pb2.GetRoundRecordResponse.FromString(
        await methods["GetRoundRecord"].answer(OPERATOR, request)
    ).records
    assert (record.opening, list(record.path)) == (opening.envelope, list(opening.path))
    shared = {one.kind: one.envelope for one in listed.statements if one.kind in SHARED}
    assert (record.table_round, record.table_deal, record.table_final) == tuple(shared[kind] for kind in SHARED)
    with pytest.raises(InvalidFieldError, match="session_id"):
        await methods["GetRoundRecord"].answer(
            OPERATOR,
            history_pb2.GetRoundRecordRequest(
                player="player-1", date="2026-11-21", game_code="#00:00:00", session_id=opening.session_id
            ),
        )


def _leaf(seat: dict[str, Any]) -> bytes:
    return leaf_hash(format_canonical(seat))


async def test_a_pseudonym_at_two_operators_is_two_players(night: Night) -> None:
    history = night.harness.history
    start_ms = (await history.get_records(AUDITOR, round_id=night.rounds[0], player="", date="", game_code=""))[
        0
    ].summary.round.start_ms
    code = read_statement(next(row for row in night.rows if row.kind == "table_round").envelope)["game_code"]
    for caller, sessions in ((OPERATOR, night.own), (OTHER, night.others)):
        listed, _ = await history.list_rounds(caller, RoundsFilter("player-1"), 50, "")
        assert {summary.session.session_id for summary in listed} < sessions
        assert len(listed) == (1 if caller is OPERATOR else 2)
        (found,) = await history.get_records(
            caller, round_id="", player="player-1", date=format_date(start_ms), game_code=code
        )
        assert found.summary.session.session_id in sessions


async def test_a_record_of_the_log_is_given_to_whom_it_is_for(night: Night, tmp_path: Path) -> None:
    await sequence(night.harness, tmp_path / "log")
    night.harness.audit.take_key_statements(parse_key_bundle(key_bundle()))
    log = PublicLog(audit=night.harness.audit, folder=tmp_path / "log", vkey_of=lambda _: "")
    for row in night.rows:
        for caller in (OPERATOR, OTHER, STRANGER, AUDITOR):
            requested = log.record(caller, hash=row.hash, round_id="", session_id="", kind="")
            if night.allowed(caller, row):
                assert (await requested)[0].hash == row.hash
            else:
                with pytest.raises(NotFoundError):
                    await requested


def test_entries_are_streamed_to_those_who_read_all() -> None:
    assert Role.OPERATOR not in ROLES["rgs.v1.AuditService/StreamEntries"]
