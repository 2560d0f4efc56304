"""Operations whose peers fall silent or refuse at any step: continued, they have one effect; refused, none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    NotFoundError,
    RegulatorRefusedError,
    RgsError,
    SessionChangedError,
    TransactionRolledBackError,
    UnavailableError,
    WalletRefusedError,
)
from rgs.core.ids import payout_id
from rgs.ports.regulator import Rejection, refusal_of
from rgs.ports.wallet import Receipt, Transfer
from rgs.service.play import sessions as sessions_module
from rgs.service.play.operations import Operations
from rgs.store.changes import Operation
from tests.support.service.harness import ACCOUNT_MINOR, Request, ServiceHarness, open_harness
from tests.support.service.oracles import stored_statements, table, verify_books
from tests.support.service.player import Player, refused

REFUSAL = RegulatorRefusedError("refused by plan", rejection="PLANNED")


async def before_opening(player: Player) -> Request:
    return player.opening()


async def before_purchase(player: Player) -> Request:
    await player.open()
    return player.purchase(5000)


async def before_top_up(player: Player) -> Request:
    await player.sit()
    await player.play()
    return player.purchase(5000)


async def before_ending(player: Player) -> Request:
    await player.sit()
    await player.play()
    await player.play()
    return player.ending()


async def before_closing(player: Player) -> Request:
    await before_ending(player)
    await player.end()
    return player.closing()


Prepare = Callable[[Player], Awaitable[Request]]
STEPS: list[tuple[Prepare, str]] = [
    (before_opening, "open_session"),
    (before_purchase, "debit"),
    (before_purchase, "buy_participation"),
    (before_top_up, "debit"),
    (before_top_up, "buy_participation"),
    (before_ending, "report_stages"),
    (before_ending, "end_participation"),
    (before_ending, "credit"),
    (before_closing, "close_session"),
]


def plan(harness: ServiceHarness, method: str, *steps: str | RgsError) -> None:
    script = harness.wallet_script if method in ("debit", "credit", "rollback") else harness.regulator_script
    script.plan(method, *steps)


async def finish(player: Player) -> None:
    """From wherever the session stands to its close."""
    if player.session["status"] == "closed":
        return
    if player.session["participation_id"] and not player.session["ended"]:
        await player.end()
    await player.close()


async def again(harness: ServiceHarness, anna: Player, request: Request) -> None:
    """The client sends the same request until it is answered."""
    for _ in range(8):
        try:
            await anna.send(request)
        except UnavailableError:
            continue
        return
    raise AssertionError("never answered")


async def by_recovery(harness: ServiceHarness, anna: Player, request: Request) -> None:
    """Recovery continues, and the client asks once more afterwards."""
    for _ in range(8):
        if await harness.sessions.recover():
            break
        harness.clock.tick(2000)  # the gaps grow
    calls = len(harness.wallet_script.calls), len(harness.regulator_script.calls)
    await anna.send(request)
    assert calls == (len(harness.wallet_script.calls), len(harness.regulator_script.calls)), "the answer was stored"


@pytest.mark.parametrize(
    ("silent", "continued"),
    [(("before",), again), (("after",), again), (("before", "after", "after"), by_recovery)],
)
@pytest.mark.parametrize(("prepare", "method"), STEPS)
async def test_an_operation_that_was_left_under_way_is_done_once(
    tmp_path: Path,
    harness: ServiceHarness,
    anna: Player,
    prepare: Prepare,
    method: str,
    silent: tuple[str, ...],
    continued: Callable[[ServiceHarness, Player, Request], Awaitable[None]],
) -> None:
    request = await prepare(anna)
    signed = len(stored_statements(tmp_path))
    plan(harness, method, *silent)
    with pytest.raises(UnavailableError):
        await anna.send(request)
    assert len(stored_statements(tmp_path)) == signed, "nothing is signed before it is known"
    assert table(tmp_path, "SELECT status FROM operations WHERE status = 'pending'") == [("pending",)]
    await continued(harness, anna, request)
    assert len(stored_statements(tmp_path)) == signed + 1
    _, reply = anna.sent[-1]
    assert await harness.send(request) == reply
    await finish(anna)
    await harness.settle()
    verify_books(tmp_path)
    if anna.session["paid_out_minor"]:
        money = anna.session
        assert await harness.balance() == ACCOUNT_MINOR - money["bought_minor"] + money["paid_out_minor"]


@pytest.mark.parametrize(("prepare", "method"), STEPS)
async def test_other_content_is_a_conflict_while_the_operation_is_under_way(
    harness: ServiceHarness, anna: Player, prepare: Prepare, method: str
) -> None:
    request = await prepare(anna)
    plan(harness, method, "after")
    with pytest.raises(UnavailableError):
        await anna.send(request)
    stored = table(harness.folder, "SELECT digest FROM operations WHERE status = 'pending'")
    harness.store._db.execute("UPDATE operations SET digest = x'00' WHERE status = 'pending'")
    with pytest.raises(IdempotencyConflictError):
        await anna.send(request)
    harness.store._db.execute("UPDATE operations SET digest = ? WHERE status = 'pending'", stored[0])
    await anna.send(request)


async def test_every_call_of_an_operation_carries_its_id(harness: ServiceHarness, anna: Player) -> None:
    """An end's credit carries that of the payout, which follows from the participation."""
    request = await before_ending(anna)
    plan(harness, "credit", "after", "before")
    await again(harness, anna, request)
    ((operation_id,),) = table(harness.folder, "SELECT operation_id FROM operations WHERE kind = 'end'")
    paid_out = payout_id(anna.session["participation_id"])
    assert [call for call in harness.wallet_script.calls if call[0] == "credit"] == [("credit", paid_out)] * 3
    assert {call for call in harness.regulator_script.calls if call[0] == "end_participation"} == {
        ("end_participation", operation_id)
    }


