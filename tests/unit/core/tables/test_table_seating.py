"""Seats of a table: who gets which box, what may be placed, when a seat is lost, and what a timer decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rgs.core import games
from rgs.core.errors import (
    BoxTakenError,
    DeviceReplacedError,
    IllegalActionError,
    InsufficientBalanceError,
    InvalidFieldError,
    LossLimitError,
    PlayerBarredError,
    RgsError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
    StakeLimitError,
    StakeStepError,
    TableFullError,
    TablesAtOnceError,
    UnknownBetError,
)
from rgs.core.games.types import Action, Phase, StakeLimits
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.limits import Headroom
from rgs.core.rounds import TakenAction
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import request_digest
from rgs.core.tables.seating import (
    Places,
    Sitting,
    check_bets,
    choose_box,
    seat_in_play,
    verify_tables_at_once,
    with_defaults,
)
from rgs.core.tables.windows import Window, WindowEnd

ONLINE, SEVEN, LUGANO = (load_ruleset(name) for name in ("uth-online", "uth-seven-box", "uth-lugano"))
SESSION, ROUND = "0" * 25 + "S", "0" * 25 + "R"
ANNA, BRUNO = ("operator-1", "anna"), ("operator-1", "bruno")
SITTING = Sitting("table-1", SESSION, *ANNA, nickname="Ann")
BETS = (("ante", 100), ("blind", 100), ("trips", 20))
T0 = 1_795_000_000_000


# --- a seat ---


def test_a_bet_is_reserved_as_a_whole_and_taken_back_as_a_whole() -> None:
    """R-7: until red a bet is a reservation."""
    assert (SITTING.reserved_minor, SITTING.version, SITTING.bets) == (0, 1, ())
    placed = SITTING.placed(BETS)
    assert (placed.reserved_minor, placed.version) == (220, 2)
    assert placed == replace(SITTING, bets=BETS, reserved_minor=220, version=2)
    less = placed.placed((("ante", 50), ("blind", 50)))
    assert (less.reserved_minor, less.version) == (100, 3)
    assert less.placed(()) == replace(SITTING, version=4)


def test_a_second_device_takes_the_seat_over() -> None:
    """T-3. The bets stand, and the first device is refused from then on."""
    placed = SITTING.placed(BETS)
    placed.verify_device(1)
    second = placed.taken_over()
    assert second == replace(placed, device_no=2, version=3)
    second.verify_device(2)
    with pytest.raises(DeviceReplacedError) as caught:
        second.verify_device(1)
    assert caught.value.field == "device_no"
    assert caught.value.metadata == {"value": "1", "limit": "2", "table": "table-1"}
    assert caught.value.message == "device 1 no longer plays this seat, device 2 does: join to take it over"


@pytest.mark.parametrize("device_no", [-1, 0, 3])
def test_a_number_that_no_device_has_is_refused_as_such(device_no: int) -> None:
    second = SITTING.taken_over()
    with pytest.raises(InvalidFieldError, match="the answer to Join says which one you have") as caught:
        second.verify_device(device_no)
    assert caught.value.metadata == {"value": str(device_no), "limit": "2", "table": "table-1"}


def test_a_seat_whose_round_is_opened_has_nothing_reserved_and_has_played() -> None:
    cut = replace(SITTING.placed(BETS), seat_no=3, played_no=4, leaving=True, device_no=2)
    opened = cut.opened(7)
    assert opened == replace(cut, bets=(), reserved_minor=0, seat_no=0, played_no=7, version=cut.version + 1)
    assert opened.leaving


def test_a_box_at_lugano_is_lost_after_three_rounds_in_a_row() -> None:
    """T-5. Who sat down in round 4 loses the box after round 7; playing round 6 begins the count anew."""
    seat = replace(SITTING, played_no=4)
    assert [seat.is_lost(LUGANO, round_no) for round_no in (4, 5, 6, 7, 8)] == [False, False, False, True, True]
    seat = seat.placed(BETS).opened(6)
    assert [seat.is_lost(LUGANO, round_no) for round_no in (6, 7, 8, 9, 10)] == [False, False, False, True, True]


def test_where_no_source_says_so_no_seat_is_lost() -> None:
    assert not SITTING.is_lost(ONLINE, 1_000)
    assert not SITTING.is_lost(SEVEN, 1_000)
    assert SITTING.is_lost(LUGANO, 1_000)


# --- boxes ---


def places(**rows: Any) -> Places:
    return Places(**{"seats_max": 7, "boxes": 7, "seats": 0, "taken": {}, **rows})


@pytest.mark.parametrize(
    ("table", "box", "given"),
    [
        (places(), 0, 1),
        (places(), 7, 7),
        (places(taken={1: BRUNO, 2: BRUNO}, seats=2), 0, 3),
        (places(taken={1: BRUNO, 3: BRUNO}, seats=2), 0, 2),
        (places(taken={1: BRUNO, 5: ANNA}), 0, 5),  # hers by reservation (F-13)
        (places(taken={1: BRUNO, 5: ANNA}), 5, 5),
        (places(taken={1: BRUNO, 5: ANNA}), 2, 2),  # another free one is no less hers to take
        (places(taken={**dict.fromkeys(range(1, 7), BRUNO), 7: ANNA}, seats=6), 0, 7),
        (places(boxes=0, seats_max=1_048_576, seats=1_048_575), 0, 0),
        (places(barred=[BRUNO]), 0, 1),
    ],
)
def test_the_box_that_a_player_gets(table: Places, box: int, given: int) -> None:
    assert choose_box(table, *ANNA, box) == given


FULL = dict.fromkeys(range(1, 8), BRUNO)


@pytest.mark.parametrize(
    ("table", "box", "error", "field", "metadata", "message"),
    [
        (places(barred={ANNA}), 0, PlayerBarredError, "player", {}, "the player is barred from this table"),
        (
            places(),
            8,
            InvalidFieldError,
            "box",
            {"value": "8", "limit": "7"},
            "box: 8 is not one of 1 to 7, or 0 for any",
        ),
        (
            places(),
            -1,
            InvalidFieldError,
            "box",
            {"value": "-1", "limit": "7"},
            "box: -1 is not one of 1 to 7, or 0 for any",
        ),
        (
            places(boxes=0),
            1,
            InvalidFieldError,
            "box",
            {"value": "1", "limit": "0"},
            "box: 1 is not 0, and the table has no boxes",
        ),
        (places(seats=7), 0, TableFullError, None, {"limit": "7", "value": "7"}, "all 7 seats are taken"),
        (places(seats=8), 0, TableFullError, None, {"limit": "7", "value": "8"}, "all 7 seats are taken"),
        (places(taken={3: BRUNO}), 3, BoxTakenError, "box", {"value": "3"}, "box 3 is taken or reserved"),
        (
            places(taken=FULL, seats=5),
            0,
            TableFullError,
            None,
            {"limit": "7", "value": "7"},
            "all 7 boxes are taken or reserved",
        ),
        (places(taken=FULL, seats=5), 2, BoxTakenError, "box", {"value": "2"}, "box 2 is taken or reserved"),
    ],
)
def test_a_box_that_a_player_does_not_get(
    table: Places, box: int, error: type[RgsError], field: str | None, metadata: dict[str, str], message: str
) -> None:
    with pytest.raises(error) as caught:
        choose_box(table, *ANNA, box)
    assert (type(caught.value), caught.value.field) == (error, field)
    assert (caught.value.metadata, caught.value.message) == (metadata, message)


def test_players_of_two_operators_may_have_one_pseudonym() -> None:
    assert choose_box(places(barred=[("operator-2", "anna")]), *ANNA, 0) == 1
    with pytest.raises(BoxTakenError):
        choose_box(places(taken={1: ("operator-2", "anna")}), *ANNA, 1)


# --- tables at once (T-4) ---


@pytest.mark.parametrize(("law", "most"), [("it-adm", 4), ("gb-ukgc", 1)])
def test_a_player_sits_at_as_many_tables_as_the_law_allows(law: str, most: int) -> None:
    tables_max = load_jurisdiction(law).tables_max
    assert tables_max == most
    for others in range(most):
        verify_tables_at_once(tables_max, others, is_beside_allowed=True, are_others_beside_allowed=True)
    with pytest.raises(TablesAtOnceError) as caught:
        verify_tables_at_once(tables_max, most, is_beside_allowed=True, are_others_beside_allowed=True)
    assert caught.value.metadata == {"limit": str(most), "value": str(most)}
    assert caught.value.message == f"the player sits at {most} tables, the limit is {most}"


@pytest.mark.parametrize(("this", "others"), [(False, True), (True, False), (False, False)])
def test_a_table_may_forbid_others_beside_it(this: bool, others: bool) -> None:
    verify_tables_at_once(4, 0, is_beside_allowed=this, are_others_beside_allowed=others)
    with pytest.raises(TablesAtOnceError) as caught:
        verify_tables_at_once(4, 1, is_beside_allowed=this, are_others_beside_allowed=others)
    assert caught.value.field == "table"
    assert caught.value.metadata == {"limit": "1", "value": "1"}
    assert caught.value.message == "one of these tables may not be played beside others"


# --- bets ---

LIMITS = {"ante": StakeLimits(100, 500), "trips": StakeLimits(20, 60)}
PLENTY = Headroom(10_000, None, None)


@pytest.mark.parametrize(
    ("placed", "bets"),
    [
        ({}, ()),
        ({"ante": 100}, (("ante", 100), ("blind", 100))),
        ({"trips": 60, "ante": 500}, (("ante", 500), ("blind", 500), ("trips", 60))),
    ],
)
def test_the_bets_of_a_seat(placed: dict[str, int], bets: tuple[tuple[str, int], ...]) -> None:
    assert check_bets(ONLINE, LIMITS, placed, PLENTY) == bets


@pytest.mark.parametrize(
    ("placed", "error", "field", "metadata"),
    [
        ({"ante": 98}, StakeBelowMinimumError, "bets.ante", {"bet": "ante", "value": "98", "limit": "100"}),
        ({"ante": 502}, StakeAboveMaximumError, "bets.ante", {"bet": "ante", "value": "502", "limit": "500"}),
        ({"ante": 101}, StakeStepError, "bets.ante", {"bet": "ante", "value": "101", "limit": "2"}),
        (
            {"ante": 100, "trips": 18},
            StakeBelowMinimumError,
            "bets.trips",
            {"bet": "trips", "value": "18", "limit": "20"},
        ),
        (
            {"ante": 100, "trips": 62},
            StakeAboveMaximumError,
            "bets.trips",
            {"bet": "trips", "value": "62", "limit": "60"},
        ),
        ({"ante": 100, "blind": 100}, UnknownBetError, "bets.blind", {"bet": "blind"}),
        ({"trips": 20}, InvalidFieldError, "bets.ante", {}),
    ],
)
def test_the_limits_are_those_of_the_table(
    placed: dict[str, int], error: type[RgsError], field: str, metadata: dict[str, str]
) -> None:
    with pytest.raises(error) as caught:
        check_bets(ONLINE, LIMITS, placed, PLENTY)
    assert caught.value.field == field
    assert caught.value.metadata == {**metadata, "rule": "U-10"}
    if error is not UnknownBetError and error is not StakeStepError and "trips" in placed and "ante" in placed:
        games.check_stakes(ONLINE, placed)  # within the limits of the ruleset


@pytest.mark.parametrize(
    ("headroom", "error", "limit"),
    [
        (Headroom(219, None, None), InsufficientBalanceError, "219"),
        (Headroom(220, 219, None), LossLimitError, "219"),
        (Headroom(220, 220, 0), StakeLimitError, "0"),
    ],
)
def test_a_bet_that_is_not_covered_is_refused_before_the_deal(
    headroom: Headroom, error: type[RgsError], limit: str
) -> None:
    """U-11. The cheapest finish costs nothing: a check, a check, a fold."""
    placed = {"ante": 100, "trips": 20}
    assert check_bets(ONLINE, LIMITS, placed, Headroom(220, 220, 220)) == BETS
    with pytest.raises(error) as caught:
        check_bets(ONLINE, LIMITS, placed, headroom)
    assert (type(caught.value), caught.value.field) == (error, "bets")
    assert caught.value.metadata == {"value": "220", "limit": limit, "rule": "U-11"}
    assert check_bets(ONLINE, LIMITS, {}, headroom) == ()


def test_what_the_cheapest_finish_costs_must_be_covered_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "cheapest_finish", lambda _ruleset, bets: bets["ante"])
    assert check_bets(ONLINE, LIMITS, {"ante": 100}, Headroom(300, None, None))
    with pytest.raises(InsufficientBalanceError) as caught:
        check_bets(ONLINE, LIMITS, {"ante": 100}, Headroom(299, None, None))
    assert caught.value.metadata["value"] == "300"


# --- decisions ---


def taken(phase: str, action: str, amount_minor: int = 0) -> TakenAction:
    return TakenAction(phase, action, amount_minor, T0, "player", "operator-1", "cd" * 32)


def test_a_seat_in_play_knows_its_prices_and_needs_no_card() -> None:
    """U-11: what the funds do not cover is listed, and not available."""
    seat = seat_in_play(SEVEN, 5, BETS, 250, [])
    assert (seat.seat_no, seat.phase, seat.bets, seat.funds_minor, seat.actions) == (5, Phase.PREFLOP, BETS, 250, ())
    assert [(one.action, one.cost_minor, one.available) for one in games.legal_actions(seat)] == [
        (Action.CHECK, 0, True),
        (Action.PLAY_4X, 400, False),
        (Action.PLAY_3X, 300, False),
    ]
    checked = seat_in_play(SEVEN, 5, BETS, 250, [taken("preflop", "check")])
    assert [(one.action, one.available) for one in games.legal_actions(checked)] == [
        (Action.CHECK, True),
        (Action.PLAY_2X, True),
    ]
    played = seat_in_play(SEVEN, 5, BETS, 250, [taken("preflop", "check"), taken("flop", "play_2x", 200)])
    assert (played.phase, played.bets[-1], played.funds_minor) == (Phase.SHOWDOWN, ("play", 200), 50)


def test_a_seat_in_play_shows_the_cards_of_no_deal() -> None:
    one, other = (seat_in_play(SEVEN, seat_no, BETS, 0, []) for seat_no in (1, 7))
    assert one.hole_cards == other.hole_cards


def test_a_record_with_a_hole_is_refused() -> None:
    """A decision at the flop needs the default before it: the timer's check at the first decision."""
    with pytest.raises(IllegalActionError):
        seat_in_play(SEVEN, 1, BETS, 250, [taken("flop", "play_2x", 200)])


