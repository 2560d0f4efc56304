"""The certificates: what they say, that they are derived anew, and that a defect in what they rest on shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certification.__main__ import main
from certification.rtp import certificate as module
from certification.rtp.certificate import Enumerated, EnumerationError, certificate, format_certified_returns
from certification.rtp.command import DIRECTORY, emit
from certification.rtp.enumeration import DEALS, Game, count, play
from certification.rtp.payments import payments_of
from certification.rtp.returns import format_decimal, format_fraction, format_root, main_moments
from rgs.core.errors import RulesetError
from rgs.core.rulesets import SHIPPED_RULESETS, Ruleset, load_ruleset, parse_ruleset
from tests.support.seeded import turn

pytestmark = pytest.mark.slow

FRACTION_ROWS = ("expected_value_per_ante", "return_initial", "expected_total_wager", "return_total", "variance")


def committed(ruleset_id: str) -> str:
    return (DIRECTORY / f"{load_ruleset(ruleset_id).sha256}.json").read_text("ascii")


@cache
def document(ruleset_id: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(committed(ruleset_id))
    return parsed


def changed(ruleset_id: str, old: str, new: str) -> Ruleset:
    """A shipped ruleset with one row changed."""
    path = Path(__file__).parents[3] / "rgs" / "core" / "games" / "rulesets" / f"{ruleset_id}.toml"
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    return parse_ruleset(text.replace(old, new))


def fractions(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from fractions(item)
    elif isinstance(value, str) and "/" in value:
        yield value


# --- they are what the enumeration says ---


def test_the_certificate_of_one_game_is_derived_anew(
    pytestconfig: pytest.Config, request: pytest.FixtureRequest
) -> None:
    """One game or the other, by the run's seed."""
    ruleset_id, name = (("casino-holdem", "casino"), ("uth-solo", "uth"))[turn(pytestconfig, 2)]
    verify_derived(ruleset_id, request.getfixturevalue(name))


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("ruleset_id", ["casino-holdem", "uth-solo", "uth-lugano"])
def test_each_certificate_is_derived_anew(ruleset_id: str) -> None:
    verify_derived(ruleset_id)


def verify_derived(ruleset_id: str, enumerated: Enumerated | None = None) -> None:
    assert format_certified_returns(certificate(load_ruleset(ruleset_id), enumerated)) == committed(ruleset_id)


def test_there_is_a_certificate_for_each_ruleset_and_no_other() -> None:
    assert {path.name for path in DIRECTORY.iterdir()} == {
        f"{load_ruleset(name).sha256}.json" for name in SHIPPED_RULESETS
    }


@pytest.mark.parametrize("ruleset_id", ["uth-online", "uth-seven-box", "uth-lugano"])
def test_rulesets_that_pay_alike_have_the_same_figures(ruleset_id: str) -> None:
    ruleset, solo = load_ruleset(ruleset_id), load_ruleset("uth-solo")
    head = {"ruleset", "ruleset_sha256"}
    if ruleset.version != solo.version:
        head.add("ruleset_version")
    if ruleset.trips_after_fold == "lost":
        head.add("fold_forfeits")
    one, other = document(ruleset_id), document("uth-solo")
    assert one.keys() == other.keys()
    assert {key for key in one if one[key] != other[key]} == head


# --- they say what is published, and what is known ---


@pytest.mark.parametrize(
    ("ruleset_id", "keys", "percent"),
    [
        ("uth-online", ["return_initial"], "97.82"),  # U-12
        ("uth-online", ["return_total"], "99.47"),
        ("uth-online", ["side_bets", "trips", "return"], "96.50"),
        ("casino-holdem", ["return_initial"], "97.84"),  # C-9
        ("casino-holdem", ["side_bets", "aa", "return"], "93.74"),
    ],
)
def test_the_published_figures_come_out(ruleset_id: str, keys: list[str], percent: str) -> None:
    value: Any = document(ruleset_id)
    for key in keys:
        value = value[key]
    assert format_decimal(100 * Fraction(value), 2) == percent


