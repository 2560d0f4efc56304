"""What the terminal client shows of the server's views: game, both regulator ids, balance, net and time at all times.

Pure: views in, renderables out. Refuses to compute what the server says: amounts, hands and legal actions are shown as
they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rgs.cli.cards_art import CARD_ROWS, draw_cards, format_amount, format_elapsed, hand_text
from rgs.core.replay.reading import Statement
from rgs.core.times import format_time
from rgs.v1.catalog_pb2 import Game, Paytable
from rgs.v1.common_pb2 import (
    ACTION_CALL,
    ACTION_CHECK,
    ACTION_FOLD,
    ACTION_PLAY_1X,
    ACTION_PLAY_2X,
    ACTION_PLAY_3X,
    ACTION_PLAY_4X,
    BET_RESULT_LOSE,
    BET_RESULT_PUSH,
    BET_RESULT_WIN,
    OUTCOME_DEALER,
    OUTCOME_FOLD,
    OUTCOME_PLAYER,
    OUTCOME_TIE,
    ROUND_STATUS_OPEN,
    ROUND_STATUS_VOID,
    Action,
    Hand,
    RoundView,
    SessionView,
)
from rgs.v1.history_pb2 import RoundSummary

WIDTH: Final = 80
WORDS: Final = {
    ACTION_CHECK: ("c", "check"),
    ACTION_PLAY_4X: ("4", "play 4x"),
    ACTION_PLAY_3X: ("3", "play 3x"),
    ACTION_PLAY_2X: ("2", "play 2x"),
    ACTION_PLAY_1X: ("1", "play 1x"),
    ACTION_CALL: ("c", "call"),
    ACTION_FOLD: ("f", "fold"),
}
"""Key and word of each decision; no game has both check and call."""
_REASONS: Final = {"INSUFFICIENT_BALANCE": "the balance does not cover it"}
_OUTCOMES: Final = {
    OUTCOME_PLAYER: "You win",
    OUTCOME_DEALER: "The dealer wins",
    OUTCOME_TIE: "A tie",
    OUTCOME_FOLD: "You folded",
}
_RESULTS: Final = {
    BET_RESULT_WIN: Text("wins", "green"),
    BET_RESULT_LOSE: Text("loses", "dim"),
    BET_RESULT_PUSH: Text("pushes"),
}
_HOLE_CARDS: Final = 2
_BOARD: Final = 5


def header(session: SessionView, round_: RoundView | None) -> Panel:
    """RULEBOOK R-1, R-3, F-3: what is shown at all times."""
    ids, money = Table.grid(expand=True), Table.grid(expand=True)
    ids.add_row(
        _named("session id", session.regulator_session_id),
        _named("participation id", session.regulator_participation_id or "-", justify="right"),
    )
    money.add_row(
        _named("balance", format_amount(session.balance_minor, session.currency), "bold"),
        _named("net", format_amount(session.net_position_minor, session.currency, signed=True)),
        _named("time", format_elapsed(session.elapsed_ms)),
        _named("round", round_.game_code if round_ is not None else "-", justify="right"),
    )
    register = "test register, no regulator" if session.test_register else "regulator's register"
    return Panel(
        Group(ids, money),
        title=f"[bold]{session.game_name}[/]",
        title_align="left",
        subtitle=f"[dim]{session.ruleset.id} {session.ruleset.version} · {session.jurisdiction.id} · {register}[/]",
        subtitle_align="right",
        border_style="dim",
        width=WIDTH,
    )


def felt(round_: RoundView, currency: str, *, plain: bool) -> Group:
    """Cards, hands and bets of the round: eight rows."""
    is_open = round_.status == ROUND_STATUS_OPEN
    dealer = draw_cards(round_.dealer_cards, _HOLE_CARDS, face_down=is_open, plain=plain)
    board = draw_cards(round_.board, _BOARD, plain=plain)
    mine = draw_cards(round_.hole_cards, _HOLE_CARDS, plain=plain)
    hands = [Text(), _hand("you", round_.player_hand, plain=plain), _hand("dealer", round_.dealer_hand, plain=plain)]
    rows = [
        Text.assemble(_label("dealer", row), dealer[row], _label("board", row), board[row]) for row in range(CARD_ROWS)
    ]
    rows += [Text.assemble(_label("you", row), mine[row], "  ", hands[row]) for row in range(CARD_ROWS)]
    bets = Text("  ")
    for bet in round_.bets:
        bets.append(f"{bet.bet} ", "dim").append(format_amount(bet.amount_minor, currency)).append("   ")
    bets.append("staked ", "dim").append(format_amount(round_.staked_minor, currency), "bold")
    commitment = Text.assemble(("  commitment ", "dim"), (round_.commitment.hex(), "dim"))
    return Group(*rows, bets, commitment)


def _label(name: str, row: int) -> Text:
    """Beside the middle of the cards."""
    return Text(f"  {name if row == 1 else '':<7}", "dim")


def decisions(round_: RoundView, currency: str) -> Iterator[RenderableType]:
    """The legal actions with their cost, and why one is not available."""
    line = Text("  ")
    for legal in round_.legal_actions:
        key, word = WORDS[legal.action]
        line.append(f"[{key}] ", "bold" if legal.available else "dim").append(word, "" if legal.available else "dim")
        if legal.cost_minor:
            line.append(f" {format_amount(legal.cost_minor, currency)}", "" if legal.available else "dim")
        if not legal.available:
            line.append(f" ({_REASONS.get(legal.reason, legal.reason)})", "dim")
        line.append("   ")
    yield line.append("[q] ", "bold").append("leave")
    if round_.HasField("deadline"):
        yield Text(f"  decided for you at {format_time(round_.deadline.ToMilliseconds())}", "yellow")


def outcome(round_: RoundView, currency: str) -> Group:
    """Who won, and what became of every bet."""
    table = Table.grid(padding=(0, 3, 0, 0))
    for row in round_.settlement:
        stake, returned = (format_amount(amount, currency) for amount in (row.stake_minor, row.returned_minor))
        back = Text.assemble(("back ", "dim"), returned, justify="right")
        table.add_row(
            " ", Text(row.bet, "dim"), Text(stake, justify="right"), _RESULTS.get(row.result, Text("?")), back
        )
    return Group(_headline(round_, currency), table)


def _headline(round_: RoundView, currency: str) -> Text:
    if round_.status == ROUND_STATUS_VOID:
        return Text("  The round is void: all stakes came back.", "bold yellow")
    text = Text(f"  {_OUTCOMES.get(round_.outcome, 'The round has ended')}", "bold")
    if round_.outcome != OUTCOME_FOLD and not round_.dealer_qualifies:
        text.append(", the dealer does not qualify")
    net_minor = round_.returned_minor - round_.staked_minor
    net = format_amount(net_minor, currency, signed=True)
    return text.append(f"   {net}", "bold green" if net_minor > 0 else "")


def links(statements: Iterable[Statement]) -> Table:
    """Signed statements of the session, verified."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in (" ", "link", "statement", "hash"):
        table.add_column(name, no_wrap=True)
    for statement in statements:
        table.add_row(" ", statement.body["link_no"], statement.kind.name, Text(f"{statement.hash[:48]}…", "dim"))
    return table


