"""What nobody may see too soon, and what an operator never sees, at each of the three tables.

The dealer takes one step at a time. After each, everything that a service says is collected for three callers: the
operators of two players and an admin; with it each file of the server, each log line and each refusal. In it no card
may stand before it is shown, no hand of another box before the showdown, no salt and no transcript before the reveal;
for an operator no word of the other one's player, and never how many seats there are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.core.cards import format_cards
from rgs.core.errors import NotFoundError, RgsError
from rgs.core.games.types import Action
from rgs.core.statements import parse_envelope
from rgs.core.tables.bodies import RevealedDeal
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRound
from rgs.service.callers import Caller, Role
from rgs.service.play.history import RoundsFilter
from rgs.service.tables.requests import Decide
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.leaks import Secret, files, leaks
from tests.support.service.tables import ADMIN, ALWAYS, Evening, Sitter

OTHER = Caller("op-2", Role.OPERATOR, "demo")
CALLERS = (OPERATOR, OTHER, ADMIN)
TABLES = ("uth-online", "uth-seven-box", "uth-lugano")
BOUGHT = {"op-1": 93_450, "op-2": 87_610}
"""Amounts that stand nowhere by chance, and so do the bets."""
ANTE = {"op-1": 1_930, "op-2": 2_470}
_CARD = re.compile(r"(?<![0-9A-Za-z#:.+-])[2-9TJQKA][cdhs](?![0-9A-Za-z])")
_BYTES = re.compile(r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\"""")
_TEXT = re.compile(r"[A-Za-z0-9+/=_#-]{25,}")
SHOWN = {None: 0, "preflop": 0, "flop": 3, "river": 5}


class Observed:
    """Everything that is said at one table, held against what may be said."""

    def __init__(self, harness: ServiceHarness, table: str) -> None:
        operators = [OPERATOR.party, OTHER.party]
        self.harness = harness
        self.evening = Evening(harness, table, hours=ALWAYS, operators=operators)
        self.is_shared = table == "uth-online"
        self.sitters: dict[str, Sitter] = {}
        self.logs: list[Any] = []
        self.refusals: dict[str, list[str]] = {caller.party: [] for caller in CALLERS}
        self.looks = 0
        self.states: set[tuple[State, str | None]] = set()

    async def seat(self, caller: Caller) -> None:
        sitter = Sitter(self.evening, f"pseudonym-of-{caller.party}", caller)
        await sitter.open(BOUGHT[caller.party])
        await sitter._send("join", sitter.joining(0, f"nick {len(self.sitters)}"))
        self.sitters[caller.party] = sitter

    async def tried(self, caller: Caller, call: Awaitable[Any]) -> Any:
        """What a call says, also if it refuses."""
        try:
            return await call
        except RgsError as error:
            self.refusals[caller.party].append(f"{error.message} {error.metadata}")
            return None

    # --- what is said -------------------------------------------------------------------------------------------------

    async def said_to(self, caller: Caller) -> AsyncIterator[tuple[str, Any]]:
        """Every answer that a caller can get now, by its name."""
        harness, table = self.harness, self.evening.config.id
        tables, services = harness.tables, harness.services
        yield "table", await tables.views.table(caller, table)
        yield "lobby", await tables.lobby.list(caller, 10, "")
        yield "chat", await self.tried(caller, tables.chat.list(caller, table, 10, ""))
        row = (await self.evening.row()).table
        for party, sitter in self.sitters.items():
            own = await self.tried(caller, tables.views.seat(caller, sitter.session_id))
            assert (own is None) is (caller.role is Role.OPERATOR and party != caller.party)
            yield f"seat of {party}", own
            yield (
                f"rounds of {party}",
                await self.tried(
                    caller, services.history.list_rounds(caller, RoundsFilter(sitter.name, party), 10, "")
                ),
            )
            yield f"statements of {party}", await self._statements(caller, session_id=sitter.session_id)
        if row.round_id:
            where = {"round_id": row.round_id, "player": "", "date": "", "game_code": ""}
            yield "records", await self.tried(caller, services.history.get_records(caller, **where))
            yield "statements", await self._statements(caller, round_id=row.round_id)
        yield "instance", await self._statements(caller, instance=harness.instance.name)

    async def _statements(self, caller: Caller, **named: str) -> Any:
        what = {"session_id": "", "round_id": "", "instance": "", **named}
        found = await self.tried(
            caller,
            self.harness.audit.list_statements(caller, **what, first_no=0, last_no=0, page_size=100, page_token=""),
        )
        return None if found is None else [(row.kind, parse_envelope(row.envelope).payload) for row in found[0]]

    # --- what may be said ---------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Hold everything that is said now against what may be."""
        self.looks += 1
        row = (await self.evening.row()).table
        self.states.add((row.state, row.phase and row.phase.value))
        round_ = await self.harness.store.table_round(row.round_id) if row.round_id else None
        deal = await self._deal(round_)
        is_over = bool(row.final)
        for caller in CALLERS:
            said = [answer async for answer in self.said_to(caller)]
            whole = "\n".join([*(repr(answer) for _, answer in said), *self.refusals[caller.party]])
            if caller.role is Role.OPERATOR:
                self._verify_apart(caller, whole, round_)
            if not is_over:
                for name, answer in said:
                    self._verify_cards(caller, name, answer, row.phase and row.phase.value, deal)
            if deal is not None and not is_over:
                secret = _secret_of(deal, SHOWN[row.phase and row.phase.value])
                places = {caller.party: whole.encode(), **files(self.harness.folder), "log": repr(self.logs).encode()}
                assert leaks(secret, places) == []

    def _verify_cards(
        self, caller: Caller, name: str, answer: Any, phase: str | None, deal: RevealedDeal | None
    ) -> None:
        """The cards in an answer are those that lie open, and the own ones."""
        seen = set(_CARD.findall(_TEXT.sub("#", _BYTES.sub("#", repr(answer)))))
        if deal is None or phase is None:
            assert not seen, (name, seen)
            return
        allowed = set(format_cards(deal.dealt.board[: SHOWN[phase]]))
        for number, sitter in enumerate(self.sitters.values()):
            is_own = caller == sitter.caller and (name.startswith("seat") or name == "records")
            if self.is_shared or is_own:
                allowed |= set(format_cards(deal.dealt.hands[0 if self.is_shared else number]))
        assert seen <= allowed, (caller.party, name, seen - allowed)

    def _verify_apart(self, caller: Caller, whole: str, round_: TableRound | None) -> None:
        """Nothing of the other operator's player, and nothing from which the seats can be counted."""
        for party, sitter in self.sitters.items():
            if party != caller.party:
                amounts = (BOUGHT[party], ANTE[party], BOUGHT[party] - 2 * ANTE[party], 2 * ANTE[party])
                assert sitter.name not in whole.replace("the player is", "")
                assert sitter.session_id not in _without_refusals(whole, self.refusals[caller.party])
                assert not {str(amount) for amount in amounts} & set(re.findall("[0-9A-Za-z]+", whole))
        if round_ is not None:
            assert round_.salt.hex() not in whole
            assert repr(round_.salt)[2:-1] not in whole
        assert "table_seats" not in whole
        assert not re.search(r"""["']seats["']: ?["']?\d""", whole)

    async def _deal(self, round_: TableRound | None) -> RevealedDeal | None:
        """What the store has sealed, opened with the server's own key."""
        if round_ is None or not round_.deal:
            return None
        decks = self.harness.tables.views.decks
        return decks.open(round_) if round_.sealed else await decks.of_ended(round_)


