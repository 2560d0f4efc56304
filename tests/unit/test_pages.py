"""Pages lead somewhere: links resolve, commands that they name are in the Makefile, the glossary is one whole table."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)?(?:#([^)\s]+))?\)")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
WIDTH = 120
NARROW = [
    *("CONTRIBUTING.md", "SECURITY.md"),
    *(
        f"docs/{name}.md"
        for name in ("architecture", "audit", "formats", "glossary", "manifest", "rulebook", "tables", "verify")
    ),
]
MAKE = re.compile(r"(?:`|^    |entry: )make ([a-z-]+)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the hosts of repositories make them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def lost(page: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for path, anchor in LINK.findall(text):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{path}#{anchor}" if anchor else path)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert lost(page, page.read_text("utf-8")) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = (
        "[a](rules.md) [b](rulebook.md#head-note) [c](rulebook.md#foot-note) [d](../README.md) [e](https://a.example/)"
    )
    assert lost(ROOT / "docs" / "glossary.md", text) == ["rules.md", "rulebook.md#foot-note"]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", ".pre-commit-config.yaml"])
def test_every_command_of_make_is_in_the_makefile(name: str) -> None:
    assert set(MAKE.findall((ROOT / name).read_text("utf-8"))) - TARGETS == set()


def test_the_hooks_are_local_and_those_that_the_page_names() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert re.findall(r"repo: *(.+)", hooks) == ["local"]
    assert "://" not in hooks
    named = re.findall(r"^\| `(\w+)` \| `(make [^`]+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    there = list(zip(re.findall(r"- id: (\w+)", hooks), re.findall(r"entry: (.+)", hooks), strict=True))
    assert named == there
    assert len(there) == 3


def test_paths_that_contributors_are_sent_to_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = set(re.findall(r"`((?:tests|tools|certification|docs)/[\w./]+)`", text))
    assert len(paths) > 8
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def too_long(text: str) -> list[str]:
    """Lines of prose beyond the width: neither of a table nor of code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in prose.splitlines() if len(line) > WIDTH and not line.startswith(("|", "    "))]


@pytest.mark.parametrize("name", NARROW)
def test_prose_keeps_to_the_width(name: str) -> None:
    assert too_long((ROOT / name).read_text("utf-8")) == []


def test_a_line_that_is_too_long_is_found() -> None:
    code = "    " + "x" * WIDTH
    assert too_long(f"{'w' * WIDTH}\n\n{code}\n\n```\n{code.strip()}x\n```\n\n|{code}|\n") == []
    assert too_long(f"{'w' * WIDTH}w\n") == ["w" * WIDTH + "w"]


def faults_of_glossary(text: str, source: str) -> list[str]:
    """What is wrong with the table: its order, a row without a meaning or source, a code word that no code has."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    rows = rows[1:]
    terms = [row[0].lower() for row in rows]
    return [
        *(f"{term}: not in its place, or twice" for term, after in pairwise(terms) if term >= after),
        *(
            f"{row[0]}: term, meaning, source, Italian"
            for row in rows
            if len(row) != 4 or not row[1].endswith(".") or not row[2]
        ),
        *(
            f"{row[0]}: no code says {word}"
            for row in rows
            for word in re.findall(r"`([\w.-]+)`", " ".join(row))
            if word not in source
        ),
    ]


def test_the_glossary_is_one_whole_table_of_words_in_use() -> None:
    suffixes = {".py", ".proto", ".toml"}
    files = (path for top in ("rgs", "rng", "certification", "protos") for path in (ROOT / top).rglob("*"))
    source = "".join(path.read_text("utf-8") for path in files if path.suffix in suffixes)
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    assert text.count("\n|---") == 1
    assert text.count("\n| ") > 100
    assert faults_of_glossary(text, source) == []


def test_a_planted_fault_of_the_glossary_is_named() -> None:
    head = "| term | meaning | source | Italian |\n|---|---|---|---|\n"
    good = "| ante | The base bet. | U-5 | |\n| transfer | One debit. | `transfer` | |\n"
    assert faults_of_glossary(head + good, "transfer") == []
    assert faults_of_glossary(head + good, "ante") == ["transfer: no code says transfer"]
    assert faults_of_glossary(head + good + "| book | An account. | ours | |\n", "transfer") == [
        "transfer: not in its place, or twice"
    ]
    assert faults_of_glossary(head + "| ante | The base bet. | | |\n", "") == ["ante: term, meaning, source, Italian"]
