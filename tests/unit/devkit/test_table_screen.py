"""What is shown of a table fits a terminal and a phone, in each language, and says who has what time for what."""

from __future__ import annotations

import io

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console, RenderableType

from rgs.core.cards import FULL_DECK, format_card
from rgs.core.texts import LANGUAGES
from rgs.devkit.terminal.i18n import load_words
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.screen import Screen
from rgs.devkit.terminal.table_screen import TableScreen, light_of, shown_round
from rgs.devkit.terminal.terminal import Keyboard
from rgs.v1 import table_pb2 as pb
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import (
    ACTION_CHECK,
    ACTION_PLAY_4X,
    BET_RESULT_LOSE,
    BET_RESULT_WIN,
    DECIDED_BY_TIMER,
    OUTCOME_PLAYER,
    PHASE_FLOP,
    PHASE_PREFLOP,
    ROUND_STATUS_OPEN,
    ROUND_STATUS_SETTLED,
    ROUND_STATUS_VOID,
    Bet,
    Hand,
    LegalAction,
    RoundView,
    SessionView,
    SettledBet,
    TakenAction,
)

FAMILY = "ultimate_texas_holdem"
CARDS = [format_card(card) for card in FULL_DECK]
OPENED_MS, AMBER_MS, DEADLINE_MS = 1_000_000, 1_010_000, 1_015_000
WIDTHS = (80, 40)


def at(time_ms: int) -> Timestamp:
    time = Timestamp()
    time.FromMilliseconds(time_ms)
    return time


def betting() -> pb.TableView:
    return pb.TableView(
        table="t-1",
        state=pb.TABLE_STATE_BETTING,
        round_id="round-1",
        open_time=at(OPENED_MS),
        amber_time=at(AMBER_MS),
        deadline=at(DEADLINE_MS),
        players_at_least=1_000,
    )


def seven_boxes() -> pb.TableView:
    """A table in the flop's window: one box of a player with the longest name, one who waits, one with no cards."""
    table = pb.TableView(table="t-1", state=pb.TABLE_STATE_DECIDING, phase=PHASE_FLOP, round_id="round-1")
    table.open_time.CopyFrom(at(OPENED_MS))
    table.deadline.CopyFrom(at(DEADLINE_MS))
    table.board.extend(CARDS[:3])
    table.boxes.extend(
        [
            pb.BoxView(box=1, nickname="W" * 20, in_round=True, decided=True),
            pb.BoxView(box=2, nickname="player-2", in_round=True),
            pb.BoxView(box=3, nickname="player-3"),
            pb.BoxView(box=4, reserved=True),
            *(pb.BoxView(box=number) for number in (5, 6, 7)),
        ]
    )
    return table


def own_round() -> RoundView:
    return RoundView(
        round_id="round-1",
        status=ROUND_STATUS_OPEN,
        phase=PHASE_FLOP,
        hole_cards=CARDS[10:12],
        bets=[Bet(bet="ante", amount_minor=50_000), Bet(bet="blind", amount_minor=50_000)],
        staked_minor=100_000,
        legal_actions=[
            LegalAction(action=ACTION_CHECK, available=True),
            LegalAction(action=ACTION_PLAY_4X, cost_minor=200_000, reason="INSUFFICIENT_BALANCE"),
        ],
        actions=[TakenAction(phase=PHASE_PREFLOP, action=ACTION_CHECK, by=DECIDED_BY_TIMER)],
        commitment=bytes(32),
    )


def settled() -> RoundView:
    round_ = own_round()
    round_.status, round_.outcome, round_.dealer_qualifies = ROUND_STATUS_SETTLED, OUTCOME_PLAYER, False
    round_.ClearField("legal_actions")
    round_.board.extend(CARDS[:5])
    round_.dealer_cards.extend(CARDS[5:7])
    round_.player_hand.CopyFrom(Hand(category="straight_flush", cards=CARDS[:5]))
    round_.dealer_hand.CopyFrom(Hand(category="high_card", cards=CARDS[5:10]))
    for bet in ("ante", "blind", "play", "trips"):
        won = BET_RESULT_WIN if bet != "ante" else BET_RESULT_LOSE
        round_.settlement.append(SettledBet(bet=bet, stake_minor=50_000, returned_minor=2_550_000, result=won))
    return round_


def lines_of(*parts: RenderableType, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True, highlight=False)
    console.print(*parts, sep="\n")
    return [line.rstrip() for line in console.export_text().splitlines()]


def said(*parts: RenderableType, width: int = 80) -> str:
    return " ".join(" ".join(lines_of(*parts, width=width)).split())


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def view(language: str = "en", *, width: int = 80, plain: bool = False) -> TableScreen:
    return TableScreen(Screen(load_words(language), plain=plain, width=width))


