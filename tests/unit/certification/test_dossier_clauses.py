"""The clause map names functions and tests that exist, and a result is made of what ran and of nothing else."""

from __future__ import annotations

import ast
import importlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from certification.dossier.clauses import (
    FILES,
    FOLDER,
    UNKNOWN,
    Clause,
    load_map,
    named_tests,
    parse_chapter,
    result_of,
)
from certification.dossier.plan import full_plan, quick_plan, steps_of
from rgs.core.errors import FormatError

ROOT = Path(__file__).parents[3]
ROWS = [clause for chapter in load_map() for clause in chapter.clauses]


def exists(dotted: str) -> bool:
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@cache
def functions_in(path: str) -> frozenset[str]:
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def is_test(node: str) -> bool:
    path, _, name = node.partition("::")
    return name.startswith("test_") and name in functions_in(path)


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row.functions}))
def test_every_function_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("node", named_tests(load_map()))
def test_every_test_exists(node: str) -> None:
    assert is_test(node)


def test_what_does_not_exist_is_seen() -> None:
    assert not exists("rng.shuffle.cut")
    assert not exists("rng.nowhere")
    assert not is_test("tests/unit/rng/test_shuffle.py::test_nothing")
    assert not is_test("tests/unit/rng/test_nowhere.py::test_nothing")


def test_every_file_is_read_and_every_step_is_one_of_the_plan() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(FILES)
    for plan in (full_plan(), quick_plan()):
        names = [step.name for step in steps_of(plan)]
        for row in ROWS:
            for step in row.steps:
                assert any(name == step or name.startswith(f"{step}-") for name in names), (row.clause, step)


def test_an_unknown_number_is_never_a_number() -> None:
    assert sum(row.clause.startswith(UNKNOWN) for row in ROWS) > 5
    for row in ROWS:
        assert row.clause.startswith(UNKNOWN) or any(sign.isdigit() for sign in row.clause) or row.clause == "Annex A"


CLAUSE = Clause("S", "1", "quoted", "d", ("rng",), ("a", "b"), ("battery",), "whole", "")
RAN = {"a": "passed", "b": "passed"}
STEPS = {"battery-1": "passed", "battery-2": "passed"}


@pytest.mark.parametrize(
    ("clause", "tests", "steps", "due"),
    [
        (CLAUSE, RAN, STEPS, "shown"),
        (replace(CLAUSE, covers="part", open="o"), RAN, STEPS, "shown in part"),
        (CLAUSE, {"a": "passed"}, STEPS, "not run"),
        (CLAUSE, {**RAN, "b": "failed"}, {}, "failed"),
        (CLAUSE, RAN, {}, "not run"),
        (CLAUSE, RAN, {**STEPS, "battery-2": "failed"}, "failed"),
        (CLAUSE, RAN, {**STEPS, "battery-2": "not applicable"}, "not run"),
        (CLAUSE, {}, {}, "not run"),
        (replace(CLAUSE, covers="none", tests=(), steps=(), open="o"), RAN, STEPS, "not covered"),
    ],
)
def test_a_result_is_no_better_than_what_ran(
    clause: Clause, tests: dict[str, str], steps: dict[str, str], due: str
) -> None:
    assert result_of(clause, tests, steps) == due


ROW = """
title = "t"
[[clause]]
standard = "S"
clause = "1"
evidence = "quoted"
demand = "d"
functions = ["rng"]
tests = ["a"]
steps = []
covers = "whole"
open = ""
"""


def test_a_row_in_its_form_is_read() -> None:
    assert parse_chapter(ROW).clauses[0].tests == ("a",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "t"', ""),
        ('open = ""', ""),
        ('open = ""', 'open = ""\nnote = "n"'),
        ('"quoted"', '"guessed"'),
        ('"whole"', '"mostly"'),
        ('"whole"', '"part"'),
        ('"whole"', '"none"'),
        ('tests = ["a"]', "tests = []"),
        ('clause = "1"', 'clause = ""'),
        ('demand = "d"', 'demand = ""'),
    ],
)
def test_a_row_in_another_form_is_refused(old: str, new: str) -> None:
    assert old in ROW
    with pytest.raises(FormatError):
        parse_chapter(ROW.replace(old, new))
