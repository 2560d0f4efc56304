"""The five rulesets of RULEBOOK section 4 as they are shipped, and every reason for which a ruleset is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from rgs.core import rulesets
from rgs.core.errors import FormatError, RulesetError, UnknownRulesetError
from rgs.core.games import FAMILIES
from rgs.core.games.types import Action, Phase, StakeLimits
from rgs.core.rulesets import (
    SHIPPED_RULESETS,
    CheckedRows,
    canonical_form,
    load_ruleset,
    parse_canonical_ruleset,
    parse_ruleset,
)

SHIPPED = resources.files("rgs.core.games") / "rulesets"


def text_of(ruleset_id: str) -> str:
    return (SHIPPED / f"{ruleset_id}.toml").read_text("utf-8")


def changed(ruleset_id: str, path: str, value: Any) -> bytes:
    """The ruleset's canonical form with one row set, or taken out if the value is None."""
    document = tomllib.loads(text_of(ruleset_id))
    table = document
    *tables, key = path.split("/")
    for name in tables:
        table = table.setdefault(name, {})
    if value is None:
        del table[key]
    else:
        table[key] = value
    return canonical_form(document)


def test_all_files_are_shipped() -> None:
    names = {file.name for file in SHIPPED.iterdir() if file.name.endswith(".toml")}
    assert names == {f"{ruleset_id}.toml" for ruleset_id in SHIPPED_RULESETS}


# table_only, seats, hole cards, visibility, burns, side bet after a fold, seat lost after
SECTION_4 = {
    "uth-online": (True, 0, "shared", "open", 0, "paid", 0),
    "uth-seven-box": (True, 7, "own", "secret", 2, "paid", 0),
    "uth-lugano": (True, 7, "own", "secret", 2, "lost", 3),
    "uth-solo": (False, 1, "own", "open", 0, "paid", 0),
    "casino-holdem": (False, 1, "own", "open", 0, "lost", 0),
}


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_the_rulesets_are_section_4(ruleset_id: str) -> None:
    ruleset = load_ruleset(ruleset_id)
    burns = sum(step.cards for step in ruleset.deal_procedure if step.block == "burn")
    after_fold = ruleset.trips_after_fold or ruleset.aa_after_fold
    assert (
        ruleset.table_only,
        ruleset.max_seats,
        ruleset.hole_cards,
        ruleset.visibility,
        burns,
        after_fold,
        ruleset.seat_lost_after_rounds,
    ) == SECTION_4[ruleset_id]
    assert ruleset.side_bet_survives_fold is (after_fold == "paid")
    assert (ruleset.trips_after_fold is None) is (ruleset.family == "casino_holdem")
    assert (ruleset.aa_after_fold is None) is (ruleset.family == "ultimate_texas_holdem")
    assert FAMILIES[ruleset.family] is ruleset.rules


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_defaults_and_limits(ruleset_id: str) -> None:
    ruleset = load_ruleset(ruleset_id)
    assert ruleset.limits["ante"] == StakeLimits(10, 100_000)  # U-10
    if ruleset.family == "casino_holdem":
        assert ruleset.default_decisions == {Phase.FLOP: Action.FOLD}  # C-10
    else:
        decisions = {Phase.PREFLOP: Action.CHECK, Phase.FLOP: Action.CHECK, Phase.RIVER: Action.FOLD}
        assert ruleset.default_decisions == decisions  # T-2
        assert ruleset.step_minor == 2


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_the_hash_is_over_the_canonical_form(ruleset_id: str) -> None:
    ruleset = load_ruleset(ruleset_id)
    document = tomllib.loads(text_of(ruleset_id))
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert ruleset.canonical == canonical
    assert ruleset.sha256 == hashlib.sha256(canonical).hexdigest()
    assert ruleset.sha256 in repr(ruleset)
    assert "paytables" not in repr(ruleset)


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_the_canonical_form_gives_the_ruleset_back(ruleset_id: str) -> None:
    ruleset = load_ruleset(ruleset_id)
    again = parse_canonical_ruleset(ruleset.canonical)
    assert again is not ruleset
    assert again == ruleset
    assert hash(again) == hash(ruleset)
    assert (again.paytables, again.limits, again.timers) == (ruleset.paytables, ruleset.limits, ruleset.timers)
    assert pickle.loads(pickle.dumps(ruleset)) == ruleset  # noqa: S301
    assert ruleset != ruleset.sha256


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
def test_every_row_has_a_source_and_assumptions_are_marked(ruleset_id: str) -> None:
    ruleset = load_ruleset(ruleset_id)
    document = json.loads(ruleset.canonical)
    assert set(ruleset.sources) == set(document) - {"id", "version", "sources"}
    assert "assumption" in ruleset.sources["limits"]
    assert "return" not in "".join(document)  # published returns are no part of it


