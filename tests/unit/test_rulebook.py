"""docs/rulebook.md has every rule that code, tests and pages cite, with its source; others are marked. The numbers of
ARCHITECTURE stand in docs/architecture.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "rulebook.md"
DESIGN = ROOT / "docs" / "architecture.md"
CITING = ("rgs", "rng", "certification", "protos", "docs", "bench", "tools", "examples", "tests")
SUFFIXES = {".py", ".pyi", ".toml", ".proto", ".sql", ".md", ".ts"}
NOT_OURS = {"node_modules", "dist", "build"}

FAMILIES = "H|U|C|R|T|F|IT|ID|PG|GL|LG|UK|PR|ST"
RULE = re.compile(rf"\b({FAMILIES})-(\d\d?)\b(?: to \1-(\d\d?)\b)?")  # a range cites all that it spans
ROW = re.compile(rf"((?:{FAMILIES})-\d\d?(?:, (?:{FAMILIES})-\d\d?)*)( \[[PSIM]\])?( \(informative\))?")
GAP = r"(?:\s|--|#|//)+"  # a line may end within a citation, and the next one begin as a comment
SECTIONS = re.compile(rf"\b(RULEBOOK|ARCHITECTURE),?{GAP}(?:sections?{GAP})?((?:\d+(?:\.\d+)?(?:, | and |-| to )?)+)")


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of everything that may cite a rule, but for the page and this file."""
    for path in (*ROOT.glob("*.md"), *(path for top in CITING for path in (ROOT / top).rglob("*"))):
        if path.suffix in SUFFIXES and path not in (PAGE, Path(__file__)) and not NOT_OURS & set(path.parts):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def rules_in(text: str) -> set[str]:
    """The ids that a text cites."""
    found = set()
    for family, first, last in RULE.findall(text):
        found |= {f"{family}-{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1)}
    return found


def sections_in(text: str) -> set[tuple[str, str]]:
    """Document and number of the sections that a text cites."""
    found = set()
    for document, numbers in SECTIONS.findall(text):
        for first, last in re.findall(r"(\d+(?:\.\d+)?)(?:(?:-| to )(\d+(?:\.\d+)?))?", numbers):
            head, _, low = first.rpartition(".")
            high = (last or first).rpartition(".")[2]
            found |= {(document, f"{head}.{n}".lstrip(".")) for n in range(int(low), int(high) + 1)}
    return found


def table(text: str) -> list[list[str]]:
    """The rows of the page's tables."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def reported(text: str) -> list[tuple[str, bool]]:
    """Id, and whether it is marked as informative, in the order of the page."""
    rows = [found for row in table(text) if (found := ROW.fullmatch(row[0]))]
    return [(rule, bool(found[3])) for found in rows for rule in found[1].split(", ")]


def faults(cited: set[str], page: str) -> list[str]:
    """What page and citations disagree in."""
    rules = reported(page)
    names = [rule for rule, _ in rules]
    return [
        *(f"{rule} is cited, and not in the rulebook" for rule in sorted(cited - set(names))),
        *(f"{rule} stands there twice" for rule in sorted({rule for rule in names if names.count(rule) > 1})),
        *(
            f"{rule} is cited nowhere: drop it, or mark it (informative)"
            for rule, mark in rules
            if not mark | (rule in cited)
        ),
        *(f"{rule} is cited: it is not informative any more" for rule, mark in rules if mark and rule in cited),
    ]


@cache
def cited() -> frozenset[str]:
    return frozenset(rule for _, text in texts() for rule in rules_in(text))


def test_the_rulebook_has_what_is_cited_and_nothing_else() -> None:
    assert len(cited()) > 60
    assert faults(set(cited()), PAGE.read_text("utf-8")) == []


def test_every_row_names_its_source() -> None:
    rows = [row for row in table(PAGE.read_text("utf-8")) if RULE.match(row[0])]
    assert len(rows) > 75
    for row in rows:
        assert ROW.fullmatch(row[0]), row[0]
        assert len(row) == 3, row[0]
        assert row[1].endswith("."), row[0]
        assert row[2], row[0]


def test_every_section_that_is_cited_is_there() -> None:
    page = PAGE.read_text("utf-8")
    there = {("RULEBOOK", number) for number in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)}
    design = DESIGN.read_text("utf-8").split("## The ideas")[1]
    there |= {("ARCHITECTURE", row[0]) for row in table(design)}
    requested = {(path, *section) for path, text in texts() for section in sections_in(text)}
    assert len(requested) > 80
    assert {(path, *section) for path, *section in requested if tuple(section) not in there} == set()
    assert "## Head note" in page  # rgs/core/money.py


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("(RULEBOOK U-4 to U-6, C-2)", {"U-4", "U-5", "U-6", "C-2"}),
        ("regulation ID-01 to ID-03; GL-25 [S]", {"ID-01", "ID-02", "ID-03", "GL-25"}),
        ("H-9 to C-10", {"H-9", "C-10"}),
        ("SHA-1, AES-25, X-C-123, UTF-8, CH-1", set()),
    ],
)
def test_citations_are_found(text: str, rules: set[str]) -> None:
    assert rules_in(text) == rules


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(RULEBOOK section 4; IT-03)", {("RULEBOOK", "4")}),
        ("RULEBOOK sections 2-4, F-3", {("RULEBOOK", "2"), ("RULEBOOK", "3"), ("RULEBOOK", "4")}),
        ("RULEBOOK U-10, C-8", set()),
        ("(ARCHITECTURE 2.9, 2.13).", {("ARCHITECTURE", "2.9"), ("ARCHITECTURE", "2.13")}),
        ("(ARCHITECTURE 2.2-2.3, 3)", {("ARCHITECTURE", "2.2"), ("ARCHITECTURE", "2.3"), ("ARCHITECTURE", "3")}),
        ("(ARCHITECTURE\n# section 3; GLI-19 2.8.8)", {("ARCHITECTURE", "3")}),
    ],
)
def test_citations_of_sections_are_found(text: str, numbers: set[tuple[str, str]]) -> None:
    assert sections_in(text) == numbers


def test_the_files_and_tests_of_the_pages_rules_are_there() -> None:
    page = ROOT / "examples/operator/page"
    rows = [row for row in table((page / "README.md").read_text("utf-8")) if RULE.match(row[0])]
    assert {rule for row in rows for rule in rules_in(row[0])} >= {"T-6", "T-7", "F-1", "F-2", "F-11"}
    for rule, files, tests in rows:
        named = [page / "src" / file for file in re.findall(r"`(\S+?)`", files)]
        named += [
            (ROOT / "tests/web" if test.endswith(".py") else page / "tests") / test
            for test in re.findall(r"`(\S+?)`", tests)
        ]
        assert named, rule
        assert [path for path in named if not path.is_file()] == [], rule


def test_a_planted_fault_is_named() -> None:
    rows = ["| U-1 | Deal. | S1 |", "| U-2, U-3 | Bet. | S1 |", "| F-1 (informative) | Chips. | S2 |"]
    page = "\n".join(["| id | rule | source |", "|---|---|---|", *rows, ""])
    assert faults({"U-1", "U-2", "U-3"}, page) == []
    assert faults({"U-1", "U-2", "U-3", "U-4"}, page) == ["U-4 is cited, and not in the rulebook"]
    assert faults({"U-1", "U-2"}, page) == ["U-3 is cited nowhere: drop it, or mark it (informative)"]
    assert faults({"U-1", "U-2", "U-3", "F-1"}, page) == ["F-1 is cited: it is not informative any more"]
    assert faults({"U-1", "U-2", "U-3"}, page + "| U-1 | Again. | S1 |\n") == ["U-1 stands there twice"]
