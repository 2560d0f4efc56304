"""Returns against exact laws: the evidence is a martingale, looked at after every round; biases show, luck does not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, RulesetError
from rgs.core.returns.certified import CertifiedReturns
from rgs.core.returns.distributions import PLACES, Bound, Law, Laws, load_laws, parse_laws
from rgs.core.returns.evidence import (
    _tilts,
    band,
    betting,
    bound_evidence,
    bound_limit,
    bound_measured,
    law_evidence,
    moments,
)
from rgs.core.returns.figures import Played, played, played_at_table
from rgs.core.returns.tally import ALPHA, BLOCK, ReturnTally, Series, format_tally, parse_tally
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset, parse_canonical_ruleset
from tests.support.service.monitored import (
    CASINO,
    UTH,
    Choose,
    Deal,
    checking,
    fair,
    favouring_dealer,
    final_of,
    folding,
    opening_of,
    raising,
    seats,
)

LIMIT = math.log(1 / 0.05)


def laws_of(name: str = "uth-solo") -> Laws:
    laws = load_laws(load_ruleset(name))
    assert laws is not None
    return laws


def counted(
    count: int, choose: Choose = raising, deal: Deal = fair, *, seed: str = "rounds", side: int = 100
) -> ReturnTally:
    tally = ReturnTally()
    for seat in seats(seed, count, choose, deal, side=side):
        tally.add(played(UTH, opening_of(seat, 0), final_of(seat)), "EUR")
    return tally


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SHIPPED_RULESETS))
def test_the_laws_are_those_of_the_certificate_and_of_the_cards(name: str) -> None:
    laws, ruleset = laws_of(name), load_ruleset(name)
    side = ruleset.rules.side_bet
    assert list(laws.figures) == ["showdown", "dealer", "hand", "cards", side]
    # The player's hand and the dealer's change places in as many deals.
    assert laws.figures["showdown"].mean == 0
    assert laws.figures["hand"].chances["royal_flush"] == Fraction(1, 30_940)
    assert laws.figures["hand"].chances["pair"] == Fraction(58_627_800, 133_784_560)
    assert laws.figures["cards"].chances["h1As"] == Fraction(1, 52)
    assert len(laws.figures["cards"].groups) == len(PLACES) == 9
    assert laws.figures[side].mean + 1 == {"trips": Fraction(6455243, 6689228), "aa": Fraction(87011, 92820)}[side]
    assert float(laws.figures[side].variance) ** 0.5 == pytest.approx({"trips": 2.6838, "aa": 2.9247}[side], abs=1e-4)
    assert laws.main.least == {"trips": -6, "aa": -3}[side]


def test_the_dealer_qualifies_as_often_as_seven_cards_hold_a_pair() -> None:
    high_card = Fraction(23_294_460, 133_784_560)
    assert laws_of().figures["dealer"].mean == 1 - high_card


def test_no_certificate_no_laws_and_no_certificate_that_contradicts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    text = UTH.canonical.decode()
    other = parse_canonical_ruleset(text.replace("100000", "99000").encode())
    assert load_laws(other) is None
    poor = CertifiedReturns(UTH.sha256, Fraction(1), Fraction(1), {"trips": Fraction(1, 2)})
    monkeypatch.setattr("rgs.core.returns.distributions.load_certified_returns", lambda _: poor)
    with pytest.raises(RulesetError, match="do not come to its return"):
        load_laws.__wrapped__(UTH)
    document = {
        "deals": 3,
        "outcomes": {"raised": {"pair": {"qualified_player": 1, "qualified_dealer": 1}}},
        "side_bets": {"trips": {"hands": {"pair": "1/1"}}},
        "expected_value_per_ante": "0/1",
        "variance": "1/1",
    }
    with pytest.raises(RulesetError, match="add up"):
        parse_laws(document, UTH)


# --- evidence ---------------------------------------------------------------------------------------------------------

TOY = Law(
    {"a": Fraction(1, 2), "b": Fraction(1, 3), "c": Fraction(1, 6)},
    {"a": Fraction(-1), "b": Fraction(0), "c": Fraction(3)},
    (("a", "b", "c"),),
)
OFTEN = Law(TOY.chances, {}, TOY.groups)
COUNTS = st.fixed_dictionaries({key: st.integers(0, 500) for key in TOY.chances})


def after(counts: dict[str, int], key: str) -> dict[str, int]:
    return {**counts, key: counts[key] + 1}


@given(COUNTS)
@pytest.mark.parametrize("law", [TOY, OFTEN], ids=["mean", "frequencies"])
def test_under_the_law_the_evidence_stays_on_average_what_it_is(law: Law, counts: dict[str, int]) -> None:
    """The martingale itself, from any state: what Ville's inequality asks for."""
    now = law_evidence(law, counts)
    after_one = sum(float(p) * math.exp(law_evidence(law, after(counts, key)) - now) for key, p in law.chances.items())
    assert after_one == pytest.approx(1, abs=1e-6)
    assert law_evidence(law, dict.fromkeys(counts, 0)) == pytest.approx(0, abs=1e-9)