def test_the_layout_of_the_file_does_not_touch_the_hash() -> None:
    text = "# another comment\n" + text_of("uth-solo").replace('id = "uth-solo"', "id   =   'uth-solo'")
    assert parse_ruleset(text) == load_ruleset("uth-solo")
    assert parse_ruleset(text.replace("version = 1", "version = 2")) != load_ruleset("uth-solo")


def test_what_is_frozen_is_frozen() -> None:
    ruleset = load_ruleset("uth-solo")
    for table in (ruleset.paytables, ruleset.limits, ruleset.default_decisions, ruleset.sources, FAMILIES):
        with pytest.raises(TypeError):
            table["ante"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        ruleset.step_minor = 1  # type: ignore[misc]


@pytest.mark.parametrize("ruleset_id", ["", "uth", "../rulesets/uth-solo", "uth-solo.toml", "UTH-SOLO"])
def test_an_unknown_id_is_refused(ruleset_id: str) -> None:
    with pytest.raises(UnknownRulesetError):
        load_ruleset(ruleset_id)


def test_a_file_must_hold_what_its_name_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rulesets").mkdir()
    (tmp_path / "rulesets" / "other.toml").write_text(text_of("uth-solo"), "utf-8")
    monkeypatch.setattr(rulesets, "SHIPPED_RULESETS", ("other",))
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(RulesetError, match="the file of other holds uth-solo") as caught:
        load_ruleset("other")
    assert caught.value.field == "id"


REFUSED = [
    # unknown and missing rows
    ("uth-solo", "colour", "red", "colour: is not known"),
    ("uth-solo", "aa_after_fold", "lost", "aa_after_fold: is not known"),
    ("uth-solo", "limits/aa", {"min_minor": 10, "max_minor": 20}, "limits.aa: is not known"),
    ("uth-solo", "limits/ante/step", 2, "limits.ante.step: is not known"),
    ("uth-solo", "timers/pause_ms", 0, "timers.pause_ms: is not known"),
    ("uth-solo", "paytables/ante", {}, "paytables.ante: is not known"),
    ("uth-solo", "default_decisions/showdown", "fold", "default_decisions.showdown: is not known"),
    ("uth-solo", "sources/colour", "S2", "sources.colour: is not known"),
    ("uth-solo", "sources/limits", None, "sources.limits: is missing"),
    ("uth-solo", "sources/limits", "", "sources.limits: is empty"),
    ("uth-solo", "trips_after_fold", None, "trips_after_fold: is missing"),
    ("uth-solo", "limits/trips", None, "limits.trips: is missing"),
    ("uth-solo", "paytables/trips", None, "paytables.trips: is missing"),
    ("uth-solo", "default_decisions/river", None, "default_decisions.river: is missing"),
    # kinds and bounds
    ("uth-solo", "id", "UTH solo", "id: 'UTH solo' is not a name"),
    ("uth-solo", "id", "a" * 41, "id: .* is not a name"),
    ("uth-solo", "version", 0, "version: 0 is outside"),
    ("uth-solo", "version", 1.0, "version: is of kind float"),
    ("uth-solo", "version", True, "version: is of kind bool"),
    ("uth-solo", "version", "1", "version: is of kind str"),
    ("uth-solo", "game", "blackjack", "game: 'blackjack' is not one of"),
    ("uth-solo", "table_only", 0, "table_only: is of kind int"),
    ("uth-solo", "hole_cards", "dealt", "hole_cards: 'dealt' is not one of"),
    ("uth-solo", "visibility", "hidden", "visibility: 'hidden' is not one of"),
    ("uth-solo", "trips_after_fold", "push", "trips_after_fold: 'push' is not one of"),
    ("uth-solo", "qualify", "pair:2", "qualify: 'pair:2'"),
    ("uth-solo", "limits/ante/min_minor", 0, "limits.ante.min_minor: 0 is outside"),
    ("uth-solo", "limits/ante/max_minor", 8, "limits.ante.max_minor: 8 is outside 10"),
    ("uth-solo", "limits/ante/max_minor", 2 * 10**9, "limits.ante.max_minor: .* is outside"),
    ("uth-solo", "limits/ante", 10, "limits.ante: is of kind int"),
    ("uth-solo", "timers/amber_ms", 1, "timers.amber_ms: 1 is outside 0..0"),
    ("uth-solo", "deal_procedure", "player:2", "deal_procedure: is of kind str"),
    ("uth-solo", "deal_procedure", ["player:2", 2], "deal_procedure: is not a list of texts"),
    # the deal
    ("uth-solo", "deal_procedure", ["player:3"], "deal_procedure: 'player:3' is not one of"),
    ("uth-solo", "deal_procedure", [], "deal_procedure: player and dealer"),
    ("uth-solo", "deal_procedure", ["player:2", "dealer:2", "flop:3", "turn:1"], "deal_procedure: player and dealer"),
    (
        "uth-solo",
        "deal_procedure",
        ["player:2", "dealer:2", "flop:3", "river:1", "turn:1"],
        "deal_procedure: player and dealer",
    ),
    (
        "uth-solo",
        "deal_procedure",
        ["player:2", "flop:3", "dealer:2", "turn:1", "river:1"],
        "deal_procedure: player and dealer",
    ),
    (
        "uth-solo",
        "deal_procedure",
        ["player:2", "player:2", "dealer:2", "flop:3", "turn:1", "river:1"],
        "deal_procedure: player and dealer",
    ),
    # U-10: nothing may round, limits lie on the step
    ("uth-solo", "step_minor", 1, "paytables.blind.flush: 3:2 could round with step_minor 1"),
    ("uth-solo", "step_minor", 5, "paytables.blind.flush: 3:2 could round with step_minor 5"),
    ("uth-solo", "paytables/trips/trips", "10:3", "paytables.trips.trips: 10:3 could round"),
    ("uth-solo", "step_minor", 4, "limits.ante.min_minor: 10 is not a multiple of step_minor 4"),
    ("uth-solo", "limits/trips/max_minor", 10_001, "limits.trips.max_minor: 10001 is not a multiple of step_minor 2"),
    # paytables
    ("uth-solo", "paytables/blind/straight", None, "paytables.blind.straight: the paytable has a hole"),
    ("casino-holdem", "paytables/aa/pair", None, "paytables.aa.pair: the paytable has a hole"),
    ("casino-holdem", "paytables/aa/pair", "8:1", "paytables.aa.pair:A: pays 7:1, less than pair"),
    ("uth-solo", "paytables/blind/flush", "1.5:1", "paytables.blind.flush: '1.5:1' is neither odds"),
    ("uth-solo", "paytables/blind/flush", 3, "paytables.blind.flush: is of kind int"),
    # T-2, C-10: silence stakes no money
    ("uth-solo", "default_decisions/preflop", "play_4x", "default_decisions.preflop: 'play_4x' is not one of check"),
    ("uth-solo", "default_decisions/river", "check", "default_decisions.river: 'check' is not one of fold"),
    ("casino-holdem", "default_decisions/flop", "call", "default_decisions.flop: 'call' is not one of fold"),
    # seats
    ("uth-online", "visibility", "secret", "visibility: a hand that all players share"),
    ("uth-seven-box", "max_seats", 0, "max_seats: own cards for any number"),
    ("uth-seven-box", "max_seats", 22, "max_seats: 22 hands need 53 of 52 cards"),
    ("uth-online", "timers/decision_ms", 0, "timers: a table needs"),
    ("uth-online", "timers", {"betting_ms": 0, "amber_ms": 0, "decision_ms": 1, "result_ms": 0}, "timers: a table"),
]


@pytest.mark.parametrize(("ruleset_id", "path", "value", "message"), REFUSED)
def test_what_is_refused(ruleset_id: str, path: str, value: Any, message: str) -> None:
    with pytest.raises(RulesetError, match=message) as caught:
        parse_canonical_ruleset(changed(ruleset_id, path, value))
    assert caught.value.field == message.partition(": ")[0]


BOUNDS = [
    ("uth-solo", "version", 1, 1_000_000),
    ("uth-online", "max_seats", 0, 1_000),
    ("casino-holdem", "step_minor", 1, 10**9),
    ("uth-solo", "seat_lost_after_rounds", 0, 1_000),
    ("uth-solo", "reservation_lapses_after_rounds", 0, 1_000),
    ("uth-solo", "timers/betting_ms", 0, 86_400_000),
    ("uth-solo", "timers/decision_ms", 0, 86_400_000),
    ("uth-solo", "timers/result_ms", 0, 86_400_000),
    ("casino-holdem", "limits/aa/min_minor", 1, 10**9),
]


def refused_field(canonical: bytes) -> str | None:
    try:
        parse_canonical_ruleset(canonical)
    except RulesetError as error:
        return error.field
    return None


@pytest.mark.parametrize(("ruleset_id", "path", "least", "most"), BOUNDS)
def test_each_number_has_its_bounds(ruleset_id: str, path: str, least: int, most: int) -> None:
    field = path.replace("/", ".")
    for value in (least - 1, most + 1):
        with pytest.raises(RulesetError, match=f"{field}: {value} is outside {least}\\.\\.{most}"):
            parse_canonical_ruleset(changed(ruleset_id, path, value))
    for value in (least, most):  # another row may be at odds with it: limits off the step, least above most
        assert refused_field(changed(ruleset_id, path, value)) != field


def test_an_id_may_have_forty_letters() -> None:
    assert parse_canonical_ruleset(changed("uth-solo", "id", "a" * 40)).id == "a" * 40


def test_a_deal_may_take_the_whole_deck() -> None:
    document = tomllib.loads(text_of("uth-seven-box"))
    document["deal_procedure"] = ["player:2", "dealer:2", "burn:1", "flop:3", "turn:1", "river:1"]
    document["max_seats"] = 22
    assert parse_canonical_ruleset(canonical_form(document)).max_seats == 22  # 52 cards


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (65_536, RulesetError, "colour: is not known"),  # read, and refused for its content
        (65_537, RulesetError, "canonical form is longer than 65536 bytes"),
        (65_538, FormatError, "not JSON"),  # cut before it is read
        (70_000, FormatError, "not JSON"),
    ],
)
def test_a_canonical_form_is_read_up_to_its_length(size: int, error: type[Exception], message: str) -> None:
    document = tomllib.loads(text_of("uth-solo")) | {"colour": ""}
    document["colour"] = "r" * (size - len(canonical_form(document)))
    canonical = canonical_form(document)
    assert len(canonical) == size
    with pytest.raises(error, match=message):
        parse_canonical_ruleset(canonical)