def _without_refusals(whole: str, refusals: list[str]) -> str:
    """A refusal names the session that was asked for: that is no news to who asked."""
    for refusal in refusals:
        whole = whole.replace(refusal, "")
    return whole


def _secret_of(deal: RevealedDeal, shown: int) -> Secret:
    """Dealer's cards first, then the board that is not shown, then the stock as it lies in the deck."""
    dealt = deal.dealt
    hidden = [*dealt.dealer_cards, *dealt.board[shown:]]
    gone = {
        *map(int, dealt.board),
        *map(int, dealt.dealer_cards),
        *(int(card) for hand in dealt.hands for card in hand),
    }
    stock = [card for card in deal.deck if card not in gone]
    return Secret(deal.salt, deal.transcript, (*map(int, hidden[:2]), *stock[:12], *map(int, hidden[2:])))


async def stepped(observed: Observed) -> None:
    """Let time pass to the next thing that is due, take one step, and look."""
    row = await observed.evening.row()
    observed.harness.clock.time_ms = max(row.due_ms, observed.harness.clock.time_ms)
    with capture_logs() as logs:
        await observed.evening.look()
    observed.logs += logs
    await observed.look()


async def until(observed: Observed, state: State, phase: str | None = None) -> None:
    for _ in range(30):
        table = (await observed.evening.row()).table
        if (table.state, table.phase and table.phase.value) == (state, phase):
            return
        await stepped(observed)
    raise AssertionError(f"the table never is {state} {phase}")


async def decide(observed: Observed, caller: Caller, action: str) -> None:
    """Decide, and look; the other operator tries the same seat, and is refused."""
    sitter = observed.sitters[caller.party]
    await sitter.look()
    seen = sitter.seat["round"]
    request = Decide(sitter._id(), sitter.session_id, 1, seen["round_id"], seen["round_version"], Action(action))
    other = OTHER if caller is OPERATOR else OPERATOR
    with pytest.raises(NotFoundError):
        await observed.harness.tables.seats.decide(other, request)
    with capture_logs() as logs:
        await sitter._send("decide", request)
        with suppress(RgsError):
            await sitter._send("decide", request)
    observed.logs += logs
    await observed.tried(caller, sitter.bet("", ante=1_000))
    await observed.look()


async def play(observed: Observed) -> None:
    """A round: both bet, one decides, the other is silent; a pause in between."""
    harness, evening = observed.harness, observed.evening
    await evening.open()
    for caller in (OPERATOR, OTHER):
        await observed.seat(caller)
    await observed.look()
    for party, sitter in observed.sitters.items():
        await sitter.bet(ante=ANTE[party])
        await observed.look()
    await until(observed, State.DECIDING, "preflop")
    await decide(observed, OPERATOR, "check")
    await until(observed, State.DECIDING, "flop")
    await decide(observed, OPERATOR, "check")
    await harness.tables.admin.pause(ADMIN, harness.request_id(), evening.config.id, "CARD_READER")
    await observed.look()
    await harness.tables.admin.resume(ADMIN, harness.request_id(), evening.config.id, "EXAMINED")
    await until(observed, State.DECIDING, "river")
    await decide(observed, OTHER, "play_1x")
    await until(observed, State.RESULT)
    for sitter in observed.sitters.values():
        await sitter.look()
        assert sitter.seat["round"]["status"] == "settled"


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
async def test_nothing_is_seen_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    monkeypatch.setattr("rgs.service.tables.dealer.STEPS_MAX", 1)
    async with open_harness(tmp_path) as harness:
        monkeypatch.setattr(harness.tables.dealer, "look", lambda _: None)  # the test looks
        observed = Observed(harness, table)
        await play(observed)
        states = {state for state, _ in observed.states}
        assert states == set(State) - {State.SHUT, State.VOIDING}
        assert {phase for _, phase in observed.states} == {None, "preflop", "flop", "river"}