@given(
    st.lists(st.tuples(st.sampled_from([-6.0, -2.0, 0.0, 1.0, 500.0]), st.integers(0, 50)), max_size=5),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
)
def test_bets_on_any_law_with_this_mean_win_nothing_on_average(
    before: list[tuple[float, int]], weights: list[float]
) -> None:
    values = (-6.0, -2.0, 0.0, 1.0, 500.0)
    chances = [weight / sum(weights) for weight in weights]
    mean = sum(p * x for p, x in zip(chances, values, strict=True))
    for shift, is_lost in ((0.0, False), (1.0, True)):  # and lose where the mean is below
        now = betting(before, mean + shift, -7.0)
        grown = [math.exp(betting([*before, (x, 1)], mean + shift, -7.0) - now) for x in values]
        after_one = sum(p * growth for p, growth in zip(chances, grown, strict=True))
        assert after_one < 1 if is_lost else after_one == pytest.approx(1, abs=1e-9)


def tilted_paths(law: Law, draws: np.ndarray) -> np.ndarray:
    """ln E after every round of every stream, by the formula of the docs; `draws` are values, a stream a row."""
    mean, deviation = float(law.mean), math.sqrt(law.variance)
    sums = np.cumsum(draws - mean, axis=1)
    n = np.arange(1, draws.shape[1] + 1)
    total = np.zeros(draws.shape)
    for step in range(1, 13):
        for sign in (1, -1):
            tilt = sign * 2.0**-step / deviation
            cost = math.log(
                sum(float(p) * math.exp(tilt * (float(law.values[key]) - mean)) for key, p in law.chances.items())
            )
            total += np.exp(np.minimum(tilt * sums - n * cost, 500.0))
    return np.asarray(np.log(total / 24))


