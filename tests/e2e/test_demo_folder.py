"""The folder that a demo may empty: its own, and nothing that anybody else has put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import UnavailableError
from rgs.devkit.demo.evidence import MARK, claim
from rgs.node.files import FileRefusedError


def test_a_folder_of_a_demo_is_emptied_and_held(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "demo"
    with claim(folder) as evidence:
        evidence.home.mkdir()
        (evidence.home / "store").write_text("x")
        evidence.root.write_text("x")
        (folder / ".statements.jsonl.123.new").write_text("x")
        with pytest.raises(UnavailableError, match="another demo runs in"), claim(folder):
            pass
        assert evidence.root.exists()
    with claim(folder) as evidence:
        assert [path.name for path in folder.iterdir()] == [MARK]


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    folder = tmp_path / "demo"
    with claim(folder) as evidence:
        evidence.home.symlink_to(kept)
    with claim(folder) as evidence:
        assert not evidence.home.is_symlink()
    assert (kept / "file").read_text() == "x"


def test_what_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "home").write_text("x")  # even under one of our names
    with pytest.raises(FileRefusedError, match="was not made by a demo"), claim(folder):
        pass
    assert (folder / "home").read_text() == "x"


def test_one_strange_file_saves_all(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with claim(folder) as evidence:
        evidence.root.write_text("x")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileRefusedError, match=r"holds notes\.txt, which no demo made"), claim(folder):
        pass
    assert sorted(path.name for path in folder.iterdir()) == [MARK, "notes.txt", "root.fingerprint"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_refused(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "elsewhere"
    with claim(target):
        pass
    folder = tmp_path / "demo"
    if kind == "link":
        folder.symlink_to(target)
    else:
        folder.write_text("x")
    with pytest.raises(FileRefusedError, match="is not a folder"), claim(folder):
        pass


def test_another_text_in_the_mark_is_no_mark(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / MARK).write_text("something else")
    with pytest.raises(FileRefusedError, match="was not made by a demo"), claim(folder):
        pass
