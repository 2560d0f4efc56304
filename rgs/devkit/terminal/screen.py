"""The screens of the terminal client: game, both regulator ids, balance, net position and time are always visible.

Pure functions from the server's views to renderables, in one language (`rgs.devkit.terminal.i18n`). Amounts, hands and
legal actions are shown as the server sends them; nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rgs.core.amounts import format_money
from rgs.core.replay.reading import Statement
from rgs.core.times import format_time
from rgs.devkit.client import CallError
from rgs.devkit.terminal.cards_art import CARD_ROWS, cards_text, draw_cards, format_elapsed, hand_text
from rgs.devkit.terminal.i18n import Choice, Words
from rgs.v1 import common_pb2 as pb
from rgs.v1.catalog_pb2 import Game, Paytable, ReturnFigure

WIDTH: Final = 80
NARROW: Final = 60
"""Below this width the parts of a screen stand one below the other."""
_STYLES: Final = {"WIN": "green", "LOSE": "dim"}
_HOLE_CARDS: Final = 2
_BOARD: Final = 5


class Screen:
    """The screens in one language; `plain` if only ASCII can be shown."""

    def __init__(self, words: Words, *, plain: bool, width: int = WIDTH) -> None:
        self.words = words
        self.plain = plain
        self.width = min(width, WIDTH)
        self.is_narrow = self.width < NARROW

    # --- a session and its round --------------------------------------------------------------------------------------

    def header(self, session: pb.SessionView, round_: pb.RoundView | None) -> Panel:
        """The head of every screen: R-1 (ids and game shown), R-3 (balance shown), F-3 (contents of the screen)."""
        ids = (
            self._named("session_id", session.regulator_session_id),
            self._named("participation_id", session.regulator_participation_id or "-"),
        )
        money = (
            self._named("balance", format_money(session.balance_minor, session.currency), "bold"),
            self._named("net", format_money(session.net_position_minor, session.currency, signed=True)),
        )
        time = self._named("time", format_elapsed(session.elapsed_ms))
        code = self._named("round", (round_.game_code if round_ is not None else "") or "-")
        rows = (
            (*ids, _spread(*money), _spread(time, code))
            if self.is_narrow
            else (_spread(*ids), _spread(*money, time, code))
        )
        regulator = self.words("head.test_regulator" if session.test_regulator else "head.regulator")
        ruleset = session.ruleset
        rules = f"{ruleset.id} {ruleset.version} · {session.jurisdiction.id}"
        return Panel(
            Group(*rows),
            title=f"[bold]{session.game_name}[/]",
            title_align="left",
            subtitle=f"[dim]{rules if self.is_narrow else f'{rules} · {regulator}'}[/]",
            subtitle_align="right",
            border_style="dim",
            width=self.width,
        )

    def limits_left(self, session: pb.SessionView) -> Iterator[RenderableType]:
        """How much of each of the operator's limits is left; nothing if there are no limits."""
        left = []
        if session.HasField("loss_left_minor"):
            left.append(self.words("say.left_loss", amount=format_money(session.loss_left_minor, session.currency)))
        if session.HasField("stake_left_minor"):
            left.append(self.words("say.left_stake", amount=format_money(session.stake_left_minor, session.currency)))
        if session.HasField("time_left_ms"):
            left.append(self.words("say.left_time", time=format_elapsed(session.time_left_ms)))
        if left:
            yield line(self.words("say.limits", limits=", ".join(left)), "dim")

    def felt(self, round_: pb.RoundView, family: str, currency: str) -> Group:
        """Cards, hands, bets and commitment of the round."""
        bets = self.bets(round_, family, currency)
        commitment = f"{self.words('felt.commitment')} {round_.commitment.hex()}"
        return Group(self.cards(round_, family), bets, line(commitment, "dim"))

    def bets(self, round_: pb.RoundView, family: str, currency: str) -> Padding:
        """The bets of the round, and their sum."""
        bets = Text()
        for bet in round_.bets:
            amount = format_money(bet.amount_minor, currency)
            bets.append(f"{self.words.bet(family, bet.bet)} ", "dim").append(amount).append("   ")
        bets.append(f"{self.words('felt.staked')} ", "dim").append(format_money(round_.staked_minor, currency), "bold")
        return Padding(bets, (0, 0, 0, 2))

    def cards(self, round_: pb.RoundView, family: str) -> Group:
        """Cards and hands of the round: six rows, or four or five in a narrow terminal."""
        if self.is_narrow:
            return self._narrow_cards(round_, family)
        is_open, plain = round_.status == pb.ROUND_STATUS_OPEN, self.plain
        dealer = draw_cards(round_.dealer_cards, _HOLE_CARDS, face_down=is_open, plain=plain)
        board = draw_cards(round_.board, _BOARD, plain=plain)
        mine = draw_cards(round_.hole_cards, _HOLE_CARDS, plain=plain)
        the_dealer = self.words.known(f"game.{family}.dealer", "dealer")
        the_board, you = self.words("felt.board"), self.words("felt.you")
        width = max(7, *(cell_len(name) + 1 for name in (the_dealer, the_board, you)))
        hands = [Text(), self._hand(you, round_.player_hand, width), self._hand(the_dealer, round_.dealer_hand, width)]
        rows = [
            Text.assemble(_label(the_dealer, row, width), dealer[row], _label(the_board, row, width), board[row])
            for row in range(CARD_ROWS)
        ]
        rows += [Text.assemble(_label(you, row, width), mine[row], "  ", hands[row]) for row in range(CARD_ROWS)]
        return Group(*rows)

    def _narrow_cards(self, round_: pb.RoundView, family: str) -> Group:
        """The same in lines: `board  K♠ 10♥ 2♦`."""
        the_dealer = self.words.known(f"game.{family}.dealer", "dealer")
        the_board, you = self.words("felt.board"), self.words("felt.you")
        width = max(cell_len(name) for name in (the_dealer, the_board, you)) + 2
        table = Table.grid()
        for name, cards, places, hand in (
            (the_dealer, round_.dealer_cards, _HOLE_CARDS, round_.dealer_hand),
            (the_board, round_.board, _BOARD, pb.Hand()),
            (you, round_.hole_cards, _HOLE_CARDS, round_.player_hand),
        ):
            table.add_row(Text(f"{name:<{width}}", "dim"), cards_text(cards, places, plain=self.plain))
            if hand.category:
                table.add_row("", hand_text(self.words.known(f"hand.{hand.category}", hand.category), (), plain=True))
        return Group(Padding(table, (0, 0, 0, 2)))

    def decisions(self, round_: pb.RoundView, family: str, currency: str) -> Iterator[RenderableType]:
        """The legal actions with their cost, and the reason if one is not available."""
        yield self.choices([*self.offered(round_.legal_actions, family, currency), drawn(self.words.choice("leave"))])
        if round_.HasField("deadline"):
            decided_at = format_time(round_.deadline.ToMilliseconds())
            yield line(self.words("say.decided_at", time=decided_at), "yellow")
        if round_.paused:
            yield line(self.words("say.paused", what=self.malfunction(round_.malfunction_code)), "bold yellow")

    def offered(self, legal: Iterable[pb.LegalAction], family: str, currency: str) -> list[Text]:
        """Decisions with their cost, or why they are not available."""
        parts = []
        for one in legal:
            style = "" if one.available else "dim"
            text = drawn(self.action(family, one.action), style)
            if one.cost_minor:
                text.append(f" {format_money(one.cost_minor, currency)}", style)
            if not one.available:
                text.append(f" ({self.words.known(f'unavailable.{one.reason}', one.reason)})", style)
            parts.append(text)
        return parts

    def choices(self, parts: Iterable[Text]) -> Padding:
        """Choices, none of them broken over two lines."""
        return Padding(Group(*flow(parts, self.width - 4)), (0, 2, 0, 2))

    def outcome(self, round_: pb.RoundView, family: str, currency: str) -> Group:
        """The winner, and the result of every bet."""
        table = Table.grid(padding=(0, 3, 0, 0))
        for row in round_.settlement:
            stake, returned = (format_money(amount, currency) for amount in (row.stake_minor, row.returned_minor))
            back = Text.assemble((f"{self.words('felt.back')} ", "dim"), returned, justify="right")
            result = pb.BetResult.Name(row.result).removeprefix("BET_RESULT_")
            became = Text(self.words.known(f"result.{result}", "?"), _STYLES.get(result, ""))
            bet = Text(self.words.bet(family, row.bet), "dim")
            table.add_row(" ", bet, Text(stake, justify="right"), became, back)
        return Group(Padding(self.headline(round_, family, currency), (0, 0, 0, 2)), table)

    def malfunction(self, code: str) -> str:
        """What is the matter, with its code: the server's codes in words, an admin's under a common one."""
        return f"{self.words.known(f'malfunction.{code}', self.words('malfunction.other'))} ({code or '-'})"

    def action(self, family: str, action: pb.Action.ValueType) -> Choice:
        """Key and word of a decision in this game."""
        return self.words.action(family, pb.Action.Name(action).removeprefix("ACTION_"))

    def headline(self, round_: pb.RoundView, family: str, currency: str) -> Text:
        """The winner, and what the round brought."""
        if round_.status == pb.ROUND_STATUS_VOID:
            return Text(self.words("felt.void"), "bold yellow")
        the_dealer = self.words.known(f"game.{family}.the_dealer", "the dealer")
        key = f"outcome.{pb.Outcome.Name(round_.outcome).removeprefix('OUTCOME_')}"
        text = Text("", "bold")
        text.append(self.words(key if self.words.has(key) else "felt.ended", dealer=the_dealer))
        if round_.outcome != pb.OUTCOME_FOLD and not round_.dealer_qualifies:
            # In the middle of a sentence the article has a small first letter.
            inside = the_dealer[0].lower() + the_dealer[1:]
            text.append(", " + self.words("outcome.not_qualified", dealer=inside))
        net_minor = round_.returned_minor - round_.staked_minor
        net = format_money(net_minor, currency, signed=True)
        return text.append(f"   {net}", "bold green" if net_minor > 0 else "")

    # --- statements ---------------------------------------------------------------------------------------------------

    def links(self, statements: Iterable[Statement]) -> Table:
        """The verified statements of the session."""
        table = table_of(" ", *(self.words(f"proof.{name}") for name in ("link", "statement", "hash")))
        for statement in statements:
            table.add_row(" ", statement.body["link_no"], statement.kind.name, Text(f"{statement.hash[:48]}…", "dim"))
        return table

    def verified(self, statements: Iterable[Statement], *, anchored: bool) -> RenderableType:
        """Statements that have passed all checks, and whether their keys are anchored."""
        names = ", ".join(f"{one.kind.name} {one.hash[:12]}…" for one in statements)
        if anchored:
            return line(f"✓ {self.words('proof.anchored', names=names)}", "green")
        return line(f"✓ {self.words('proof.unanchored', names=names)}", "yellow")

    def broken(self, check: str, detail: str) -> list[RenderableType]:
        """A statement that fails a check (`13 transcript`); `detail` is the error of the check."""
        number, _, _ = check.partition(" ")
        name = self.words.known(f"check.{number}", check)
        named = f"{number} {name}" if number.isdecimal() else name
        return [
            line(f"✗ {self.words('proof.broken', check=named, detail=detail)}", "bold red"),
            line(f"  {self.words('proof.do_not_play')}", "red"),
        ]

    def refusal(self, error: CallError) -> str:
        """A refusal of the server, with its reason."""
        return self.words.refusal(error.reason, error.message, error.metadata, error.code.name)

    # --- the game -----------------------------------------------------------------------------------------------------

    def rules(self, game: Game) -> Group:
        """Rules, paytables, limits and returns of the game, from the catalog."""
        document = json.loads(game.canonical) if game.canonical else {}
        after_fold = next((str(value) for name, value in document.items() if name.endswith("_after_fold")), "")
        reported = self.words.rules(game.family, floor=game.dealer_qualifies_with, after_fold=after_fold) or list(
            game.rules
        )
        parts: list[RenderableType] = [line(f"{number}. {rule}") for number, rule in enumerate(reported, 1)]
        tables = Table.grid(padding=(0, 4))
        tables.add_row(" ", *(self._paytable(game.family, paytable) for paytable in game.paytables))
        parts += [Text(), tables, Text()]
        for limit in game.limits:
            least, most, step = (
                format_money(amount, game.currency) for amount in (limit.min_minor, limit.max_minor, limit.step_minor)
            )
            bet = self.words.bet(game.family, limit.bet)
            parts.append(line(self.words("rules.limits", bet=bet, least=least, most=most, step=step)))
        parts += [line(self._return(game.family, figure), "dim") for figure in game.returns]
        return Group(*parts)

    def _return(self, family: str, figure: ReturnFigure) -> str:
        bet, _, per = figure.name.partition(", per ")
        return self.words(
            "rules.return_of",
            name=self.words.return_name(family, bet, per),
            percent=figure.percent,
            basis=self.words.known(f"return.{figure.basis}", figure.basis),
        )

    def _paytable(self, family: str, paytable: Paytable) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self.words("rules.pays", bet=self.words.bet(family, paytable.bet)), "bold"), "")
        for row in paytable.rows:
            pays = self.words.known(f"pays.{row.pays}", row.pays)
            table.add_row(self.words.known(f"row.{row.category}", row.category), Text(pays, justify="right"))
        return table

    # --- parts --------------------------------------------------------------------------------------------------------

    def _named(self, name: str, value: str, style: str = "") -> Text:
        return Text.assemble((f"{self.words(f'head.{name}')} ", "dim"), (value, style))

    def _hand(self, who: str, hand: pb.Hand, width: int) -> Text:
        if not hand.category:
            return Text()
        name = self.words.known(f"hand.{hand.category}", hand.category)
        return Text.assemble((f"{who} ".rjust(width), "dim"), hand_text(name, hand.cards, plain=self.plain))


def line(text: str, style: str = "") -> Padding:
    """A line of text; its continuation lines are indented alike."""
    return Padding(Text(text, style), (0, 0, 0, 2))


def drawn(choice: Choice, style: str = "") -> Text:
    """A choice with its key."""
    return Text.assemble((f"[{choice.key}] ", style or "bold"), (choice.text, style))


def flow(parts: Iterable[Text], width: int) -> list[Text]:
    """The parts in lines of this width, three spaces between two."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + 3 + part.cell_len <= width:
            lines[-1].append("   ").append(part)
        else:
            lines.append(part)
    return lines


def _spread(*parts: Text) -> Table:
    """One line, its parts spread over the width; the last one stands at the right."""
    table = Table.grid(expand=True)
    for _ in parts[1:]:
        table.add_column()
    table.add_column(justify="right")
    table.add_row(*parts)
    return table


def table_of(*left: str, right: Iterable[str] = ()) -> Table:
    """A table without lines, with these column headings."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _label(name: str, row: int, width: int) -> Text:
    """A label beside the middle row of the cards."""
    return Text(f"  {name if row == 1 else '':<{width}}", "dim")