def drawn(law: Law, streams: int, rounds: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Values of streams; `shift` moves so much chance from the worst value to the best."""
    keys = sorted(law.chances, key=lambda key: law.values[key])
    values = np.array([float(law.values[key]) for key in keys])
    chances = np.array([float(law.chances[key]) for key in keys])
    chances[0] -= shift
    chances[-1] += shift
    return np.random.default_rng(seed).choice(values, size=(streams, rounds), p=chances)


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["showdown", "dealer", "trips"])
def test_fair_streams_looked_at_after_every_round_alarm_no_more_often_than_stated(figure: str) -> None:
    law = laws_of().figures[figure]
    streams, rounds = 2_000, 2_000
    draws = drawn(law, streams, rounds, seed=1)
    paths = tilted_paths(law, draws)
    # The formula of this test is that of the product.
    for stream, length in ((0, 1), (1, 700), (2, 2_000)):
        named = {float(value): key for key, value in law.values.items() if key != "pair:A"}
        counts = Counter(named[float(value)] for value in draws[stream, :length])
        if figure != "trips":  # several hands of trips are worth the same
            assert law_evidence(law, counts) == pytest.approx(paths[stream, length - 1], abs=1e-9)
    alarmed = float((paths.max(axis=1) >= LIMIT).mean())
    assert alarmed <= 0.05
    # The same streams under a test that is meant to be looked at once, at the same level.
    n = np.arange(1, rounds + 1)
    z = np.abs(np.cumsum(draws - float(law.mean), axis=1)) / np.sqrt(n * float(law.variance))
    assert float((z[:, 30:].max(axis=1) >= 1.96).mean()) > 0.3


def rounds_to_show(law: Law, shift: float, limit: float) -> float:
    """Return after how many rounds on average, at most, ln E of a mean that is off by the shift reaches the limit.

    Wald's identity on the best tilt of the grid; the last round's overshoot is not in it.
    """
    growth = max(tilt * shift - cost for tilt, cost in _tilts(law))
    return (limit + math.log(len(_tilts(law)))) / growth if growth > 0 else math.inf


@pytest.mark.parametrize(("figure", "moved"), [("showdown", 0.05), ("dealer", 0.03), ("trips", 0.004)])
def test_a_planted_bias_alarms_within_the_rounds_that_are_stated(figure: str, moved: float) -> None:
    law = laws_of().figures[figure]
    values = sorted(law.values.values())
    shift = moved * float(values[-1] - values[0])
    stated = rounds_to_show(law, shift, LIMIT)
    draws = drawn(law, 200, int(5 * stated), seed=2, shift=moved)
    reached = tilted_paths(law, draws) >= LIMIT
    assert reached.any(axis=1).all()
    needed = float((reached.argmax(axis=1) + 1).mean())
    assert stated / 4 < needed < 1.1 * stated
    assert rounds_to_show(law, 0.0, LIMIT) == math.inf


def test_the_band_is_where_the_evidence_reaches_its_limit() -> None:
    law = laws_of().figures["showdown"]
    for n in (100, 10_000, 1_000_000):
        low, high = band(law, n, LIMIT)
        assert low == pytest.approx(-high)
        # as wide as three and a half to five standard errors, and never without an end
        assert 2.5 < high / math.sqrt(float(law.variance) / n) < 5
    n = 10_000
    _, high = band(law, n, LIMIT)
    ties = 400
    for wins, is_over in ((high * 1.01, True), (high * 0.99, False)):
        player = round((n - ties + wins * n) / 2)
        counts = {"player": player, "dealer": n - ties - player, "tie": ties}
        assert (law_evidence(law, counts) >= LIMIT) is is_over
        assert moments(law, counts) == (n, Fraction(2 * player - n + ties))
    assert band(law, 1, LIMIT) == (-1, 1)


def test_what_no_deal_gives_is_evidence_without_end() -> None:
    assert law_evidence(TOY, {"a": 3, "other": 1}) == math.inf
    assert law_evidence(OFTEN, {"a": 3, "other": 1}) == math.inf
    assert law_evidence(OFTEN, {"a": 3, "other": 0}) < math.inf
    tally = counted(3)
    tally.life.counts["trips"]["no hand"] = 1
    (alarm,) = tally.alarms(laws_of())
    assert (alarm.figure, alarm.measured, alarm.direction) == ("trips", None, "FREQUENCIES")


def test_frequencies_that_are_off_alarm_whatever_they_favour() -> None:
    assert law_evidence(OFTEN, {"a": 5_000, "b": 3_333, "c": 1_667}) < 0
    assert law_evidence(OFTEN, {"a": 5_000, "b": 3_000, "c": 2_000}) > 20
    assert law_evidence(OFTEN, {"a": 5_000, "b": 3_667, "c": 1_333}) > 20


def test_the_limit_of_the_main_bets_is_where_the_same_rounds_would_alarm() -> None:
    bound = Bound(Fraction(0), Fraction(-6), Fraction(24))
    for counts in ({"-2/1": 500, "2/1": 450, "7/2": 20}, {"-2": 100, "3": 900}):
        limit = bound_limit(bound, counts, LIMIT)
        shift = limit - bound_measured(counts)
        assert (shift < 0) is (bound_evidence(bound, counts) >= LIMIT)
        assert bound_evidence(bound, counts, shift + 1e-6) >= LIMIT
        assert bound_evidence(bound, counts, shift - 1e-6) < LIMIT
    assert bound_limit(bound, {"1": 1}, LIMIT) == 7  # one round never alarms: the largest move that is tried


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_a_round_adds_what_its_cards_and_its_settlement_say() -> None:
    for seat in seats("one by one", 60, checking, ruleset=CASINO, side=50):
        opening, final = opening_of(seat, 0), final_of(seat)
        keys = played(CASINO, opening, final).keys
        settled = {row["bet"]: row for row in final["settlement"]}
        (main,) = keys["main"]
        net = sum(int(row["returned_minor"]) - int(row["stake_minor"]) for bet, row in settled.items() if bet != "aa")
        assert Fraction(main) * 100 == net
        (hand,) = keys["aa"]
        laws = laws_of("casino-holdem")
        assert laws.figures["aa"].values[hand] * 50 == int(settled["aa"]["returned_minor"]) - 50
        assert len(keys["cards"]) == 9
        assert all(
            key in laws.figures[figure].chances for figure, found in keys.items() if figure != "main" for key in found
        )


def test_a_fold_hides_nothing_and_a_bet_that_is_not_made_is_not_counted() -> None:
    for stayed, folded in zip(seats("fold", 40, checking), seats("fold", 40, folding), strict=True):
        one, other = (played(UTH, opening_of(seat, 0), final_of(seat)).keys for seat in (stayed, folded))
        assert {**one, "main": ()} == {**other, "main": ()}
        assert other["main"] == ("-2",)
        assert "trips" not in one


def test_a_void_counts_as_if_played_and_a_further_seat_or_a_hidden_deck_not() -> None:
    (seat,) = seats("void", 1, side=100)
    opening = opening_of(seat, 0)
    settled, void = (played(UTH, opening, final_of(seat, void=is_void)) for is_void in (False, True))
    assert settled.keys == void.keys
    assert (settled.voids, void.voids, void.money) == (0, 1, {})
    assert (settled.unseen, void.unseen) == (0, 0)
    assert settled.money["trips"][0] == 100
    further = played(UTH, opening, final_of(seat, seat_no=2))
    assert not further.keys
    assert further.money == settled.money
    hidden = final_of(seat, void=True)
    del hidden["cards"]
    tally = ReturnTally()
    for one in (settled, void, further, played(UTH, opening, hidden)):
        tally.add(one, "EUR")
    assert (tally.life.rounds, tally.voids, tally.unseen) == (2, 2, 2)
    assert tally.money["EUR"]["trips"][0] == 200


# --- the tally --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choose", [raising, folding, checking])
def test_however_one_plays_fair_rounds_do_not_alarm(choose: Choose) -> None:
    tally = counted(1_500, choose)
    assert tally.alarms(laws_of()) == []
    readings = {(reading.series, reading.figure): reading for reading in tally.readings(laws_of())}
    assert len(readings) == 12
    main = readings["life", "main"]
    assert main.measured is not None
    assert main.exact is not None
    assert main.low is None
    if choose is folding:  # odd to look at, and the player's own doing
        assert main.measured == -2
    assert not any(reading.is_alarming for reading in readings.values())


def test_a_deal_that_favours_the_dealer_alarms_once_a_series() -> None:
    tally = counted(1_500, deal=favouring_dealer(0.3))
    alarms = tally.alarms(laws_of())
    assert {(alarm.series, alarm.figure, alarm.direction) for alarm in alarms} >= {
        ("life", "showdown", "BELOW"),
        ("block", "showdown", "BELOW"),
    }
    assert tally.alarms(laws_of()) == []
    assert parse_tally(format_tally(tally)).alarms(laws_of()) == []


def test_more_for_the_player_than_best_play_brings_alarms_above() -> None:
    tally = ReturnTally()
    for seat in seats("generous", 400, checking):
        final = final_of(seat)
        for row in final["settlement"]:
            row["returned_minor"] = str(2 * int(row["stake_minor"]))
        tally.add(played(UTH, opening_of(seat, 0), final), "EUR")
    alarms = {(alarm.series, alarm.figure): alarm.direction for alarm in tally.alarms(laws_of())}
    assert alarms == {("life", "main"): "ABOVE", ("block", "main"): "ABOVE"}


def test_a_block_begins_anew_and_its_limit_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.core.returns.tally.BLOCK", 20)
    tally = counted(50)
    assert (tally.life.rounds, tally.block.number, tally.block.rounds) == (50, 3, 10)
    assert Series(0).limit(6) == pytest.approx(math.log(12 / ALPHA))
    assert Series(3).limit(6) == pytest.approx(math.log(12 * 12 / ALPHA))
    # What is shared out over a life without end is not more than there is.
    shares = sum(6 * math.exp(-Series(number).limit(6)) for number in range(1, 10_000))
    assert shares + 6 * math.exp(-Series(0).limit(6)) <= ALPHA
    assert BLOCK == 1 << 20


def test_an_error_that_begins_late_shows_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.core.returns.tally.BLOCK", 3_000)
    tally = counted(3_000)
    rigged: Callable[[str], list[str]] = lambda series: [  # noqa: E731
        alarm.figure for alarm in tally.alarms(laws_of()) if alarm.series == series
    ]
    assert rigged("life") == []
    for seat in seats("late", 700, deal=favouring_dealer(0.3)):
        tally.add(played(UTH, opening_of(seat, 0), final_of(seat)), "EUR")
    assert "showdown" in rigged("block")


def test_nothing_played_nothing_read() -> None:
    assert ReturnTally().readings(laws_of()) == []


def test_the_text_of_a_tally_is_canonical() -> None:
    tally = counted(20)
    tally.life.reported.append("showdown")
    text = format_tally(tally)
    assert format_tally(parse_tally(text)) == text
    assert parse_tally(text) == tally
    assert parse_tally(format_tally(ReturnTally())) == ReturnTally()
    for wrong in ("", "[]", "{}", text.replace('"rounds"', '"other"'), text.replace('"life"', '"death"')):
        with pytest.raises(FormatError):
            parse_tally(wrong)


def test_a_table_whose_seats_showed_nothing_adds_no_figure() -> None:
    assert played_at_table(UTH, []) == Played({}, {}, 0, 0)