# --- definite refusals ------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[Prepare, str, RgsError]] = [
    (before_opening, "open_session", REFUSAL),
    (before_purchase, "debit", InsufficientFundsError("no", limit=1)),
    (before_purchase, "debit", WalletRefusedError("no", refusal="PLAYER_BARRED")),
    (before_purchase, "buy_participation", REFUSAL),
    (before_top_up, "buy_participation", REFUSAL),
    (before_ending, "report_stages", REFUSAL),
    (before_ending, "end_participation", REFUSAL),
    (before_closing, "close_session", REFUSAL),
]


@pytest.mark.parametrize("silent", [False, True], ids=["at once", "in the background"])
@pytest.mark.parametrize(("prepare", "method", "refusal"), REFUSALS)
async def test_a_definite_refusal_is_the_answer_of_its_request(
    tmp_path: Path, anna: Player, prepare: Prepare, method: str, refusal: RgsError, silent: bool
) -> None:
    """Whether its caller waited for it or not; another request does it then."""
    harness = anna.harness
    request = await prepare(anna)
    signed = len(stored_statements(tmp_path))
    plan(harness, method, *["before"] * silent, refusal)
    reported: RgsError = refusal
    if silent:
        with pytest.raises(UnavailableError):
            await anna.send(request)
        await harness.sessions.recover()
        if method == "buy_participation":  # its caller was told that it is unknown: that it was given up comes after it
            reported = TransactionRolledBackError("given up", refusal=refusal.reason)
    else:
        with pytest.raises(type(refusal)):
            await anna.send(request)
    assert await harness.sessions.recover() == 0
    assert table(tmp_path, "SELECT operation_id FROM operations WHERE status = 'pending'") == []
    assert len(table(tmp_path, "SELECT operation_id FROM operations WHERE status = 'undone'")) == 1
    assert len(stored_statements(tmp_path)) == signed
    if method == "buy_participation":
        assert await harness.balance() == ACCOUNT_MINOR - anna.session["bought_minor"], "the debit was rolled back"
    calls = len(harness.wallet_script.calls), len(harness.regulator_script.calls)
    heard = [await refused(harness, anna, request) for _ in range(3)]
    assert {type(error) for error in heard} == {type(reported)}
    assert all(error.metadata.items() >= reported.metadata.items() for error in heard)
    assert len({(error.message, error.field, str(error.metadata)) for error in heard}) == 1
    assert calls == (len(harness.wallet_script.calls), len(harness.regulator_script.calls)), "nobody was asked again"
    await anna.send(replace(request, request_id=harness.request_id()))
    await finish(anna)
    await harness.settle()
    verify_books(tmp_path)


@pytest.mark.parametrize(
    ("prepare", "method", "refusal"),
    [
        (before_ending, "end_participation", refusal_of(Rejection.ENDED_TWICE, "it has ended before")),
        (before_closing, "close_session", refusal_of(Rejection.SESSION_CLOSED, "it is closed")),
    ],
)
async def test_what_the_regulator_calls_over_already_goes_on(
    tmp_path: Path, harness: ServiceHarness, anna: Player, prepare: Prepare, method: str, refusal: RgsError
) -> None:
    """The first answer was lost, and the regulator does not know the transaction again: the player is paid."""
    request = await prepare(anna)
    plan(harness, method, "after", refusal)
    with pytest.raises(UnavailableError):
        await anna.send(request)
    await anna.send(request)
    await finish(anna)
    await harness.settle()
    verify_books(tmp_path)
    assert await harness.balance() == ACCOUNT_MINOR - anna.session["bought_minor"] + anna.session["paid_out_minor"]
    assert table(tmp_path, "SELECT operation_id FROM operations WHERE status != 'done'") == []


