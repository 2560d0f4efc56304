"""Rounds of a table, signed without a server: the factory's workers and sessions, and the statements of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rgs.core import games
from rgs.core.games.dealing import deal_again
from rgs.core.games.types import Action, Phase, Seat, StakeLimits
from rgs.core.ids import format_game_code
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rounds import SERVER_PARTY, TakenAction, Void
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import LINK_ZERO, ExportLine, commitment_of, format_canonical, format_line, parse_line
from rgs.core.tables.bodies import (
    EndedSeat,
    RevealedDeal,
    RoundPlace,
    RoundRules,
    box_seat_object,
    seat_final_body,
    seat_opening_body,
    seat_result,
    seat_void_body,
    table_deal_body,
    table_deal_object,
    table_final_body,
    table_round_body,
    table_seats_body,
)
from rgs.core.tables.tree import SeatTree
from rgs.core.tables.windows import Window, WindowEnd
from rgs.core.tlog.merkle import leaf_hash as merkle_leaf
from rng.shuffle import PROCEDURE, transcript_to_deck
from tests.support.records.factory import ADMINS, RecordFactory
from tests.support.records.parts import SessionRecord, Worker

Body = dict[str, Any]
BETTING_MS, DECISION_MS = 20_000, 15_000
CONFIG = hashlib.sha256(b"table configuration").hexdigest()


@dataclass
class TableSeat:
    """A seat of the open round: who sits there, what is placed, what was decided."""

    player: SessionRecord
    seat: Seat
    body: Body
    before: int
    opening: str = ""
    actions: list[TakenAction] = field(default_factory=list)


@dataclass
class TableRecord:
    """A table: the rules of its rounds, its chain, and its open round."""

    factory: RecordFactory
    name: str
    ruleset: str
    jurisdiction: str = "demo"
    early_close: bool = False
    betting_ms: int = BETTING_MS
    decision_ms: int = DECISION_MS
    round_no: int = 0
    head: str = LINK_ZERO
    round_id: str = ""
    table_round: str = ""
    deal_hash: str = ""
    final: str = ""
    revealed: RevealedDeal | None = None
    seats: list[TableSeat] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    void: Void | None = None
    boxes: Sequence[int] = ()
    """The boxes of the seats, where they are not the honest ones."""

    @property
    def rules(self) -> RoundRules:
        ruleset = load_ruleset(self.ruleset)
        limits = tuple((bet, StakeLimits(10, 1_000)) for bet in sorted(ruleset.limits))
        law = load_jurisdiction(self.jurisdiction, self.factory.law_version)
        return RoundRules(
            self.name, CONFIG, ruleset, law, limits, self.betting_ms, self.decision_ms, early_close=self.early_close
        )

    # --- before the draw ---

    def fix(self, worker: Worker, stakes: Sequence[tuple[SessionRecord, Mapping[str, int]]]) -> None:
        """The betting window, `table_round` and `table_seats`: a seat for each player, with these stakes."""
        factory, rules = self.factory, self.rules
        self.round_id, self.round_no = factory.ulid(), self.round_no + 1
        opened = factory.clock_ms + 1_000
        factory.clock_ms = opened + self.betting_ms
        is_own = rules.ruleset.hole_cards == "own"
        self.seats, self.windows, self.void = [], [], None
        self.deal_hash = self.final = ""
        hands = len(stakes) if is_own else 1
        for seat_no, (player, placed) in enumerate(stakes, 1):
            bets = games.check_stakes(rules.ruleset, placed)
            staked = sum(amount for _, amount in bets)
            box = self.boxes[seat_no - 1] if self.boxes else seat_no * is_own
            body = box_seat_object(seat_no, player.session_id, bets, box)
            seat = deal_again(rules.ruleset, range(52), seat_no, bets, player.balance - staked, hands=hands)
            self.seats.append(TableSeat(player, seat, body, player.balance))
        salt = factory.random.take(32)
        self.tree = SeatTree([merkle_leaf(format_canonical(one.body)) for one in self.seats], salt)
        place = RoundPlace(self.round_id, format_game_code(opened, 1), self.round_no, self.head)
        body = table_round_body(
            rules,
            place,
            betting=(opened, factory.clock_ms),
            hands=hands,
            leaves=self.tree.leaves,
            seats_root=self.tree.root,
        )
        self.table_round = factory.numbered(worker, "table_round", body)
        counted = table_seats_body(self.table_round, self.round_id, len(self.seats), salt)
        factory.numbered(worker, "table_seats", counted)

    # --- the draw ---

    def deal(self, worker: Worker, *, draw: tuple[int, int, bytes] | None = None) -> None:
        """The draw, and the opening of every seat."""
        factory, ruleset = self.factory, self.rules.ruleset
        draw_no, reseed_counter, transcript = draw or factory.draw(worker)
        deal = table_deal_object(
            self.table_round,
            instance=worker.name,
            draw_no=draw_no,
            reseed_counter=reseed_counter,
            shuffle=PROCEDURE,
        )
        salt = factory.random.take(32)
        commitment = commitment_of(format_canonical(deal), salt, transcript)
        self.deal_hash = factory.numbered(worker, "table_deal", table_deal_body(deal, self.round_id, commitment))
        hands = len(self.seats) if ruleset.hole_cards == "own" else 1
        self.revealed = RevealedDeal(ruleset, hands, transcript_to_deck(transcript), salt, transcript)
        for one in self.seats:
            one.seat = deal_again(
                ruleset, self.revealed.deck, one.seat.seat_no, one.seat.bets, one.seat.funds_minor, hands=hands
            )

    def open_seats(self, worker: Worker, seats: Sequence[TableSeat] | None = None) -> None:
        """The `seat_opening` of each seat, with its path beside it."""
        for one in self.seats if seats is None else seats:
            self.open_seat(worker, one)

    def open_seat(self, worker: Worker, one: TableSeat, body: Body | None = None) -> None:
        player = one.player
        player.round_no += 1
        opening = seat_opening_body(self.deal_hash, self.round_id, player.round_no, body or one.body, one.before)
        one.opening = self.factory.link(worker, player, "seat_opening", opening)
        line = parse_line(self.factory.lines[-1])
        path = tuple(self.tree.path(one.seat.seat_no))
        self.factory.lines[-1] = format_line(ExportLine(line.envelope, line.private, path))

    # --- decisions ---

    def window(self, phase: str, decisions: Mapping[int, str], *, end: WindowEnd = WindowEnd.TIME) -> None:
        """One window: these decisions by seat number, and the timer's for the others."""
        factory = self.factory
        opened = factory.clock_ms + 100
        factory.clock_ms = opened
        at = Phase(phase)
        for one in self.seats:
            if one.seat.phase is at and one.seat.seat_no in decisions:
                self.decide(one, decisions[one.seat.seat_no], "player")
        closed = opened + self.decision_ms if end is WindowEnd.TIME else factory.clock_ms + 50
        factory.clock_ms = closed
        if end is WindowEnd.TIME:
            for one in self.seats:
                if one.seat.phase is at:
                    self.decide(one, games.default_action(one.seat), "timer", time_ms=closed)
        self.windows.append(Window(at, opened, closed, end))

    def decide(self, one: TableSeat, action: str, by: str, *, time_ms: int = 0) -> None:
        after = games.apply(one.seat, Action(action))
        if not time_ms:
            self.factory.clock_ms += 10
        taken = TakenAction(
            phase=one.seat.phase.value,
            action=action,
            amount_minor=after.actions[-1].amount_minor,
            time_ms=time_ms or self.factory.clock_ms,
            by=by,
            party="operator-1" if by == "player" else SERVER_PARTY,
            request_digest=hashlib.sha256(self.factory.random.take(16)).hexdigest(),
        )
        one.seat = after
        one.actions.append(taken)

    # --- the end ---

    def reveal(self, worker: Worker) -> None:
        """The `table_final` of a settled round."""
        body = table_final_body(self.table_round, self.deal_hash, self.round_id, self.windows, self.revealed)
        self.final = self.head = self.factory.numbered(worker, "table_final", body)

    def make_void(self, worker: Worker, reason: str = "MALFUNCTION") -> None:
        """Malfunction, proposal and approval, then the `table_final` of a void round."""
        factory = self.factory
        factory.admins(worker)
        malfunction = factory.event(worker, actor=ADMINS[0], reason="SCREEN_STUCK", round_id=self.round_id)
        proposed_ms = factory.clock_ms + 700
        factory.event(
            worker, "VOID_PROPOSED", actor=ADMINS[0], reason=reason, round_id=self.round_id, time=factory.now()
        )
        factory.now()
        self.void = Void(reason, malfunction, ((ADMINS[0], proposed_ms), (ADMINS[1], factory.clock_ms)))
        revealed = self.revealed if self.deal_hash and reason != "DECK_UNRECOVERABLE" else None
        self.revealed = revealed
        body = table_final_body(self.table_round, self.deal_hash, self.round_id, self.windows, revealed, self.void)
        self.final = self.head = factory.numbered(worker, "table_final", body)

    def end_seats(self, worker: Worker) -> None:
        """The `seat_final` of each seat."""
        for one in self.seats:
            self.end_seat(worker, one)

    def end_seat(self, worker: Worker, one: TableSeat) -> None:
        player, revealed = one.player, self.revealed
        hand_no = one.seat.seat_no if revealed is not None and revealed.hands > 1 else 1
        ended = EndedSeat(
            one.opening,
            self.final,
            self.round_id,
            player.round_no,
            one.seat.seat_no,
            one.before,
            tuple(one.actions),
        )
        if self.void is None:
            assert revealed is not None
            result = seat_result(one.seat, revealed.showdown_of(hand_no))
            body, settlement = seat_final_body(ended, result), result.settlement
            staked, returned = settlement.staked_minor, settlement.returned_minor
        else:
            hands = None if revealed is None else revealed.showdown_of(hand_no)
            body = seat_void_body(ended, one.seat.bets, None if revealed is None else one.seat, hands)
            staked = returned = sum(amount for _, amount in one.seat.bets)
        player.staked += staked
        player.returned += returned
        self.factory.link(worker, player, "seat_final", body)

    def play(
        self,
        worker: Worker,
        stakes: Sequence[tuple[SessionRecord, Mapping[str, int]]],
        decisions: Mapping[str, Mapping[int, str]],
    ) -> None:
        """A whole round by one worker."""
        self.fix(worker, stakes)
        self.deal(worker)
        self.open_seats(worker)
        for phase in self.rules.ruleset.rules.transitions:
            self.window(phase.value, decisions.get(phase.value, {}))
        self.reveal(worker)
        self.end_seats(worker)
