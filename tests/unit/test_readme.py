"""The README is short and true: its round follows from the rules, its map is the tree, its pages lead to all others."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from certification.__main__ import COMMANDS
from rgs.cli.app import build_app
from rgs.core import games
from rgs.core.cards import format_card
from rgs.core.games.types import Action
from rgs.core.hands import HandValue
from rgs.devkit.terminal.i18n import load_words
from rgs.devkit.terminal.screen import Screen
from rgs.v1 import common_pb2 as v1
from tests.unit.core.games.test_settling import seat_of
from tests.unit.test_pages import LINK
from tools.tidy import PROJECT

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
WORDS = 1021
"""Ten minutes' reading. It was twice as long once."""
CARDS = ("9d 6d", "4h Tc", "7c Td 8s 9s Ad")
"""Of the round that it shows: the player's, the dealer's, the board."""


def test_it_is_ten_minutes_reading() -> None:
    assert len(README.split()) <= WORDS


# --- the round -------------------------------------------------------------------------------------------------------


def hand(value: HandValue) -> v1.Hand:
    return v1.Hand(category=value.category.text, cards=[format_card(card) for card in value.best5])


def shown(said: str) -> list[str]:
    """What the terminal shows of a round with these cards; `said` has the ids and hashes, which are chance."""
    seat = seat_of("uth-solo", CARDS, {"ante": 100}, Action.PLAY_4X)
    settled = games.settle(seat)
    net_minor = settled.returned_minor - settled.staked_minor
    hole_cards, dealer_cards, board = (text.split() for text in CARDS)
    (code,) = re.findall(r"round (#[0-9:]+)", said)
    (commitment,) = re.findall(r"commitment ([0-9a-f]{64})$", said, re.MULTILINE)
    session = v1.SessionView(
        ruleset=v1.RulesRef(id="uth-solo", version="1"),
        game_name="Ultimate Texas Hold'em",
        jurisdiction=v1.RulesRef(id="demo", version="1"),
        currency="EUR",
        regulator_session_id=re.findall(r"session id ([0-9A-Z]{16})", said)[0],
        regulator_participation_id=re.findall(r"participation id ([0-9A-Z]{16})", said)[0],
        test_regulator=True,
        balance_minor=100_00 + net_minor,
        net_position_minor=net_minor,
    )
    round_ = v1.RoundView(
        game_code=code,
        status=v1.ROUND_STATUS_SETTLED,
        hole_cards=hole_cards,
        dealer_cards=dealer_cards,
        board=board,
        bets=[v1.Bet(bet=bet.bet, amount_minor=bet.stake_minor) for bet in settled.bets],
        player_hand=hand(settled.player_hand),
        dealer_hand=hand(settled.dealer_hand),
        outcome=v1.Outcome.Value(f"OUTCOME_{settled.outcome.name}"),
        dealer_qualifies=settled.dealer_qualifies,
        settlement=[
            v1.SettledBet(
                bet=bet.bet,
                stake_minor=bet.stake_minor,
                returned_minor=bet.returned_minor,
                result=v1.BetResult.Value(f"BET_RESULT_{bet.result.name}"),
            )
            for bet in settled.bets
        ],
        staked_minor=settled.staked_minor,
        returned_minor=settled.returned_minor,
        commitment=bytes.fromhex(commitment),
    )
    words, game = load_words("en"), "ultimate_texas_holdem"
    screen, console = Screen(words, plain=False), Console(width=80, record=True, highlight=False, file=StringIO())
    console.print(screen.header(session, round_), screen.felt(round_, game, "EUR"), screen.outcome(round_, game, "EUR"))
    (names,) = re.findall(r"✓ (round_opening [0-9a-f]{12}…, round_final [0-9a-f]{12}…) ", said)
    reported = [f"✓ {words('proof.anchored', names=names)}", f"  {words('proof.computed')}"]
    return [line.rstrip() for line in console.export_text().splitlines()] + [f"  {line}" for line in reported]


def test_its_round_is_what_the_terminal_shows_and_what_the_rules_give() -> None:
    lines = README[README.index("    ╭─ Ultimate") : README.index("The opening was signed")].rstrip().splitlines()
    block = [line.removeprefix("    ") for line in lines]
    assert block == shown("\n".join(block))


# --- the map, the figures, the commands ------------------------------------------------------------------------------


def folders() -> set[str]:
    """Of the tree: the project's own, and in place of `rgs/` the rooms in it."""
    rooms = {f"rgs/{path.name}" for path in (ROOT / "rgs").iterdir() if any(path.rglob("*.py"))}
    return {f"{name}/" for name in (PROJECT - {"rgs"}) | rooms | {"deploy", "docs", "protos", "sdk"}}


def test_its_map_names_every_room_once_and_nothing_else() -> None:
    table = README[README.index("| folder |") : README.index("[docs/architecture.md]")]
    firsts = [line.split("|")[1] for line in table.strip().splitlines()]
    named = [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]
    assert len(named) == len(set(named))
    assert set(named) == folders()


def without_load(text: str) -> list[str]:
    """Lines that tell a time in seconds and no load."""
    timed = [line for line in text.splitlines() if re.search(r"\d s\b", line) and not line.startswith("    ")]
    return [line for line in timed if not re.search(r"\| [0-9]+( to [0-9]+)? \|$", line)]


def test_each_time_says_under_which_load() -> None:
    assert len(re.findall(r"\d s \|", README)) >= 4
    assert without_load(README) == []
    assert without_load("| `make demo` | 21 s | 4 |\n| `make demo` | 20 s |\nIt took 20 s.\n") == [
        "| `make demo` | 20 s |",
        "It took 20 s.",
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/demo.md"])
def test_every_command_that_it_names_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    app = build_app()
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    assert set(re.findall(r"(?:`|\$ )rgs ([a-z-]+)", text)) <= known
    assert set(re.findall(r"(?:`|\$ )certify ([a-z-]+)", text)) <= set(COMMANDS)
    assert re.search(r"`(?:rgs|certify) ", text)


# --- the way to every page -------------------------------------------------------------------------------------------


def reached() -> set[Path]:
    """The pages to which links lead from the README, over other pages too."""
    found, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found or page.suffix != ".md" or not page.is_file():
            continue
        found.add(page)
        waiting += [(page.parent / path).resolve() for path, _ in LINK.findall(page.read_text("utf-8")) if path]
    return found


def test_a_way_leads_from_it_to_every_page() -> None:
    pages = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}
    assert {page.relative_to(ROOT).as_posix() for page in pages - reached()} == set()