PREFLOP = Window(Phase.PREFLOP, T0, T0 + 15_000, WindowEnd.TIME)
FLOP = Window(Phase.FLOP, T0 + 15_000, T0 + 30_000, WindowEnd.TIME)
RIVER = Window(Phase.RIVER, T0 + 30_000, T0 + 45_000, WindowEnd.TIME)
DIGEST = request_digest({"method": "FinishByTimer", "round_id": ROUND}).hex()


def by_timer(phase: str, action: str, time_ms: int) -> TakenAction:
    return TakenAction(phase, action, 0, time_ms, "timer", "rgs", DIGEST)


ALL_SILENT = (
    by_timer("preflop", "check", T0 + 15_000),
    by_timer("flop", "check", T0 + 30_000),
    by_timer("river", "fold", T0 + 45_000),
)


@pytest.mark.parametrize("ruleset", [ONLINE, SEVEN, LUGANO], ids=lambda ruleset: ruleset.id)
def test_silence_is_a_check_a_check_and_a_fold(ruleset: Any) -> None:
    """T-2. The defaults are the ruleset's."""
    seat = seat_in_play(ruleset, 1, BETS, 0, [])
    assert with_defaults(seat, (), [], ROUND) == ()
    assert with_defaults(seat, (), [PREFLOP], ROUND) == ALL_SILENT[:1]
    assert with_defaults(seat, (), [PREFLOP, FLOP], ROUND) == ALL_SILENT[:2]
    assert with_defaults(seat, (), [PREFLOP, FLOP, RIVER], ROUND) == ALL_SILENT
    assert seat_in_play(ruleset, 1, BETS, 0, ALL_SILENT).has_folded