def test_the_literal_reading_of_s4_does_not_give_its_own_figure() -> None:
    assert format_decimal(100 * Fraction(document("casino-holdem")["exactly_two_own"]["return_initial"]), 2) == "95.84"


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_the_figures_of_a_certificate_agree_with_each_other(ruleset_id: str) -> None:
    said, ruleset = document(ruleset_id), load_ruleset(ruleset_id)
    assert (said["ruleset"], said["ruleset_sha256"]) == (ruleset_id, ruleset.sha256)
    assert said["deals"] == comb(52, 2) * comb(50, 3) * comb(47, 2) * comb(45, 2) == 27_813_810_024_000
    for text in fractions(said):
        assert format_fraction(Fraction(text)) == text
    words = {"raise4": 4, "raise3": 3, "raise2": 2, "raise1": 1, "call": 2, "fold": 0}
    opening = len(ruleset.rules.opening_bets) - 1
    for table in (said, said["ties_raised"]):
        value, wager = Fraction(table["expected_value_per_ante"]), Fraction(table["expected_total_wager"])
        frequency = {action: Fraction(share) for action, share in table["action_frequency"].items()}
        assert frequency.keys() == words.keys()
        assert sum(frequency.values()) == 1
        assert frequency["raise3"] == 0
        assert wager == opening + sum(words[action] * share for action, share in frequency.items())
        assert Fraction(table["return_initial"]) == 1 + value
        assert Fraction(table["return_total"]) == 1 + value / wager
        assert table["standard_deviation"] == format_root(Fraction(table["variance"]))
    assert sum(Fraction(bet["value"]) for bet in said["bets"].values()) == Fraction(said["expected_value_per_ante"])
    lines = [{name: Fraction(share) for name, share in line.items()} for line in said["hands"].values()]
    assert sum(line["dealt"] for line in lines) == 1
    assert sum(line["value"] for line in lines) == Fraction(said["expected_value_per_ante"])
    assert sum(line["folded"] for line in lines) == Fraction(said["action_frequency"]["fold"])
    assert all(line["dealt"] == line["folded"] + line["won"] + line["tied"] + line["lost"] for line in lines)
    assert (
        sum(deals for hands in said["outcomes"].values() for row in hands.values() for deals in row.values()) == DEALS
    )


def test_ties_raised_cost_nothing_and_stake_more() -> None:
    said = document("uth-solo")
    assert said["ties_raised"]["expected_value_per_ante"] == said["expected_value_per_ante"]
    more = Fraction(said["ties_raised"]["expected_total_wager"]) - Fraction(said["expected_total_wager"])
    assert more == Fraction(said["ties"]["river"]["frequency"]) > 0
    said = document("casino-holdem")
    more = Fraction(said["ties_raised"]["expected_total_wager"]) - Fraction(said["expected_total_wager"])
    assert more == 2 * Fraction(said["ties"]["flop"]["frequency"]) > 0
    assert len(said["ties"]["flop"]["states"]) == 2


def test_side_bets_are_paid_as_often_as_hands_are_dealt() -> None:
    trips, aa = document("uth-solo")["side_bets"]["trips"], document("casino-holdem")["side_bets"]["aa"]
    assert Fraction(trips["hands"]["royal_flush"]) == Fraction(4 * comb(47, 2), comb(52, 7))
    assert Fraction(trips["hands"]["quads"]) == Fraction(13 * comb(48, 3), comb(52, 7))
    pays = {
        "royal_flush": 50,
        "straight_flush": 40,
        "quads": 30,
        "full_house": 8,
        "flush": 7,
        "straight": 4,
        "trips": 3,
    }
    value = sum(Fraction(share) * pays.get(hand, -1) for hand, share in trips["hands"].items())
    assert Fraction(trips["return"]) == 1 + value
    assert Fraction(aa["hands"]["pair:A"]) == Fraction(6 * comb(12, 3) * 4**3, comb(52, 5))
    assert Fraction(aa["hands"]["quads"]) == Fraction(13 * 48, comb(52, 5))
    pays = dict.fromkeys(("straight", "trips", "two_pair", "pair:A"), 7)
    pays |= {"royal_flush": 100, "straight_flush": 50, "quads": 40, "full_house": 30, "flush": 20}
    assert Fraction(aa["return"]) == 1 + sum(
        Fraction(share) * pays.get(hand, -1) for hand, share in aa["hands"].items()
    )