# --- it fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_part_fits_its_width_and_no_box_or_choice_is_broken(language: str, width: int, *, plain: bool) -> None:
    words, tables = load_words(language), view(language, width=width, plain=plain)
    session = SessionView(
        game_name="A table", currency="EUR", regulator_session_id="S" * 16, regulator_participation_id="P" * 16
    )
    session.balance_minor, session.net_position_minor = 99_999_999, -99_999_999
    table, round_, end = seven_boxes(), own_round(), settled()
    menu = {name: words.choice(name, bets="ante 1.00 EUR") for name in ("place", "bets", "message", "leave")}
    parts = [
        tables.screen.header(session, round_),
        tables.clock(table, round_, OPENED_MS),
        tables.clock(betting(), None, OPENED_MS),
        tables.screen.cards(shown_round(table, pb.SeatView(round=round_)), FAMILY),
        tables.screen.cards(end, FAMILY),
        tables.commitment(round_),
        tables.boxes(table, 1),
        tables.outcome(end, FAMILY, "EUR"),
        tables.decisions(round_, FAMILY, "EUR"),
        tables.own_bets(round_.bets, FAMILY, "EUR"),
        tables.menu(menu, round_.legal_actions, FAMILY, "EUR"),
    ]
    # One that is drawn too wide is cut by the console, which must not happen: so it gets more room than it may take.
    for part in parts:
        assert max(map(len, lines_of(part, width=width))) <= width
        if part is not parts[5]:  # the commitment is shortened
            assert "…" not in "".join(lines_of(part, width=width)).replace("W…", "")
    boxes = lines_of(tables.boxes(table, 1), width=width)
    assert len(boxes) == (7 if width == 40 else 4)
    drawn = lines_of(tables.menu(menu, round_.legal_actions, FAMILY, "EUR"), width=width)
    assert all(line.count("[") == line.count("]") for line in drawn)


# --- light and clock (T-1) -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now_ms", "light", "what"),
    [
        (OPENED_MS, "green", "Place your bets ━━━━━━━━━━━━━━━━━━━━ 15 s"),
        (AMBER_MS - 1, "green", "Place your bets ━━━━━━━───────────── 6 s"),
        (AMBER_MS, "amber", "Last bets ━━━━━━━───────────── 5 s"),
        (DEADLINE_MS - 1, "amber", "Last bets ━─────────────────── 1 s"),
        (DEADLINE_MS, "red", "No more bets ──────────────────── 0 s"),
        (DEADLINE_MS + 5_000, "red", "No more bets ──────────────────── 0 s"),
    ],
)
def test_the_light_follows_the_servers_time(now_ms: int, light: str, what: str) -> None:
    assert light_of(betting(), now_ms) == light
    assert what in said(view().clock(betting(), None, now_ms))


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (pb.TABLE_STATE_SHUT, "The table is closed"),
        (pb.TABLE_STATE_IDLE, "the first bet starts the clock"),
        (pb.TABLE_STATE_CLOSED, "No more bets"),
        (pb.TABLE_STATE_OPENING, "No more bets"),
        (pb.TABLE_STATE_SETTLING, "Results"),
        (pb.TABLE_STATE_RESULT, "Results"),
        (pb.TABLE_STATE_VOIDING, "The round is being made void"),
    ],
)
def test_what_the_table_waits_for(state: pb.TableState.ValueType, what: str) -> None:
    assert what in said(view().clock(pb.TableView(state=state), None, 0))


def test_a_paused_table_shows_the_malfunction_and_no_clock() -> None:
    paused = seven_boxes()
    paused.state, paused.malfunction_code = pb.TABLE_STATE_PAUSED, "CAMERA_FAILED"
    shown = said(view().clock(paused, own_round(), OPENED_MS))
    assert "its clock stands: a malfunction is being examined (CAMERA_FAILED)." in shown
    assert "━" not in shown


def test_whose_turn_it_is() -> None:
    table, mine = seven_boxes(), own_round()
    assert "Your decision" in said(view().clock(table, mine, OPENED_MS))
    mine.ClearField("legal_actions")
    assert "You have decided" in said(view().clock(table, mine, OPENED_MS))
    assert "You are not in this round" in said(view().clock(table, shown_round(table, pb.SeatView()), OPENED_MS))


# --- boxes, results, decisions ---------------------------------------------------------------------------------------


