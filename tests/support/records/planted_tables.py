"""Planted faults of rounds of tables, each with the check that must name it (docs/verify.md, "A table").

Two verifiers must name the check, and come to the same last line.
"""

from __future__ import annotations

from functools import partial

from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rounds import rules_object
from rgs.core.rulesets import load_ruleset
from tests.support.records import table_ends as ends
from tests.support.records import table_lies as lies
from tests.support.records.lies import OTHER_ULID, RULES_OF_NOBODY, Change, Planted, Z, add, drop, lie_at, put, swap
from tests.support.records.lying import limits
from tests.support.records.planted_table_grants import SEAT_GRANTS
from tests.support.records.table_lies import BOXES, LUGANO, SHARED, both, in_cut, later, lie_in, of_void, story
from tests.support.records.table_stories import cut, played, undealt

LAW_BEFORE_TABLES = rules_object(load_jurisdiction("demo", 1))
LAW_WITHOUT_EARLY_CLOSE = rules_object(load_jurisdiction("gb-ukgc"))
SOLO = rules_object(load_ruleset("uth-solo"))
EARLY_CLOSE = put("early_close", value=True)


def other_session(**names: str) -> Planted:
    """Sessions that name another ruleset or jurisdiction than the rounds of their table."""
    (what,) = names
    return Planted(f"{what} of another session", "8 rules", partial(played, BOXES, of_session=names))


def ended_by(index: int, end: str) -> Change:
    """A window ended for another reason."""
    return put("windows", index, "end", value=end)


CHAIN = (
    lie_in("number 1 twice", "24 table", "table_round", 2, put("table_round_no", value="1")),
    lie_in("number 2 skipped", "24 table", "table_round", 2, put("table_round_no", value="3")),
    lie_in("begins with number 2", "24 table", "table_round", 1, put("table_round_no", value="2")),
    lie_in("previous of nothing", "24 table", "table_round", 2, put("previous", value=Z)),
    lie_in("a round before the first", "24 table", "table_round", 1, put("previous", value="1" * 64)),
    lie_in("bets before the end of the round before", "24 table", "table_round", 2, lies.betting_moved(-60_000)),
    in_cut(
        "previous of nothing, cut", "24 table", partial(played, lie=lie_at("table_round", 2, put("previous", value=Z)))
    ),
    in_cut(
        "a round before the first, cut",
        "24 table",
        partial(played, lie=lie_at("table_round", 1, put("previous", value="1" * 64))),
    ),
    in_cut(
        "number 1 twice, cut",
        "24 table",
        partial(played, lie=lie_at("table_round", 2, put("table_round_no", value="1"))),
    ),
    lie_in("seats of no round", "24 table", "table_seats", 2, put("table_round", value=Z)),
    lie_in("seats of another round's id", "24 table", "table_seats", 2, put("round_id", value=OTHER_ULID)),
    lie_in("deal of no round", "24 table", "table_deal", 2, put("deal", "table_round", value=Z)),
    lie_in("deal of another round's id", "24 table", "table_deal", 2, put("round_id", value=OTHER_ULID)),
    lie_in("final of no round", "24 table", "table_final", 2, put("table_round", value=Z)),
    lie_in("final of another round's id", "24 table", "table_final", 2, put("round_id", value=OTHER_ULID)),
    story("a second table_final", "24 table", lies.ended_twice),
    story("the round before has not ended", "24 table", lies.never_ended),
    story("a round that ends in the next one", "24 table", ends.ended_late),
    Planted("a round that ends in the next one, cut", "28 seats", ends.ended_late_in_cut_files, lies.with_all_rounds),
    Planted("a round that is fixed twice", "24 table", played, lies.fixed_twice),
    story("a deal kept back", "28 seats", lies.never_ended_and_nobody_sat, SHARED),
    story("the last round has no end", "28 seats", lies.last_without_end),
)

