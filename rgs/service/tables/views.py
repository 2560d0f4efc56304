"""What callers see of tables and seats, made from rows (`rgs.core.tables.views`).

A card leaves this module only when the table's state shows it: `_shown` is the one place that decides. Before the end a
deck is unsealed for one view and dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rgs.core import games
from rgs.core.cards import FULL_DECK, Card, format_cards
from rgs.core.clock import Clock
from rgs.core.errors import NotFoundError
from rgs.core.games.dealing import deal_again
from rgs.core.games.types import Phase, Ruleset, Seat, Settlement
from rgs.core.hands import HandValue, evaluate
from rgs.core.rounds import Round, RoundStatus
from rgs.core.sessions import Session, SessionStatus
from rgs.core.tables.bodies import RevealedDeal
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting, after_actions, with_defaults
from rgs.core.tables.views import PLAYERS_STEPS, BoxView, SeatView, TableView, players_at_least
from rgs.core.values import changed
from rgs.core.views import RoundView, SessionView, deciding_rows, legal_actions_of
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog, owned_session
from rgs.service.sealing import DeckSealedError
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.decks import TableDecks
from rgs.store.interface import Store

SHOWN_MAX: Final = 4_096
"""Deals of which this process keeps what is shown to everybody; each has some hundred bytes."""
_FEWEST_CARDS_OF_A_HAND: Final = 5
_IN_ROUND: Final = frozenset({State.OPENING, State.DECIDING, State.SETTLING, State.VOIDING, State.RESULT})

Cards = tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What everybody may see of a deal. `deal` is set once `table_final` has revealed it."""

    hole_cards: Cards = ()
    board: Cards = ()
    dealer_cards: Cards = ()
    deal: RevealedDeal | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class TableViews:
    """Views of the tables of this store."""

    store: Store
    games: GameCatalog
    clock: Clock
    configs: TableConfigs
    decks: TableDecks

    _known: OrderedDict[tuple[str, str], _Shown] = field(default_factory=OrderedDict, init=False)
    """By round and what is shown of it: nothing in it is secret."""

    # --- the table ------------------------------------------------------------------------------------------------

    async def table(self, caller: Caller, table_id: str) -> TableView:
        """The table as the caller may see it. NotFoundError, also for an operator whose players may not play there."""
        found = await self.store.table(table_id)
        row = None if found is None else found[0]
        config = None if row is None else await self.configs.of(row.config)
        if row is None or config is None or (caller.role is Role.OPERATOR and caller.party not in config.operators):
            raise NotFoundError(f"no table {table_id[:64]}", kind="table", field="table", value=table_id[:64])
        now_ms = found[1] if found is not None else None
        return await self._table(caller, row, config, self.clock.now_ms() if now_ms is None else now_ms)

    async def _table(self, caller: Caller, row: TableRow, config: TableConfig, now_ms: int) -> TableView:
        table = row.table
        round_ = await self.store.table_round(table.round_id) if table.round_id else None
        shown = await self._shown(row, round_)
        ruleset = self.games.rulesets[config.ruleset_id]
        is_shared = ruleset.hole_cards == "shared"
        dealer_hand = player_hand = None
        qualifies = False
        if shown.deal is not None:
            hands = shown.deal.showdown_of(1)
            dealer_hand, qualifies = hands.dealer_hand, hands.dealer_qualifies
        if is_shared:
            player_hand = _hand(shown.hole_cards, shown.board)
        is_betting = table.state is State.BETTING
        players = await self.store.count_sittings(table.table_id, PLAYERS_STEPS[-1])
        return TableView(
            table_id=table.table_id,
            version=table.version,
            state=table.state,
            paused_from=table.paused_from,
            phase=table.phase,
            round_id=table.round_id,
            table_round_no=round_.table_round_no if round_ is not None else 0,
            game_code=round_.game_code if round_ is not None else "",
            open_ms=table.opened_ms if table.deadline_ms else 0,
            amber_ms=table.deadline_ms - config.timers.amber_ms if is_betting else 0,
            deadline_ms=table.deadline_ms,
            time_ms=now_ms,
            hole_cards=format_cards(shown.hole_cards),
            board=format_cards(shown.board),
            dealer_cards=format_cards(shown.dealer_cards),
            dealer_hand=dealer_hand,
            player_hand=player_hand,
            dealer_qualifies=qualifies,
            boxes=() if is_shared else await self._boxes(caller, row, config, round_, shown),
            players_at_least=players_at_least(players),
            commitment=round_.commitment if round_ is not None else b"",
            malfunction_code=row.malfunction_code,
            table_round=await self._envelope(round_.table_round if round_ is not None else ""),
            table_deal=await self._envelope(round_.deal if round_ is not None else ""),
            table_final=await self._envelope(round_.final if round_ is not None else ""),
        )

    async def _envelope(self, hash_: str) -> bytes:
        statement = await self.store.statement_of_hash(bytes.fromhex(hash_)) if hash_ else None
        return b"" if statement is None else statement.envelope

    async def _boxes(
        self, caller: Caller, row: TableRow, config: TableConfig, round_: TableRound | None, shown: _Shown
    ) -> tuple[BoxView, ...]:
        """All boxes. Names, sessions and bets only of the caller's own players."""
        table = row.table
        sitters = {one.box: one for one in await self.store.boxes(table.table_id)}
        reserved = {one.box for one in await self.store.reservations(table.table_id)}
        rows: dict[str, Round] = {}
        if round_ is not None and table.state in _IN_ROUND | {State.PAUSED}:
            rows = {one.session_id: one for one in await self.store.seats_of_round(round_.round_id, 0, 64)}
        undecided = self.games.clockwork(config).phases_to(table.phase)
        boxes = []
        for number in range(1, config.seats + 1):
            sitter = sitters.get(number)
            if sitter is None:
                boxes.append(BoxView(number, reserved=number in reserved))
                continue
            seat = rows.get(sitter.session_id)
            is_own = caller.role is not Role.OPERATOR or caller.party == sitter.operator
            cards: Cards = ()
            if seat is not None and shown.deal is not None:
                cards = shown.deal.dealt.hands[seat.seat_no - 1]
            boxes.append(
                BoxView(
                    box=number,
                    nickname=sitter.nickname,
                    session_id=sitter.session_id if is_own else "",
                    bets=(seat.bets if seat is not None else sitter.bets) if is_own else (),
                    in_round=seat is not None or bool(sitter.seat_no),
                    decided=seat is not None and table.phase is not None and seat.phase not in undecided,
                    hole_cards=format_cards(cards),
                    reserved=number in reserved,
                )
            )
        return tuple(boxes)

    # --- what is shown --------------------------------------------------------------------------------------------

    async def _shown(self, row: TableRow, round_: TableRound | None) -> _Shown:
        """The cards that everybody may see now."""
        if round_ is None or not round_.deal:
            return _Shown()
        if round_.final and row.table.final:  # the round was read later: a view is that of its table's version
            return await self._remembered(round_, "final", None)
        phase = row.table.phase
        return _Shown() if phase is None else await self._remembered(round_, phase.value, phase)

    async def _remembered(self, round_: TableRound, key: str, phase: Phase | None) -> _Shown:
        known = self._known.get((round_.round_id, key))
        if known is None:
            try:
                known = await self._ended(round_) if phase is None else self._turned(round_, phase)
            except DeckSealedError:  # an admin may bring the key
                return _Shown()
            self._known[round_.round_id, key] = known
            if len(self._known) > SHOWN_MAX:
                self._known.popitem(last=False)
        return known

    def _turned(self, round_: TableRound, phase: Phase) -> _Shown:
        """What a decision phase shows: the board so far, and a hand that is open to all."""
        ruleset = self.games.rulesets[round_.ruleset_id]
        dealt = self.decks.open(round_).dealt
        is_open = ruleset.hole_cards == "shared" and ruleset.visibility == "open"
        hole_cards = dealt.hands[0] if is_open else ()
        return _Shown(hole_cards, dealt.board[: ruleset.rules.board_shown[phase]])

    async def _ended(self, round_: TableRound) -> _Shown:
        """What `table_final` has revealed."""
        deal = await self.decks.of_ended(round_)
        if deal is None:
            return _Shown()
        dealt = deal.dealt
        hole_cards = dealt.hands[0] if deal.is_shared else ()
        return _Shown(hole_cards, dealt.board, dealt.dealer_cards, deal)

    # --- a seat ---------------------------------------------------------------------------------------------------

    async def seat(self, caller: Caller, session_id: str) -> tuple[SessionView, SeatView]:
        """A session and its seat, with its running or last round."""
        session = await owned_session(self.store, caller, session_id)
        found = await self.store.table(session.table_id) if session.table_id else None
        if found is None:
            raise NotFoundError(
                f"session {session_id} is not at a table", kind="table", field="session_id", session_id=session_id
            )
        row, store_ms = found
        sitting = await self.store.sitting(session_id)
        last = await self.store.last_seat(session_id)
        round_view = None if last is None else await self.own_round(row, last, session)
        if round_view is not None and caller.role is not Role.OPERATOR and not round_view.dealer_cards:
            # Until the table shows them, only the player's own operator needs the cards of a box.
            round_view = replace(round_view, hole_cards=(), player_hand=None)
        view = self.games.view(session, self.clock.now_ms() if store_ms is None else store_ms)
        if sitting is None:
            ended = await self._why_without(session)
            ids = session.regulator_session_id, session.regulator_participation_id
            return view, SeatView(session_id, session.table_id, 0, 0, 0, (), 0, round_view, *ids, ended)
        return view, self.seat_of(session, sitting, round_view)

    async def _why_without(self, session: Session) -> str:
        """Why a session has no seat."""
        if session.status is SessionStatus.CLOSED:
            return "CLOSED"
        is_barred = await self.store.is_barred(session.table_id, session.operator, session.player)
        return "BARRED" if is_barred else "NOT_SEATED"

    @staticmethod
    def seat_of(session: Session, sitting: Sitting, round_view: RoundView | None, ended: str = "") -> SeatView:
        """The view of a seat."""
        return SeatView(
            session_id=sitting.session_id,
            table_id=sitting.table_id,
            box=sitting.box,
            device_no=sitting.device_no,
            seat_version=sitting.version,
            bets=sitting.bets,
            reserved_minor=sitting.reserved_minor,
            round=round_view,
            regulator_session_id=session.regulator_session_id,
            regulator_participation_id=session.regulator_participation_id,
            ended=ended,
        )

    async def own_round(self, row: TableRow, seat: Round, session: Session) -> RoundView:
        """A player's round as the player may see it now: own cards from the first phase on, the others' never."""
        round_ = await self.decks.round_of(seat.round_id)
        is_current = row.table.round_id == seat.round_id and not round_.final
        phase = row.table.phase if is_current else None
        shown = await self._remembered(round_, "final", None) if round_.final else _Shown()
        if is_current and phase is not None:
            shown = await self._remembered(round_, phase.value, phase)
        ruleset = self.games.rulesets[seat.ruleset_id]
        own = shown.hole_cards or self._own_cards(round_, seat, shown, is_shown=phase is not None)
        windows = row.table.windows if is_current else ()
        dealt = _decided(ruleset, seat, FULL_DECK, 1)
        actions = with_defaults(dealt, seat.actions, windows, seat.round_id)
        dealt = after_actions(dealt, actions[len(seat.actions) :])
        settlement = self._settlement(seat, shown)
        is_open = seat.status is RoundStatus.OPEN
        can_decide = is_open and row.table.state is State.DECIDING and dealt.phase is phase
        return RoundView(
            round_id=seat.round_id,
            game_code=seat.game_code,
            round_no=seat.round_no,
            round_version=seat.version,
            status=seat.status,
            phase=phase or (ruleset.rules.first_phase if is_open and not round_.final else Phase.SHOWDOWN),
            hole_cards=format_cards(own),
            dealer_cards=format_cards(shown.dealer_cards),
            board=format_cards(shown.board),
            bets=dealt.bets,
            legal_actions=legal_actions_of(dealt, session.offer) if can_decide else (),
            actions=actions,
            player_hand=_hand(own, shown.board),
            settlement=settlement,
            rows=() if settlement is None else deciding_rows(ruleset, settlement),
            start_ms=seat.start_ms,
            end_ms=seat.end_ms,
            deadline_ms=row.table.deadline_ms if can_decide else 0,
            commitment=round_.commitment,
            actions_hash=changed(seat, actions=actions).actions_hash(),
            malfunction_code=row.malfunction_code if is_current else "",
        )

    def _own_cards(self, round_: TableRound, seat: Round, shown: _Shown, *, is_shown: bool) -> Cards:
        """The cards of the player's own box: once the first cards are shown."""
        hand = seat.seat_no - 1 if round_.hands > 1 else 0
        if shown.deal is not None:
            return shown.deal.dealt.hands[hand]
        if not is_shown:
            return ()
        try:
            return self.decks.open(round_).dealt.hands[hand]
        except DeckSealedError:
            return ()

    def _settlement(self, seat: Round, shown: _Shown) -> Settlement | None:
        """How the bets ended, of a seat that is settled."""
        if seat.status is not RoundStatus.SETTLED or shown.deal is None:
            return None
        deal = shown.deal
        ended = _decided(deal.ruleset, seat, deal.deck, deal.hands)
        return games.settle(ended, deal.showdown_of(seat.seat_no if deal.hands > 1 else 1))


def _decided(ruleset: Ruleset, seat: Round, deck: Sequence[int], hands: int) -> Seat:
    """The seat after its own decisions."""
    return after_actions(
        deal_again(ruleset, deck, seat.seat_no, seat.bets, seat.funds_minor, hands=hands), seat.actions
    )


def _hand(hole_cards: Cards, board: Cards) -> HandValue | None:
    """The best hand of the visible cards, from five on."""
    cards = (*hole_cards, *board)
    return evaluate(cards) if hole_cards and len(cards) >= _FEWEST_CARDS_OF_A_HAND else None
