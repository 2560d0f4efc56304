"""Whole lives as hypothesis makes them: several players at once, requests repeated, doubled, late and out of order,
peers that fall silent, processes that stop or die. Whatever happens, money sums to zero, every participation ends once,
numbers have no gap, chains no break, an answer is an answer for ever, and replay agrees.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rgs.core.errors import (
    RegulatorRefusedError,
    RgsError,
    TransactionRolledBackError,
    UnavailableError,
    WalletRefusedError,
)
from rgs.core.ledger import Participation
from rgs.service.callers import Reply
from rgs.service.play import operations
from rgs.store.changes import Answer, Operation
from rgs.store.sqlite.store import SqliteReads
from rng import entropy
from tests.support.service.harness import Request, ServiceHarness, read_reply, round_document, session_document
from tests.support.service.oracles import stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player

GAMES = ("uth-solo", "casino-holdem", "uth-solo")
SILENCES = (
    "debit",
    "credit",
    "rollback",
    "open_session",
    "buy_participation",
    "report_stages",
    "end_participation",
    "close_session",
)


PHASES: Final = tuple(Phase) if "SHRINK" in os.environ else (Phase.explicit, Phase.reuse, Phase.generate)
"""A life that fails is told as it was drawn, with its blob. To shrink one takes minutes, and to explain it a megabyte
for each life that is tried: only with SHRINK in the environment, with `--timeout 0`.
"""


class Step(NamedTuple):
    """One thing that somebody does; `number` is which, how much or how long."""

    what: str
    who: int
    number: int


WHAT = [
    *["next"] * 8, "buy", "end", "close", "repeat", "repeat", "double", "stale", "conflict",
    "silence", "silence", "recover", "report", "tick",
]  # fmt: skip
STEPS = st.builds(Step, st.sampled_from(WHAT), st.integers(0, 2), st.integers(0, 999))
BATCHES = st.lists(
    st.one_of(st.lists(STEPS, min_size=1, max_size=5), st.sampled_from(["stop", "die"])), min_size=1, max_size=14
)


@contextmanager
def entropy_of(seed: int) -> Iterator[None]:
    """The operating system's entropy follows from a seed, so that a life that failed can be lived again."""
    count = 0

    def block() -> bytes:
        nonlocal count
        count += 1
        return hashlib.sha512(f"{seed} {count}".encode()).digest()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(entropy, "_os_block", block)
        yield


REFUSED = (WalletRefusedError, TransactionRolledBackError, RegulatorRefusedError)
"""What answers a request for ever."""