RULES = (
    lie_in("ruleset of nobody at a table", "8 rules", "table_round", 1, put("ruleset", value=RULES_OF_NOBODY)),
    lie_in("jurisdiction of nobody at a table", "8 rules", "table_round", 1, put("jurisdiction", "sha256", value=Z)),
    lie_in("a solo game at a table", "8 rules", "table_round", 1, put("ruleset", value=SOLO)),
    lie_in(
        "early close under a law without it",
        "8 rules",
        "table_round",
        1,
        both(EARLY_CLOSE, put("jurisdiction", value=LAW_WITHOUT_EARLY_CLOSE)),
    ),
    other_session(ruleset=LUGANO),
    other_session(jurisdiction="it-adm"),
    lie_in(
        "jurisdiction of another version", "8 rules", "table_round", 1, put("jurisdiction", value=LAW_BEFORE_TABLES)
    ),
    Planted("dealt sooner than the law allows", "8 rules", lies.faster_than_the_law),
    Planted("dealt after the session's time", "8 rules", partial(played, lie=limits(duration_ms="20000"))),
    Planted("more than the session may lose", "8 rules", partial(played, lie=limits(loss_minor="219"))),
    Planted("more than the session may stake", "8 rules", partial(played, lie=limits(stake_minor="219"))),
    lie_in(
        "ante dearer than the ruleset's", "10 stakes", "table_round", 1, put("limits", 0, "max_minor", value="100002")
    ),
    lie_in("ante cheaper than the ruleset's", "10 stakes", "table_round", 1, put("limits", 0, "min_minor", value="8")),
    lie_in("limits that nothing meets", "10 stakes", "table_round", 1, put("limits", 0, "min_minor", value="1002")),
    lie_in("limits in another order", "10 stakes", "table_round", 1, swap("limits", 0, 1)),
    lie_in("no limits of trips", "10 stakes", "table_round", 1, drop("limits", 1)),
    lie_in("limits of the ante twice", "10 stakes", "table_round", 1, put("limits", 1, "bet", value="ante")),
    lie_in("limits of the blind", "10 stakes", "table_round", 1, put("limits", 1, "bet", value="blind")),
    story("a stake above the table's limits", "10 stakes", lies.dearer_than_the_table),
    lie_in(
        "a stake below the table's limits", "10 stakes", "table_round", 1, put("limits", 0, "min_minor", value="102")
    ),
)

DEAL = (
    lie_in("two hands that all share", "25 table deal", "table_round", 1, put("hands", value="2"), SHARED),
    lie_in("eight hands for seven boxes", "25 table deal", "table_round", 1, put("hands", value="8")),
    lie_in("more hands than memory", "25 table deal", "table_round", 1, put("hands", value="9" * 18)),
    lie_in("65 leaves", "25 table deal", "table_round", 1, put("leaves", value="65")),
    lie_in("32 leaves", "25 table deal", "table_round", 1, put("leaves", value="32")),
    lie_in("2 million leaves", "25 table deal", "table_round", 1, put("leaves", value="2097152")),
    lie_in("more leaves than memory", "25 table deal", "table_round", 1, put("leaves", value="576460752303423488")),
    lie_in("code of another second", "25 table deal", "table_round", 1, put("game_code", value="#00:00:00")),
    Planted("one code twice", "25 table deal", lies.one_code_twice, lies.only_rounds),
    story("dealt twice", "25 table deal", lies.dealt_twice),
    story("dealt after its end", "25 table deal", lies.dealt_after_its_end),
    story("two rounds under one id", "25 table deal", lies.with_the_same_id),
    lie_in("dealt by another instance", "25 table deal", "table_deal", 1, put("deal", "instance", value="rgs-2")),
    lie_in("another shuffle", "25 table deal", "table_deal", 1, put("deal", "shuffle", value="riffle/v1")),
    lie_in("an opening of no deal", "25 table deal", "seat_opening", 2, put("deal", value=Z)),
    lie_in("an opening of another round", "25 table deal", "seat_opening", 2, put("round_id", value=OTHER_ULID)),
    in_cut("no deal in cut files", "25 table deal", played, "table_round", "table_final"),
    lie_in("a draw twice", "20 draws", "table_deal", 2, put("deal", "draw_no", value="2")),
    lie_in("a draw skipped", "20 draws", "table_deal", 1, put("deal", "draw_no", value="3")),
)