async def test_a_refused_opening_leaves_a_closed_session(harness: ServiceHarness, anna: Player) -> None:
    harness.regulator_script.plan("open_session", REFUSAL)
    with pytest.raises(RegulatorRefusedError):
        await anna.open()
    ((session_id,),) = table(harness.folder, "SELECT session_id FROM sessions")
    view, _ = await harness.sessions.get(anna.caller, session_id)
    assert (view.session.status.value, view.session.regulator_session_id, view.elapsed_ms) == ("closed", "", 0)


async def test_what_is_owed_to_the_player_is_never_given_up(tmp_path: Path, anna: Player) -> None:
    harness = anna.harness
    request = await before_ending(anna)
    harness.wallet_script.plan("credit", *[WalletRefusedError("no", refusal="ACCOUNT_UNKNOWN")] * 3)
    for _ in range(2):
        with pytest.raises(WalletRefusedError):
            await anna.send(request)
    assert await harness.sessions.recover() == 0, "not yet"
    harness.clock.tick(2000)
    assert await harness.sessions.recover() == 0
    assert len(table(tmp_path, "SELECT operation_id FROM operations WHERE status = 'pending'")) == 1
    harness.clock.tick(4000)
    assert await harness.sessions.recover() == 1
    await anna.send(request)
    await anna.close()
    await harness.settle()
    verify_books(tmp_path)


@pytest.mark.parametrize("silent", ["before", "after"])
async def test_a_rollback_that_is_not_answered_is_sent_again(
    tmp_path: Path, harness: ServiceHarness, anna: Player, silent: str
) -> None:
    request = await before_purchase(anna)
    harness.regulator_script.plan("buy_participation", REFUSAL)
    harness.wallet_script.plan("rollback", silent)
    with pytest.raises(UnavailableError):
        await anna.send(request)
    assert len(table(tmp_path, "SELECT operation_id FROM operations WHERE status = 'pending'")) == 1
    calls = len(harness.regulator_script.calls)
    for _ in range(2):  # given up is given up: the regulator is not asked again, nor is anything bought
        with pytest.raises(TransactionRolledBackError):
            await anna.send(request)
    assert len(harness.regulator_script.calls) == calls
    assert await harness.balance() == ACCOUNT_MINOR
    await anna.close()
    verify_books(tmp_path)


async def test_an_empty_account_buys_nothing(tmp_path: Path) -> None:
    async with open_harness(tmp_path, account_minor=4_999) as harness:
        anna = Player(harness)
        request = await before_purchase(anna)
        with pytest.raises(InsufficientFundsError):
            await anna.send(request)
        await anna.buy(4_999)
        assert await harness.balance() == 0
        await anna.leave()
    verify_books(tmp_path, account_minor=4_999)


async def test_without_its_account_no_session_is_opened(harness: ServiceHarness, anna: Player) -> None:
    await harness.wallet.close()
    request = anna.opening()
    with pytest.raises(UnavailableError):
        await anna.send(request)
    assert table(harness.folder, "SELECT * FROM sessions") == []


# --- recovery ---------------------------------------------------------------------------------------------------------


