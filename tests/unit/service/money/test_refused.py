"""A refusal that the server learned while nobody waited is the answer of the request that began it: over a restart, in
both stores, and under no second transaction id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.api.errors import status_of
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    RegulatorRefusedError,
    RgsError,
    UnavailableError,
    WalletRefusedError,
    WalletUnavailableError,
)
from rgs.core.games.types import Action
from rgs.core.views import RoundChangedError
from rgs.service.money.refusals import format_refusal, parse_refusal
from rgs.service.play.operations import UNDO_AFTER_MS
from rgs.service.play.requests import Act, BuyParticipation, StartRound
from rgs.store.address import PostgresAddress
from rgs.store.opening import open_parties, open_store
from tests.support.clocks import ManualClock
from tests.support.service.harness import Request, ServiceHarness
from tests.support.service.player import Player, refused
from tests.support.service.seamless import FUNDINGS, PACE_MS, Better
from tests.support.store.databases import fresh_database

OTHER: dict[type, dict[str, Any]] = {
    Act: {"action": Action.PLAY_3X},
    BuyParticipation: {"amount_minor": 5_001},
    StartRound: {"bets": {"ante": 200}},
}
"""Other content under the same request id."""
BARRED = WalletRefusedError("the player is excluded", refusal="PLAYER_BLOCKED", transaction_id="T")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[PostgresAddress | None]:
    if request.param == "sqlite":
        yield None
    else:
        with fresh_database() as address:
            yield address


@asynccontextmanager
async def living(
    folder: Path, database: PostgresAddress | None, clock: ManualClock, *, ended: bool = True
) -> AsyncIterator[ServiceHarness]:
    """One life of a server over its store."""
    if database is None:
        harness = ServiceHarness(folder, clock=clock, fundings=FUNDINGS)
    else:
        store, parties = await open_store(database), await open_parties(database)
        harness = ServiceHarness(folder, clock=clock, fundings=FUNDINGS, store=store, parties=parties)
    await harness.start()
    try:
        yield harness
    finally:
        await harness.stop(ended=ended)


async def a_start(harness: ServiceHarness) -> tuple[Player, Request]:
    anna = Better(harness)
    await anna.open()
    harness.clock.tick(PACE_MS)
    return anna, anna.starting(100)


async def a_decision(harness: ServiceHarness) -> tuple[Player, Request]:
    anna = Better(harness)
    await anna.open()
    await anna.start(100)
    return anna, anna.decision("play_4x")


async def a_purchase(harness: ServiceHarness) -> tuple[Player, Request]:
    anna = Player(harness)
    await anna.open()
    return anna, anna.purchase(5_000)


def on_the_wire(error: RgsError) -> bytes:
    return status_of(error, method="m", request_id="r", now_ms=0).SerializeToString()


@pytest.mark.parametrize("prepare", [a_start, a_decision, a_purchase])
async def test_refused_in_the_background_is_refused_for_ever(
    tmp_path: Path,
    database: PostgresAddress | None,
    prepare: Callable[[ServiceHarness], Awaitable[tuple[Player, Request]]],
) -> None:
    """The wallet cannot be reached, then refuses, then would accept."""
    clock = ManualClock()
    async with living(tmp_path, database, clock, ended=False) as harness:
        player, request = await prepare(harness)
        harness.wallet_script.plan("debit", "before", BARRED)
        with pytest.raises(WalletUnavailableError):
            await player.send(request)
        await harness.sessions.recover()
        assert harness.wallet_script.count("debit") == 2 + (prepare is a_decision)
        debits = harness.wallet_script.count("debit")
        first = await refused(harness, player, request)
        assert (type(first), first.metadata["refusal"]) == (WalletRefusedError, "PLAYER_BLOCKED")
        assert harness.wallet_script.count("debit") == debits, "nobody was asked under another id"
    async with living(tmp_path, database, clock) as harness:
        player.harness = harness
        clock.tick(3_600_000)
        again = await refused(harness, player, request)
        assert on_the_wire(again) == on_the_wire(first) == on_the_wire(BARRED)
        assert harness.wallet_script.calls == []
        with pytest.raises(IdempotencyConflictError):
            await harness.send(replace(request, **OTHER[type(request)]), player.caller)
        clock.time_ms -= 3_600_000 - PACE_MS
        await player.send(replace(request, request_id=harness.request_id()))
        assert harness.wallet_script.count("debit") == 1


@pytest.mark.parametrize("answer", [IdempotencyConflictError("another player's"), BARRED], ids=["conflict", "refused"])
@pytest.mark.parametrize("prepare", [a_start, a_decision, a_purchase])
async def test_a_wallet_that_does_not_say_what_became_of_a_debit_has_refused_nothing(
    tmp_path: Path,
    prepare: Callable[[ServiceHarness], Awaitable[tuple[Player, Request]]],
    answer: RgsError,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It took the money, its answer was lost, and now it refuses to say so: nothing is lost or given back."""
    clock = ManualClock()
    async with living(tmp_path, None, clock) as harness:
        player, request = await prepare(harness)
        harness.wallet_script.plan("debit", "after", "conflict")
        with pytest.raises(WalletUnavailableError):
            await player.send(request)

        async def does_not_say(**_: object) -> None:
            raise answer

        with monkeypatch.context() as patched:
            patched.setattr(harness.wallet, "get_transaction", does_not_say)
            with pytest.raises(WalletUnavailableError, match="does not say what became of"):
                await player.send(request)
            clock.tick(UNDO_AFTER_MS)
            with pytest.raises(WalletUnavailableError, match="does not say what became of"):
                await player.send(request)
            await harness.sessions.recover()
        moved = [row.kind for row in harness.wallet_store.rows()]
        assert "rollback" not in moved
        await player.send(request)
        assert [row.kind for row in harness.wallet_store.rows() if row.kind != "credit"] == moved


# --- how it is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        BARRED,
        InsufficientFundsError("the account held 5", field="amount_minor", limit=5, value=9),
        RegulatorRefusedError("nein \u00e4\u0000\U0001f0a1", rejection="LIMIT"),
        RoundChangedError("moved", field="round_version", value=1),
    ],
)
def test_a_refusal_is_told_again_as_it_was_told(error: RgsError) -> None:
    kept = format_refusal(error)
    assert kept.isascii()
    again = parse_refusal(kept)
    assert type(again) is type(error)
    assert on_the_wire(again) == on_the_wire(error)


@given(st.text(max_size=40), st.dictionaries(st.sampled_from(["limit", "value", "refusal"]), st.text(max_size=20)))
def test_any_words_of_a_peer_come_back(message: str, metadata: dict[str, str]) -> None:
    again = parse_refusal(format_refusal(WalletRefusedError(message, field=None, **metadata)))
    assert (again.message, again.metadata, again.field) == (message, metadata, None)


def test_what_may_be_asked_again_is_no_refusal() -> None:
    with pytest.raises(TypeError, match="does not end an operation"):
        format_refusal(UnavailableError("down"))