WINDOWS = (
    lie_in("betting shorter than due", "26 windows", "table_round", 1, put("betting_ms", value="20001")),
    lie_in("betting open for too long", "26 windows", "table_round", 1, put("betting_ms", value="9999")),
    lie_in(
        "betting closed before it opened",
        "26 windows",
        "table_round",
        1,
        both(put("betting_ms", value="0"), later("betting_close_time", ms=-20_001)),
    ),
    lie_in("a decision window shorter than due", "26 windows", "table_round", 1, put("decision_ms", value="15001")),
    lie_in("a decision window much longer", "26 windows", "table_round", 1, put("decision_ms", value="4999")),
    lie_in("decided where no window may end early", "26 windows", "table_final", 1, ended_by(0, "decided")),
    lie_in(
        "phases in another order",
        "26 windows",
        "table_final",
        1,
        both(put("windows", 0, "phase", value="flop"), put("windows", 1, "phase", value="preflop")),
    ),
    lie_in("a phase twice", "26 windows", "table_final", 1, put("windows", 1, "phase", value="preflop")),
    lie_in("a phase left out", "26 windows", "table_final", 1, drop("windows", 2)),
    lie_in("a pause that ends a phase", "26 windows", "table_final", 1, ended_by(2, "paused")),
    story("a pause, and no whole window after it", "26 windows", lies.paused_without_a_whole_window),
    story("a pause long after the window's time", "26 windows", ends.paused_for_long),
    story("no decision in a window that ran out, void", "26 windows", ends.undecided_in_a_void),
    lie_in(
        "a window opens before the one before closed",
        "26 windows",
        "table_final",
        1,
        later("windows", 1, "open_time", ms=-101),
    ),
    lie_in(
        "the first window opens before the deal",
        "26 windows",
        "table_final",
        1,
        later("windows", 0, "open_time", ms=-4_000),
    ),
    lie_in(
        "a window closes before it opens",
        "26 windows",
        "table_final",
        1,
        both(ended_by(0, "paused"), later("windows", 0, "close_time", ms=-15_001)),
    ),
    Planted(
        "windows of a round that was not dealt",
        "26 windows",
        partial(
            undealt,
            lie_at(
                "table_final",
                1,
                put(
                    "windows",
                    value=[{"close_time": lies.NOON, "end": "time", "open_time": lies.NOON, "phase": "preflop"}],
                ),
            ),
        ),
    ),
    lie_in("a decision before its window", "26 windows", "seat_final", 1, lies.decided_at(0, ms=-20)),
    lie_in(
        "a decision in another phase's window",
        "26 windows",
        "seat_final",
        2,
        lies.decided_at(1, ms=15_100),
    ),
    lie_in("a timer before the end", "26 windows", "seat_final", 2, lies.decided_at(0, ms=-1)),
    lie_in("a timer after the end", "26 windows", "seat_final", 2, lies.decided_at(0, ms=1)),
    lie_in("decided by rule", "26 windows", "seat_final", 2, lies.bound(put("actions", 0, "by", value="rule"))),
    Planted(
        "a timer where all had decided",
        "26 windows",
        partial(played, lie=lie_at("table_final", 1, ended_by(0, "decided")), early_close=True),
    ),
)

EARLY = (
    lie_in("fixed before betting closed", "27 early", "table_round", 1, later("time", ms=-10_000)),
    lie_in("dealt before betting closed", "27 early", "table_deal", 1, later("time", ms=-10_000)),
    lie_in("a seat before the deal", "27 early", "seat_opening", 1, later("time", ms=-5_000)),
    story("a card shown before the seats are given", "27 early", lies.opened_after_the_first_window),
    lie_in("ended before the last window closed", "27 early", "table_final", 1, later("time", ms=-10_000)),
    of_void("void before its window closed", "27 early", "table_final", later("windows", 0, "close_time", ms=9_000)),
    lie_in("a seat's final of no table_final", "27 early", "seat_final", 2, put("table_final", value=Z)),
    story("a seat's final before the table's", "27 early", lies.final_before_the_tables),
    in_cut("no table_final in cut files", "27 early", played, "table_round", "table_deal"),
)