async def test_recovery_passes_over_what_is_still_silent(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More operations are stuck than a page holds: those behind them are continued all the same."""
    monkeypatch.setattr(sessions_module, "PAGE_SIZE_MAX", 2)
    requests = []
    for number in range(7):
        harness.clock.tick()
        player = Player(harness, name=f"player-{number}")
        await player.open()
        requests.append(player.purchase(100))
    harness.wallet_script.plan("debit", *["before"] * 12)
    for request in requests:
        with pytest.raises(UnavailableError):
            await harness.send(request)
    assert await harness.sessions.recover() == 2
    harness.clock.tick(2000)
    assert await harness.sessions.recover() == 5
    assert await harness.sessions.recover() == 0


async def test_recovery_goes_on_behind_an_operation_that_breaks(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be continued at all holds up no other; it is told once the others have been looked after."""
    bert = Player(harness, name="bert")
    for player in (anna, bert):
        await player.open()
    for player in (anna, bert):
        harness.wallet_script.plan("debit", "before")
        with pytest.raises(UnavailableError):
            await player.buy(100)
        harness.clock.tick()  # anna's is the older one
    genuine = harness.operations.advance

    async def broken(operation: Operation) -> object:
        if operation.session_id == anna.session_id:
            raise KeyError("planned")
        return await genuine(operation)

    monkeypatch.setattr(harness.operations, "advance", broken)
    with pytest.raises(KeyError):
        await harness.sessions.recover()
    assert [operation.session_id for operation in await harness.store.pending_operations(10)] == [anna.session_id]


async def test_recovery_does_not_do_again_what_was_done_meanwhile(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list and the lock the listed operation was done, and another one of the session began."""
    request = await before_purchase(anna)
    harness.wallet_script.plan("debit", "after")
    with pytest.raises(UnavailableError):
        await anna.send(request)
    listed = await harness.store.pending_operations(10)
    await anna.send(request)
    harness.wallet_script.plan("debit", "before")
    second = anna.purchase(300)
    with pytest.raises(UnavailableError):
        await anna.send(second)
    harness.store._db.execute("DELETE FROM answers")  # which would notice the repetition, too
    pages = [listed, []]

    async def stale(_limit: int, _after: str = "") -> list[Operation]:
        return pages.pop(0)

    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "pending_operations", stale)
        assert await harness.sessions.recover() == 0
    await anna.send(second)
    assert anna.session["bought_minor"] == 5300
    assert (await harness.store.pending_operations(10)) == []
    await anna.leave()
    verify_books(tmp_path)


async def test_recovery_passes_over_what_was_done_meanwhile(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await before_purchase(anna)
    harness.wallet_script.plan("debit", "after")
    with pytest.raises(UnavailableError):
        await anna.send(request)
    pages = [await harness.store.pending_operations(10), []]
    await anna.send(request)

    async def stale(_limit: int, _after: str = "") -> list[Operation]:
        return pages.pop(0)

    monkeypatch.setattr(harness.store, "pending_operations", stale)
    assert await harness.sessions.recover() == 0


async def test_an_operators_own_wallet_has_its_accounts_already(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    harness.sessions.open_account = None
    bert = Player(harness, name="bert")
    await bert.open()
    with pytest.raises(WalletRefusedError):
        await bert.buy()


async def test_recovery_after_a_restart_is_that_of_live_traffic(tmp_path: Path) -> None:
    async with open_harness(tmp_path, ended=False) as first:
        anna = Player(first)
        request = await before_ending(anna)
        first.wallet_script.plan("credit", "after")
        with pytest.raises(UnavailableError):
            await anna.send(request)
    async with open_harness(tmp_path, clock=first.clock) as second:
        assert await second.sessions.recover() == 1
        anna.harness = second
        await anna.send(request)
        await anna.close()
    verify_books(tmp_path)


async def test_an_operation_of_no_session_is_not_there(harness: ServiceHarness) -> None:
    operation = Operation("0" * 26, "1" * 26, "close", "pending", "op-1", "CloseSession", "x", b"", 0, 0, 0)
    with pytest.raises(NotFoundError):
        await harness.operations.advance(operation)


async def test_an_end_that_loses_a_race_says_so(anna: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process changed the session between the peers call and the commit."""
    harness = anna.harness
    request = await before_closing(anna)
    genuine = harness.regulator.close_session

    async def slow(close: object) -> object:
        read = await harness.store.session(anna.session_id)
        assert read is not None
        harness.store._db.execute("UPDATE sessions SET version = version + 1")
        harness.store._memory._fresh.clear()
        return await genuine(close)  # type: ignore[arg-type]

    monkeypatch.setattr(harness.regulator, "close_session", slow)
    with pytest.raises(SessionChangedError):
        await anna.send(request)
    monkeypatch.undo()
    await anna.send(request)
    assert anna.session["status"] == "closed"


# --- the oracles see what they are for --------------------------------------------------------------------------------


async def test_the_oracle_sees_a_transaction_id_that_changes(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: each attempt debits under an id of its own."""
    genuine = harness.wallet.debit

    async def careless(transfer: Transfer, **token: str) -> Receipt:
        return await genuine(replace(transfer, transaction_id=harness.instance.new_id(harness.clock.now_ms())), **token)

    monkeypatch.setattr(harness.wallet, "debit", careless)
    with pytest.raises(AssertionError):
        await test_an_operation_that_was_left_under_way_is_done_once(
            tmp_path, harness, anna, before_purchase, "buy_participation", ("before",), again
        )


async def test_the_oracle_sees_a_failure_read_into_a_timeout(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: an unanswered purchase is taken for refused."""

    async def careless(operation: Operation, session: object) -> object:
        try:
            return await Operations._purchase(harness.operations, operation, session)  # type: ignore[arg-type]
        except UnavailableError:
            await harness.operations._fail(operation, session, REFUSAL)  # type: ignore[arg-type]
            raise

    monkeypatch.setattr(harness.operations, "steps", {**harness.operations.steps, "purchase": careless})
    with pytest.raises(AssertionError):
        await test_an_operation_that_was_left_under_way_is_done_once(
            tmp_path, harness, anna, before_purchase, "debit", ("after",), again
        )
