"""`certify vectors`: all shipped rows hold, and every field of a row is shown to be looked at."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from certification.vectors import RowError, RowVerdict, check_row, main, parse_row
from rgs.core.games.paytables import Paytable, format_floor, parse_floor
from rgs.core.games.types import Pay
from rgs.core.money import LOST, PUSH, Odds
from rgs.core.rulesets import Ruleset, load_ruleset

VECTORS = Path(__file__).parents[3] / "vectors" / "games"
FILES = {
    "uth-online": "uth_rounds.jsonl",
    "uth-seven-box": "uth_rounds.jsonl",
    "uth-lugano": "uth_rounds.jsonl",
    "uth-solo": "uth_rounds.jsonl",
    "casino-holdem": "casino_holdem_rounds.jsonl",
}


def rows_of(ruleset_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / FILES[ruleset_id]).read_text("utf-8").splitlines()]


def verdict_on(ruleset_id: str, row: dict[str, Any] | bytes) -> RowVerdict | None:
    """None stands for an error."""
    ruleset = load_ruleset(ruleset_id)
    line = row if isinstance(row, bytes) else json.dumps(row).encode()
    try:
        verdict, differences = check_row(ruleset, parse_row(line, ruleset))
    except RowError:
        return None
    assert bool(differences) is (verdict is RowVerdict.FAILED)
    return verdict


@pytest.mark.parametrize("ruleset_id", FILES)
def test_all_shipped_rows_hold(ruleset_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VECTORS / FILES[ruleset_id]), "--ruleset", ruleset_id]) == 0
    expected = "120 passed, 0 failed, 0 refused" if ruleset_id == "casino-holdem" else "224 passed, 0 failed, 1 refused"
    assert capsys.readouterr() == (f"{expected}\n", "")


@pytest.mark.parametrize("ruleset_id", FILES)
def test_refused_are_just_the_rows_on_half_a_unit(ruleset_id: str) -> None:
    for row in rows_of(ruleset_id):
        assert verdict_on(ruleset_id, row) is (RowVerdict.REFUSED if row["half_unit"] else RowVerdict.PASSED)


def samples() -> list[tuple[str, dict[str, Any]]]:
    """For each ruleset the rows in which every kind of field occurs."""
    wanted: list[Callable[[dict[str, Any]], bool]] = [
        lambda row: row["outcome"] == "fold",
        lambda row: row["outcome"] == "player" and row["stakes"].get("trips", row["stakes"].get("aa")) > 0,
        lambda row: row["outcome"] == "tie",
        lambda row: row["half_unit"],
    ]
    rulesets = ("uth-solo", "uth-lugano", "casino-holdem")
    return [(name, row) for name in rulesets for wants in wanted for row in list(filter(wants, rows_of(name)))[:1]]


def leaves(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def tables(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for key, value in table.items():
        if isinstance(value, dict):
            yield from tables(value, (*path, key))


def inside(row: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for key in path:
        row = row[key]
    return row


OTHER_TEXT = {"win": "lose", "lose": "push", "push": "win", "player": "dealer", "dealer": "tie", "tie": "fold"}
INPUTS = {"id", "tag", "player", "dealer", "board", "decisions", "decision"}


def spoilt(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1] + ([value[-1] + 1] if isinstance(value[-1], int) else [])
    return OTHER_TEXT.get(value, "player" if value == "fold" else "trips" if value != "trips" else "pair")


@pytest.mark.parametrize(("ruleset_id", "row"), samples())
def test_no_claim_may_be_wrong_or_missing_or_too_many(ruleset_id: str, row: dict[str, Any]) -> None:
    expected = RowVerdict.REFUSED if row["half_unit"] else RowVerdict.PASSED
    assert verdict_on(ruleset_id, row) is expected
    for *path, key in leaves(row):
        wrong, missing, of_no_kind = copy.deepcopy(row), copy.deepcopy(row), copy.deepcopy(row)
        if key not in INPUTS:
            inside(wrong, tuple(path))[key] = spoilt(inside(row, tuple(path))[key])
            assert verdict_on(ruleset_id, wrong) in {RowVerdict.FAILED, None}, (*path, key)
        del inside(missing, tuple(path))[key]
        assert verdict_on(ruleset_id, missing) is None, (*path, key)
        inside(of_no_kind, tuple(path))[key] = None
        assert verdict_on(ruleset_id, of_no_kind) is None, (*path, key)
    for table in tables(row):
        too_many = copy.deepcopy(row)
        inside(too_many, table)["colour"] = 1
        assert verdict_on(ruleset_id, too_many) is None, table


def changed(row: dict[str, Any], **values: Any) -> dict[str, Any]:
    return copy.deepcopy(row) | values


UTH = rows_of("uth-solo")
FOLD = next(row for row in UTH if row["tag"] == "fold/straight")
FLUSH = next(row for row in UTH if row["half_unit"])
CALL = next(row for row in rows_of("casino-holdem") if row["decision"] == "call")


@pytest.mark.parametrize(
    ("ruleset_id", "row"),
    [
        ("uth-solo", b""),
        ("uth-solo", b"[]"),
        ("uth-solo", b"{"),
        ("uth-solo", b"\xff"),
        ("uth-solo", b"[" * 100_000),
        ("uth-solo", b"9" * 5000),
        ("uth-solo", json.dumps(FOLD).encode() + b" {}"),
        ("uth-solo", json.dumps(FOLD).replace('"net": 0', '"net": 0, "net": 0', 1).encode()),
        ("uth-solo", json.dumps(FOLD).replace('"net": 0', '"net": 0.0').encode()),
        ("uth-solo", json.dumps(FOLD).replace('"net": 0', '"net": NaN').encode()),
        ("uth-solo", json.dumps(FOLD).replace('"net": 0', '"net": 0.25').encode()),
        ("uth-solo", json.dumps(FOLD).replace('"net": 0', '"net": 5e-1').encode()),
        ("uth-solo", changed(FOLD, id="")),
        ("uth-solo", changed(FOLD, player=["Tc"])),
        ("uth-solo", changed(FOLD, player=["Tc", "Tc"])),
        ("uth-solo", changed(FOLD, player=["Tc", FOLD["dealer"][0]])),
        ("uth-solo", changed(FOLD, player=["Tc", "1d"])),
        ("uth-solo", changed(FOLD, player=["Tc", 5])),
        ("uth-solo", changed(FOLD, player=[["Tc"], "6d"])),
        ("uth-solo", changed(FOLD, board=FOLD["board"][:4])),
        ("uth-solo", changed(FOLD, decisions=[])),
        ("uth-solo", changed(FOLD, decisions=["check"])),
        ("uth-solo", changed(FOLD, decisions=["fold"])),
        ("uth-solo", changed(FOLD, decisions=["raise2"])),
        ("uth-solo", changed(FOLD, decisions=["call"])),
        ("uth-solo", changed(FOLD, decisions=["bet"])),
        ("uth-solo", changed(FOLD, decisions=["check", "check", "fold", "fold"])),
        ("uth-solo", changed(FOLD, decisions="fold")),
        ("uth-solo", changed(FOLD, stakes={"ante": 0, "blind": 0, "trips": 0})),
        ("uth-solo", changed(FOLD, stakes={"ante": 200, "blind": 100, "trips": 100})),
        ("uth-solo", changed(FOLD, stakes={"ante": 200, "blind": 200, "trips": -1})),
        ("uth-solo", changed(FOLD, stakes={"ante": 200.5, "blind": 200.5, "trips": 0})),
        ("uth-solo", changed(FOLD, stakes={"ante": True, "blind": True, "trips": 0})),
        ("uth-solo", changed(FOLD, outcome="nobody")),
        ("uth-solo", changed(FOLD, player_hand=FOLD["player_hand"] | {"key": [4, "12"]})),
        ("uth-solo", changed(FOLD, player_hand=FOLD["player_hand"] | {"key": [4, True]})),
        ("uth-solo", changed(FOLD, game="casino_holdem")),
        ("uth-solo", CALL),
        ("casino-holdem", FOLD),
        ("casino-holdem", changed(CALL, decision="check")),
        ("casino-holdem", changed(CALL, decision=["call"])),
        ("casino-holdem", changed(CALL, variant_fold_loses_aa=None)),
    ],
    ids=itertools.count(),
)
def test_what_is_no_row_is_an_error(ruleset_id: str, row: dict[str, Any] | bytes) -> None:
    assert verdict_on(ruleset_id, row) is None


def test_any_valid_best_five_is_right() -> None:
    """Which of equal cards is named is free; that they are there and worth as much is not."""
    row = next(
        row for row in UTH if row["tag"] == "straight_with_pair" and row["player_hand"]["category"] == "straight"
    )
    cards = row["player"] + row["board"]
    named = row["player_hand"]["best5"]
    swapped = 0
    for index, old in enumerate(named):
        for new in set(cards) - set(named):
            if new[0] == old[0]:
                other = copy.deepcopy(row)
                other["player_hand"]["best5"][index] = new
                assert verdict_on("uth-solo", other) is RowVerdict.PASSED
                swapped += 1
    assert swapped
    elsewhere = copy.deepcopy(row)
    elsewhere["player_hand"]["best5"] = [next(c for c in ("2c", "2d", "2h", "2s") if c not in cards), *named[1:]]
    assert verdict_on("uth-solo", elsewhere) is RowVerdict.FAILED
    same_worth = copy.deepcopy(row)
    strange = [c for c in (named[0][0] + suit for suit in "cdhs") if c not in cards]
    same_worth["player_hand"]["best5"] = [strange[0], *named[1:]]
    assert verdict_on("uth-solo", same_worth) is RowVerdict.FAILED
    twice = copy.deepcopy(row)
    twice["player_hand"]["best5"] = [named[1], *named[1:]]
    assert verdict_on("uth-solo", twice) is None


def test_half_units_are_refused_only_where_they_fall() -> None:
    assert verdict_on("uth-solo", FLUSH) is RowVerdict.REFUSED
    assert verdict_on("uth-solo", changed(FLUSH, half_unit=False)) is RowVerdict.FAILED
    assert verdict_on("uth-solo", changed(FOLD, half_unit=True)) is RowVerdict.FAILED
    assert verdict_on("uth-solo", changed(FLUSH, net=40)) is RowVerdict.FAILED


def test_the_ruleset_decides_which_reading_of_a_fold_it_takes() -> None:
    """A ruleset that settled trips the other way would fail: shown by exchanging the two readings in the row."""
    won = FOLD["settlement"]["trips"]
    assert won["net"] > 0
    exchanged = copy.deepcopy(FOLD)
    exchanged["settlement"]["trips"], exchanged["variant_fold_loses_trips"] = FOLD["variant_fold_loses_trips"], won
    for ruleset_id in ("uth-solo", "uth-lugano"):
        assert verdict_on(ruleset_id, FOLD) is RowVerdict.PASSED
        assert verdict_on(ruleset_id, exchanged) is RowVerdict.FAILED


@pytest.mark.parametrize("ruleset_id", ["uth-solo", "casino-holdem"])
def test_every_planted_change_of_a_ruleset_is_seen(ruleset_id: str) -> None:
    """Any row of a paytable off by one, a dealer who qualifies a rank later, a bet settled otherwise in any outcome."""
    ruleset = load_ruleset(ruleset_id)
    rows = [parse_row(json.dumps(row).encode(), ruleset) for row in rows_of(ruleset_id) if not row["half_unit"]]

    def is_seen(planted: Ruleset) -> bool:
        return any(check_row(planted, row)[0] is RowVerdict.FAILED for row in rows)

    assert not is_seen(ruleset)
    for bet, table in ruleset.paytables.items():
        for number, (floor, odds) in enumerate(table.rows):
            other = LOST if odds == PUSH else PUSH if odds.lost else Odds(odds.wins + odds.per, odds.per)
            paytable = Paytable((*table.rows[:number], (floor, other), *table.rows[number + 1 :]))
            planted = dataclasses.replace(ruleset, paytables={**ruleset.paytables, bet: paytable})
            assert is_seen(planted), (bet, format_floor(floor))
    later = {"uth-solo": "pair:3", "casino-holdem": "pair:5"}[ruleset_id]
    assert is_seen(dataclasses.replace(ruleset, qualify=parse_floor(later)))
    for case, pays in ruleset.rules.settlement.items():
        for bet, pay in pays.items():
            settlement = {
                **ruleset.rules.settlement,
                case: {**pays, bet: Pay.LOST if pay is not Pay.LOST else Pay.EVEN},
            }
            rules = dataclasses.replace(ruleset.rules, settlement=settlement)
            assert is_seen(dataclasses.replace(ruleset, rules=rules)), (case, bet)


def run(path: Path, content: bytes, ruleset_id: str = "uth-solo") -> int:
    path.write_bytes(content)
    return main([str(path), "--ruleset", ruleset_id])


def test_the_command_names_lines_and_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = json.dumps(FOLD).encode()
    wrong = json.dumps(changed(FOLD, net=1)).encode()
    file = tmp_path / "rows.jsonl"
    assert run(file, good + b"\n" + good) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed, 0 refused\n"
    assert run(file, good + b"\n" + wrong + b"\n") == 1
    out, err = capsys.readouterr()
    assert out == "1 passed, 1 failed, 0 refused\n"
    assert err == f"line 2: {FOLD['id']}: net: the row says 1, the ruleset 0\n"
    assert run(file, b"\n" + good + b"\n") == 1
    out, err = capsys.readouterr()
    assert out == "1 passed, 0 failed, 0 refused\n"
    assert err.startswith("line 1: error: the row is not JSON")
    assert run(file, good + b"\n", "casino-holdem") == 1
    out, err = capsys.readouterr()
    assert out == "0 passed, 0 failed, 0 refused\n"
    assert "line 1: error: game: 'uth' is not one of casino_holdem" in err


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n"])
def test_a_file_without_rows_is_an_error(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "rows.jsonl", content) == 1
    assert "error" in capsys.readouterr().err


def test_unknown_files_and_rulesets_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none"), "--ruleset", "uth-solo"]) == 2
    assert main([str(VECTORS / FILES["uth-solo"]), "--ruleset", "uth"]) == 2
    assert capsys.readouterr().err.count("certify vectors: ") == 2
