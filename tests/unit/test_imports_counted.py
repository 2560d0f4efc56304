"""How much a command imports before it does anything: a counted figure, which no load on the machine moves.

A start compiles all that it imports, for it reads no bytecode (docs/manifest.md), so modules are what a start costs.
Modules of the standard library are left out: their number differs between versions of Python.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from rgs.cli.commands import COMMANDS
from rgs.cli.options import new_app

ROOT = Path(__file__).parents[2]
COUNTED = Path(__file__).with_name("imports_counted.json")
GROWTH = 1.05
"""More than this factor over the file fails. Who means it changes the file in the same commit."""
RUN = "from rgs.__main__ import main; main({})"
STARTS = {
    "rgs --help": RUN.format(["--help"]),
    "rgs --version": RUN.format(["--version"]),
    "rgs call --list": RUN.format(["call", "--list"]),
    "rgs serve": "import rgs.cli, rgs.cli.serve, rgs.node.server",
}
CALLED = {"rgs support find"}
"""Counted in a whole call to a server (tests/e2e/test_support_command.py)."""
SPARED = {
    "rgs --help": {"asyncpg", "cryptography", "duckdb", "google", "grpc", "jinja2", "nacl", "pydantic", "structlog"},
    "rgs call --list": {"asyncpg", "cryptography", "duckdb", "jinja2", "nacl", "structlog"},
    "rgs serve": {"asyncpg", "duckdb", "jinja2", "nacl", "pydantic", "rich", "typer"},
    "rgs support find": {"asyncpg", "cryptography", "duckdb", "jinja2", "nacl", "structlog"},
}
"""Libraries that these do not import. `rgs serve` draws no tracebacks, so its launcher bars rich."""


def imported(code: str) -> list[str]:
    """The modules outside of the standard library that a new process has imported."""
    bar = "import sys; sys.modules['rich'] = None; " if "serve" in code else "import sys; "
    said = "; print(*sorted(name for name, module in sys.modules.items() if module), file=sys.stderr)"
    started = [sys.executable, "-S", "-c", f"{bar}sys.path[:0] = {[str(ROOT), *sites()]!r}; {code}{said}"]
    done = subprocess.run(started, capture_output=True, text=True, check=True)
    found = done.stderr.splitlines()[-1].split()
    return [
        name for name in found if name.partition(".")[0] not in {*sys.stdlib_module_names, "__main__", "_sysconfig"}
    ]


def sites() -> list[str]:
    """The folders of packages. Path files in them are not run: a developer's tools would be counted."""
    return [path for path in sys.path if path.endswith("site-packages")]


@pytest.mark.parametrize("name", STARTS)
def test_a_start_imports_no_more_than_was_counted(name: str) -> None:
    verify_counted(name, STARTS[name])


def verify_counted(name: str, code: str) -> None:
    counted = json.loads(COUNTED.read_text("utf-8"))
    assert counted.keys() == STARTS.keys() | CALLED
    found = imported(code)
    assert len(found) <= counted[name] * GROWTH, f"{name} imports {len(found)} modules: is that meant? ({COUNTED.name})"
    assert len(found) >= counted[name] / GROWTH, f"{name} imports {len(found)} modules only: lower {COUNTED.name}"
    assert not {module.partition(".")[0] for module in found} & SPARED.get(name, set())


def test_the_list_says_of_a_command_without_subcommands_what_it_says_of_itself() -> None:
    functions = [one for one in COMMANDS if not one.own and not one.place.endswith(":app")]
    assert len(functions) > 5
    for one in functions:
        module, _, attribute = one.place.partition(":")
        app = new_app()
        app.command()(getattr(importlib.import_module(f"rgs.cli.{module}"), attribute))
        assert typer.main.get_command(app).help == one.text
