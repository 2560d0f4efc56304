"""The files of a log, as a verifier sees them that knows nothing of this project (tools/logcheck, over Go's x/mod)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.log.logcheck import LogCheck, logcheck
from tests.support.log.logs import CORRUPTIONS, SIZE, SIZES, VKEY, Corruption, copied, make_entries, make_log, roll_back

__all__ = ["logcheck"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "log"
    make_log(folder, make_entries(SIZE))
    return folder


@pytest.mark.parametrize("size", SIZES)
def test_good_logs_are_accepted(size: int, tmp_path: Path, logcheck: LogCheck) -> None:
    make_log(tmp_path / "log", make_entries(size))
    assert logcheck(tmp_path / "log", VKEY) == ""


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda one: one.name)
def test_every_corruption_is_refused(corruption: Corruption, good: Path, tmp_path: Path, logcheck: LogCheck) -> None:
    log = copied(good, tmp_path / "log")
    assert logcheck(log, VKEY) == ""
    corruption.apply(log)
    assert "REFUSED" in logcheck(log, VKEY)


def test_a_log_that_was_rolled_back_is_seen_by_who_remembers(tmp_path: Path, logcheck: LogCheck) -> None:
    log, remembered = tmp_path / "log", tmp_path / "remembered"
    make_log(log, make_entries(700))
    remembered.write_bytes((log / "checkpoint").read_bytes())
    roll_back(log, 300)
    assert logcheck(log, VKEY) == ""
    assert "rolled back" in logcheck(log, VKEY, remembered)


def test_two_histories_are_seen_by_who_remembers(tmp_path: Path, logcheck: LogCheck) -> None:
    make_log(tmp_path / "one", make_entries(300))
    make_log(tmp_path / "other", [b"another first entry", *make_entries(700)])
    assert logcheck(tmp_path / "other", VKEY) == ""
    assert "REFUSED" in logcheck(tmp_path / "other", VKEY, tmp_path / "one" / "checkpoint")
    make_log(tmp_path / "grown", make_entries(700))
    assert logcheck(tmp_path / "grown", VKEY, tmp_path / "one" / "checkpoint") == ""