SEATS = (
    story("a seat added after the draw", "28 seats", lies.added_after_the_draw, SHARED),
    story("a box added after the draw", "28 seats", lies.added_after_the_draw),
    Planted("a seat added after the draw, seen by its player", "28 seats", lies.added, partial(cut, player=2)),
    story("a seat given at the end", "28 seats", lies.added_at_the_end),
    story("a seat dropped", "28 seats", lies.dropped, SHARED),
    story("a box dropped", "28 seats", lies.dropped),
    story("places exchanged", "28 seats", lies.replaced, SHARED),
    story("two players on one seat", "28 seats", lies.one_seat_twice),
    story("two players in one box", "28 seats", lies.boxes(1, 1, 2)),
    story("box 8 of seven", "28 seats", lies.boxes(1, 2, 8)),
    story("no box", "28 seats", lies.boxes(0, 1, 2)),
    story("boxes of a shared hand", "28 seats", lies.boxes(1, 2, 3), SHARED),
    lie_in("a root of nothing", "28 seats", "table_round", 1, put("seats_root", value=Z)),
    in_cut(
        "a root of nothing, cut", "28 seats", partial(played, lie=lie_at("table_round", 1, put("seats_root", value=Z)))
    ),
    lie_in("too many leaves", "28 seats", "table_round", 1, put("leaves", value="128")),
    lie_in("another salt", "28 seats", "table_seats", 1, put("salt", value=Z)),
    lie_in("a seat more", "28 seats", "table_seats", 1, add("seats", by=1)),
    lie_in("a seat more at a shared hand", "28 seats", "table_seats", 1, add("seats", by=1), SHARED),
    lie_in("a seat less", "28 seats", "table_seats", 1, add("seats", by=-1)),
    lie_in("a seat less at a shared hand", "28 seats", "table_seats", 1, add("seats", by=-1), SHARED),
    lie_in("more seats than boxes", "28 seats", "table_seats", 1, put("seats", value="8")),
    lie_in("more seats than any table has", "28 seats", "table_seats", 1, put("seats", value="1048577"), SHARED),
    lie_in("more seats than memory", "28 seats", "table_seats", 1, put("seats", value="9" * 18), SHARED),
    lie_in("a hand less", "28 seats", "table_round", 1, put("hands", value="2")),
    story("eight seats", "25 table deal", lies.eight_seats),
    story("counted twice", "28 seats", lies.counted_twice),
    story("counted after the deal", "28 seats", lies.counted_after_the_deal),
    story("counted after the end", "28 seats", lies.counted_after_its_end),
    story("not counted", "28 seats", lies.uncounted),
    story("not counted, not dealt", "28 seats", lies.uncounted_and_undealt),
    Planted("no path in cut files", "28 seats", played, lies.without_paths),
    Planted("a path that leads elsewhere", "28 seats", played, lies.another_path),
    story("finals behind the next round", "28 seats", lies.finals_late),
    Planted("finals behind the next round, cut", "28 seats", lies.late, lies.with_all_rounds),
    story("no finals at all", "28 seats", lies.finals_missing),
)

CARDS = (
    lie_in("a final of no deal", "11 opening", "table_final", 1, put("deal", value=Z)),
    *(
        lie_in(f"settled without {name}", "11 opening", "table_final", 1, drop(name))
        for name in ("deal", "deck", "cards", "hands", "salt", "transcript")
    ),
    lie_in(
        "settled and void",
        "11 opening",
        "table_final",
        1,
        put("void", value={"approvals": [], "malfunction": Z, "reason": "MALFUNCTION"}),
    ),
    Planted(
        "settled and not dealt",
        "11 opening",
        partial(undealt, lie_at("table_final", 1, both(put("status", value="settled"), drop("void")))),
    ),
    lie_in("another commitment of the table", "12 commitment", "table_deal", 1, put("commitment", value=Z)),
    lie_in("another salt of the table", "12 commitment", "table_final", 1, put("salt", value=Z)),
    Planted("a byte too many at the table", "13 transcript", lies.a_byte_too_many),
    lie_in("two cards of the table's deck swapped", "13 transcript", "table_final", 1, swap("deck", 0, 51)),
    lie_in("another board", "14 cards", "table_final", 1, lambda body: body["cards"]["board"].reverse()),
    lie_in(
        "a player's cards at a table of boxes",
        "14 cards",
        "table_final",
        1,
        put("cards", "hole_cards", value=["As", "Ac"]),
    ),
    lie_in("no player's cards at a shared hand", "14 cards", "table_final", 1, drop("cards", "hole_cards"), SHARED),
    lie_in("the dealer does not qualify", "16 hands", "table_final", 1, lies.other_flag("hands", "dealer_qualifies")),
    lie_in("no player's hand at a shared hand", "16 hands", "table_final", 1, drop("hands", "player_hand"), SHARED),
)