def verified(statements: Iterable[Statement], *, anchored: bool) -> RenderableType:
    """Statements that have passed their checks, and what vouches for their keys."""
    names = ", ".join(f"{one.kind.name} {one.hash[:12]}…" for one in statements)
    if anchored:
        return line(f"✓ {names} verified, anchored", "green")
    return line(f"✓ {names} verified, UNANCHORED: nobody vouched for the root", "yellow")


def line(text: str, style: str = "") -> Padding:
    """A line of text; what does not fit goes on below, as far from the edge."""
    return Padding(Text(text, style), (0, 0, 0, 2))


def history(rows: Iterable[RoundSummary]) -> Table:
    """RULEBOOK R-5: date, game, stakes, winnings."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in (" ", "date", "code", "game"):
        table.add_column(name)
    for name in ("staked", "returned"):
        table.add_column(name, justify="right")
    for row in rows:
        date = format_time(row.start_time.ToMilliseconds())[:10]
        amounts = [format_amount(amount, row.currency) for amount in (row.staked_minor, row.returned_minor)]
        table.add_row(" ", date, row.game_code, row.game, *amounts)
    return table


def rules(game: Game) -> Group:
    """How the game goes, what it pays, its limits and returns, from the catalog."""
    parts: list[RenderableType] = [line(f"{number}. {rule}") for number, rule in enumerate(game.rules, 1)]
    tables = Table.grid(padding=(0, 4))
    tables.add_row(" ", *(_paytable(paytable) for paytable in game.paytables))
    parts += [Text(), tables, Text()]
    for limit in game.limits:
        least, most, step = (
            format_amount(amount, game.currency) for amount in (limit.min_minor, limit.max_minor, limit.step_minor)
        )
        parts.append(line(f"{limit.bet}: {least} to {most}, in steps of {step}"))
    parts += [line(f"return of {figure.name}: {figure.percent} % ({figure.basis})", "dim") for figure in game.returns]
    return Group(*parts)


def _paytable(paytable: Paytable) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text(f"{paytable.bet} pays", "bold"), "")
    for row in paytable.rows:
        category, _, rank = row.category.partition(":")
        table.add_row(category.replace("_", " ") + (f" of {rank}" if rank else ""), Text(row.pays, justify="right"))
    return table


def key_of(action: Action.ValueType) -> str:
    """The key that takes a decision."""
    return WORDS[action][0]


def _named(name: str, value: str, style: str = "", *, justify: Literal["left", "right"] = "left") -> Text:
    return Text.assemble((f"{name} ", "dim"), (value, style), justify=justify)


def _hand(who: str, hand: Hand, *, plain: bool) -> Text:
    if not hand.category:
        return Text()
    return Text.assemble((f"{who} ".rjust(7), "dim"), hand_text(hand.category, hand.cards, plain=plain))
