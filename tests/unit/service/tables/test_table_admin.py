"""Orders about tables: configured, opened and shut, paused and resumed, given up, made void by two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    IdempotencyConflictError,
    InvalidFieldError,
    NotFoundError,
    PermissionDeniedError,
    TableConfigError,
    TableStateError,
)
from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Role
from rgs.service.tables import admin as admin_module
from rgs.store.changes import Change, StoreError
from rgs.store.table_records import ChatMessage
from tests.support.service.admins import AdminOf, refusals
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.table_orders import betting, close_bets, evening_of
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Sitter, config_text


def reported(folder: Path, kind: str = "event") -> list[dict[str, Any]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == kind]
    return [body for body in bodies if body.get("code") not in {"RNG_INSTANTIATED", "CERTIFICATE_ADDED"}]


# --- configured -------------------------------------------------------------------------------------------------------


async def test_a_new_table_is_one_commit_with_its_artifact(tmp_path: Path, harness: ServiceHarness) -> None:
    admin, request_id = harness.tables.admin, harness.request_id()
    text = config_text("uth-online", hours=ALWAYS)
    entry, envelope = await admin.configure(ADMIN, request_id, text, "NEW_TABLE")
    assert (entry.config.id, entry.state, entry.players_at_least) == ("uth-online", State.IDLE, 0)
    event = read_statement(envelope)
    assert {name: event[name] for name in ("code", "actor", "subject", "after", "reason")} == {
        "code": "TABLE_CONFIGURED",
        "actor": "admin-1",
        "subject": "uth-online",
        "after": entry.config.sha256,
        "reason": "NEW_TABLE",
    }
    assert "before" not in event
    (artifact,) = [body for body in reported(tmp_path, "artifact") if body["name"] == "tables/uth-online"]
    assert (artifact["sha256"], int(artifact["bytes"])) == (entry.config.sha256, len(entry.config.canonical))
    assert int(event["statement_no"]) == int(artifact["statement_no"]) + 1
    assert await harness.store.artifact(entry.config.sha256) == entry.config.canonical
    found = await harness.store.table("uth-online")
    assert found is not None
    assert (found[0].config, found[0].next_config, found[0].table.version) == (entry.config.sha256, "", 2)
    await harness.tables.dealer.advance("uth-online")
    found = await harness.store.table("uth-online")
    assert found is not None
    assert found[0].table.state is State.IDLE, "the dealer opens it by its hours"


async def test_a_repeated_order_has_one_effect(tmp_path: Path, harness: ServiceHarness) -> None:
    admin, request_id = harness.tables.admin, harness.request_id()
    text = config_text("uth-online")
    first = await admin.configure(ADMIN, request_id, text, "NEW_TABLE")
    assert await admin.configure(ADMIN, request_id, text, "NEW_TABLE") == first
    assert len(reported(tmp_path)) == 1
    for other in ((text, "OTHER_REASON"), (config_text("uth-online", version=2), "NEW_TABLE")):
        with pytest.raises(IdempotencyConflictError):
            await admin.configure(ADMIN, request_id, *other)
    assert len(reported(tmp_path)) == 1


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        ("version", {"version": 1}),
        ("ruleset", {"version": 2, "ruleset": "uth-seven-box", "seats": 7}),
        ("jurisdiction", {"version": 2, "jurisdiction": "it-adm"}),
    ],
)
async def test_what_a_table_keeps_is_refused_by_the_row(
    tmp_path: Path, harness: ServiceHarness, row: str, changes: dict[str, Any]
) -> None:
    evening = await evening_of(harness)
    before, events = await evening.row(), len(reported(tmp_path))
    text = config_text("uth-online", hours=ALWAYS, **changes)
    with pytest.raises(TableConfigError) as caught:
        await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "CHANGE")
    assert caught.value.field == row
    assert (await evening.row(), len(reported(tmp_path))) == (before, events)


async def test_a_version_is_in_force_at_once_while_nobody_has_bet(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    text = config_text("uth-online", hours=ALWAYS, version=2, early_close=False)
    entry, envelope = await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "CHANGE")
    row = await evening.row()
    assert (entry.config.version, row.config, row.next_config) == (2, entry.config.sha256, "")
    event = read_statement(envelope)
    assert (event["before"], event["after"]) == (evening.config.sha256, row.config)


async def test_a_version_waits_for_the_end_of_the_round(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    admin = harness.tables.admin
    before = await evening.row()
    texts = [config_text("uth-online", hours=ALWAYS, version=version, early_close=False) for version in (2, 3)]
    for text in texts:
        entry, _ = await admin.configure(ADMIN, harness.request_id(), text, "CHANGE")
        assert entry.config.version == 1
    row = await evening.row()
    assert (row.config, row.due_ms, row.table.version) == (before.config, before.due_ms, before.table.version + 2)
    newest = (await harness.tables.configs.of(row.next_config)).version
    assert newest == 3
    with pytest.raises(TableConfigError) as caught:  # the newest counts, in force or not
        await admin.configure(ADMIN, harness.request_id(), texts[1], "CHANGE")
    assert caught.value.field == "version"
    await evening.until(State.DECIDING)
    assert (await evening.row()).config == before.config
    await evening.until(State.RESULT)
    await evening.pass_time()
    assert (await harness.tables.configs.of((await evening.row()).config)).version == 3


async def test_no_rule_changes_under_a_running_round(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    await evening.until(State.DECIDING)
    assert not await harness.store.has_bets("uth-online"), "what was reserved is staked"
    text = config_text("uth-online", hours=ALWAYS, version=2, early_close=False)
    await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "CHANGE")
    row = await evening.row()
    assert row.config == evening.config.sha256 != row.next_config


async def test_boxes_that_somebody_holds_are_not_taken_away(harness: ServiceHarness) -> None:
    evening = await evening_of(harness, "uth-seven-box")
    await Sitter(evening, "player-1").sit(box=4)
    await harness.tables.admin.reserve(
        ADMIN, harness.request_id(), "uth-seven-box", 6, OPERATOR.party, "player-2", "GUEST"
    )

    async def configure(seats: int) -> None:
        text = config_text("uth-seven-box", hours=ALWAYS, version=2, seats=seats)
        await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "CHANGE")

    with pytest.raises(TableConfigError) as caught:
        await configure(5)
    assert (caught.value.field, caught.value.metadata["value"]) == ("seats", "5")
    await configure(6)


@pytest.mark.parametrize("caller", [OPERATOR, Caller("auditor-1", Role.AUDITOR, "")])
async def test_only_admins_give_orders(tmp_path: Path, harness: ServiceHarness, caller: Caller) -> None:
    evening, _ = await betting(harness, "player-1")
    admin, request_id = harness.tables.admin, harness.request_id
    before, count = await evening.row(), len(stored_statements(tmp_path))
    name, round_id = before.table.table_id, before.table.round_id
    for call in (
        admin.configure(caller, request_id(), config_text("uth-online", version=2), "CHANGE"),
        admin.set_open(caller, request_id(), name, is_open=False, reason="CLOSED"),
        admin.pause(caller, request_id(), name, "FAULT"),
        admin.resume(caller, request_id(), name, "REPAIRED"),
        admin.cancel(caller, request_id(), name, "REPAIRED"),
        admin.void(caller, request_id(), name, round_id, "FAULT"),
        admin.reserve(caller, request_id(), name, 1, "op-1", "player-1", "GUEST"),
        admin.erase_message(caller, request_id(), "0" * 26, "RUDE"),
    ):
        with pytest.raises(PermissionDeniedError):
            await call
    assert (await evening.row(), len(stored_statements(tmp_path))) == (before, count)


async def test_orders_name_codes_and_tables_that_exist(harness: ServiceHarness) -> None:
    await evening_of(harness)
    admin, request_id = harness.tables.admin, harness.request_id
    for field, call in (
        ("reason", admin.set_open(ADMIN, request_id(), "uth-online", is_open=False, reason="because")),
        ("malfunction_code", admin.pause(ADMIN, request_id(), "uth-online", "a fault")),
        ("reason", admin.resume(ADMIN, request_id(), "uth-online", "")),
    ):
        with pytest.raises(InvalidFieldError) as refused:
            await call
        assert refused.value.field == field
    unknown: list[Awaitable[object]] = [
        admin.set_open(ADMIN, request_id(), "other", is_open=False, reason="CLOSED"),
        admin.pause(ADMIN, request_id(), "other", "FAULT"),
        admin.resume(ADMIN, request_id(), "other", "REPAIRED"),
        admin.cancel(ADMIN, request_id(), "other", "REPAIRED"),
        admin.void(ADMIN, request_id(), "other", "0" * 26, "FAULT"),
    ]
    for order in unknown:
        with pytest.raises(NotFoundError) as caught:
            await order
        assert (caught.value.metadata["kind"], caught.value.field) == ("table", "table")


# --- opened and shut --------------------------------------------------------------------------------------------------


async def test_a_table_is_shut_after_its_round_and_opened_again(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    admin, moved = harness.tables.admin, []
    harness.tables.signals.listen(_Listener(lambda *what: moved.append(what)))
    event = read_statement(
        await admin.set_open(ADMIN, harness.request_id(), "uth-online", is_open=False, reason="CLEANING")
    )
    assert (event["code"], event["actor"], event["reason"]) == ("TABLE_SHUT", "admin-1", "CLEANING")
    row = await evening.row()
    assert (row.is_shut, row.table.state, row.due_ms) == (True, State.BETTING, row.table.deadline_ms)
    assert moved == [("moved", "uth-online", row.table.version)]
    await evening.until(State.RESULT)
    assert await evening.until(State.SHUT) is State.SHUT
    assert (await evening.row()).due_ms == 0, "a table that an admin keeps shut is not looked at"
    event = read_statement(
        await admin.set_open(ADMIN, harness.request_id(), "uth-online", is_open=True, reason="CLEANED")
    )
    assert event["code"] == "TABLE_OPENED"
    assert (await evening.row()).due_ms == harness.clock.now_ms()
    await evening.look()
    assert await evening.state() is State.IDLE


class _Listener:
    """Keeps the signals of the process."""

    def __init__(self, keep: Callable[..., object]) -> None:
        self._keep = keep

    def moved(self, table_id: str, version: int) -> None:
        self._keep("moved", table_id, version)

    def seat_changed(self, session_id: str) -> None:
        self._keep("seat", session_id)

    def said(self, message: object) -> None:
        self._keep("said", message)


# --- paused, resumed, given up ----------------------------------------------------------------------------------------


async def test_a_paused_table_goes_on_with_a_whole_window(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        evening, (sitter,) = await betting(harness, "player-1")
        admin = harness.tables.admin
        await evening.until(State.DECIDING)
        heard: list[ChatMessage] = []
        harness.tables.signals.listen(_Listener(lambda kind, *what: heard.extend(what if kind == "said" else ())))
        harness.clock.tick(3_000)
        round_id = (await evening.row()).table.round_id
        envelope = await admin.pause(ADMIN, harness.request_id(), "uth-online", "DISPLAY_FAULT")
        event = read_statement(envelope)
        assert (event["code"], event["reason"], event["actor"]) == ("MALFUNCTION", "DISPLAY_FAULT", "admin-1")
        assert (event["subject"], event["round_id"]) == ("uth-online", round_id)
        row = await evening.row()
        assert (row.table.state, row.malfunction_code, row.due_ms) == (State.PAUSED, "DISPLAY_FAULT", 0)
        logged = await harness.store.statement_of_hash(bytes.fromhex(row.table.malfunction))
        assert logged is not None
        assert logged.envelope == envelope
        with pytest.raises(TableStateError):
            await admin.pause(ADMIN, harness.request_id(), "uth-online", "OTHER_FAULT")
        harness.clock.tick(3_600_000)
        event = read_statement(await admin.resume(ADMIN, harness.request_id(), "uth-online", "REPAIRED"))
        assert (event["code"], event["before"], event["after"]) == ("ROUND_RESUMED", "PAUSED", "DECIDING")
        row = await evening.row()
        deadline_ms = harness.clock.now_ms() + evening.config.timers.decision_ms
        assert (row.table.state, row.table.deadline_ms, row.due_ms) == (State.DECIDING, deadline_ms, deadline_ms)
        assert (row.malfunction_code, row.table.malfunction) == ("", "")
        with pytest.raises(TableStateError):
            await admin.resume(ADMIN, harness.request_id(), "uth-online", "REPAIRED")
        said, _ = await harness.tables.chat.list(ADMIN, "uth-online", 2, "")
        assert [line.code for line in said] == ["TABLE_RESUMED", "TABLE_PAUSED"]
        assert [message.code for message in heard] == ["TABLE_PAUSED", "TABLE_RESUMED"]
        await evening.until(State.RESULT)
        await evening.until(State.IDLE, State.BETTING)
        await sitter.look()
        await sitter.leave()
        await sitter.end()
        await evening.until(State.IDLE)
        await harness.settle()
    assert replay(tmp_path).rounds_verified == 1
    verify_books(tmp_path)


async def test_an_idle_table_is_paused_and_resumed_without_a_round(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    admin = harness.tables.admin
    event = read_statement(await admin.pause(ADMIN, harness.request_id(), "uth-online", "INSPECTION"))
    assert "round_id" not in event
    event = read_statement(await admin.resume(ADMIN, harness.request_id(), "uth-online", "INSPECTED"))
    assert (event["code"], event["after"]) == ("TABLE_RESUMED", "IDLE")
    assert await evening.state() is State.IDLE
    await admin.set_open(ADMIN, harness.request_id(), "uth-online", is_open=False, reason="CLOSED")
    await evening.look()
    with pytest.raises(TableStateError):
        await admin.pause(ADMIN, harness.request_id(), "uth-online", "INSPECTION")


@pytest.mark.parametrize("from_state", [State.BETTING, State.CLOSED])
async def test_a_cancel_returns_every_bet(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, from_state: State
) -> None:
    monkeypatch.setattr(admin_module, "PAGE", 2)
    evening, sitters = await betting(harness, *(f"player-{number}" for number in range(5)))
    admin = harness.tables.admin
    if from_state is State.CLOSED:
        await close_bets(evening)
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    if from_state is State.CLOSED:  # one of them has left while the bets were cut
        await sitters[0].leave()
    event = read_statement(await admin.cancel(ADMIN, harness.request_id(), "uth-online", "NO_POWER"))
    assert (event["code"], event["before"], event["after"]) == ("BETS_CANCELLED", "PAUSED", "IDLE")
    row = await evening.row()
    assert (row.table.state, row.table.round_id, row.malfunction_code) == (State.IDLE, "", "")
    assert not await harness.store.has_bets("uth-online")
    assert await harness.store.reserved_breaks("uth-online", "", 9) == []
    staying = sitters[from_state is State.CLOSED :]
    assert await harness.store.count_sittings("uth-online", 9) == len(staying)
    for sitter in staying:
        await sitter.look()
        assert (sitter.seat["bets"], sitter.seat["reserved_minor"]) == ([], 0)
        await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)


async def test_a_cancel_that_died_half_way_is_given_again(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening, _ = await betting(harness, "player-1", "player-2", "player-3")
    admin, commit, returned = harness.tables.admin, harness.store.commit, 0
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "NO_POWER")

    async def dying(change: Change) -> Any:
        nonlocal returned
        if returned == 2:
            raise StoreError("the power is cut")
        returned += 1
        return await commit(change)

    request_id = harness.request_id()
    with monkeypatch.context() as patch:
        patch.setattr(harness.store, "commit", dying)
        with pytest.raises(StoreError):
            await admin.cancel(ADMIN, request_id, "uth-online", "NO_POWER")
    assert await evening.state() is State.PAUSED, "no idle table has bets"
    assert await harness.store.has_bets("uth-online")
    await admin.cancel(ADMIN, request_id, "uth-online", "NO_POWER")
    assert await evening.state() is State.IDLE
    assert not await harness.store.has_bets("uth-online")


async def test_a_round_is_not_cancelled(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    admin = harness.tables.admin
    with pytest.raises(TableStateError):  # bets are taken
        await admin.cancel(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    assert await harness.store.has_bets("uth-online")
    await evening.until(State.DECIDING)
    with pytest.raises(TableStateError):
        await admin.cancel(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    with pytest.raises(TableStateError):
        await admin.cancel(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    assert await evening.state() is State.PAUSED


async def test_bets_of_a_table_that_is_resumed_meanwhile_stay_where_they_are(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening, sitters = await betting(harness, "player-1", "player-2")
    admin = harness.tables.admin
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    cut_sittings = harness.store.cut_sittings

    async def resumed_meanwhile(*args: Any) -> Any:
        page = await cut_sittings(*args)
        if await evening.state() is State.PAUSED:
            await admin.resume(SECOND_ADMIN, harness.request_id(), "uth-online", "REPAIRED")
        return page

    monkeypatch.setattr(harness.store, "cut_sittings", resumed_meanwhile)
    with pytest.raises(TableStateError):
        await admin.cancel(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
    assert await evening.state() is State.BETTING
    for sitter in sitters:
        await sitter.look()
        assert sitter.seat["reserved_minor"] == 2_000


# --- rounds of tables are no rounds of solo play ----------------------------------------------------------------------


async def test_orders_about_solo_rounds_refuse_those_of_tables(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    await evening.until(State.DECIDING)
    before = await evening.row()
    round_id, one = before.table.round_id, AdminOf(harness)
    for call in (one.pause(round_id), one.resume(round_id)):
        with pytest.raises(TableStateError) as caught:
            await call
        assert caught.value.metadata["table"] == "uth-online"
    assert refusals(await one.propose(round_id)) == ["TABLE_STATE"]
    assert refusals(await one.approve(round_id)) == ["TABLE_STATE"]
    assert await evening.row() == before