def decided(*actions: TakenAction) -> tuple[TakenAction, ...]:
    seat = seat_in_play(ONLINE, 1, BETS, 1_000, actions)
    return with_defaults(seat, actions, [PREFLOP, FLOP, RIVER], ROUND)


def test_a_timer_decides_only_what_the_player_has_not() -> None:
    checked, played = taken("preflop", "check"), taken("preflop", "play_4x", 400)
    assert decided(played) == (played,)
    assert decided(checked) == (checked, *ALL_SILENT[1:])
    doubled = taken("flop", "play_2x", 200)
    assert decided(checked, doubled) == (checked, doubled)
    assert decided(ALL_SILENT[0], doubled) == (ALL_SILENT[0], doubled)  # silent first, then in time
    assert decided(checked, taken("flop", "check"))[2:] == ALL_SILENT[2:]


def test_a_window_that_did_not_run_out_decides_nothing() -> None:
    seat = seat_in_play(ONLINE, 1, BETS, 1_000, [])
    broken = Window(Phase.PREFLOP, T0 - 20_000, T0 - 18_000, WindowEnd.PAUSED)
    assert with_defaults(seat, (), [broken], ROUND) == ()
    assert with_defaults(seat, (), [broken, PREFLOP], ROUND) == ALL_SILENT[:1]
    assert with_defaults(seat, (), [replace(PREFLOP, end=WindowEnd.DECIDED)], ROUND) == ()
    assert with_defaults(seat, (), [FLOP], ROUND) == ()