def test_boxes_show_who_has_decided_and_cards_at_the_end_only() -> None:
    table = seven_boxes()
    shown = said(view(width=40).boxes(table, 2), width=40)
    assert "has decided" in shown
    assert ">2 player-2 (you) is deciding" in shown
    assert "3 player-3 no cards" in shown
    assert "4 reserved" in shown
    assert "5 free" in shown
    table.state = pb.TABLE_STATE_RESULT
    table.boxes[1].hole_cards.extend(["As", "Td"])
    assert ">2 player-2 (you) A♠ 10♦" in said(view().boxes(table, 2))
    assert ">2 player-2 (you) As 10d" in said(view(plain=True).boxes(table, 2))


def test_a_decision_of_the_timer_is_marked() -> None:
    shown = said(view().decisions(own_round(), FAMILY, "EUR"))
    assert shown == "before the flop: check, automatic: the time ran out"


def test_the_result_of_every_bet_and_of_a_void_round() -> None:
    shown = said(view().outcome(settled(), FAMILY, "EUR"))
    assert "You win, the dealer does not qualify" in shown
    assert "ante 500.00 EUR loses, back 25,500.00 EUR" in shown
    assert "trips 500.00 EUR wins, back 25,500.00 EUR" in shown
    void = own_round()
    void.status = ROUND_STATUS_VOID
    assert "The round is void: all stakes were returned." in said(view().outcome(void, FAMILY, "EUR"))


def test_what_is_not_available_is_shown_with_its_reason() -> None:
    shown = said(view().menu({}, own_round().legal_actions, FAMILY, "EUR"))
    assert "[c] check" in shown
    assert "[4] play 4x 2,000.00 EUR (the balance does not cover it)" in shown


def test_a_watcher_sees_what_all_see_and_a_player_the_own_hand() -> None:
    table = seven_boxes()
    table.hole_cards.extend(CARDS[20:22])
    assert list(shown_round(table, pb.SeatView()).hole_cards) == CARDS[20:22]
    before = pb.SeatView(round=own_round())
    shown = shown_round(table, before)
    assert (list(shown.hole_cards), list(shown.board)) == (CARDS[10:12], CARDS[:3])
    before.round.round_id = "round-0"
    assert list(shown_round(table, before).hole_cards) == CARDS[20:22]


def test_the_dealers_lines_are_in_words_and_players_lines_as_they_were_written(language: str) -> None:
    lines = [
        pb.ChatLine(code="BETS_OPEN"),
        pb.ChatLine(code="NEW_CODE"),
        pb.ChatLine(nickname="player-1", text="[b]hi"),
    ]
    shown = [said(part) for part in view(language).chat(lines, FAMILY)]
    assert shown[0].endswith(load_words(language)("dealer_line.BETS_OPEN"))
    assert shown[1].endswith("NEW_CODE")
    assert shown[2] == "player-1: [b]hi"


# --- the lobby -------------------------------------------------------------------------------------------------------


def test_a_table_of_the_lobby(language: str) -> None:
    entry = pb.TableEntry(
        table="t-1",
        names={"en": "One", "it": "Uno", "de": "Eins"},
        currency="EUR",
        limits=[pb.TableLimits(bet="ante", min_minor=100, max_minor=10_000)],
        state=pb.TABLE_STATE_SHUT,
        players_at_least=50,
        boxes=7,
        boxes_free=2,
        hours_change_time=at(1_795_453_200_000),
    )
    tables = view(language)
    assert tables.name(entry) == {"en": "One", "it": "Uno", "de": "Eins"}[language]
    shown = said(*tables.entry(entry, Game(family=FAMILY)))
    expected = {
        "en": "opens 2026-11-23 17:00 UTC",
        "it": "apre 2026-11-23 17:00 UTC",
        "de": "öffnet 2026-11-23 17:00 UTC",
    }
    assert expected[language] in shown
    assert "1.00" in shown
    assert "100.00 EUR" in shown
    assert "50" in shown
    assert "2" in shown
    entry.state = pb.TABLE_STATE_BETTING
    assert expected[language] not in said(*tables.entry(entry, None))


def test_an_unknown_language_of_a_name_falls_back_to_the_id() -> None:
    assert view("de").name(pb.TableEntry(table="t-1", names={"fr": "Un"})) == "t-1"


# --- a screen that is not high enough --------------------------------------------------------------------------------


def test_what_can_be_spared_goes_first_and_the_oldest_of_it() -> None:
    console = Console(width=20, height=5, file=io.StringIO(), force_terminal=True, color_system=None)
    with Keyboard(console, io.StringIO()) as keyboard:
        prompt = Prompt(console, keyboard, load_words("en"))
        prompt.frame([(0, "kept"), (1, "one"), (2, "old"), (2, "new"), (0, "menu")])
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.startswith("\x1b[H")
    assert shown.endswith("\x1b[J")
    assert [word for word in ("kept", "one", "old", "new", "menu") if word in shown] == ["kept", "one", "new", "menu"]
