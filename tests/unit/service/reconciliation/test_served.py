"""Reconciliation as the server keeps it: whose word settles a break, pages, limits, what is durable."""

from __future__ import annotations

import io
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError, RgsError
from rgs.core.times import TIME_MS_MAX
from rgs.service.callers import Caller, Role
from rgs.service.reconciliation.files import Shelf, check_file, write_document
from rgs.service.reconciliation.reports import ReconciliationReports, Settling, break_rows
from rgs.service.reconciliation.runs import CUT_OFF_S_MAX, ReconciliationRuns, RunRequest, fail
from rgs.service.reconciliation.submissions import Header, Submissions
from tests.support.clocks import ManualClock

OPERATOR = Caller("op-1", Role.OPERATOR, "demo")
REPORT_ID, ONE, TWO = "a" * 32, "1" * 32, "2" * 32


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


@pytest.fixture
def reports(shelf: Shelf) -> ReconciliationReports:
    folder = shelf.of("op-1") / "reports" / REPORT_ID
    (folder / "report").mkdir(parents=True)
    write_document(folder / "run.json", {"party": "op-1", "time_ms": 5})
    write_document(folder / "summary.json", {})
    (folder / "report" / "breaks.csv").write_text(f"break_id,class\n{ONE},x\n{TWO},x\n")
    return ReconciliationReports(shelf, ManualClock())


async def settled(reports: ReconciliationReports, admin: str, break_id: str, reason: str = "TIMING") -> int:
    caller = Caller(admin, Role.ADMIN, "")
    settling = Settling(break_id, reason, "ticket 5")
    return await reports.resolve(caller, str(uuid.uuid4()), "op-1", REPORT_ID, settling)


def reported(error: pytest.ExceptionInfo[Any]) -> dict[str, str]:
    assert isinstance(error.value, RgsError)
    return {"field": error.value.field or "", **error.value.metadata}


# --- breaks that are settled ------------------------------------------------------------------------------------------


async def test_who_has_settled_a_break_finds_his_entry_again(reports: ReconciliationReports) -> None:
    numbers = []
    for break_id in (ONE, TWO):
        assert await settled(reports, "admin-1", break_id) == 0
        numbers.append(await settled(reports, "admin-2", break_id))
    assert numbers == [1, 2]
    for admin in ("admin-1", "admin-2"):
        assert [await settled(reports, admin, break_id) for break_id in (ONE, TWO)] == [1, 2]


async def test_a_third_who_says_the_same_has_not_said_it_before(reports: ReconciliationReports) -> None:
    assert [await settled(reports, admin, ONE) for admin in ("admin-1", "admin-2")] == [0, 1]
    assert await settled(reports, "admin-3", ONE) == 2


async def test_a_break_that_the_report_does_not_name_is_not_settled(reports: ReconciliationReports) -> None:
    with pytest.raises(NotFoundError) as error:
        await settled(reports, "admin-1", "3" * 32)
    assert reported(error) == {"kind": "break", "field": "break_id", "value": "3" * 32}


# --- what is read of a report -----------------------------------------------------------------------------------------


def test_a_page_of_breaks_begins_at_a_row() -> None:
    content = b"break_id,class\n1,x\n2,x\n"
    (first, _), (second, row) = break_rows(io.BytesIO(content))
    assert (first, second, row) == (15, 19, {"break_id": "2", "class": "x"})
    assert list(break_rows(io.BytesIO(content), second)) == [(second, row)]
    for start in (1, 14, 16, 18, 100):
        with pytest.raises(InvalidFieldError) as error:
            list(break_rows(io.BytesIO(content), start))
        assert reported(error) == {"field": "page_token", "value": str(start)}


@pytest.mark.parametrize(("cell", "plain"), [("'=SUM(A1)", "=SUM(A1)"), ("'plain", "'plain"), ("plain", "plain")])
def test_a_cell_is_told_as_it_was_before_it_was_escaped(cell: str, plain: str) -> None:
    ((_, row),) = break_rows(io.BytesIO(f"break_id,player\n1,{cell}\n".encode()))
    assert row["player"] == plain


def test_a_name_that_is_no_file_of_a_report_is_told_by_its_beginning(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError) as error:
        check_file("x" * 41, frozenset({"report.json"}), tmp_path)
    assert error.value.message == f"unknown file {'x' * 40}; known files: report.json"
    assert reported(error) == {"field": "file", "limit": "report.json", "value": "x" * 40}


# --- a run that is none -----------------------------------------------------------------------------------------------

REQUEST: dict[str, Any] = {
    "operator": "op-1", "wallet": (), "receipts": (), "regulator": (), "embedded_regulator": True, "root": "",
    "period": None, "cut_off_s": None, "allow_rejects": False,
}  # fmt: skip


