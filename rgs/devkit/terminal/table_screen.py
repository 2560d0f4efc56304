"""What is shown of a table: light and clock, cards, boxes, results, decisions, chat; and the tables of the lobby.

Pure functions from the server's views to renderables, as `rgs.devkit.terminal.screen`. The clock is the server's:
`now_ms` is its time, as its last view said, plus what has passed here since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rgs.core.amounts import format_money
from rgs.core.times import format_time
from rgs.devkit.terminal.cards_art import cards_text
from rgs.devkit.terminal.i18n import Choice
from rgs.devkit.terminal.screen import Screen, drawn, flow, line
from rgs.v1 import table_pb2 as pb
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import (
    DECIDED_BY_TIMER,
    ROUND_STATUS_OPEN,
    Action,
    Bet,
    BetResult,
    LegalAction,
    Phase,
    RoundView,
)

_BAR_CELLS: Final = (20, 8)
"""Of the clock, wide and narrow."""
_BAR: Final = ("━", "─")
_PLAIN_BAR: Final = ("#", "-")
_LIGHTS: Final = {"green": "green", "amber": "yellow", "red": "red"}
_DEALING: Final = frozenset({pb.TABLE_STATE_CLOSED, pb.TABLE_STATE_FIXED, pb.TABLE_STATE_OPENING})
_ENDED: Final = frozenset({pb.TABLE_STATE_SETTLING, pb.TABLE_STATE_RESULT})


class TableScreen:
    """The screens of tables in one language."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.words = screen.words

    # --- the lobby ----------------------------------------------------------------------------------------------------

    def entry(self, entry: pb.TableEntry, game: Game | None) -> list[RenderableType]:
        """A table in the lobby, without its name: limits, state, players, free boxes, next change by the hours."""
        family = game.family if game is not None else ""
        limits = ", ".join(self.limits(limit, family, entry.currency) for limit in entry.limits)
        facts = [self.state(entry.state)]
        count = entry.players_at_least
        facts.append(self.words("lobby.players", count=count) if count else self.words("lobby.nobody"))
        if entry.boxes:
            facts.append(self.words("lobby.boxes", free=entry.boxes_free, boxes=entry.boxes))
        if entry.HasField("hours_change_time"):
            key = "lobby.opens" if entry.state == pb.TABLE_STATE_SHUT else "lobby.closes"
            facts.append(self.words(key, time=_minute(entry.hours_change_time)))
        return [Padding(Text(text, "dim"), (0, 0, 0, 6)) for text in (limits, " · ".join(facts))]

    def limits(self, limit: pb.TableLimits, family: str, currency: str) -> str:
        """`ante 1.00 to 100.00 EUR`."""
        least = format_money(limit.min_minor, currency).removesuffix(f" {currency}")
        most = format_money(limit.max_minor, currency)
        return self.words("lobby.limits", bet=self.words.bet(family, limit.bet), least=least, most=most)

    def name(self, entry: pb.TableEntry) -> str:
        """The table's name in the player's language."""
        return entry.names.get(self.words.language) or entry.names.get("en") or entry.table

    def state(self, state: pb.TableState.ValueType) -> str:
        name = pb.TableState.Name(state).removeprefix("TABLE_STATE_")
        return self.words.known(f"table_state.{name}", name)

    # --- light and clock ----------------------------------------------------------------------------------------------

    def clock(self, table: pb.TableView, round_: RoundView | None, now_ms: int) -> RenderableType:
        """What the table waits for, the light of the bets, and the time that is left."""
        if table.state == pb.TABLE_STATE_PAUSED:
            return line(self.words("table.paused", what=self.screen.malfunction(table.malfunction_code)), "bold yellow")
        light = light_of(table, now_ms)
        text = Text.assemble(("o " if self.screen.plain else "● ", f"bold {_LIGHTS[light]}"))
        text.append(self._waits_for(table, round_, light), "bold")
        if table.HasField("deadline"):
            text.append("  ").append(self._bar(table, now_ms, _LIGHTS[light]))
        players = Text(self.words("table.players", count=table.players_at_least), "dim")
        if self.screen.is_narrow:
            return Padding(Group(text, players), (0, 0, 0, 2))
        row = Table.grid(expand=True)
        row.add_column()
        row.add_column(justify="right")
        row.add_row(text, players)
        return Padding(row, (0, 2, 0, 2))

    def _waits_for(self, table: pb.TableView, round_: RoundView | None, light: str) -> str:
        match table.state:
            case pb.TABLE_STATE_SHUT:
                return self.words("table.shut")
            case pb.TABLE_STATE_IDLE:
                return self.words("table.idle")
            case pb.TABLE_STATE_BETTING:
                return self.words(f"table.{light}")
            case pb.TABLE_STATE_VOIDING:
                return self.words("table.voiding")
            case state if state in _DEALING:
                return self.words("table.red")
            case state if state in _ENDED:
                return self.words("table.result")
        if round_ is None or not round_.bets:
            return self.words("table.not_in_round")
        return self.words("table.your_turn" if round_.legal_actions else "table.decided")

    def _bar(self, table: pb.TableView, now_ms: int, style: str) -> Text:
        """The part of the window that is left, and its seconds."""
        opened_ms, deadline_ms = table.open_time.ToMilliseconds(), table.deadline.ToMilliseconds()
        left_ms = max(0, deadline_ms - now_ms)
        cells = _BAR_CELLS[self.screen.is_narrow]
        full = min(cells, -(-cells * left_ms // max(1, deadline_ms - opened_ms)))
        there, gone = _PLAIN_BAR if self.screen.plain else _BAR
        seconds = self.words("table.seconds", count=-(-left_ms // 1000))
        return Text.assemble((there * full, style), (gone * (cells - full), "dim"), f" {seconds}")

    # --- boxes --------------------------------------------------------------------------------------------------------

    def boxes(self, table: pb.TableView, own_box: int) -> RenderableType:
        """Who sits where, who has decided, and the cards of all at the end. The own box is marked."""
        rows = [self._box(table, box, is_own=box.box == own_box) for box in table.boxes]
        columns = 1 if self.screen.is_narrow else 2
        height = -(-len(rows) // columns)
        grid = Table.grid(padding=(0, 2, 0, 0))
        for row in range(height):
            cells = [cell for number in range(row, len(rows), height) for cell in rows[number]]
            grid.add_row(*cells)
        return Padding(grid, (0, 0, 0, 2))

    def _box(self, table: pb.TableView, box: pb.BoxView, *, is_own: bool) -> tuple[Text, Text, Text]:
        style = "bold" if is_own else ""
        number = Text(f"{'>' if is_own else ' '}{box.box}", style)
        if not box.nickname:
            return number, Text(self.words("table.reserved" if box.reserved else "table.free"), "dim"), Text()
        name = Text(f"{box.nickname} ({self.words('table.you')})" if is_own else box.nickname, style)
        name.truncate(16 if self.screen.is_narrow else 18, overflow="ellipsis")
        if box.hole_cards:
            return number, name, cards_text(box.hole_cards, 0, plain=self.screen.plain)
        return number, name, Text(self._does(table, box), "dim")

    def _does(self, table: pb.TableView, box: pb.BoxView) -> str:
        if table.state == pb.TABLE_STATE_DECIDING:
            if not box.in_round:
                return self.words("table.watches")
            return self.words("table.has_decided" if box.decided else "table.is_deciding")
        return self.words("table.has_bet") if box.bets else ""

    # --- the player's round -------------------------------------------------------------------------------------------

    def own_bets(self, bets: Iterable[Bet], family: str, currency: str) -> RenderableType:
        """The bets that are reserved for the next deal."""
        placed = "   ".join(
            f"{self.words.bet(family, bet.bet)} {format_money(bet.amount_minor, currency)}" for bet in bets
        )
        text = Text.assemble((f"{self.words('table.your_bets')} ", "dim"), placed or self.words("table.no_bets"))
        return Padding(text, (0, 0, 0, 2))

    def decisions(self, round_: RoundView, family: str, currency: str) -> RenderableType:
        """The decisions so far; those of the timer are marked."""
        taken = []
        for action in round_.actions:
            phase = Phase.Name(action.phase).removeprefix("PHASE_")
            done = self.screen.action(family, action.action).text
            if action.amount_minor:
                done = f"{done} {format_money(action.amount_minor, currency)}"
            key = "table.by_timer" if action.by == DECIDED_BY_TIMER else "table.in_phase"
            taken.append(self.words(key, phase=self.words.known(f"phase.{phase}", phase), action=done))
        return line(" · ".join(taken), "dim")

    def outcome(self, round_: RoundView, family: str, currency: str) -> RenderableType:
        """The winner, and the result of each bet."""
        results = []
        for row in round_.settlement:
            result = BetResult.Name(row.result).removeprefix("BET_RESULT_")
            stake, returned = (format_money(amount, currency) for amount in (row.stake_minor, row.returned_minor))
            became = self.words.known(f"result.{result}", "?")
            text = Text.assemble((f"{self.words.bet(family, row.bet)} ", "dim"), f"{stake} {became}, ")
            results.append(text.append(f"{self.words('felt.back')} ", "dim").append(returned))
        headline = self.screen.headline(round_, family, currency)
        return Padding(Group(headline, *flow(results, self.screen.width - 2)), (0, 0, 0, 2))

    def commitment(self, round_: RoundView) -> RenderableType:
        """The commitment to the deck, in one line."""
        text = Text(
            f"{self.words('felt.commitment')} {round_.commitment.hex()}", "dim", no_wrap=True, overflow="ellipsis"
        )
        return Padding(text, (0, 2, 0, 2))

    def menu(
        self, menu: Mapping[str, Choice], legal: Sequence[LegalAction], family: str, currency: str
    ) -> RenderableType:
        """All choices, no choice broken over two lines; decisions with their cost, or why they are not available."""
        decisions = {Action.Name(one.action) for one in legal}
        others = [drawn(choice) for name, choice in menu.items() if name not in decisions]
        return self.screen.choices([*self.screen.offered(legal, family, currency), *others])

    # --- chat ---------------------------------------------------------------------------------------------------------

    def chat(self, lines: Sequence[pb.ChatLine], family: str) -> list[RenderableType]:
        """Lines of chat, the newest last. The dealer's are codes, in words here."""
        the_dealer = self.words.known(f"game.{family}.dealer", "dealer")
        shown: list[RenderableType] = []
        for one in lines:
            said = self.words.known(f"dealer_line.{one.code}", one.code) if one.code else one.text
            name = the_dealer if one.code else one.nickname
            shown.append(
                Padding(Text.assemble((f"{name}: ", "dim"), (said, "italic" if one.code else "")), (0, 0, 0, 2))
            )
        return shown


def light_of(table: pb.TableView, now_ms: int) -> str:
    """`green`, then `amber` in the last part of the betting window, and `red` when no bets are taken (T-1)."""
    if table.state not in {pb.TABLE_STATE_IDLE, pb.TABLE_STATE_BETTING}:
        return "red"
    if table.HasField("deadline") and now_ms >= table.deadline.ToMilliseconds():
        return "red"
    return "amber" if table.HasField("amber_time") and now_ms >= table.amber_time.ToMilliseconds() else "green"


def shown_round(table: pb.TableView, seat: pb.SeatView) -> RoundView:
    """The round on the table as the player sees it: the seat's own part, if it plays, and the cards of all."""
    round_ = RoundView()
    if seat.round.round_id == table.round_id and table.round_id:
        round_.CopyFrom(seat.round)
        for place in ("board", "dealer_cards"):
            if len(getattr(table, place)) > len(getattr(round_, place)):
                round_.ClearField(place)
                getattr(round_, place).extend(getattr(table, place))
        return round_
    round_.MergeFrom(
        RoundView(
            round_id=table.round_id,
            game_code=table.game_code,
            status=ROUND_STATUS_OPEN,
            phase=table.phase,
            hole_cards=table.hole_cards,
            board=table.board,
            dealer_cards=table.dealer_cards,
            commitment=table.commitment,
            dealer_qualifies=table.dealer_qualifies,
        )
    )
    round_.dealer_hand.CopyFrom(table.dealer_hand)
    round_.player_hand.CopyFrom(table.player_hand)
    return round_


def _minute(time: Timestamp) -> str:
    """`2026-11-23 17:00`."""
    return format_time(time.ToMilliseconds())[:16].replace("T", " ")
