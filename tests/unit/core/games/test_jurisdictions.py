"""Jurisdictions as they are shipped, and every reason for which one is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import string
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from rgs.core import jurisdictions
from rgs.core.errors import JurisdictionError, RulesetError
from rgs.core.jurisdictions import (
    EARLIER_VERSIONS,
    SHIPPED_JURISDICTIONS,
    TEST_JURISDICTIONS,
    Jurisdiction,
    load_jurisdiction,
    parse_jurisdiction,
)
from rgs.core.replay import Rulebook
from rgs.core.rounds import rules_object

TABLE_ROWS = ("tables_max", "early_close_allowed")
LAUNCH_ROWS = (
    "currencies",
    "languages",
    "reality_check_ms",
    "limit_raise_delay_s",
    "free_bets_allowed",
    "demo_allowed",
    "repeat_allowed",
    "skip_animations_allowed",
)

SHIPPED = resources.files("rgs.core") / "jurisdiction_data"


def text_of(jurisdiction_id: str) -> str:
    return (SHIPPED / f"{jurisdiction_id}.toml").read_text("utf-8")


def test_all_files_are_shipped() -> None:
    names = {file.name for file in SHIPPED.iterdir() if file.name.endswith(".toml")}
    earlier = {f"{jurisdiction_id}.{version}.toml" for jurisdiction_id, version in EARLIER_VERSIONS}
    assert names == {f"{jurisdiction_id}.toml" for jurisdiction_id in SHIPPED_JURISDICTIONS} | earlier


def test_what_the_clauses_say() -> None:
    italy, britain, demo, seamless = (load_jurisdiction(name) for name in SHIPPED_JURISDICTIONS)
    assert italy.currencies == {"EUR": 100_000}  # IT-04
    assert britain.currencies == {"GBP": 1_000_000}
    assert list(demo.currencies) == ["EUR", "CHF", "GBP", "JPY"]
    assert italy.return_floor_basis_points == 9_000  # IT-03
    assert italy.regulator_ids_required  # ID-01, ID-02
    assert britain.min_round_interval_ms == 5_000  # UK-08
    assert demo.min_round_interval_ms == 0
    assert demo.regulator_ids_required
    for jurisdiction in (italy, britain):
        assert not jurisdiction.test_regulator_allowed
        assert not jurisdiction.development_ca_allowed
    assert demo.test_regulator_allowed
    assert demo.development_ca_allowed
    assert (italy.tables_max, britain.tables_max, demo.tables_max) == (4, 1, 4)  # T-4
    assert not britain.early_close_allowed  # UK-08
    assert italy.early_close_allowed
    assert demo.early_close_allowed
    assert not britain.skip_animations_allowed  # UK-08
    assert not britain.repeat_allowed
    assert italy.demo_allowed  # IT-08
    assert not britain.demo_allowed
    assert italy.limit_raise_delay_s > 0
    assert britain.reality_check_ms > 0
    same = {
        name: getattr(demo, name)
        for name in ("id", "version", "regulator_ids_required", "sources", "canonical", "sha256")
    }
    assert dataclasses.replace(seamless, **same) == demo
    assert (demo.regulator_ids_required, seamless.regulator_ids_required) == (True, False)


def test_caps_are_by_currency() -> None:
    demo = load_jurisdiction("demo")
    for currency, cap_minor in demo.currencies.items():
        assert demo.cap_minor(currency) == cap_minor
        demo.verify_currency(currency)
    assert demo.cap_minor("SEK") == 0
    message = "currency: 'SEK' is not one of demo, which allows EUR, CHF, GBP, JPY"
    with pytest.raises(JurisdictionError, match=f"^{message}$") as caught:
        demo.verify_currency("SEK")
    assert (caught.value.field, caught.value.metadata["limit"]) == ("currency", "EUR, CHF, GBP, JPY")


def test_real_money_is_never_played_under_a_jurisdiction_for_testing() -> None:
    # Whoever allows our own regulator or our own authority is marked as a test in every statement and answer.
    marked = {
        name
        for name in SHIPPED_JURISDICTIONS
        if load_jurisdiction(name).test_regulator_allowed or load_jurisdiction(name).development_ca_allowed
    }
    assert marked == set(TEST_JURISDICTIONS) == {"demo", "demo-seamless"}


@pytest.mark.parametrize(("jurisdiction_id", "version"), EARLIER_VERSIONS)
def test_an_earlier_version_is_shipped_for_replay_and_differs_in_tables_and_launches_alone(
    jurisdiction_id: str, version: int
) -> None:
    earlier, newest = load_jurisdiction(jurisdiction_id, version), load_jurisdiction(jurisdiction_id)
    assert (earlier.id, earlier.version, newest.version) == (jurisdiction_id, version, 3)
    tables = (0, False) if version == 1 else (newest.tables_max, newest.early_close_allowed)
    assert (earlier.tables_max, earlier.early_close_allowed) == tables
    before = {row: getattr(earlier, row) for row in LAUNCH_ROWS if row != "currencies"}
    assert before == dict.fromkeys(before, 0) | {"languages": ()}
    assert earlier.currencies.items() <= newest.currencies.items()
    assert len(earlier.currencies) == 1
    changed = {
        row: getattr(newest, row) for row in ("version", *TABLE_ROWS, *LAUNCH_ROWS, "sources", "canonical", "sha256")
    }
    assert dataclasses.replace(earlier, **changed) == newest
    kept = earlier.sources.keys() - {"currency", "participation_cap_minor"}
    assert kept <= newest.sources.keys()
    if jurisdiction_id != "demo":  # its two last rows are no longer allowed there alone
        assert all(earlier.sources[row] == newest.sources[row] for row in kept)
    book = Rulebook()
    assert book.jurisdiction(rules_object(earlier)) == earlier
    assert book.jurisdiction(rules_object(newest)) == newest
    assert book.jurisdiction(rules_object(newest) | {"version": "1"}) is None


@pytest.mark.parametrize(("jurisdiction_id", "version"), [("demo", 3), ("demo", 0), ("it", 1), ("demo.1", 1)])
def test_a_version_that_is_not_an_earlier_one_is_refused(jurisdiction_id: str, version: int) -> None:
    with pytest.raises(JurisdictionError, match=f"no jurisdiction '{jurisdiction_id}' version {version} is shipped"):
        load_jurisdiction(jurisdiction_id, version)


@pytest.mark.parametrize("row", [*TABLE_ROWS, *LAUNCH_ROWS[1:]])
def test_the_rows_of_tables_are_both_there_or_neither_and_so_are_those_of_launches(row: str) -> None:
    text, count = re.subn(rf"(?m)^{row} = .*\n", "", text_of("demo"))
    assert count == 2  # the row, and its source
    with pytest.raises(RulesetError, match=f"^{row}: is missing$"):
        parse_jurisdiction(text)


@pytest.mark.parametrize("jurisdiction_id", SHIPPED_JURISDICTIONS)
def test_form_hash_and_sources(jurisdiction_id: str) -> None:
    jurisdiction = load_jurisdiction(jurisdiction_id)
    document = tomllib.loads(text_of(jurisdiction_id))
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert jurisdiction.canonical == canonical
    assert jurisdiction.sha256 == hashlib.sha256(canonical).hexdigest()
    rows = {field.name for field in dataclasses.fields(Jurisdiction)} - {"sources", "canonical", "sha256"}
    assert set(document) == rows | {"sources"}
    assert set(jurisdiction.sources) == rows - {"id", "version"}
    assert parse_jurisdiction(text_of(jurisdiction_id)) == jurisdiction
    assert hash(jurisdiction) == hash(parse_jurisdiction(text_of(jurisdiction_id)))


@pytest.mark.parametrize("jurisdiction_id", ["", "it", "../jurisdiction_data/demo", "DEMO", "demo.1"])
def test_an_unknown_id_is_refused(jurisdiction_id: str) -> None:
    with pytest.raises(JurisdictionError):
        load_jurisdiction(jurisdiction_id)


def test_a_file_must_hold_what_its_name_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jurisdiction_data").mkdir()
    (tmp_path / "jurisdiction_data" / "other.toml").write_text(text_of("demo"), "utf-8")
    monkeypatch.setattr(jurisdictions, "SHIPPED_JURISDICTIONS", ("other",))
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(RulesetError, match="the file of other holds demo version 3") as caught:
        load_jurisdiction("other")
    assert caught.value.field == "id"


@pytest.mark.parametrize(
    ("row", "least", "most"),
    [
        ("version", 1, 1_000_000),
        ("return_floor_basis_points", 0, 10_000),
        ("min_round_interval_ms", 0, 86_400_000),
        ("inactivity_ms", 1, 86_400_000),
        ("finish_after_s", 1, 30 * 86_400),
        ("history_rounds", 1, 1_000_000),
        ("tables_max", 0, 100),
        ("reality_check_ms", 0, 86_400_000),
        ("limit_raise_delay_s", 0, 30 * 86_400),
    ],
)
def test_each_number_has_its_bounds(row: str, least: int, most: int) -> None:
    def with_value(value: int) -> Jurisdiction:
        text, count = re.subn(rf"(?m)^{row} = \d+$", f"{row} = {value}", text_of("demo"))
        assert count == 1
        return parse_jurisdiction(text)

    for value in (least, most):
        assert getattr(with_value(value), row) == value
    for value in (least - 1, most + 1):
        with pytest.raises(RulesetError, match=f"{row}: {value} is outside {least}\\.\\.{most}"):
            with_value(value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('currency = "EUR"', 'currency = "euro"', "currencies[0].currency: 'euro' is not a currency"),
        ('currency = "CHF"', 'currency = "EUR"', "currencies[1].currency: EUR stands there twice"),
        ("minor = 100000", "minor = 0", "currencies[0].participation_cap_minor: 0 is outside 1..1000000000000"),
        ("minor = 100000", f"minor = {10**12 + 1}", "currencies[0].participation_cap_minor: 1000000000001 is outside"),
        ("minor = 100000", "minor = 100000\ncolour = 1", "currencies[0].colour: is not known"),
        ('languages = ["en", "it", "de"]', "languages = []", "languages: is empty"),
        ('languages = ["en", "it", "de"]', 'languages = ["eng"]', "languages: 'eng' is not a code of two"),
        ('languages = ["en", "it", "de"]', 'languages = ["en", "en"]', "languages: 'en' is not a code of two"),
        ('languages = ["en", "it", "de"]', "languages = [1]", "languages: is not a list of texts"),
        ("demo_allowed = true", "demo_allowed = 1", "demo_allowed: is of kind int"),
        ("repeat_allowed = true", 'repeat_allowed = true\ncurrency = "EUR"', "currency: is not known"),
        (
            "return_floor_basis_points = 9000",
            "return_floor_basis_points = 10001",
            "return_floor_basis_points: 10001 is",
        ),
        ("regulator_ids_required = true", "regulator_ids_required = 1", "regulator_ids_required: is of kind int"),
        ("min_round_interval_ms = 0", "min_round_interval_ms = -1", "min_round_interval_ms: -1 is outside"),
        ("inactivity_ms = 1800000", "inactivity_ms = 0", "inactivity_ms: 0 is outside"),
        ("history_rounds = 50", "history_rounds = 50\ncolour = 1", "colour: is not known"),
        ("early_close_allowed = true", "early_close_allowed = 1", "early_close_allowed: is of kind int"),
        ("history_rounds = 50", "", "history_rounds: is missing"),
        ('inactivity_ms = "own', 'idle_ms = "own', "sources.inactivity_ms: is missing"),
        ('inactivity_ms = "own', 'colour = "red"\ninactivity_ms = "own', "sources.colour: is not known"),
        ('id = "demo"', 'id = "it-adm"', "test_regulator_allowed: only demo and demo-seamless may allow it"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str) -> None:
    assert old in text_of("demo")
    with pytest.raises(RulesetError, match=f"^{re.escape(message)}") as caught:
        parse_jurisdiction(text_of("demo").replace(old, new, 1))
    assert caught.value.field == message.partition(": ")[0]


def test_a_jurisdiction_has_a_currency_and_not_more_than_can_be_read() -> None:
    text, count = re.subn(r"(?ms)^\[\[currencies\]\]\n.*?\n\n", "", text_of("demo"))
    assert count == 4
    with pytest.raises(RulesetError, match=r"^currencies: there are 0, not 1 to 200$"):
        parse_jurisdiction("currencies = []\n" + text)
    row = '[[currencies]]\ncurrency = "{}"\nparticipation_cap_minor = 1\n\n'
    names = [f"{first}{second}X" for first in string.ascii_uppercase for second in string.ascii_uppercase][:201]
    many = "".join(row.format(name) for name in names)
    with pytest.raises(RulesetError, match=r"^currencies: there are 201, not 1 to 200$"):
        parse_jurisdiction(text.replace("[sources]", f"{many}[sources]"))
    allowed = many.removesuffix(row.format(names[-1]))
    assert list(parse_jurisdiction(text.replace("[sources]", f"{allowed}[sources]")).currencies) == names[:200]


def test_the_development_ca_too_is_for_testing_only() -> None:
    text = text_of("demo").replace('id = "demo"', 'id = "it-adm"')
    with pytest.raises(RulesetError, match="development_ca_allowed: only demo and demo-seamless"):
        parse_jurisdiction(text.replace("test_regulator_allowed = true", "test_regulator_allowed = false"))