def test_what_fits_is_not_refused() -> None:
    """Each bound is reached, so that the refusals above are no blanket ones."""
    assert parse_canonical_ruleset(changed("uth-seven-box", "max_seats", 21)).max_seats == 21
    assert (
        parse_canonical_ruleset(changed("uth-solo", "limits/ante/max_minor", 10**9)).limits["ante"].max_minor == 10**9
    )
    assert parse_canonical_ruleset(changed("uth-solo", "limits/ante/max_minor", 10)).limits["ante"].max_minor == 10


@pytest.mark.parametrize("text", ["", "id", "id = ", "x = " + "[" * 5000, "x = " + "9" * 5000, "a = 1\na = 2"])
def test_what_is_no_ruleset_document(text: str) -> None:
    with pytest.raises(RulesetError):
        parse_ruleset(text)


def test_a_document_has_a_length() -> None:
    text = text_of("uth-solo")
    with pytest.raises(RulesetError, match="longer than 65536 characters"):
        parse_ruleset(text + "#" * 65_536)
    with pytest.raises(RulesetError, match="canonical form is longer"):
        parse_ruleset(text + f'colour = "{"ä" * 12_000}"\n')


CANONICAL = load_ruleset("uth-solo").canonical


@pytest.mark.parametrize(
    "canonical",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="no object"),
        pytest.param(CANONICAL[:-1], id="cut"),
        pytest.param(b"\xff" + CANONICAL, id="no text"),
        pytest.param(b"[" * 5000, id="deep"),
        pytest.param(CANONICAL + b"\n", id="newline"),
        pytest.param(CANONICAL.replace(b":", b": ", 1), id="space"),
        pytest.param(b'{"id":"x",' + CANONICAL[1:], id="key twice"),
        pytest.param(CANONICAL + b" " * 70_000, id="long"),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(canonical: bytes) -> None:
    with pytest.raises(FormatError):
        parse_canonical_ruleset(canonical)


def test_dates_and_floats_have_no_canonical_form() -> None:
    for value in ("2026-01-01", "nan", "inf"):
        with pytest.raises(RulesetError, match="no canonical form"):
            parse_ruleset(text_of("uth-solo").replace("version = 1", f"version = {value}"))
    with pytest.raises(RulesetError, match="version: is of kind float"):
        parse_ruleset(text_of("uth-solo").replace("version = 1", "version = 1.0"))


def test_a_list_of_tables_holds_tables() -> None:
    rows = CheckedRows({"good": [{"a": "b"}], "bad": [1]})
    (row,) = rows.tables("good")
    assert row.text("a") == "b"
    row.close()
    with pytest.raises(RulesetError, match="bad: is not a list of tables"):
        rows.tables("bad")
    (row,) = CheckedRows({"good": [{}]}, "file.").tables("good")
    with pytest.raises(RulesetError) as caught:
        row.text("a")
    assert caught.value.field == "file.good[0].a"
