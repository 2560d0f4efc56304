"""The documents for auditors say nothing that is not there: cited tests, checks, events, methods and options exist."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from rgs.cli.call import find
from rgs.core.errors import InvalidFieldError
from rgs.core.replay import CHECKS
from rgs.node.config import SETTINGS
from rgs.service.availability import GUARDS
from rgs.service.events import EventCode
from rgs.service.play.requests import Act
from tests.support.service.harness import open_harness, read_statement
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
CITED = re.compile(r"`(?:tests/)?((?:unit|integration|e2e|property|verifier)/[\w/]+\.py)(?:::(\w+))?`")
AUDIT = (ROOT / "docs" / "audit.md").read_text("utf-8")
MODEL = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
VERIFY = (ROOT / "docs" / "verify.md").read_text("utf-8")
FORMATS = (ROOT / "docs" / "formats.md").read_text("utf-8")
NODE = (ROOT / "docs" / "node.md").read_text("utf-8")


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def missing(text: str) -> list[str]:
    """Cited tests that are not there."""
    found = CITED.findall(text)
    return [
        f"{path}::{name}"
        for path, name in found
        if not (TESTS / path).is_file() or (name and name not in names_in(TESTS / path))
    ]


@pytest.mark.parametrize("name", ["audit", "threat-model", "verify"])
def test_every_cited_test_exists(name: str) -> None:
    assert missing((ROOT / "docs" / f"{name}.md").read_text("utf-8")) == []


def test_a_citation_of_nothing_is_found() -> None:
    assert missing("`unit/test_docs.py::test_nothing`, `unit/nowhere.py`") == [
        "unit/test_docs.py::test_nothing",
        "unit/nowhere.py::",
    ]
    assert missing("`tests/unit/test_docs.py::test_a_citation_of_nothing_is_found`") == []


def rows(text: str) -> list[list[str]]:
    """The rows of all tables but their heads."""
    lines = [line.strip() for line in text.splitlines()]
    tables = [index for index, line in enumerate(lines) if line.startswith("|---")]
    heads = {index - 1 for index in tables} | set(tables)
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for index, line in enumerate(lines)
        if line.startswith("|") and index not in heads
    ]


def test_every_line_of_the_threat_model_cites_a_test_or_says_that_none_shows_it() -> None:
    lines = rows(MODEL)
    assert len(lines) > 40
    for claim, shown_by, test, open_ in lines:
        assert claim
        assert shown_by
        assert bool(CITED.search(test)) != (test == "**not shown**"), claim
        assert open_ or CITED.search(test), claim


def test_the_people_around_the_server_have_a_section_each() -> None:
    for who in ("the licensee", "the operator", "the player", "the thief of a backup", "the careless restorer"):
        assert re.search(rf"^## \d\. Against {who}$", MODEL, re.MULTILINE)


def test_every_check_is_explained_under_its_number_and_name() -> None:
    result = [row[0] for row in rows(AUDIT) if re.match(r"\d+ ", row[0])]
    assert result == [check.label for check in CHECKS]


def test_every_event_is_explained() -> None:
    result = {code for row in rows(AUDIT) for code in re.findall(r"`([A-Z_]{6,})`", row[0])}
    assert {code.value for code in EventCode} <= result
    assert (
        result - {code.value for code in EventCode}
        == {"RNG_INSTANTIATED", "RNG_UNINSTANTIATED", "RNG_FAILED"} | {"DEVELOPMENT KEYS"} & result
    )


def test_every_setting_is_explained_with_its_default_and_limits() -> None:
    result = {row[0].strip("`"): row for row in rows(NODE) if len(row) == 4}
    assert list(result) == list(SETTINGS)
    for name, setting in SETTINGS.items():
        default, limits = result[name][1].strip("`"), result[name][2]
        match setting.default:
            case bool():
                assert default == str(setting.default).lower(), name
            case int():
                assert default == f"{setting.default:,}", name
                least, most = (number(edge) for edge in limits.split(" to "))
                assert setting.check(name, least) == least, name
                assert setting.check(name, most) == most, name
                for outside in (least - 1, most + 1):
                    with pytest.raises(InvalidFieldError):
                        setting.check(name, outside)
            case _:
                assert default == (setting.default or "empty"), name


def number(text: str) -> int:
    """`10^9` or `1,024`."""
    base, _, power = text.replace(",", "").partition("^")
    whole: int = int(base) ** int(power or 1)
    return whole


def test_every_guard_and_every_line_to_have_an_alarm_on_is_there() -> None:
    result = [row[0].strip("`") for row in rows(NODE) if len(row) == 3]
    assert tuple(name for name in result if name in GUARDS) == GUARDS
    source = "".join(path.read_text("utf-8") for path in (ROOT / "rgs").rglob("*.py"))
    events = {event for row in rows(NODE) if len(row) == 3 for event in re.findall(r"`([a-z_]+)`", row[0])} - {*GUARDS}
    assert {event for event in events if f'"{event}"' not in source} == set()


def test_every_method_that_the_guide_calls_exists_with_its_fields() -> None:
    called = re.findall(r"rgs call (\w+/\w+) '(\{.*?\})'", AUDIT)
    assert len(called) >= 5
    for name, request in called:
        fields = find(name).descriptor.input_type.fields_by_name
        assert set(re.findall(r'"(\w+)":', request)) <= set(fields), name


def test_fractions_are_the_decimals_beside_them() -> None:
    text = (ROOT / "docs" / "returns.md").read_text("utf-8")
    result = re.findall(r"(-?\d+)/(\d+) = (-?\d+\.\d+)( %)?", text)
    assert len(result) >= 6
    for above, below, decimal, percent in result:
        places = len(decimal.partition(".")[2])
        value = Fraction(int(above), int(below)) * (100 if percent else 1)
        assert f"{float(round(value, places)):.{places}f}" == decimal


def test_what_only_a_receipt_shows_is_said_in_all_three() -> None:
    for text in (VERIFY, MODEL):
        assert "tests/integration/test_lying_server.py" in text or "integration/test_lying_server.py::" in text
    assert "section 6 of [verify.md](verify.md)" in AUDIT
    assert re.search(r"^## 6\. Receipts", VERIFY, re.MULTILINE)


async def test_a_request_digest_is_computed_from_the_request_as_the_formats_say(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        played = read_statement((await anna.play()).envelope)
        await anna.start()
        harness.clock.tick(24 * 3_600_000)
        assert await harness.services.interruptions.finish_due() == 1
        by_rule = read_statement(stored_statements(tmp_path)[-1].envelope)
    sent = [request for request, _ in anna.sent if isinstance(request, Act)]
    assert len(sent) == len(played["actions"]) > 0
    for request, action in zip(sent, played["actions"], strict=True):
        fields = {
            "action": action["action"],
            "method": "Act",
            "party": action["party"],
            "request_id": request.request_id,
            "round_id": request.round_id,
            "round_version": str(request.round_version),
            "session_id": request.session_id,
        }
        assert f"`{{{', '.join(fields)}}}`" in FORMATS
        assert action["request_digest"] == digest_by_hand(fields)
    assert (by_rule["kind"], {action["by"] for action in by_rule["actions"]}) == ("round_final", {"rule"})
    assert '`{"method":"FinishByRule","round_id":…}`' in FORMATS
    digest = digest_by_hand({"method": "FinishByRule", "round_id": by_rule["round_id"]})
    assert {action["request_digest"] for action in by_rule["actions"]} == {digest}


def digest_by_hand(fields: dict[str, str]) -> str:
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"rgs/request/v1\0" + canonical.encode("ascii")).hexdigest()