class BegunError(Exception):
    """The request was taken: its process would begin."""


async def requested(shelf: Shelf, **changes: Any) -> None:
    async def begin(folder: Path, lock: int, memory_mb: int) -> Any:
        raise BegunError

    runs = ReconciliationRuns(shelf, ManualClock(), begin, memory_mb=256)
    await runs.run(OPERATOR, str(uuid.uuid4()), RunRequest(**(REQUEST | changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"root": "0" * 64}, {"period": (0, 1)}, {"period": (0, TIME_MS_MAX)},
        {"period": (TIME_MS_MAX - 1, TIME_MS_MAX)}, {"cut_off_s": 0}, {"cut_off_s": CUT_OFF_S_MAX},
    ],
)  # fmt: skip
async def test_a_run_at_its_limits_begins(shelf: Shelf, changes: dict[str, Any]) -> None:
    with pytest.raises(BegunError):
        await requested(shelf, **changes)


@pytest.mark.parametrize(
    ("changes", "metadata"),
    [
        ({"root": "0" * 63}, {"field": "root", "limit": "64", "value": "0" * 63}),
        ({"root": "0" * 81}, {"field": "root", "limit": "64", "value": "0" * 80}),
        ({"root": "F" * 64}, {"field": "root", "limit": "64", "value": "F" * 64}),
        *(({"period": period}, {"field": "period_end_time"})
          for period in ((-1, 5), (5, 5), (6, 5), (5, TIME_MS_MAX + 1))),
        *(({"cut_off_s": value}, {"field": "cut_off_s", "limit": str(CUT_OFF_S_MAX), "value": str(value)})
          for value in (-1, CUT_OFF_S_MAX + 1)),
    ],
)  # fmt: skip
async def test_a_run_beyond_its_limits_is_refused(
    shelf: Shelf, changes: dict[str, Any], metadata: dict[str, str]
) -> None:
    with pytest.raises(InvalidFieldError) as error:
        await requested(shelf, **changes)
    assert reported(error) == metadata


@pytest.mark.parametrize("source", [None, "receipts"])
async def test_what_is_no_submission_of_that_kind_is_not_compared(shelf: Shelf, source: str | None) -> None:
    folder = shelf.of("op-1") / "submissions" / ONE
    folder.mkdir(parents=True)
    if source is not None:
        write_document(folder / "submission.json", {"source": source})
    with pytest.raises(NotFoundError) as error:
        await requested(shelf, wallet=(ONE,))
    assert reported(error) == {"kind": "submission", "field": "wallet_submission_ids", "value": ONE}


# --- how far a run is -------------------------------------------------------------------------------------------------


async def test_how_far_a_run_is_has_a_word(shelf: Shelf, reports: ReconciliationReports) -> None:
    folder = shelf.of("op-1") / "reports" / REPORT_ID
    states = [(await reports.report("op-1", REPORT_ID)).state]
    (folder / "summary.json").unlink()
    states.append((await reports.report("op-1", REPORT_ID)).state)
    lock = shelf.lock(REPORT_ID)
    states.append((await reports.report("op-1", REPORT_ID)).state)
    os.close(lock)
    fail(folder, "RECONCILIATION_FAILED", f"{folder}/inputs/wallet.csv ended, {folder} did not")
    found = await reports.report("op-1", REPORT_ID)
    assert [*states, found.state] == ["done", "interrupted", "running", "failed"]
    assert found.failure == {
        "message": f"inputs/wallet.csv ended, {folder} did not", "reason": "RECONCILIATION_FAILED",
    }  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == ["failed.json", "run.json"]


# --- what was submitted -----------------------------------------------------------------------------------------------


async def test_the_rows_are_on_disk_before_the_submission_has_its_name(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int, bool]] = []
    plain, folder = os.fsync, shelf.of("op-1") / "submissions"

    def fsync(descriptor: int) -> None:
        stat = os.fstat(descriptor)
        has_name = any(not path.name.startswith(".") for path in folder.iterdir())
        synced.append((stat.st_ino, stat.st_size, has_name))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    header = Header(str(uuid.uuid4()), "2026-11-18", "2026-11-18", "", "op-1")
    upload = await Submissions(shelf, ManualClock(), rows_max=5).begin(OPERATOR, "receipts", header)
    await upload.add([{"session_id": "S", "round_no": "1", "opening_hash": "0" * 64}])
    done = await upload.finish(1)
    upload.close()
    rows = (folder / done.submission_id / "rows.jsonl").stat()
    assert (rows.st_ino, rows.st_size, False) in synced
    assert json.loads((folder / done.submission_id / "rows.jsonl").read_text())["round_no"] == "1"