@pytest.mark.parametrize(("ruleset_id", "side_bet"), [("uth-lugano", "trips"), ("casino-holdem", "aa")])
def test_a_forfeit_makes_two_kinds_of_player(ruleset_id: str, side_bet: str) -> None:
    said = document(ruleset_id)
    forfeits = said["fold_forfeits"][side_bet]
    main_player, both_player = (
        {name: Fraction(value) for name, value in player.items()} for player in forfeits["players"].values()
    )
    merits = Fraction(said["side_bets"][side_bet]["return"])
    assert main_player["main_value"] == Fraction(said["expected_value_per_ante"]) > both_player["main_value"]
    assert main_player["side_return"] == merits - Fraction(forfeits["forfeited"]) < both_player["side_return"] <= merits
    assert main_player["combined_value"] < both_player["combined_value"]
    assert main_player["fold"] > both_player["fold"]
    for player in (main_player, both_player):
        assert player["combined_value"] == player["main_value"] + player["side_return"] - 1
    assert document("uth-solo")["fold_forfeits"] == {"trips": {"rule": "paid", "forfeited": "0/1", "players": {}}}


def test_the_outcomes_can_be_priced_by_hand() -> None:
    """C-3 to C-5 over the outcome table alone, with nothing of the enumeration's own arithmetic."""
    said, total = document("casino-holdem"), 0
    pays = {"royal_flush": 100, "straight_flush": 20, "quads": 10, "full_house": 3, "flush": 2}
    for hand, row in said["outcomes"]["raised_flop"].items():
        ante = pays.get(hand, 1)
        total += ante * sum(row[f"unqualified_{outcome}"] for outcome in ("player", "dealer", "tie"))
        total += (ante + 2) * row["qualified_player"] - 3 * row["qualified_dealer"]
    total -= sum(sum(row.values()) for row in said["outcomes"]["folded"].values())
    assert Fraction(total, DEALS) == Fraction(said["expected_value_per_ante"])


# --- defects show ---


def test_a_changed_paytable_changes_the_value(uth: Enumerated) -> None:
    best = play(Game(changed("uth-solo", 'flush = "3:2"', 'flush = "1:1"')), uth.play.boards)
    value = main_moments(best.payments, count(best)).mean
    # Half an ante less for every flush that wins, and no decision that is better for it.
    flushes = Fraction(document("uth-solo")["hands"]["flush"]["won"])
    lost = Fraction(document("uth-solo")["expected_value_per_ante"]) - value
    assert flushes / 2 - Fraction(1, 10**4) < lost <= flushes / 2
    assert best.payments.scale == 1


def test_deals_counted_wrongly_or_valued_otherwise_are_refused(uth: Enumerated) -> None:
    final = uth.counts.final.copy()
    final[0, 0, 0, 0] += 1
    with pytest.raises(EnumerationError, match="deals are counted"):
        module._verify(uth.play, replace(uth.counts, final=final))
    final[0, 0, 0, 1] -= 1  # the number is right again, the payments are not
    with pytest.raises(EnumerationError, match="are worth"):
        module._verify(uth.play, replace(uth.counts, final=final))


def test_two_counts_that_differ_in_their_folds_are_refused(casino: Enumerated) -> None:
    five = casino.counts.five.copy()
    five[[1, 3], 0] += np.array([1, -1])
    with pytest.raises(EnumerationError, match="folds"):
        module._verify(casino.play, replace(casino.counts, five=five))


def test_odds_beyond_the_bounds_are_refused() -> None:
    payments_of(changed("uth-solo", 'royal_flush = "500:1"', 'royal_flush = "10000:1"'))
    ruleset = parse_ruleset(
        (Path(__file__).parents[3] / "rgs" / "core" / "games" / "rulesets" / "uth-solo.toml")
        .read_text("utf-8")
        .replace('royal_flush = "500:1"', 'royal_flush = "10000:1"')
        .replace('flush = "3:2"', 'flush = "12:7"')
        .replace("step_minor = 2", "step_minor = 7")
        .replace("min_minor = 10", "min_minor = 14")
        .replace("max_minor = 100000", "max_minor = 14000")
        .replace("max_minor = 10000\n", "max_minor = 7000\n")
    )
    with pytest.raises(RulesetError, match="the sums hold"):
        payments_of(ruleset)


# --- how they are told ---


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 3), "0.3333"),
        (Fraction(-2, 3), "-0.6667"),
        (Fraction(5), "5.0000"),
        (Fraction(-1, 10**6), "0.0000"),
        (Fraction(99_999, 100_000), "1.0000"),
    ],
)
def test_decimals_are_rounded(value: Fraction, text: str) -> None:
    assert format_decimal(value, 4) == text


