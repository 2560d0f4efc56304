"""What another process has done to a round or an operation is read afresh where a call decides by it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    InvalidFieldError,
    RegulatorRefusedError,
    RegulatorUnavailableError,
    RoundNotPausedError,
    SessionChangedError,
    UnavailableError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.views import RoundChangedError
from rgs.service.callers import Reply
from rgs.service.money.transfers import AHEAD_MS
from rgs.service.play.requests import Act
from rgs.store.changes import Operation, OperationProgress
from tests.support.service.admins import AdminOf
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player
from tests.support.service.seamless import Better, opened


def elsewhere(folder: Path, statement: str, *values: object) -> None:
    """A statement of another process over the same store."""
    with closing(sqlite3.connect(folder / "rgs.db", isolation_level=None)) as db:
        db.execute(statement, values)


async def test_a_round_in_play_is_read_as_the_store_has_it(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    started = await anna.start()
    round_id, version = anna.round["round_id"], anna.round["round_version"]
    view, opening, final, session = await asyncio.wait_for(
        harness.play.get_round(OPERATOR, anna.session_id, round_id), 5
    )
    assert (view.round_version, opening, final) == (version, started.envelope, b"")
    elsewhere(tmp_path, "UPDATE rounds SET version = version + 1")
    open_round, opening = await harness.play.open_round_of(session)
    assert open_round is not None
    assert (open_round.round_version, opening) == (version + 1, started.envelope)
    elsewhere(tmp_path, "UPDATE sessions SET version = version + 1")
    for found, known in (
        (await harness.store.session(anna.session_id), session),
        (await harness.store.round(round_id), await harness.store.round(round_id, fresh=False)),
    ):
        assert found is not None
        assert known is not None
        assert found.version == known.version + 1
    decision = anna.decision("check")
    with pytest.raises(RoundChangedError):
        await harness.play.verify_decidable(session, decision)
    done: Any = None
    with pytest.raises(RoundChangedError):
        await harness.play.decide_paid(session, decision, done)
    elsewhere(tmp_path, "UPDATE rounds SET malfunction = ?, malfunction_code = 'ELSEWHERE'", "a" * 64)
    with pytest.raises(RoundNotPausedError) as paused:
        await AdminOf(harness).pause(round_id)
    assert paused.value.metadata == {"round_id": round_id, "malfunction_code": "ELSEWHERE"}


async def test_a_decision_from_a_view_of_another_process_is_taken_at_once(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    """This process remembers an older round: it reads the newer one and tries again."""
    await anna.sit()
    await anna.start()
    elsewhere(tmp_path, "UPDATE rounds SET version = version + 1")
    elsewhere(tmp_path, "UPDATE sessions SET version = version + 1")
    decision = anna.decision("check")
    await anna.send(replace(decision, round_version=decision.round_version + 1))
    assert anna.round["round_version"] == decision.round_version + 2


async def test_a_decision_on_a_round_that_has_no_id_names_the_field(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    with pytest.raises(InvalidFieldError) as refused:
        await anna.send(replace(anna.decision("check"), round_id="round-1"))
    assert refused.value.field == "round_id"
    assert isinstance(anna.decision("check"), Act)


async def test_an_operation_that_another_process_has_undone_is_refused_as_there(
    harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    request = anna.purchase(5_000)
    harness.wallet_script.plan("debit", "before", WalletRefusedError("no", refusal="LIMIT_REACHED"))
    with pytest.raises(WalletUnavailableError):
        await anna.send(request)
    (pending,) = await harness.store.pending_operations(10)
    with pytest.raises(WalletRefusedError):
        await anna.send(request)
    with pytest.raises(WalletRefusedError) as again:
        await harness.operations.advance(pending)
    assert again.value.metadata["refusal"] == "LIMIT_REACHED"


async def test_a_credit_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        harness.wallet_script.plan("credit", "before")
        await anna.play(100)
        (credit,) = await harness.store.pending_operations(10)
        assert credit.kind == "credit"
        assert await harness.operations.advance(credit) == Reply(b"", b"")
        count = harness.wallet_script.count("credit")
        with pytest.raises(SessionChangedError):
            await harness.operations.advance(credit)
        assert harness.wallet_script.count("credit") == count


async def test_an_end_that_the_regulator_does_not_answer_has_moved_no_money(
    harness: ServiceHarness, anna: Player
) -> None:
    """Only a purchase asks the regulator after the wallet."""
    await anna.sit()
    harness.regulator_script.plan("end_participation", "before")
    with pytest.raises(RegulatorUnavailableError):
        await anna.end()
    view = await anna.view()
    assert view.pending is not None
    assert (view.pending.kind, view.pending.progress) == ("end", OperationProgress.BEGUN)
    await anna.harness.settle()


async def test_what_is_refused_goes_no_further_and_its_caller_gets_the_very_refusal(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    refusal = WalletRefusedError("no", refusal="LIMIT_REACHED")
    harness.wallet_script.plan("debit", refusal)
    with pytest.raises(WalletRefusedError) as of_purchase:
        await anna.buy()
    assert of_purchase.value is refusal
    await anna.buy()
    planned = RegulatorRefusedError("no", rejection="SEATED")
    for method, call in (("end_participation", anna.end), ("close_session", anna.close)):
        harness.regulator_script.plan(method, "before", planned)
        with pytest.raises(RegulatorUnavailableError):
            await call()
        assert (await anna.view()).pending is not None
        await harness.sessions.recover()
        harness.regulator_script.plan(method, planned)
        with pytest.raises(RegulatorRefusedError) as refused:
            await call()
        assert refused.value is planned
        assert harness.wallet_script.count("credit") == (0 if method == "end_participation" else 1)
        kinds = {row.kind for row in stored_statements(tmp_path)}
        assert {"end_participation": "participation_end", "close_session": "session_close"}[method] not in kinds
        await call()
    assert (await anna.view()).session.status.value == "closed"


# --- recovery -------------------------------------------------------------------------------------------------------


async def test_recovery_tries_each_operation_once_and_raises_the_first_that_broke(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.service.play.sessions.PAGE_SIZE_MAX", 2)
    for number in range(5):
        player = Player(harness, name=f"player-{number}")
        await player.open()
        harness.wallet_script.plan("debit", "before")
        with pytest.raises(UnavailableError):
            await player.buy(100)
        harness.clock.tick()
    operations = [operation.operation_id for operation in await harness.store.pending_operations(10)]
    tried: list[str] = []

    async def broken(operation: Operation) -> Reply:
        tried.append(operation.operation_id)
        raise KeyError(len(tried))

    monkeypatch.setattr(harness.operations, "advance", broken)
    with pytest.raises(KeyError) as first:
        await harness.sessions.recover()
    assert tried == operations
    assert first.value.args == (1,)


@pytest.mark.parametrize(("ahead_ms", "tried"), [(AHEAD_MS, 0), (AHEAD_MS + 1, 1), (0, 0), (-999, 0), (-1_000, 1)])
async def test_what_has_just_begun_is_left_to_its_call(
    tmp_path: Path, harness: ServiceHarness, anna: Player, ahead_ms: int, tried: int
) -> None:
    """A time that is further ahead was written before the clock was set back."""
    await anna.open()
    harness.wallet_script.plan("debit", "before")
    with pytest.raises(UnavailableError):
        await anna.buy(100)
    elsewhere(tmp_path, "UPDATE operations SET next_ms = 0, created_ms = ?", harness.clock.now_ms() + ahead_ms)
    await harness.sessions.recover(1_000)
    assert harness.wallet_script.count("debit") == 1 + tried
