"""Whole days of play by several players, in both ways of funding, with an operator's wallet and a regulator that
lose, repeat, delay and reorder messages and contradict themselves.

Then the faults end, recovery runs, and: no player is owed, each participation has ended once, every signed transfer
stands in the wallet once, the days align, replay is clean.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgs.core.errors import RgsError, UnavailableError, WalletRefusedError
from rgs.core.ids import ULID_RANDOM_BYTES, format_ulid
from rgs.ports.wallet import Receipt, TransactionStatus, Transfer
from rgs.service.callers import Caller, Role
from rgs.service.money import transfers
from rgs.service.play import seamless
from rgs.service.play.operations import Operations
from tests.property.test_lives_whole import PHASES, Step, World, entropy_of
from tests.support.clocks import ManualClock
from tests.support.service.harness import Request, ServiceHarness
from tests.support.service.oracles import stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player
from tests.support.service.seamless import FUNDINGS, PACE_MS, Better, verify_seamless

DAY_MS: Final = 86_400_000
ADMIN: Final = Caller("admin-1", Role.ADMIN, "")
WALLET: Final = ("ok", "ok", "ok", "before", "after", "twice", "late", "conflict")
DEBIT: Final = (*WALLET, "refused")
REGULATOR: Final = ("ok", "ok", "ok", "before", "after", "twice", "late")

WHAT: Final = [*["next"] * 12, "buy", "end", "close", "repeat", "double", "recover", "report", "tick", "hours", "rule"]
STEPS = st.builds(Step, st.sampled_from(WHAT), st.integers(0, 2), st.integers(0, 999))
BATCHES = st.lists(
    st.one_of(st.lists(STEPS, min_size=1, max_size=5), st.sampled_from(["stop", "die"])), min_size=1, max_size=16
)
CHANCES = st.lists(st.integers(0, 8), min_size=1, max_size=40)


class Days(World):
    """Three players of one way of funding; `chances` say what goes wrong, over and over."""

    def __init__(self, folder: Path, chances: Sequence[int], *, is_seamless: bool) -> None:
        self.folder = folder
        self._chances, self._count, self._faulty = chances, 0, True
        self._is_seamless = is_seamless
        self.harness = self._opened(ManualClock())
        games = ("uth-solo", "casino-holdem", "uth-solo")
        kind: Callable[..., Player] = Better if is_seamless else Player
        self.players = [kind(self.harness, game=game, name=f"player-{n}") for n, game in enumerate(games)]
        self.pending: dict[int, Request] = {}
        self.answers = {}
        self.refusals = {}

    def _opened(self, clock: ManualClock) -> ServiceHarness:
        harness = ServiceHarness(self.folder, clock=clock, fundings=FUNDINGS)
        harness.wallet_script.otherwise = lambda method: self._chance(WALLET if method != "debit" else DEBIT)
        harness.regulator_script.otherwise = lambda _: self._chance(REGULATOR)
        return harness

    def _chance(self, of: Sequence[str]) -> str:
        if not self._faulty:
            return "ok"
        self._count += 1
        return of[self._chances[self._count % len(self._chances)] % len(of)]

    async def restart(self, how: str) -> None:
        for script in (self.harness.wallet_script, self.harness.regulator_script):
            await script.deliver()
        await self.harness.stop(ended=how == "stop")
        self.harness.clock.tick(1000)
        self.harness = self._opened(self.harness.clock)
        for player in self.players:
            player.harness = self.harness
        await self.harness.start()

    def next_request(self, player: Player, number: int) -> Request:
        if isinstance(player, Better) and player.session:
            self.harness.clock.tick(PACE_MS)
            if not (player.round and player.round["status"] == "open"):
                return player.starting(20 + 2 * (number % 20))
        return super().next_request(player, number)

    async def take(self, step: Step) -> None:
        match step.what:
            case "hours":
                self.harness.clock.tick(step.number * 600)
            case "rule":
                await self.harness.services.interruptions.finish_due()
            case "buy" | "end" if self._is_seamless:
                return
            case _:
                await super().take(step)

    async def begin(self) -> None:
        await self.harness.start()
        for player in self.players:
            if isinstance(player, Better):
                await player.fill()

    async def finish(self) -> None:
        self._faulty = False
        for script in (self.harness.wallet_script, self.harness.regulator_script):
            script.forget()
            await script.deliver()
        await self.harness.settle()
        for who, player in enumerate(self.players):
            request = self.pending.pop(who, None)
            if request is not None:
                with_error = await self._outcome(who, request)
                assert with_error is None or not isinstance(with_error, UnavailableError)
            await self._leave(player)
        await self.harness.settle()
        assert await self.harness.services.outbox.pending_credits(ADMIN, 0, "") == ((), "")
        assert await self.harness.services.outbox.held_reports(0, "") == ((), "")
        self.harness.clock.tick(2 * DAY_MS)
        await self.harness.services.reporting.align_days()
        assert await self.harness.services.outbox.held_reports(0, "") == ((), ""), "the days align"
        assert await self.harness.services.outbox.figures() == ((), ())

    async def _outcome(self, who: int, request: Request) -> RgsError | None:
        try:
            self.players[who].take(request, await self.harness.send(request, self.players[who].caller))
        except RgsError as error:
            return error
        return None

    async def _leave(self, player: Player) -> None:
        for _ in range(20):
            if not player.session or player.session["status"] == "closed":
                return
            await self.refresh(player)
            if player.session["status"] == "closed":
                return
            await player.send(self.leaving(player))
        raise AssertionError(f"{player.name} cannot leave")

    def leaving(self, player: Player) -> Request:
        if player.round:
            return World.next_request(self, player, 0)
        return player.closing() if self._is_seamless else super().leaving(player)


async def live(folder: Path, batches: Sequence[list[Step] | str], chances: Sequence[int], *, is_seamless: bool) -> None:
    world = Days(folder, chances, is_seamless=is_seamless)
    try:
        await world.begin()
        for batch in batches:
            if isinstance(batch, str):
                await world.restart(batch)
            else:
                await asyncio.gather(*map(world.take, batch))
            verify_numbers(stored_statements(folder))
            await world.verify_memory()
        await world.finish()
    except BaseException:
        await world.harness.stop(ended=False)
        raise
    await world.harness.stop()
    if is_seamless:
        verify_seamless(folder)
    else:
        verify_books(folder)


@pytest.mark.parametrize("is_seamless", [False, True], ids=["participation", "seamless"])
@settings(max_examples=25, phases=PHASES)
@given(batches=BATCHES, chances=CHANCES, seed=st.integers(0, 1 << 32))
def test_whatever_goes_wrong_nobody_is_owed_in_the_end(
    is_seamless: bool, batches: list[list[Step] | str], chances: list[int], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(seed):
        asyncio.run(live(Path(folder), batches, chances, is_seamless=is_seamless))


# --- the oracle sees it -----------------------------------------------------------------------------------------------

ORDINARY: Final[list[list[Step] | str]] = [
    *[[Step("next", who, 3 * number), Step("recover", 0, 0)] for number in range(14) for who in (0, 1)],
    "die",
    *[
        [Step("next", who, number), Step("recover", 0, 0), Step("tick", 0, 900)]
        for number in range(6)
        for who in (0, 1)
    ],
]
ROUGH: Final = [0, 4, 1, 3, 2, 7, 4, 0, 6, 4, 5, 0]


def live_roughly(*, is_seamless: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(7):
        asyncio.run(live(Path(folder), ORDINARY, ROUGH, is_seamless=is_seamless))


@pytest.mark.parametrize("is_seamless", [False, True])
def test_a_rough_day_adds_up(is_seamless: bool) -> None:
    live_roughly(is_seamless=is_seamless)


def test_the_oracle_sees_a_credit_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def careless(_self: transfers.Transfers, transfer: Transfer) -> Receipt:
        """The wallet will have taken it."""
        return Receipt(transfer.transaction_id, TransactionStatus.DUPLICATE, 0, "")

    monkeypatch.setattr(transfers.Transfers, "credit", careless)
    with pytest.raises(AssertionError):
        live_roughly(is_seamless=True)


def test_the_oracle_sees_a_debit_under_a_new_id(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine, ids = seamless._transfer, iter(range(10_000))

    def careless(*args: object) -> Transfer:
        transfer = genuine(*args)  # type: ignore[arg-type]
        return replace(transfer, transaction_id=format_ulid(next(ids), bytes(ULID_RANDOM_BYTES)))

    monkeypatch.setattr(seamless, "_transfer", careless)
    with pytest.raises(AssertionError):
        live_roughly(is_seamless=True)


def test_the_oracle_sees_a_timeout_read_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Operations.paid

    async def careless(self: Operations, operation, session, transfer):  # type: ignore[no-untyped-def]
        try:
            return await genuine(self, operation, session, transfer)
        except UnavailableError:
            await self._fail(operation, session, WalletRefusedError("no"))
            raise

    monkeypatch.setattr(Operations, "paid", careless)
    with pytest.raises((AssertionError, RgsError)):
        live_roughly(is_seamless=True)