class World:
    """A folder, the process that lives in it now, three players, and every answer that was ever given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.harness = ServiceHarness(folder)
        self.players = [Player(self.harness, game=game, name=f"player-{n}") for n, game in enumerate(GAMES)]
        self.pending: dict[int, Request] = {}
        self.answers: dict[str, Reply] = {}
        self.refusals: dict[str, tuple[str, str, str]] = {}

    async def restart(self, how: str) -> None:
        await self.harness.stop(ended=how == "stop")
        self.harness.clock.tick(1000)
        self.harness = ServiceHarness(self.folder, clock=self.harness.clock)
        for player in self.players:
            player.harness = self.harness
        await self.harness.start()

    # --- what clients do ---

    async def send(self, who: int, request: Request) -> None:
        """Send, and hold every answer against what was answered before."""
        player = self.players[who]
        try:
            reply = await self.harness.send(request, player.caller)
        except UnavailableError:
            self.pending[who] = request
            return
        except RgsError as error:
            if isinstance(error, REFUSED):
                said = (error.reason, error.message, str(sorted(error.metadata.items())))
                assert request.request_id not in self.answers, "answered before, and refused now"
                assert self.refusals.setdefault(request.request_id, said) == said, "refused otherwise before"
                if self.pending.get(who) == request:
                    del self.pending[who]
            return
        assert request.request_id not in self.refusals, "refused before, and done now"
        assert self.answers.setdefault(request.request_id, reply) == reply, "answered otherwise before"
        result = read_reply(reply)
        # Answers may come late; the newest is the one with the most behind it.
        session = player.session
        if not session or _age(result["session"]) >= _age(session):
            player.take(request, reply)
        if self.pending.get(who) == request:
            del self.pending[who]

    def next_request(self, player: Player, number: int) -> Request:
        """What a player would do next, from what he knows."""
        session = player.session
        if not session:
            return player.opening()
        if player.round and player.round["status"] == "open":
            legal = [action for action, _, available in player.round["legal_actions"] if available]
            return player.decision(legal[number % len(legal)])
        if session["balance_minor"] < 200 and session["purchase_left_minor"] > 5_000 and not session["ended"]:
            return player.purchase(1000 + number)
        if session["ended"]:
            return player.closing()
        return player.starting(20 + 2 * (number % 20))

    async def take(self, step: Step) -> None:
        who, number = step.who, step.number
        player = self.players[who]
        sent = [request for request, _ in player.sent]
        match step.what:
            case "next":
                await self.send(who, self.pending.get(who) or self.next_request(player, number))
            case "buy" | "end" | "close" if player.session:
                made: dict[str, Request] = {
                    "buy": player.purchase(1 + number),
                    "end": player.ending(),
                    "close": player.closing(),
                }
                await self.send(who, made[step.what])
            case "repeat" if sent:
                await self.send(who, sent[number % len(sent)])
            case "double":
                request = self.next_request(player, number)
                await asyncio.gather(*[self.send(who, request) for _ in range(2 + number % 3)])
            case "stale" if sent:
                old = sent[number % len(sent)]
                await self.send(who, replace(old, request_id=self.harness.request_id()))
            case "conflict" if sent:
                used = sent[number % len(sent)]
                request = replace(self.next_request(player, number), request_id=used.request_id)
                if type(request) is type(used) and request != used:
                    with pytest.raises(RgsError):
                        await self.harness.send(request, player.caller)
            case "silence":
                method = SILENCES[number % len(SILENCES)]
                script = self.harness.wallet_script if number % len(SILENCES) < 3 else self.harness.regulator_script
                script.plan(method, ("before", "after")[number // 8 % 2])
            case "recover":
                await self.harness.sessions.recover()
            case "report":
                with suppress(UnavailableError):
                    await self.harness.reporting.report_stages()
            case "tick":
                self.harness.clock.tick(number)
            case _:
                pass

    async def verify_memory(self) -> None:
        """What the store remembers of a session is what is on the disk."""
        store = self.harness.store
        for session_id in [player.session_id for player in self.players if player.session]:
            remembered = await store.session(session_id)
            assert remembered is not None
            assert remembered == await SqliteReads.session(store, session_id)
            round_id = remembered.open_round_id
            assert await store.round(round_id) == await SqliteReads.round(store, round_id)

    # --- the end of all lives ---

    async def finish(self) -> None:
        """The peers answer again, everybody leaves."""
        for _ in range(40):
            try:
                await self.harness.settle()
                break
            except UnavailableError:
                continue
        for who, player in enumerate(self.players):
            for _ in range(40):
                if who in self.pending:
                    await self.send(who, self.pending[who])
                elif player.session and player.session["status"] != "closed":
                    await self.refresh(player)
                    await self.send(who, self.leaving(player))
                else:
                    break
            else:
                raise AssertionError(f"player {who} cannot leave")
        await self.harness.settle()

    async def refresh(self, player: Player) -> None:
        view, _ = await self.harness.sessions.get(player.caller, player.session_id)
        player.session = session_document(view)
        player.round = {} if view.open_round is None else round_document(view.open_round)

    def leaving(self, player: Player) -> Request:
        if player.round:
            return self.next_request(player, 0)
        running = player.session["participation_id"] and not player.session["ended"]
        return player.ending() if running else player.closing()


def _age(session: dict[str, object]) -> tuple[object, ...]:
    names = ("next_purchase_no", "next_round_no", "staked_minor", "returned_minor", "ended")
    return (*[session[name] for name in names], session["status"] == "closed")


async def live(folder: Path, batches: Sequence[list[Step] | str], made: Callable[[Path], World] = World) -> None:
    world = made(folder)
    try:
        await world.harness.start()
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
    verify_books(folder)


@settings(max_examples=40, phases=PHASES)
@given(BATCHES, st.integers(0, 1 << 32))
def test_every_life_adds_up(batches: list[list[Step] | str], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(seed):
        asyncio.run(live(Path(folder), batches))


# --- the oracle sees it -----------------------------------------------------------------------------------------------

ORDINARY: list[list[Step] | str] = [
    *[[Step("next", 0, number)] for number in range(12)],
    [Step("silence", 0, 8)],  # the next debit is made, and not answered
    [Step("buy", 0, 500)],
    [Step("next", 0, 0)],
    *[[Step("repeat", 0, number)] for number in range(6)],
    "die",
    *[[Step("next", 0, 3 * number)] for number in range(8)],
]


def live_ordinarily() -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(7):
        asyncio.run(live(Path(folder), ORDINARY))


def test_an_ordinary_life_adds_up() -> None:
    live_ordinarily()


def test_the_oracle_sees_money_made(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Participation.give_back
    monkeypatch.setattr(Participation, "give_back", lambda self, amount: genuine(self, amount + 1))
    with pytest.raises((AssertionError, RgsError)):  # the regulator adds up, too
        live_ordinarily()


def test_the_oracle_sees_a_debit_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = operations.Operations.advance

    async def careless(self: operations.Operations, operation: Operation) -> Reply:
        return await genuine(self, replace(operation, operation_id=self.instance.new_id(0)))

    monkeypatch.setattr(operations.Operations, "advance", careless)
    with pytest.raises((AssertionError, RgsError)):
        live_ordinarily()


def test_the_oracle_sees_an_answer_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(answer: Answer, _digest: bytes) -> Reply:
        return Reply(answer.body + b" ", answer.envelope)

    for module in ("play", "sessions"):
        monkeypatch.setattr(f"rgs.service.play.{module}.reply_of", careless)
    with pytest.raises(AssertionError, match="answered otherwise"):
        live_ordinarily()