@pytest.mark.parametrize(
    ("value", "text"), [(Fraction(2), "1.4142136"), (Fraction(9, 4), "1.5000000"), (Fraction(0), "0.0000000")]
)
def test_roots_are_rounded(value: Fraction, text: str) -> None:
    assert format_root(value, 7) == text


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_a_certificate_is_told_to_people(ruleset_id: str) -> None:
    said = document(ruleset_id)
    text = "\n".join(emit(said))
    for row in FRACTION_ROWS:
        assert said[row] in text
    assert said["standard_deviation"] in text
    assert ("best_for_all_bets" in text) == (ruleset_id in {"uth-lugano", "casino-holdem"})


def test_the_command_prints_and_checks_a_certificate(
    casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("certification.rtp.command.Enumerated", lambda *_, **__: casino)
    monkeypatch.setattr("certification.rtp.command.certificate", lambda *_: document("casino-holdem"))
    assert main(["rtp", "casino-holdem", "--json", "--check", "--write", str(tmp_path)]) == 0
    out, result = capsys.readouterr()
    assert out == committed("casino-holdem") == next(tmp_path.iterdir()).read_text("ascii")
    assert "seven-card hands" in result
    assert "is this one" in result
    monkeypatch.setattr("certification.rtp.command.DIRECTORY", tmp_path / "none")
    assert main(["rtp", "casino-holdem", "--check"]) == 1
    out, result = capsys.readouterr()
    assert "return_initial" in out
    assert "is missing or says something else" in result


def test_the_readings_stand_beside_what_is_published() -> None:
    """U-12 and C-9: which reading of H-5 is the document's is seen on one line."""
    lines = {line[:26].rstrip(): line[26:].split() for line in emit(document("casino-holdem"))}
    assert lines["main, per initial stake"] == ["97.84", "%", "97.8424", "%", "95.8410", "%"]
    assert lines["main, per total stake"] == ["-", "99.1827", "%", "98.3927", "%"]
    assert lines["aa, per initial stake"] == ["93.74", "%", "93.7417", "%", "93.7417", "%"]
    lines = {line[:26].rstrip(): line[26:].split() for line in emit(document("uth-online"))}
    assert lines["trips, per initial stake"][:4] == ["96.50", "%", "96.5021", "%"]
    assert lines["main, per total stake"][:4] == ["99.47", "%", "99.4738", "%"]
    assert "- " in next(line for line in emit(document("uth-lugano")) if line.startswith("main, per initial"))


def test_ties_are_told_by_street() -> None:
    (line,) = [line for line in emit(document("uth-solo")) if line.startswith("exactly indifferent")]
    assert "0 of the 169 holes before the flop, 0.000000000000 % of rounds on the flop, 0.004201894235 % on" in line
    (line,) = [line for line in emit(document("casino-holdem")) if line.startswith("exactly indifferent")]
    assert "0.000138516945 % of rounds on the flop, 0.000000000000 % on the river" in line


def test_the_command_refuses_where_it_cannot_write(
    casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Status 1 would say that the committed certificate is another."""
    monkeypatch.setattr("certification.rtp.command.Enumerated", lambda *_, **__: casino)
    monkeypatch.setattr("certification.rtp.command.certificate", lambda *_: document("casino-holdem"))
    with pytest.raises(SystemExit) as caught:
        main(["rtp", "casino-holdem", "--write", str(tmp_path / "none")])
    assert caught.value.code == 2
    assert "is not a directory" in capsys.readouterr().err
    (tmp_path / f"{load_ruleset('casino-holdem').sha256}.json").mkdir()
    assert main(["rtp", "casino-holdem", "--json", "--write", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_a_committed_certificate_that_is_no_text_is_another_one(
    casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("certification.rtp.command.Enumerated", lambda *_, **__: casino)
    monkeypatch.setattr("certification.rtp.command.certificate", lambda *_: document("casino-holdem"))
    monkeypatch.setattr("certification.rtp.command.DIRECTORY", tmp_path)
    (tmp_path / f"{load_ruleset('casino-holdem').sha256}.json").write_bytes(b"\xff")
    assert main(["rtp", "casino-holdem", "--json", "--check"]) == 1
    assert "says something else" in capsys.readouterr().err


def test_the_command_refuses_an_unknown_ruleset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rtp", "baccarat"]) == 2
    assert "no ruleset 'baccarat'" in capsys.readouterr().err
