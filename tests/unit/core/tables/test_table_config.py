"""Configurations of tables: those that are shipped, what they may say, and every reason for which one is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from rgs.core.errors import FormatError, TableConfigError
from rgs.core.games.types import StakeLimits, Timers
from rgs.core.jurisdictions import EARLIER_VERSIONS, SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.rulesets import SHIPPED_RULESETS, canonical_form, load_ruleset
from rgs.core.tables.config import (
    LANGUAGES,
    SHIPPED_TABLES,
    TableConfig,
    load_table_config,
    parse_canonical_table_config,
    parse_table_config,
)
from rgs.core.tables.tree import SEATS_MAX
from rgs.core.times import parse_time

RULES: dict[str, Any] = {
    "rulesets": {name: load_ruleset(name) for name in SHIPPED_RULESETS},
    "jurisdictions": {name: load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS},
}
SHIPPED = resources.files("rgs.core") / "table_data"
PAGE = (Path(__file__).parents[4] / "docs" / "tables.md").read_text("utf-8").split("\n## Configuration\n")[1]


def text_of(table_id: str) -> str:
    return (SHIPPED / f"{table_id}.toml").read_text("utf-8")


def with_rows(table_id: str = "uth-online", **rows: Any) -> TableConfig:
    """A shipped configuration with other rows: `limits__ante` is a row of a table, None takes it away."""
    document = tomllib.loads(text_of(table_id))
    for path, value in rows.items():
        *tables, key = path.split("__")
        place = document
        for table in tables:
            place = place[table]
        if value is None:
            del place[key]
        else:
            place[key] = value
    return parse_canonical_table_config(canonical_form(document), **RULES)


# --- what is shipped ---


def test_all_files_are_shipped() -> None:
    names = {file.name for file in SHIPPED.iterdir() if file.name.endswith(".toml")}
    assert names == {f"{table_id}.toml" for table_id in SHIPPED_TABLES}


def test_the_rows_of_a_configuration() -> None:
    table = load_table_config("uth-lugano", **RULES)
    assert dataclasses.asdict(dataclasses.replace(table, names={}, limits={}, canonical=b"", sha256="")) == {
        "id": "uth-lugano",
        "version": 1,
        "names": {},
        "ruleset_id": "uth-lugano",
        "jurisdiction_id": "demo",
        "currency": "EUR",
        "limits": {},
        "seats": 7,
        "timers": {"betting_ms": 20_000, "amber_ms": 5_000, "decision_ms": 20_000, "result_ms": 8_000},
        "early_close": True,
        "tables_beside": False,
        "operators": ("demo-operator",),
        "chat": True,
        "hours": {
            "zone": "Europe/Zurich",
            "spans": (
                *({"weekday": day, "opens": 18 * 60, "closes": 26 * 60} for day in (0, 1, 2, 3, 6)),
                *({"weekday": day, "opens": 18 * 60, "closes": 29 * 60} for day in (4, 5)),
            ),
        },
        "canonical": b"",
        "sha256": "",
    }
    assert table.names == dict.fromkeys(LANGUAGES, "Ultimate Texas Hold'em, Lugano")
    assert table.limits == {"ante": StakeLimits(1_000, 100_000), "trips": StakeLimits(500, 10_000)}
    assert isinstance(table.names, MappingProxyType)
    assert isinstance(table.limits, MappingProxyType)


@pytest.mark.parametrize("table_id", SHIPPED_TABLES)
def test_form_and_hash(table_id: str) -> None:
    table, document = load_table_config(table_id, **RULES), tomllib.loads(text_of(table_id))
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert table.canonical == canonical
    assert table.sha256 == hashlib.sha256(canonical).hexdigest()
    again = parse_canonical_table_config(canonical, **RULES)
    assert again == table == parse_table_config(text_of(table_id), **RULES)
    assert hash(again) == hash(table)
    rows = {field.name.removesuffix("_id") for field in dataclasses.fields(TableConfig)} - {"canonical", "sha256"}
    assert set(document) == rows
    assert (table.id, table.ruleset_id) == (table_id, table_id)
    assert canonical.decode() not in repr(table)


def test_a_table_that_is_not_shipped() -> None:
    with pytest.raises(
        TableConfigError, match=re.escape("no table '../demo' is shipped; there are uth-online")
    ) as caught:
        load_table_config("../demo", **RULES)
    assert caught.value.field == "id"


def test_a_canonical_form_is_the_only_one() -> None:
    canonical = load_table_config("uth-online", **RULES).canonical
    with pytest.raises(FormatError, match="the table is not JSON"):
        parse_canonical_table_config(canonical[:-1], **RULES)
    with pytest.raises(FormatError, match="the table is not in its canonical form") as caught:
        parse_canonical_table_config(canonical + b" ", **RULES)
    assert caught.value.field == "table"


# --- the page ---


def test_the_examples_of_the_page_are_configurations() -> None:
    online, lugano = (parse_table_config(text, **RULES) for text in re.findall(r"(?ms)^```toml\n(.*?)^```$", PAGE))
    assert (online.ruleset_id, online.seats_max, online.operators) == (
        "uth-online",
        SEATS_MAX,
        ("operator-1", "operator-2"),
    )
    assert online.hours.next_change_ms(parse_time("2026-11-23T12:00:00.000Z")) is None
    assert (lugano.ruleset_id, lugano.seats_max, lugano.operators) == ("uth-lugano", 7, ("operator-1",))
    assert lugano.hours.next_change_ms(parse_time("2026-11-23T12:00:00.000Z")) == parse_time("2026-11-23T17:00:00.000Z")


def test_the_page_has_every_row_and_no_other() -> None:
    def rows(table: dict[str, Any], path: str = "") -> set[str]:
        found = set()
        for key, value in table.items():
            inner = value[0] if isinstance(value, list) and isinstance(value[0], dict) else value
            found |= rows(inner, f"{path}{key}.") if isinstance(inner, dict) else {path + key}
        return found

    named = re.findall(r"(?m)^\| (`[^|]+`) \|", PAGE)
    written = {row for cell in named for row in re.findall(r"`([^`]+)`", cell)}
    expected = {re.sub(r"(names|limits)\.\w+", r"\1.<>", row) for row in rows(tomllib.loads(text_of("uth-lugano")))}
    assert {re.sub(r"<\w+>", "<>", row) for row in written} - {".max_minor", "hours.spans"} == (
        expected - {"limits.<>.max_minor"}
    )


# --- what may be said ---


@pytest.mark.parametrize(
    ("table_id", "row", "least", "most"),
    [
        ("uth-online", "version", 1, 1_000_000),
        ("uth-online", "seats", 0, 1_048_576),
        ("uth-lugano", "seats", 1, 7),
        ("uth-online", "limits__ante__min_minor", 10, 10_000),
        ("uth-online", "limits__ante__max_minor", 100, 100_000),
        ("uth-online", "limits__trips__min_minor", 10, 5_000),
        ("uth-online", "limits__trips__max_minor", 100, 10_000),
        ("uth-online", "timers__betting_ms", 5_001, 600_000),
        ("uth-online", "timers__amber_ms", 0, 14_999),
        ("uth-online", "timers__decision_ms", 1_000, 600_000),
        ("uth-online", "timers__result_ms", 1_000, 600_000),
    ],
)
def test_each_number_has_its_bounds(table_id: str, row: str, least: int, most: int) -> None:
    step = 2 if row.startswith("limits") else 1
    for value in (least, most):
        with_rows(table_id, **{row: value})
    for value in (least - step, most + step):
        with pytest.raises(TableConfigError, match=r"^[\w.]+: -?\d+ is outside \d+\.\.\d+$"):
            with_rows(table_id, **{row: value})


def test_betting_is_open_for_a_second_at_least() -> None:
    assert with_rows(timers__betting_ms=1_000, timers__amber_ms=999).timers == Timers(1_000, 999, 12_000, 5_000)
    with pytest.raises(TableConfigError, match=re.escape("timers.betting_ms: 999 is outside 1000..600000")):
        with_rows(timers__betting_ms=999, timers__amber_ms=0)


def test_seats_of_any_number_end_at_the_stated_bound() -> None:
    assert SEATS_MAX == 1_048_576
    assert with_rows(seats=0).seats_max == SEATS_MAX
    assert with_rows(seats=100).seats_max == 100
    assert with_rows("uth-lugano", seats=3).seats_max == 3


def test_operators_share_a_table_or_one_has_it_alone() -> None:
    assert with_rows(operators=["casino-lugano", "casino_2.online"]).operators == ("casino-lugano", "casino_2.online")


def test_names_may_be_in_more_languages() -> None:
    names = {"it": "Tavolo", "de": "Tisch " + "ü" * 54, "en": "Table", "fr": "Table à tous"}
    assert with_rows(names=names).names == names


# --- what is refused ---


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": "UTH"}, "id: 'UTH' is not a name of small letters, digits and hyphens"),
        ({"id": None}, "id: is missing"),
        ({"colour": "green"}, "colour: is not known"),
        ({"sources": {}}, "sources: is not known"),
        ({"ruleset": "uth-moon"}, "ruleset: 'uth-moon' is not one of uth-online, uth-seven-box"),
        ({"ruleset": "uth-solo"}, "ruleset: uth-solo is played solo; name a ruleset with table_only"),
        ({"jurisdiction": "xx"}, "jurisdiction: 'xx' is not one of it-adm, gb-ukgc, demo"),
        ({"currency": "euro"}, "currency: 'euro' is not a currency code"),
        ({"currency": "SEK"}, "currency: SEK is not one of demo: EUR, CHF, GBP, JPY"),
        ({"limits__ante__max_minor": 98}, "limits.ante.max_minor: 98 is outside 100..100000"),
        ({"timers__betting_ms": 5_000}, "timers.amber_ms: 5000 is outside 0..4999"),
        ({"seats": -1}, "seats: -1 is outside 0..1048576"),
        ({"seats": True}, "seats: is of kind bool, not int"),
        ({"early_close": 1}, "early_close: is of kind int, not bool"),
        ({"tables_beside": None}, "tables_beside: is missing"),
        ({"chat": "yes"}, "chat: is of kind str, not bool"),
        ({"names__de": None}, "names.de: is missing"),
        ({"names__de": ""}, "names.de: is empty"),
        ({"names__de": "x" * 61}, "names.de: has 61 characters, more than 60"),
        ({"names__de": "Tisch\n1"}, r"names.de: 'Tisch\n1' has characters that do not print, or space at an end"),
        ({"names__de": "Tisch \u202e1"}, r"names.de: 'Tisch \u202e1' has characters that do not print"),
        ({"names__de": " Tisch"}, "names.de: ' Tisch' has characters that do not print, or space at an end"),
        ({"names__FR": "Table"}, "names.FR: is not a language of two small letters (ISO 639-1)"),
        ({"names__fra": "Table"}, "names.fra: is not a language of two small letters (ISO 639-1)"),
        ({"names__éè": "Table"}, "names.éè: is not a language of two small letters (ISO 639-1)"),
        ({"names__fr": 1}, "names.fr: is of kind int, not str"),
        ({"limits__trips": None}, "limits.trips: is missing"),
        ({"limits__aa": {"min_minor": 10, "max_minor": 20}}, "limits.aa: is not known"),
        ({"limits__ante__step": 2}, "limits.ante.step: is not known"),
        ({"limits__ante__min_minor": 101}, "limits.ante.min_minor: 101 is not a multiple of step_minor 2"),
        ({"limits__trips__max_minor": 4_999}, "limits.trips.max_minor: 4999 is not a multiple of step_minor 2"),
        ({"limits__ante__min_minor": 8}, "limits.ante.min_minor: 8 is outside 10..100000"),
        ({"timers__amber_ms": 15_000}, "timers.amber_ms: 15000 is outside 0..14999"),
        ({"timers__result_ms": 0}, "timers.result_ms: 0 is outside 1000..600000"),
        ({"timers__pause_ms": 5}, "timers.pause_ms: is not known"),
        ({"operators": []}, "operators: is empty; name at least one operator"),
        ({"operators": ["a", 1]}, "operators: is not a list of texts"),
        ({"operators": ["Casino"]}, "operators: 'Casino': a name must be 1 to 64 lowercase letters, digits"),
        ({"operators": ["one", "two", "one"]}, "operators: names one twice"),
        ({"hours": None}, "hours: is missing"),
        ({"hours__zone": "Europe/Lugano"}, "hours.zone: 'Europe/Lugano' is not a time zone of the IANA database"),
        ({"hours__holidays": []}, "hours.holidays: is not known"),
    ],
)
def test_what_is_refused(rows: dict[str, Any], message: str) -> None:
    with pytest.raises(TableConfigError, match=re.escape(message)) as caught:
        with_rows(**rows)
    assert caught.value.field == message.partition(":")[0]


def test_a_table_of_boxes_states_how_many() -> None:
    for seats in (0, 8):
        with pytest.raises(TableConfigError, match=re.escape(f"seats: {seats} is outside 1..7")):
            with_rows("uth-seven-box", seats=seats)


def test_what_great_britain_does_not_allow() -> None:
    lawful: dict[str, Any] = {
        "jurisdiction": "gb-ukgc",
        "currency": "GBP",
        "early_close": False,
        "tables_beside": False,
    }
    assert with_rows(**lawful).jurisdiction_id == "gb-ukgc"
    with pytest.raises(TableConfigError, match="early_close: true, but gb-ukgc allows no window to end before"):
        with_rows(**lawful | {"early_close": True})
    with pytest.raises(TableConfigError, match="tables_beside: true, but gb-ukgc allows a player one table at once"):
        with_rows(**lawful | {"tables_beside": True})
    pace = "timers.betting_ms: 4999 is below 5000, the least time of gb-ukgc between rounds"
    with pytest.raises(TableConfigError, match=pace) as caught:
        with_rows(**lawful | {"timers__betting_ms": 4_999, "timers__amber_ms": 0})
    assert caught.value.field == "timers.betting_ms"
    assert with_rows(**lawful | {"timers__betting_ms": 5_000, "timers__amber_ms": 0}).timers.betting_ms == 5_000


def test_italy_allows_both() -> None:
    assert with_rows(jurisdiction="it-adm").early_close


@pytest.mark.parametrize(("jurisdiction_id", "version"), [one for one in EARLIER_VERSIONS if one[1] == 1])
def test_a_jurisdiction_from_before_tables_has_none(jurisdiction_id: str, version: int) -> None:
    law = load_jurisdiction(jurisdiction_id, version)
    message = f"jurisdiction: {jurisdiction_id} version 1 allows no tables"
    text = text_of("uth-online").replace('"demo"', f'"{jurisdiction_id}"')
    with pytest.raises(TableConfigError, match=message) as caught:
        parse_table_config(text, rulesets=RULES["rulesets"], jurisdictions={jurisdiction_id: law})
    assert caught.value.field == "jurisdiction"


@pytest.mark.parametrize(("text", "message"), [("id =", "the document is not TOML"), ("#" * 65_537, "longer than")])
def test_a_document_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(TableConfigError, match=message):
        parse_table_config(text, **RULES)


def test_a_document_with_a_date_has_no_canonical_form() -> None:
    with pytest.raises(TableConfigError, match="the document has no canonical form"):
        parse_table_config(text_of("uth-online").replace("seats = 0", "seats = 2026-11-23"), **RULES)


def test_the_error_carries_its_limit() -> None:
    with pytest.raises(TableConfigError) as caught:
        parse_table_config("#" * 65_537, **RULES)
    assert caught.value.metadata == {"limit": "65536"}
    assert caught.value.reason == "TABLE_CONFIG_REFUSED"
