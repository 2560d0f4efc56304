"""Voids of rounds of tables (RULEBOOK R-6, ARCHITECTURE 2.20): a logged malfunction, a code, two different admins."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import InvalidFieldError, NotFoundError, RoundNotPausedError, SecondAdminError, TableStateError
from rgs.core.tables.machine import State
from rgs.service.sealing import Kek
from rgs.store.changes import Change, VoidProposal
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, verify_books
from tests.support.service.table_orders import betting, close_bets
from tests.support.service.tables import ADMIN, SECOND_ADMIN


@pytest.mark.parametrize("table_id", ["uth-online", "uth-seven-box"])
async def test_two_admins_make_a_round_void(tmp_path: Path, table_id: str) -> None:
    async with open_harness(tmp_path) as harness:
        evening, sitters = await betting(harness, "player-1", "player-2", table_id=table_id)
        admin = harness.tables.admin
        await evening.until(State.DECIDING)
        await sitters[0].decide("play_4x")
        round_id = (await evening.row()).table.round_id
        with pytest.raises(RoundNotPausedError):
            await admin.void(ADMIN, harness.request_id(), table_id, round_id, "DISPLAY_FAULT")
        await admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
        with pytest.raises(NotFoundError):
            await admin.void(ADMIN, harness.request_id(), table_id, "0" * 26, "DISPLAY_FAULT")
        with pytest.raises(InvalidFieldError):
            await admin.void(ADMIN, harness.request_id(), table_id, round_id, "DECK_UNRECOVERABLE")
        first_id = harness.request_id()
        approved, envelope = await admin.void(ADMIN, first_id, table_id, round_id, "WRONG_WORD")
        event = read_statement(envelope)
        assert (approved, event["code"], event["actor"]) == (False, "VOID_PROPOSED", "admin-1")
        assert await admin.void(ADMIN, first_id, table_id, round_id, "WRONG_WORD") == (False, envelope)
        with pytest.raises(SecondAdminError):
            await admin.void(ADMIN, harness.request_id(), table_id, round_id, "WRONG_WORD")
        with pytest.raises(InvalidFieldError) as caught:
            await admin.void(SECOND_ADMIN, harness.request_id(), table_id, round_id, "DISPLAY_FAULT")
        assert (caught.value.field, caught.value.metadata["limit"]) == ("reason", "WRONG_WORD")
        approved, _ = await admin.void(ADMIN, harness.request_id(), table_id, round_id, "DISPLAY_FAULT")
        assert not approved, "who proposed may propose anew, for another reason"
        harness.clock.tick(60_000)
        last_id = harness.request_id()
        approved, envelope = await admin.void(SECOND_ADMIN, last_id, table_id, round_id, "DISPLAY_FAULT")
        final = read_statement(envelope)
        assert (approved, final["kind"], final["status"]) == (True, "table_final", "void")
        assert [one["party"] for one in final["void"]["approvals"]] == ["admin-1", "admin-2"]
        assert len(final["deck"]) == 52
        assert await admin.void(SECOND_ADMIN, last_id, table_id, round_id, "DISPLAY_FAULT") == (True, envelope)
        assert await harness.store.void_proposal(round_id) is None
        assert (await evening.row()).malfunction_code == ""
        ((said,), _) = await harness.tables.chat.list(ADMIN, table_id, 1, "")
        assert said.code == "ROUND_VOID"
        await evening.until(State.RESULT)
        for sitter in sitters:
            await sitter.look()
            assert sitter.session["balance_minor"] == 100_000
            await sitter.leave()
            await sitter.end()
        await evening.until(State.IDLE)
        await harness.settle()
    assert replay(tmp_path).rounds_verified == 1
    verify_books(tmp_path)


async def test_a_repeated_order_is_logged_once(tmp_path: Path) -> None:
    """The lines are an alarm (docs/runbook.md, RgsVoids): one for each proposal and each void, none for a repeat."""
    async with open_harness(tmp_path) as harness:
        evening, _ = await betting(harness, "player-1", table_id="uth-online")
        admin = harness.tables.admin
        await evening.until(State.DECIDING)
        round_id = (await evening.row()).table.round_id
        await admin.pause(ADMIN, harness.request_id(), "uth-online", "DISPLAY_FAULT")
        first_id, last_id = harness.request_id(), harness.request_id()
        with capture_logs() as lines:
            for caller, order_id in ((ADMIN, first_id), (SECOND_ADMIN, last_id)):
                answers = [
                    await admin.void(caller, order_id, "uth-online", round_id, "DISPLAY_FAULT") for _ in range(3)
                ]
                assert answers[0] == answers[1] == answers[2]
        assert [(line["event"], line["admin"]) for line in lines if line["log_level"] == "warning"] == [
            ("void_proposed", "admin-1"), ("round_void", "admin-2"),
        ]  # fmt: skip
        await harness.settle()


async def test_a_resumed_round_needs_another_proposal(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    admin = harness.tables.admin
    await evening.until(State.DECIDING)
    round_id = (await evening.row()).table.round_id
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "FAULT")
    await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "FAULT")
    await admin.resume(ADMIN, harness.request_id(), "uth-online", "REPAIRED")
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "FAULT")
    approved, _ = await admin.void(SECOND_ADMIN, harness.request_id(), "uth-online", round_id, "FAULT")
    assert not approved


async def test_a_round_that_goes_on_meanwhile_is_not_proposed(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening, _ = await betting(harness, "player-1")
    admin, commit = harness.tables.admin, harness.store.commit
    await evening.until(State.DECIDING)
    round_id = (await evening.row()).table.round_id
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "FAULT")

    async def resumed_meanwhile(change: Change) -> object:
        if any(isinstance(record, VoidProposal) for record in change.records):
            monkeypatch.setattr(harness.store, "commit", commit)
            await admin.resume(ADMIN, harness.request_id(), "uth-online", "REPAIRED")
        return await commit(change)

    monkeypatch.setattr(harness.store, "commit", resumed_meanwhile)
    with pytest.raises(RoundNotPausedError):
        await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "FAULT")
    assert await harness.store.void_proposal(round_id) is None


async def test_bets_that_are_not_drawn_for_are_not_made_void(harness: ServiceHarness) -> None:
    evening, _ = await betting(harness, "player-1")
    admin = harness.tables.admin
    await admin.pause(ADMIN, harness.request_id(), "uth-online", "FAULT")
    round_id = (await evening.row()).table.round_id
    with pytest.raises(TableStateError):
        await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "FAULT")


async def test_a_round_is_made_void_before_its_draw(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        evening, (sitter,) = await betting(harness, "player-1")
        admin, rounds = harness.tables.admin, harness.tables.rounds
        await close_bets(evening)
        await harness.store.commit(await rounds.fix_change(await evening.row(), harness.clock.now_ms()))
        assert await evening.state() is State.FIXED
        round_id = (await evening.row()).table.round_id
        await admin.pause(ADMIN, harness.request_id(), "uth-online", "NO_POWER")
        with pytest.raises(InvalidFieldError):
            await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "DECK_UNRECOVERABLE")
        await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "NO_POWER")
        approved, envelope = await admin.void(SECOND_ADMIN, harness.request_id(), "uth-online", round_id, "NO_POWER")
        assert approved
        assert "deck" not in read_statement(envelope)
        await evening.until(State.RESULT)
        await sitter.look()
        assert (sitter.session["balance_minor"], sitter.seat["reserved_minor"]) == (100_000, 0)
        await sitter.leave()
        await sitter.end()
        await evening.until(State.IDLE)
        await harness.settle()
    replay(tmp_path)


async def test_a_deck_that_cannot_be_opened_has_its_own_reason(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        evening, _ = await betting(harness, "player-1")
        await evening.until(State.DECIDING)
        round_id = (await evening.row()).table.round_id
        await harness.tables.admin.pause(ADMIN, harness.request_id(), "uth-online", "KEY_LOST")
    async with open_harness(tmp_path, kek=Kek(1, {1: bytes(32)}), clock=harness.clock.again()) as harness:
        admin = harness.tables.admin
        with pytest.raises(InvalidFieldError):
            await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "KEY_LOST")
        await admin.void(ADMIN, harness.request_id(), "uth-online", round_id, "DECK_UNRECOVERABLE")
        approved, envelope = await admin.void(
            SECOND_ADMIN, harness.request_id(), "uth-online", round_id, "DECK_UNRECOVERABLE"
        )
        assert approved
        assert "deck" not in read_statement(envelope)
        for _ in range(3):
            await harness.tables.dealer.advance("uth-online")
        assert not await harness.store.has_unfinished(round_id)
