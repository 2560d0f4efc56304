"""What has changed since it was certified is named with its class, and the change log has to tell of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.process.installed import ROOT, copy_sources
from tools.changes import CERTIFIED, CHANGELOG, certify, check, entries, main

LOG = (
    "# Changelog\n\n- as in [rng]\n\n## [Unreleased]\n\n- Faster. [none]\n{entry}\n## [0.1.0]\n\n- All of it. [math]\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    copy_sources(tmp_path)
    _log(tmp_path, "")
    certify(tmp_path)
    return tmp_path


def _log(root: Path, entry: str) -> None:
    (root / CHANGELOG).write_text(LOG.format(entry=entry))


def test_nothing_has_changed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(tree)]) == 0
    assert capsys.readouterr().out == "no certified file has changed since 0.1.0\n"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("rng/drbg.py", "rng"),
        ("rgs/core/games/rulesets/uth-solo.toml", "math"),
        ("rgs/core/hands.py", "game"),
    ],
)
def test_a_change_is_named_and_has_to_be_told(
    path: str, name: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tree / path).open("ab") as file:
        file.write(b"\n")
    assert main(["--root", str(tree)]) == 1
    result = (
        f"files of class [{name}] have changed since 0.1.0 was certified (certification/certified.json): CHANGELOG.md "
        f"needs an entry of that class under Unreleased"
    )
    assert capsys.readouterr().out.splitlines() == [f"MAJOR [{name}] changed   {path}", result]
    _log(tree, f"- Something else,\n  on two lines. [{name}]\n")
    assert main(["--root", str(tree)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"MAJOR [{name}] changed   {path}"]
    assert main(["--root", str(tree), "--certify"]) == 0
    assert check(tree) == (["no certified file has changed since 0.1.0"], True)


def test_new_and_gone_files_are_changes_and_other_files_are_none(tree: Path) -> None:
    (tree / "rng/late.py").write_bytes(b"")
    (tree / "rng/scaling.py").unlink()
    (tree / "rgs/node/server.py").write_bytes(b"")
    _log(tree, "- The generator. [rng]\n")
    assert check(tree) == (["MAJOR [rng] new       rng/late.py", "MAJOR [rng] gone      rng/scaling.py"], True)


def test_an_entry_that_was_there_already_tells_of_nothing(tree: Path) -> None:
    _log(tree, "- The first. [rng]\n")
    certify(tree)
    (tree / "rng/drbg.py").write_bytes(b"")
    assert not check(tree)[1]
    _log(tree, "- The first. [rng]\n- The second. [rng]\n")
    assert check(tree)[1]
    (tree / CHANGELOG).write_text("## [Unreleased]\n\n- The third. [rng]\n\n## [0.1.1]\n")
    assert check(tree)[1], "a release has begun the section anew"


def test_the_classes_are_those_of_entries_not_yet_released() -> None:
    found = entries(LOG.format(entry="- x [game]\n- y. [rng] and more\n- z [game]\n"))
    assert found == {"none": 1, "game": 2}
    assert entries("# Changelog\n") == {}


def test_this_tree_is_told_of() -> None:
    lines, covered = check(ROOT)
    assert covered, lines
    assert json.loads((ROOT / CERTIFIED).read_bytes())["files"].keys() == {"rng", "math", "game"}
