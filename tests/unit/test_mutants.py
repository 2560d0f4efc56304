"""Mutation testing tells a weak test from a strong one, and its committed result and excuses are of this source."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from certification.mutants import read, stale
from tools.journal import Journal
from tools.mutants import CERTIFIED, CONFIG, JOURNAL, excuses, matched, read_config, reason, same
from tools.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
GROUPS, EQUIVALENTS = read_config(ROOT)
TARGETS = [path for group in GROUPS for path in matched(ROOT, group.targets)]
CERTIFIED_TARGETS = [path for group in GROUPS if group.part == CERTIFIED for path in matched(ROOT, group.targets)]
WEAK = """
from rng.scaling import below

def test_something_comes_out():
    assert below(52, iter((5,)).__next__) == 5
    assert below(1, iter(()).__next__) == 0
"""


@cache
def all_of(path: str) -> list[Mutant]:
    return mutants_of(path, (ROOT / path).read_bytes())


def changes(source: str) -> set[tuple[str, str]]:
    return {(each.before, each.after) for each in mutants_of("a.py", source.encode())}


@pytest.mark.parametrize(
    ("before", "afters"),
    [
        ("x = a < b", {"x = (a <= b)", "x = (a >= b)"}),
        ("x = a is b", {"x = (a is not b)"}),
        ("x = a + b", {"x = (a - b)"}),
        ("x = a << b", {"x = (a >> b)"}),
        ("x += y", {"x -= y", "pass"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = True", {"x = False"}),
        ("x = 'rgs/v1|'", {"x = 'rgs/v1|X'"}),
        ("x = b'\\x01'", {"x = b'\\x01X'"}),
        ("x = '00112233'", {"x = '00112230'"}),
        ("x = f'bets.{a}'", {"x = f'bets.{a}X'"}),
        ("x = not a", {"x = a"}),
        ("x = a and b", {"x = (a or b)", "x = a", "x = b"}),
        ("x = a or b or c", {"x = (a and b and c)", "x = (a or b)", "x = (a or c)", "x = (b or c)"}),
        ("x = a[b:c]", {"x = a[:c]", "x = a[b:]"}),
        ("x = [a for a in b if a]", {"x = [a for a in b]"}),
        ("x = a if b else c", {"x = a if (not b) else c"}),
        ("raise a", {"pass"}),
        ("call()", {"pass"}),
        ("x = 'SELECT a FROM t WHERE b < ?'", {"x = 'SELECT a FROM t WHERE b <= ?'"}),
        (
            "x = 'WHERE a = ? AND b IS NULL'",
            {
                "x = 'WHERE a <> ? AND b IS NULL'",
                "x = 'WHERE a = ? OR b IS NULL'",
                "x = 'WHERE a = ? AND b IS NOT NULL'",
            },
        ),
        ("x = 'UPDATE t SET a = ? WHERE b = ?'", {"x = 'UPDATE t SET a = ? WHERE b <> ?'"}),
        (
            "x = 'SELECT min(a) FROM t ORDER BY a DESC'",
            {
                "x = 'SELECT max(a) FROM t ORDER BY a DESC'",
                "x = 'SELECT min(a) FROM t ORDER BY a ASC'",
            },
        ),
        (
            "x = f'DELETE FROM t WHERE a NOT IN ({b}) OR c >= 1'",
            {
                "x = f'DELETE FROM t WHERE a IN ({b}) OR c >= 1'",
                "x = f'DELETE FROM t WHERE a NOT IN ({b}) AND c >= 1'",
                "x = f'DELETE FROM t WHERE a NOT IN ({b}) OR c > 1'",
            },
        ),
        ("x = 'WHERE a BETWEEN ? AND ?'", set()),
    ],
)
def test_each_small_change_is_made(before: str, afters: set[str]) -> None:
    assert changes(before) == {(before, after) for after in afters}


def test_what_a_function_returns_and_how_a_loop_goes_on_are_changed() -> None:
    assert changes("def f():\n    return a") == {("return a", "return None")}
    assert {after for _, after in changes("def f():\n    return a or b")} >= {"return True", "return False"}
    assert changes("def f():\n    a = b") == {("a = b", "pass")}
    assert changes("while a:\n    break") == {("while a:", "while (not a):"), ("break", "continue")}


@pytest.mark.parametrize(
    "untouched",
    [
        "'''Docstring.'''",
        "def f(a: list[1]) -> dict[2, 3]:\n    '''Docstring.'''",
        "a: dict[1, 2]",
        "import a",
        "def f(a=1): ...",
        "__all__ = ['a']",
        "if TYPE_CHECKING:\n    a = 1",
        "T = TypeVar('T')",
        "@dataclass(slots=True)\nclass A:\n    '''Docstring.'''",
        "x = 'prose for people'",
        "x = f'{a} for people'",
    ],
)
def test_what_no_behaviour_depends_on_is_left_alone(untouched: str) -> None:
    assert changes(untouched) == set()


def test_a_mutant_knows_its_function_and_whether_it_acts_at_import() -> None:
    source = b"class A:\n    x = 1\n    def f(self, y=2):\n        def g():\n            return 3\n"
    where = {each.after: (each.function, each.within) for each in mutants_of("a.py", source)}
    assert where["x = 0"] == ("A", "")
    assert where["def f(self, y=3):"] == ("A", "")
    assert where["return 4"] == ("A.f.<locals>.g", "A.f")
    (kept, *_) = mutants_of("a.py", b"@lru_cache(maxsize=None)\ndef f():\n    return 3\n")
    assert (kept.function, kept.within) == ("f", "")


@pytest.mark.parametrize("path", TARGETS)
@pytest.mark.slow
def test_every_mutant_of_the_targets_is_python_and_not_what_stood_there(path: str) -> None:
    """Of the rooms, which are larger, one in eight is compiled."""
    source = (ROOT / path).read_bytes()
    changed = [each.applied_to(source) for each in all_of(path)]
    assert len({*changed, source}) == len(changed) + 1
    for each in changed[:: 1 if path in CERTIFIED_TARGETS else 8]:
        compile(each, path, "exec")


# --- the run -----------------------------------------------------------------------------------------------------


def run_on_scaling(tmp_path: Path, test: str, *arguments: str, config: str = "") -> tuple[int, str, Any]:
    """Mutation testing of a copy of the scaling alone, judged by one test file."""
    (tmp_path / "rng").mkdir()
    for name in ("__init__.py", "scaling.py"):
        shutil.copy(ROOT / "rng" / name, tmp_path / "rng" / name)
    (tmp_path / "test_scaling.py").write_text(test)
    (tmp_path / CONFIG).parent.mkdir()
    group = '[[group]]\nname = "scaling"\ntargets = ["rng/scaling.py"]\ntests = ["test_scaling.py"]\ninputs = []\n'
    (tmp_path / CONFIG).write_text(group + config)
    command = [sys.executable, "-B", "-m", "tools.mutants", "--output", "result.json", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    result = tmp_path / "result.json"
    return done.returncode, done.stdout + done.stderr, json.loads(result.read_text()) if result.exists() else None


linux = pytest.mark.skipif(sys.platform != "linux", reason="forks with limits as Linux has them")


@linux
def test_a_weak_test_lets_a_mutant_live_and_the_result_names_it(tmp_path: Path) -> None:
    status, said, result = run_on_scaling(tmp_path, WEAK)
    (target,) = result["targets"]
    assert status == 1
    assert target["killed"] > 0
    assert target["mutants"] == target["killed"] + target["timeout"] + len(target["survived"])
    survivors = {(each["before"], each["after"]) for each in target["survived"]}
    assert ("while byte >= limit:", "while (byte > limit):") in survivors  # one byte too many is accepted
    assert ("return byte % n", "return None") not in survivors
    assert "while (byte > limit):" in said
    assert (tmp_path / "rng" / "scaling.py").read_bytes() == (ROOT / "rng" / "scaling.py").read_bytes()


@linux
def test_the_project_s_own_test_lets_none_of_a_sample_live(tmp_path: Path) -> None:
    real = (ROOT / "tests" / "unit" / "rng" / "test_scaling.py").read_text()
    status, said, result = run_on_scaling(tmp_path, real, "--sample", "10", "--seed", "7")
    (target,) = result["targets"]
    assert (status, target["survived"], target["mutants"]) == (0, [], 10), said
    assert result["sample"] == {"mutants": 10, "seed": 7}


@linux
def test_an_excuse_is_shown_and_a_false_one_refused(tmp_path: Path) -> None:
    rows = [("while byte >= limit:", "while (byte > limit):", "planted"), ("return byte % n", "return None", "false")]
    config = "".join(
        f'\n[[equivalent]]\npath = "rng/scaling.py"\nfunction = "below"\nbefore = "{before}"\nafter = "{after}"\n'
        f'why = "{why}"\n'
        for before, after, why in rows
    )
    status, said, result = run_on_scaling(tmp_path, WEAK, config=config)
    assert status == 1
    whys = {each["after"]: each["why"] for each in result["targets"][0]["survived"]}
    assert whys["while (byte > limit):"] == "planted"
    assert "listed as equivalent, but a test kills it: return None" in said


@linux
def test_tests_that_fail_as_they_are_judge_nothing(tmp_path: Path) -> None:
    status, said, result = run_on_scaling(tmp_path, "def test_wrong():\n    assert False\n")
    assert (status, result) == (1, None)
    assert "the tests fail without a mutant" in said


def rooms_run(tmp_path: Path, test: str, *arguments: str) -> tuple[int, str, list[dict[str, str]]]:
    """The same as a part that keeps a journal, which it finds and leaves at `journal.jsonl`."""
    (tmp_path / "rng").mkdir(exist_ok=True)
    for name in ("__init__.py", "scaling.py"):
        shutil.copy(ROOT / "rng" / name, tmp_path / "rng" / name)
    (tmp_path / "test_scaling.py").write_text(test)
    (tmp_path / CONFIG).parent.mkdir(exist_ok=True)
    group = '[[group]]\nname = "scaling"\npart = "rooms"\ntargets = ["rng/scaling.py"]\n'
    (tmp_path / CONFIG).write_text(group + 'tests = ["test_scaling.py"]\ninputs = []\n')
    command = [sys.executable, "-B", "-m", "tools.mutants", "--output", "journal.jsonl", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    journal = (tmp_path / "journal.jsonl").read_text("utf-8").splitlines()
    return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in journal]


@linux
@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_and_runs_again_what_may_have_changed(tmp_path: Path) -> None:
    """Stopped in the middle of a line; then with another test, under which only what had survived is run; then the
    known mutants under that test alone, under a weaker one, and under one that fails without them.
    """
    status, said, lines = rooms_run(tmp_path, WEAK, "--sample", "12")
    assert (status, len(lines)) == (1, 12), said
    assert {line["test"] for line in lines if line["outcome"] == "killed"} == {
        "test_scaling.py::test_something_comes_out"
    }
    journal = tmp_path / "journal.jsonl"
    kept = lines[:7]
    marked = [json.dumps({**line, "test": line["test"] and f"{line['test']}#kept"}) + "\n" for line in kept]
    journal.write_text("".join(marked) + json.dumps(lines[7])[:40])
    status, said, resumed = rooms_run(tmp_path, WEAK, "--sample", "12", "--resume")
    assert [(line["before"], line["after"], line["outcome"]) for line in resumed] == [
        (line["before"], line["after"], line["outcome"]) for line in lines
    ]
    assert [line["test"].endswith("#kept") for line in resumed] == [bool(line["test"]) for line in kept] + [False] * 5
    survived = sum(line["outcome"] == "survived" for line in lines)
    assert survived > 0
    assert f"{survived} survived, {survived} of them without a reason" in said
    real = (ROOT / "tests" / "unit" / "rng" / "test_scaling.py").read_text()
    status, said, again = rooms_run(tmp_path, real, "--sample", "12", "--resume")
    assert (status, len(again)) == (0, 12), said
    assert not any(line["test"].endswith("#kept") for line in again), "the file of the test that killed it has changed"
    status, said, confirmed = rooms_run(tmp_path, f"{real}\n", "--sample", "12", "--resume")
    assert [line["test"] for line in confirmed] == [line["test"] for line in again], said
    before = journal.read_text()
    status, said, _ = rooms_run(tmp_path, real, "--known", "100")
    assert (status, said.count("survived")) == (0, 1), said
    assert journal.read_text() == before
    status, said, _ = rooms_run(tmp_path, f"{real}\n\npytestmark = pytest.mark.skip\n", "--known", "100")
    assert status == 1
    assert "survived test_scaling.py::" in said
    broken = f"{real}\n\n@pytest.fixture(autouse=True)\ndef broken() -> None:\n    raise ValueError\n"
    status, said, _ = rooms_run(tmp_path, broken, "--known", "100")
    assert status == 1
    assert "known: without a mutant, run a second time: killed in test_scaling.py::" in said


# --- the excuses and the committed result -------------------------------------------------------------------------


def unmatched(equivalents: list[dict[str, str]]) -> list[dict[str, str]]:
    """Entries that no mutant of the source as it is fits, or without a reason."""
    return [
        entry
        for entry in equivalents
        if not entry["why"] or not any(excuses(entry, each) for each in all_of(entry["path"]))
    ]


def test_every_excuse_still_means_a_mutant_of_the_source() -> None:
    assert unmatched(EQUIVALENTS) == []
    keys = [tuple(entry.get(key) for key in ("path", "function", "before", "after", "line")) for entry in EQUIVALENTS]
    assert len(set(keys)) == len(keys)


def test_an_excuse_for_a_line_that_has_changed_is_refused() -> None:
    gone = EQUIVALENTS[0] | {"before": "a line that is no longer there"}
    assert unmatched([gone]) == [gone]
    unexplained = EQUIVALENTS[0] | {"why": ""}
    assert unmatched([unexplained]) == [unexplained]


def test_the_committed_result_adds_up_and_says_what_was_not_run() -> None:
    result = read(ROOT)
    assert result["sample"] is None
    assert {target["path"] for target in result["targets"]} | set(result["not_run"]) <= set(CERTIFIED_TARGETS)
    for target in result["targets"]:
        assert target["mutants"] == target["killed"] + target["timeout"] + len(target["survived"])
        assert all(each["why"] for each in target["survived"])


ROOMS_LINES = Journal(ROOT / JOURNAL, ROOT).lines().values()
ROOMS_LEAST = 1_200
"""So many mutants of the rooms must have been judged as the source is now; with fewer, `make mutants` again."""


def test_so_many_mutants_of_the_rooms_have_been_judged_and_each_survivor_has_its_reason() -> None:
    there = {path: {same(each) for each in all_of(path)} for path in TARGETS if path not in CERTIFIED_TARGETS}
    judged = [line for line in ROOMS_LINES if same(line) in there.get(line.path, ())]
    assert len(judged) >= ROOMS_LEAST, (
        "the rooms have changed: make mutants ARGS='--part rooms --sample 1600 --seed 12'"
    )
    assert [same(line) for line in judged if line.outcome == "survived" and not reason(line, EQUIVALENTS)] == []


@linux
@pytest.mark.timeout(600)
def test_what_a_test_of_the_rooms_has_killed_is_still_killed(request: pytest.FixtureRequest) -> None:
    """Some, drawn by the seed of this run, in a process of their own: each under the test that killed it, then under
    those that killed others of the same function.
    """
    seed = request.config.getoption("hypothesis_seed")
    command = [sys.executable, "-m", "tools.mutants", "--known", "40", "--seed", str(int(seed) % 2**32)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("40 of ")


def test_a_result_of_other_files_is_called_stale(tmp_path: Path) -> None:
    result = read(ROOT)
    for entry in (*result["targets"], *result["tests"]):
        (tmp_path / entry["path"]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / entry["path"]).write_bytes(b"changed since")
    named = {entry["path"] for entry in (*result["targets"], *result["tests"])}
    assert stale(result, tmp_path) == sorted(named | set(result["not_run"]))
    fresh = result | {"targets": result["targets"][:1], "tests": [], "not_run": ["rng/new.py"]}
    content = (tmp_path / fresh["targets"][0]["path"]).read_bytes()
    assert content == b"changed since"
    assert stale(fresh | {"targets": []}, tmp_path) == ["rng/new.py"]
