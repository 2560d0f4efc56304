"""Jurisdictions as they are shipped, and every reason for which one is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from rgs.core import jurisdictions
from rgs.core.errors import JurisdictionError, RulesetError
from rgs.core.jurisdictions import (
    EARLIER_VERSIONS,
    SHIPPED_JURISDICTIONS,
    Jurisdiction,
    load_jurisdiction,
    parse_jurisdiction,
)
from rgs.core.replay import Rulebook
from rgs.core.rounds import rules_object

SHIPPED = resources.files("rgs.core") / "jurisdiction_data"


def text_of(jurisdiction_id: str) -> str:
    return (SHIPPED / f"{jurisdiction_id}.toml").read_text("utf-8")


def test_all_files_are_shipped() -> None:
    names = {file.name for file in SHIPPED.iterdir() if file.name.endswith(".toml")}
    earlier = {f"{jurisdiction_id}.{version}.toml" for jurisdiction_id, version in EARLIER_VERSIONS}
    assert names == {f"{jurisdiction_id}.toml" for jurisdiction_id in SHIPPED_JURISDICTIONS} | earlier


def test_what_the_clauses_say() -> None:
    italy, britain, demo = (load_jurisdiction(jurisdiction_id) for jurisdiction_id in SHIPPED_JURISDICTIONS)
    assert (italy.currency, britain.currency, demo.currency) == ("EUR", "GBP", "EUR")
    assert italy.participation_cap_minor == 100_000  # IT-04
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


@pytest.mark.parametrize(("jurisdiction_id", "version"), EARLIER_VERSIONS)
def test_an_earlier_version_is_shipped_for_replay_and_differs_in_tables_alone(
    jurisdiction_id: str, version: int
) -> None:
    earlier, newest = load_jurisdiction(jurisdiction_id, version), load_jurisdiction(jurisdiction_id)
    assert (earlier.id, earlier.version, newest.version) == (jurisdiction_id, version, 2)
    assert (earlier.tables_max, earlier.early_close_allowed) == (0, False)
    changed = {
        row: getattr(newest, row)
        for row in ("version", "tables_max", "early_close_allowed", "sources", "canonical", "sha256")
    }
    assert dataclasses.replace(earlier, **changed) == newest
    assert earlier.sources.items() <= newest.sources.items()
    book = Rulebook()
    assert book.jurisdiction(rules_object(earlier)) == earlier
    assert book.jurisdiction(rules_object(newest)) == newest
    assert book.jurisdiction(rules_object(newest) | {"version": "1"}) is None


@pytest.mark.parametrize(("jurisdiction_id", "version"), [("demo", 2), ("demo", 0), ("it", 1), ("demo.1", 1)])
def test_a_version_that_is_not_an_earlier_one_is_refused(jurisdiction_id: str, version: int) -> None:
    with pytest.raises(JurisdictionError, match=f"no jurisdiction '{jurisdiction_id}' version {version} is shipped"):
        load_jurisdiction(jurisdiction_id, version)


@pytest.mark.parametrize("row", ["tables_max", "early_close_allowed"])
def test_the_rows_of_tables_are_both_there_or_neither(row: str) -> None:
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
    with pytest.raises(RulesetError, match="the file of other holds demo version 2") as caught:
        load_jurisdiction("other")
    assert caught.value.field == "id"


@pytest.mark.parametrize(
    ("row", "least", "most"),
    [
        ("version", 1, 1_000_000),
        ("participation_cap_minor", 1, 10**12),
        ("return_floor_basis_points", 0, 10_000),
        ("min_round_interval_ms", 0, 86_400_000),
        ("inactivity_ms", 1, 86_400_000),
        ("finish_after_s", 1, 30 * 86_400),
        ("history_rounds", 1, 1_000_000),
        ("tables_max", 0, 100),
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
        ('currency = "EUR"', 'currency = "euro"', "currency: 'euro' is not a currency"),
        ("participation_cap_minor = 100000", "participation_cap_minor = 0", "participation_cap_minor: 0 is outside"),
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
        ('id = "demo"', 'id = "it-adm"', "test_regulator_allowed: only demo"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str) -> None:
    assert old in text_of("demo")
    with pytest.raises(RulesetError, match=message) as caught:
        parse_jurisdiction(text_of("demo").replace(old, new, 1))
    assert caught.value.field == message.partition(": ")[0]


def test_the_development_ca_too_is_for_the_demo_only() -> None:
    text = text_of("demo").replace('id = "demo"', 'id = "it-adm"')
    with pytest.raises(RulesetError, match="development_ca_allowed: only demo"):
        parse_jurisdiction(text.replace("test_regulator_allowed = true", "test_regulator_allowed = false"))