SEAT_LINKS = (
    lie_in("stage 2 of a seat", "7 session", "seat_opening", 1, put("round_no", value="2")),
    Planted("sessions of another table", "9 deal", partial(played, of_session={"table": "table-2"})),
    lie_in("seat of another session", "9 deal", "seat_opening", 1, put("seat", "session_id", value=OTHER_ULID)),
    lie_in("seat behind the hands", "9 deal", "seat_opening", 3, put("seat", "seat_no", value="4")),
    lie_in("balance before the seat", "18 balance", "seat_opening", 1, add("balance_before_minor", by=1)),
    lie_in("balance after the seat", "18 balance", "seat_opening", 1, add("balance_after_minor", by=1)),
    lie_in("a seat's final of no opening", "11 opening", "seat_final", 1, put("opening", value=Z)),
    lie_in("a seat's final of another seat", "11 opening", "seat_final", 1, put("seat_no", value="2")),
    lie_in("a void seat in a settled round", "11 opening", "seat_final", 1, put("status", value="void")),
    lie_in("no cards of a box", "11 opening", "seat_final", 1, drop("hole_cards")),
    lie_in("cards of a shared hand", "11 opening", "seat_final", 1, put("hole_cards", value=["As", "Ac"]), SHARED),
    lie_in("another seat's cards", "14 cards", "seat_final", 1, put("hole_cards", value=["As", "Ac"])),
    lie_in("a seat settled before the showdown", "15 actions", "seat_final", 3, lies.bound(drop("actions", 2))),
    lie_in("a seat's timer plays", "15 actions", "seat_final", 1, put("actions", 0, "by", value="timer")),
    lie_in("a seat's actions of another opening", "15 actions", "seat_final", 1, put("actions_hash", value=Z)),
    lie_in("a seat wins", "16 hands", "seat_final", 2, lies.other_outcome),
    lie_in(
        "a seat's hand at a shared hand",
        "16 hands",
        "seat_final",
        1,
        put("outcome", "player_hand", value={"best5": ["As"], "category": "pair"}),
        SHARED,
    ),
    lie_in(
        "a bet of a seat returns more", "17 settlement", "seat_final", 1, add("settlement", 0, "returned_minor", by=2)
    ),
    lie_in("a seat staked more", "18 balance", "seat_final", 1, add("staked_minor", by=1)),
)

VOIDS = (
    story("a window while the round was paused", "19 void", ends.open_while_paused),
    of_void("void without approvals", "19 void", "table_final", put("void", "approvals", value=[])),
    of_void("void by one party", "19 void", "table_final", drop("void", "approvals", 1)),
    of_void("void by one party twice", "19 void", "table_final", put("void", "approvals", 1, "party", value="admin-1")),
    of_void("void approved later", "19 void", "table_final", later("void", "approvals", 1, "time", ms=60_000)),
    of_void("void for no malfunction", "19 void", "table_final", put("void", "malfunction", value=Z)),
    Planted(
        "undealt and void by one party",
        "19 void",
        partial(undealt, lie_at("table_final", 1, drop("void", "approvals", 1))),
    ),
    of_void("void without a void", "11 opening", "table_final", drop("void")),
    of_void(
        "void and hidden, with cards", "11 opening", "table_final", put("void", "reason", value="DECK_UNRECOVERABLE")
    ),
    of_void(
        "void and not hidden, without a deck",
        "11 opening",
        "table_final",
        put("void", "reason", value="MALFUNCTION"),
        "DECK_UNRECOVERABLE",
    ),
    of_void("a void seat keeps a stake", "19 void", "seat_final", add("settlement", 0, "returned_minor", by=-1)),
    of_void(
        "what would have been is hidden",
        "11 opening",
        "seat_final",
        both(drop("would_have_been"), drop("would_have_outcome")),
    ),
    of_void(
        "what would have been is less", "17 settlement", "seat_final", add("would_have_been", 0, "stake_minor", by=1)
    ),
    of_void(
        "void seat claims of a hidden deck",
        "11 opening",
        "seat_final",
        put("would_have_been", value=[]),
        "DECK_UNRECOVERABLE",
    ),
)

PLANTED_AT_TABLES = (*CHAIN, *RULES, *DEAL, *WINDOWS, *EARLY, *SEATS, *CARDS, *SEAT_LINKS, *VOIDS, *SEAT_GRANTS)
