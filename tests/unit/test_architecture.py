"""docs/architecture.md is true: it draws the table, its files and functions exist, and the steps of its walks meet."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tools.rooms import BEGIN, END, arrows, boxes, granted, picture, renewed, table
from tools.tidy import OUTSIDE, Room, check

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
TEXT = PAGE.read_text("utf-8")
TOPS = "rng|rgs|certification|protos|examples|bench|tests|tools|docs|requirements"
CITED = re.compile(rf"`((?:{TOPS})(?:/[\w./-]+)?)(?:::([\w.]+))?`")
STEP = re.compile(r"^\| `([\w/]+\.py)::([\w.]+)` \| ")


# --- the drawing --------------------------------------------------------------------------------------------------


def test_the_page_shows_the_table() -> None:
    assert renewed(TEXT) == TEXT, "python -m tools.rooms docs/architecture.md"


def test_every_arrow_is_allowed_and_everything_else_refused() -> None:
    """The drawing against the rule that is enforced, import by import."""
    grants = granted()
    assert len(grants) > 20
    for box, names in grants.items():
        whole = {other for name, others in names.items() for other in others if allows(box, other)}
        leads = {other for others in names.values() for other in others}
        assert {other for other in grants if allows(box, other)} - {box} == whole, box
        for other in leads - whole:  # single modules of it
            inside = [name for name in names if name.startswith(f"{dotted(other)}.")]
            assert inside, (box, other)
            assert all(imports(box, name) for name in inside), (box, other)


def dotted(box: str) -> str:
    return box.replace("/", ".")


def imports(box: str, name: str) -> bool:
    """Whether a file of the box, or of a room that is drawn as a part of it, may import the name by tools/tidy.py."""
    folders = [room.prefix for room in boxes()[box] if room.prefix.endswith("/")]
    found = [check(f"{folder}planted.py", f"import {name}\n") for folder in folders]
    return any("import" not in {finding.rule for finding in findings} for findings in found)


def allows(box: str, other: str) -> bool:
    return imports(box, f"{dotted(other)}.planted")


def test_the_drawing_is_no_hairball() -> None:
    edges = {box: {other for others in names.values() for other in others} for box, names in granted().items()}
    assert picture().count("-->") == len(arrows(edges)) < 2 * len(edges)
    assert sum(map(len, edges.values())) > 3 * len(arrows(edges))  # what the drawing leaves out
    found: dict[str, set[str]] = {box: set() for box in edges}
    for start, other in arrows(edges):  # ... and nothing is lost by it
        found[start] |= {other} | found[other]
    for box, others in edges.items():
        assert others <= found[box], box


ROOMS = (
    Room("rng/", ("rng",)),
    Room("rgs/core/log/", ("rgs.core.log",), ("nacl",)),
    Room("rgs/core/", ("rgs.core",)),
    Room("rgs/core/replay/", ("rgs.core", "rng.shuffle")),
    Room("rgs/store/", ("rgs.core", "rgs.store"), ("asyncpg",)),
    Room("rgs/node/", ("rng", "rgs.core", "rgs.store", "rgs.node"), (), generated=True),
    Room("rgs/node/one.py", ()),
    Room("tests/", ("rgs",), None),
)


def test_a_small_table_is_drawn() -> None:
    assert [*boxes(ROOMS)] == ["rng", "rgs/core/log", "rgs/core", "rgs/store", "rgs/node"]
    assert picture(ROOMS).splitlines()[2:-1] == [
        '    rgs_node["rgs/node"]',
        '    rgs_store["rgs/store"]',
        '    rgs_core["rgs/core"]',
        '    rgs_core_log["rgs/core/log"]',
        '    rng["rng"]',
        "    rgs_node --> rgs_store",
        "    rgs_store --> rgs_core",
        "    rgs_core --> rgs_core_log",
        "    rgs_core --> rng",
    ]
    assert table(ROOMS).splitlines()[2:] == [
        "| `rng` | nothing | nothing |",
        "| `rgs/core/log` | nothing | `nacl` |",
        "| `rgs/core` | `rgs/core/log`, `rng.shuffle` alone | nothing |",
        "| `rgs/store` | `rgs/core` | `asyncpg` |",
        "| `rgs/node` | every room above | the code made from `protos/` |",
    ]


def test_a_page_without_its_marks_is_refused() -> None:
    assert renewed(f"a\n{BEGIN}\nold\n{END}\nz").startswith(f"a\n{BEGIN}\n\n```mermaid\n")
    for page in ("", f"{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(ValueError, match="must have exactly one"):
            renewed(page)


# --- files and functions ------------------------------------------------------------------------------------------


@cache
def definitions(path: str) -> dict[str, ast.AST]:
    """Functions and classes of a file by their names, those of a class behind its own."""
    found: dict[str, ast.AST] = {}

    def collect(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{prefix}{child.name}"] = child
                collect(child, f"{prefix}{child.name}.")

    collect(ast.parse((ROOT / path).read_text("utf-8")), "")
    return found


def lost(text: str) -> list[str]:
    """What a text names that is not there."""
    return [
        f"{path}::{name}" if name else path
        for path, name in CITED.findall(text)
        if not (ROOT / path).exists() or (name and name not in definitions(path))
    ]


def test_every_file_and_function_is_there() -> None:
    assert len(CITED.findall(TEXT)) > 180
    assert lost(TEXT) == []


def test_what_is_gone_is_named() -> None:
    text = "`rng/dice.py` `rng/shuffle.py::deal` `rng/generator.py::Generator.draw` `rng/shuffle.py` `rgs/core` `tests`"
    assert lost(text) == ["rng/dice.py", "rng/shuffle.py::deal"]


def test_every_room_is_described() -> None:
    part = TEXT.split("\n## The rooms\n")[1].split("\n## ")[0]
    result = re.findall(r"^\| (`[^|]+`) \| \S.+\. \| \S.+\. \|$", part, re.MULTILINE)
    names = [name for cell in result for name in re.findall(r"`([^`]+)`", cell)]
    assert names == [*boxes(), *(prefix.rstrip("/") for prefix in OUTSIDE)]


# --- the walks ----------------------------------------------------------------------------------------------------


def called_by(path: str, name: str) -> set[str]:
    """The names that a function or class says, without what marks them as private."""
    node = definitions(path).get(name, ast.Pass())  # what is gone is said elsewhere
    names = {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}
    names |= {found.attr for found in ast.walk(node) if isinstance(found, ast.Attribute)}
    return {found.lstrip("_") for found in names}


def strays(walk: str) -> list[str]:
    """Steps that no step before them calls. The first one of each table begins something."""
    found: list[str] = []
    known: set[str] = set()
    is_first = True
    for line in walk.splitlines():
        step = STEP.match(line)
        if step is None:
            is_first |= not line.startswith("|")
            continue
        if not is_first and step[2].rsplit(".", 1)[-1].lstrip("_") not in known:
            found.append(f"{step[1]}::{step[2]}")
        known |= called_by(step[1], step[2])
        is_first = False
    return found


WALKS = re.findall(r"^## (Walk \d: .+?)$(.+?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("title", "walk"), WALKS, ids=[title[:6] for title, _ in WALKS])
def test_each_step_of_a_walk_is_called_by_one_before_it(title: str, walk: str) -> None:
    rows = [line for line in walk.splitlines() if line.startswith("| `")]
    assert len(rows) > 30, title
    assert [row for row in rows if not re.fullmatch(r"\| `[^`]+::[^`]+` \| [^|]+[.?] \|", row)] == []
    assert strays(walk) == []


def test_there_are_three_walks() -> None:
    assert [title.split(": ")[1] for title, _ in WALKS] == [
        "a StartRound from the wire to the commit and back",
        "a byte from the generator to the auditor's replay",
        "a credit from the decision to reconciliation",
    ]


def test_a_step_that_nobody_calls_is_named() -> None:
    draw = "| `rng/generator.py::Generator.draw` | A. |\n| `rng/generator.py::Generator._draw` | B. |\n"
    assert strays(draw + "| `rng/shuffle.py::shuffle` | C. |\n") == []
    assert strays(draw + "| `rng/kat.py::parse` | C. |\n") == ["rng/kat.py::parse"]
    assert strays(draw + "\nThen:\n\n| `rng/kat.py::parse` | C. |\n") == []
