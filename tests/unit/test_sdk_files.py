"""The packages in TypeScript: what they ship is up to date, they name no registry, the verifier stands alone, and the
page lists all services of the client.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.verifier_data import TARGET, files

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "sdk/typescript/client"
VERIFIER = ROOT / "sdk/typescript/verifier"
LINES_MAX = 500
MADE = {"node_modules", "dist", "build", "var", "__pycache__"}
ANY = re.compile(r"\bas any\b|:\s*any\b|<any\b|@ts-(?:ignore|nocheck|expect-error)")
IMPORTED = re.compile(r"^(?:import|export)\b[^;]*?\bfrom \"([^\"]+)\"", re.MULTILINE)


def tree() -> Iterator[Path]:
    """All files but those that a build or an installation has made."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE and not name.startswith(".")]
        yield from (Path(folder, name) for name in names)


FILES = sorted(tree())
LOCKS = [path for path in FILES if path.name == "package-lock.json"]
SOURCES = [path for path in FILES if path.is_relative_to(ROOT / "sdk") and path.suffix in {".ts", ".mjs", ".js"}]


@pytest.mark.parametrize("name", files())
def test_the_data_is_what_the_tool_writes(name: str) -> None:
    assert (TARGET / name).read_text("ascii") == files()[name], "run: python -m tools.verifier_data"


def test_there_are_lock_files() -> None:
    assert VERIFIER / "package-lock.json" in LOCKS


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_lock_file_has_hashes_and_names_no_registry(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert '"resolved"' not in text
    assert "://" not in text.replace('"url": "https://', "")
    packages = json.loads(text)["packages"]
    assert all("integrity" in one or one.get("link") for name, one in packages.items() if "node_modules/" in name)


def test_the_verifier_has_no_dependency_at_run_time() -> None:
    package = json.loads((VERIFIER / "package.json").read_text("ascii"))
    assert set(package) & {"dependencies", "peerDependencies", "optionalDependencies"} == set()
    assert set(package["devDependencies"]) == {"typescript"}
    assert package["private"] is True


def test_the_verifier_imports_nothing_but_its_own_files() -> None:
    sources = [path for path in SOURCES if path.is_relative_to(VERIFIER / "src")]
    assert len(sources) > 10
    for path in sources:
        assert [name for name in IMPORTED.findall(path.read_text("utf-8")) if not name.startswith(".")] == [], path


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_source_is_short_and_typed(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= LINES_MAX
    assert ANY.findall(text) == []


def test_the_page_lists_each_service_of_the_client() -> None:
    made = re.findall(r"^ +(\w+): serviceOf\(", (CLIENT / "src/connect.ts").read_text("utf-8"), re.MULTILINE)
    row = re.search(r"^\| services \| ([^;]*);", (ROOT / "docs/sdk.md").read_text("utf-8"), re.MULTILINE)
    assert row is not None
    assert sorted(re.findall(r"`(?:rgs\.)?(\w+)`", row[1])) == sorted(made)
