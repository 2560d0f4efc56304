"""The runbook against the code: a section for every guard, every exit status, every class of a reconciliation break and
every line of the technical log at warning or above. A new one without a section fails here; so does one of nothing.

Alerts are compared in tests/integration/test_dashboards.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from rgs.core.reconcile.classes import BreakClass
from rgs.service.availability import GUARDS

ROOT = Path(__file__).parents[2]
STATES = (ROOT / "docs/runbook-states.md").read_text("utf-8")
LINES = (ROOT / "docs/runbook-lines.md").read_text("utf-8")
LEVELS = {"warning", "warn", "error", "critical", "exception"}
NAMED = re.compile(rf"\.\s*({'|'.join(LEVELS)})\b")
EVENT = re.compile(r"[a-z]+([_.][a-z]+)*")


def sections(page: str) -> dict[str, str]:
    return dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^##? |\Z)", page, re.MULTILINE | re.DOTALL))


def named(kind: str) -> list[str]:
    return [name.removeprefix(f"{kind} ") for name in sections(STATES) if name.startswith(f"{kind} ")]


# --- what the code logs -----------------------------------------------------------------------------------------------


def is_logger(node: ast.expr) -> bool:
    """A call of `structlog.get_logger`, or a name or attribute that holds one as this project calls it."""
    text = ast.unparse(node)
    return "get_logger(" in text or re.fullmatch(r"(self\.)?_?log(ger)?", text) is not None


def writers(function: ast.expr, scope: ast.AST) -> bool:
    """Whether a call of this is a line at warning or above."""
    match function:
        case ast.Attribute(value=value, attr=attr):
            return attr in LEVELS and is_logger(value)
        case ast.IfExp(body=body, orelse=orelse):
            return writers(body, scope) or writers(orelse, scope)
        case ast.Name(id=name):
            return any(writers(value, scope) for value in assigned(scope, name))
    return False


def assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """What is assigned to a name in a function."""
    return [
        node.value
        for node in assignments(scope)
        if any(isinstance(to, ast.Name) and to.id == name for to in node.targets)
        if not (isinstance(node.value, ast.Name) and node.value.id == name)
    ]


@lru_cache(maxsize=1)  # a function is asked for each of its calls
def assignments(scope: ast.AST) -> list[ast.Assign]:
    return [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]


def texts(node: ast.expr, scope: ast.AST, module: ast.Module) -> set[str]:
    """The texts that an expression may be; ValueError if they cannot be found in the module."""
    match node:
        case ast.Constant(value=str() as text):
            return {text}
        case ast.IfExp(body=body, orelse=orelse):
            return texts(body, scope, module) | texts(orelse, scope, module)
        case ast.Name(id=name):
            if values := assigned(scope, name):
                return {text for value in values for text in texts(value, scope, module)}
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                place = [argument.arg for argument in scope.args.args].index(name)
                calls = [one for one in ast.walk(module) if isinstance(one, ast.Call)]
                given = [one.args[place] for one in calls if ast.unparse(one.func).split(".")[-1] == scope.name]
                return {text for value in given for text in texts(value, module, module)}
    raise ValueError(f"line {node.lineno}: the event {ast.unparse(node)} cannot be read from the code")


def events(source: str) -> Iterator[str]:
    """The events that a module logs at warning or above: none where no attribute is named like a level."""
    if not NAMED.search(source):
        return
    module = ast.parse(source)
    functions = {one for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    for scope in functions:
        within = list(ast.walk(scope))
        inner = {one for below in within if below is not scope and below in functions for one in ast.walk(below)}
        for node in within:
            if node in inner or not isinstance(node, ast.Call) or not writers(node.func, scope):
                continue
            yield from texts(node.args[0], scope, module)


def logged() -> set[str]:
    files = [*ROOT.glob("rgs/**/*.py"), *ROOT.glob("rng/**/*.py")]
    return {event for path in files for event in events(path.read_text("utf-8"))}


def test_every_line_at_warning_or_above_has_a_section() -> None:
    found = logged()
    assert len(found) > 30
    assert all(EVENT.fullmatch(event) for event in found)
    assert sorted(sections(LINES)) == sorted(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("structlog.get_logger().warning('a_b', x=1)", {"a_b"}),
        ("structlog.get_logger().info('a_b')", set()),
        ("self._log.exception('a')", {"a"}),
        ("log = structlog.get_logger()\n    (log.warning if x else log.info)('a')", {"a"}),
        ("warn = structlog.get_logger().warning\n    event = 'a' if x else 'b'\n    warn(event)", {"a", "b"}),
        ("task.exception()\n    self.error('no log')\n    pytest.warning('a')", set()),
        ("structlog.get_logger().error(event)", {"c", "d"}),
    ],
)
def test_lines_are_found_however_they_are_written(source: str, found: set[str]) -> None:
    callers = "def g():\n    f('c')\n    self.f('d')\n"
    assert set(events(f"def f(event):\n    {source}\n{callers}")) == found


def test_an_event_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        list(events("def f():\n    structlog.get_logger().error(made() + 'x')\n"))


# --- guards, statuses, breaks -----------------------------------------------------------------------------------------


def test_every_guard_has_a_section() -> None:
    assert tuple(named("Guard")) == GUARDS


def test_every_class_of_a_break_has_a_section() -> None:
    assert named("Break") == list(BreakClass)


def test_every_exit_status_has_a_section() -> None:
    page = (ROOT / "docs/node.md").read_text("utf-8").partition("## 5. Exit status")[2]
    statuses = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert statuses[0] == "0"
    assert named("Status") == statuses[1:]


def test_every_section_says_what_to_do_and_what_not() -> None:
    for name, text in {**sections(STATES), **sections(LINES)}.items():
        kinds = ("Guard ", "Status ", "Break ")
        assert name.startswith(kinds) or name in sections(LINES), f"a section of nothing: {name}"
        said = re.findall(r"^\*\*(Means|Do|Do not)(?:\.\*\*|\*\*) (\S.{5,})", text, re.MULTILINE)
        assert [word for word, _ in said] == ["Means", "Do", "Do not"], name
