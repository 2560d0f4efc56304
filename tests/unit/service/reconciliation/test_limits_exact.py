"""The limits of what the server keeps for reconciliation, to the byte, and signatures that are added to a report."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError, ReconciliationFullError, VerificationError
from rgs.core.statements import Ed25519Signer, ExportLine, Signer, format_line, leaf_hash, parse_line
from rgs.service.callers import Caller, Role
from rgs.service.reconciliation.countersigning import add_countersignature, countersign, verify_report
from rgs.service.reconciliation.files import REPORT_NAME, Shelf, write_document
from rgs.service.reconciliation.reports import ReconciliationReports
from rgs.service.reconciliation.runs import CUT_OFF_S_MAX, ReconciliationRuns, RunRequest
from rgs.service.reconciliation.submissions import Header, Submissions
from tests.support.clocks import ManualClock
from tests.support.service.harness import NODE_KEY, ROOT_KEY, key_bundle, sealed
from tests.unit.service.reconciliation.test_reconciliation_served import REQUEST

OPERATOR = Caller("op-1", Role.OPERATOR, "demo")
IDS = [str(number) * 32 for number in range(1, 4)]
TIME = "2026-11-18T11:12:53.500Z"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf", stored_mb=1)


# --- room -------------------------------------------------------------------------------------------------------------


def test_a_cut_off_is_a_leap_year_long_at_most() -> None:
    assert CUT_OFF_S_MAX == 31_622_400


def test_a_megabyte_is_what_the_error_says_is_full(shelf: Shelf) -> None:
    assert shelf.verify_room("op-1", "submissions") == 1_048_576
    shelf.of("op-1").mkdir()
    (shelf.of("op-1") / "file").write_bytes(bytes(1_048_575))
    assert shelf.verify_room("op-1", "submissions") == 1
    (shelf.of("op-1") / "more").write_bytes(b"x")
    with pytest.raises(ReconciliationFullError, match="the files of op-1 take 1 MB"):
        shelf.verify_room("op-1", "submissions")


async def test_a_submission_may_fill_the_room_to_the_last_byte(shelf: Shelf) -> None:
    submissions = Submissions(shelf, ManualClock(), rows_max=5)
    header = Header(str(uuid.uuid4()), "2026-11-18", "2026-11-18", "", "op-1")
    upload = await submissions.begin(OPERATOR, "receipts", header)
    await upload.add_data(bytes(1_048_575))
    await upload.add_data(b"\n")
    with pytest.raises(ReconciliationFullError):
        await upload.add_data(b"x")
    upload.close()


async def test_a_submission_of_an_operator_without_a_proper_name_is_refused(shelf: Shelf) -> None:
    header = Header(str(uuid.uuid4()), "2026-11-18", "2026-11-18", "", "../op-2")
    with pytest.raises(InvalidFieldError) as error:
        await Submissions(shelf, ManualClock(), rows_max=5).begin(OPERATOR, "receipts", header)
    assert error.value.field == "operator"


# --- pages, and what is not there -------------------------------------------------------------------------------------


def test_a_page_has_as_many_rows_as_were_asked_for(shelf: Shelf) -> None:
    for number, entry in enumerate(IDS):
        (shelf.of("op-1") / "reports" / entry).mkdir(parents=True)
        write_document(shelf.of("op-1") / "reports" / entry / "run.json", {"time_ms": number})
    found: list[list[str]] = []
    token = ""
    while not found or token:
        rows, token = shelf.page("op-1", "reports", "run.json", 1, token)
        found.append([entry for entry, _ in rows])
    assert found == [[entry] for entry in reversed(IDS)]
    rows, token = shelf.page("op-1", "reports", "run.json", 3, "")
    assert ([document["time_ms"] for _, document in rows], token) == ([2, 1, 0], "")


async def test_a_report_that_is_not_there_is_named(shelf: Shelf) -> None:
    reports = ReconciliationReports(shelf, ManualClock())
    (shelf.of("op-1") / "reports" / IDS[0]).mkdir(parents=True)  # a run that has not written its request
    for report_id, kind in ((IDS[0], "report"), (IDS[1], "report_id"), ("x" * 41, "report_id")):
        with pytest.raises(NotFoundError) as error:
            await reports.report("op-1", report_id)
        assert error.value.field == "report_id"
        assert error.value.metadata == {"kind": kind, "value": report_id[:40]}


async def test_a_class_of_breaks_that_there_is_not_is_told_by_its_beginning(shelf: Shelf) -> None:
    with pytest.raises(InvalidFieldError) as error:
        await ReconciliationReports(shelf, ManualClock()).breaks("op-1", IDS[0], "x" * 41, 5, "")
    assert error.value.message.startswith(f"unknown break_class {'x' * 40}; known classes: ")
    assert (error.value.field, error.value.metadata["value"]) == ("break_class", "x" * 40)
    assert "missing_credit_in_wallet, " in error.value.metadata["limit"]


class Killed:
    """The process of a run that ends without a result."""

    async def wait(self) -> int:
        return -9

    def kill(self) -> None:
        raise ProcessLookupError


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_a_process_that_ends_without_a_result_has_failed_unless_the_server_ends_it(
    shelf: Shelf, is_stopping: bool
) -> None:
    async def begin(_folder: Path, _lock: int, _memory_mb: int) -> Killed:
        return Killed()

    runs = ReconciliationRuns(shelf, ManualClock(), begin, memory_mb=256)
    report_id = await runs.run(OPERATOR, str(uuid.uuid4()), RunRequest(**REQUEST))
    if is_stopping:
        await runs.stop()
    else:
        await asyncio.wait(list(runs._jobs))
    found = await ReconciliationReports(shelf, ManualClock()).report("op-1", report_id)
    words = "the process ended with status -9: memory, disk, or a signal"
    failure = {} if is_stopping else {"message": words, "reason": "RECONCILIATION_FAILED"}
    assert (found.state, found.failure) == ("interrupted" if is_stopping else "failed", failure)


# --- signatures -------------------------------------------------------------------------------------------------------


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report that names no other files, signed by the node."""
    folder = tmp_path / "report"
    folder.mkdir()
    content = json.dumps({"files": {}}).encode()
    (folder / "report.json").write_bytes(content)
    body = {"kind": "report", "name": REPORT_NAME, "sha256": hashlib.sha256(content).hexdigest(), "time": TIME}
    (folder / "report.jsonl").write_bytes(format_line(ExportLine(sealed(body, NODE_KEY), None)) + b"\n")
    return folder


def counter(report: Path, signer: Signer) -> bytes:
    signed = parse_line((report / "report.jsonl").read_bytes().splitlines()[0]).envelope
    body = {"kind": "countersignature", "party": "op-1", "statement": leaf_hash(signed).hex(), "time": TIME}
    return sealed(body, signer)


def signers(count: int) -> list[Ed25519Signer]:
    return [Ed25519Signer.from_seed(bytes([number]) * 32) for number in range(1, count + 1)]


def test_a_report_that_nobody_has_countersigned_verifies(report: Path) -> None:
    lines = verify_report(report, key_bundle(), ROOT_KEY.keyid, frozenset())
    digest = hashlib.sha256((report / "report.json").read_bytes()).hexdigest()
    assert lines == [
        f"1 files are those that were signed, SHA-256 {digest}", "signed by node node-1, ANCHORED",
    ]  # fmt: skip


def test_a_key_that_did_not_sign_is_named_as_such(report: Path) -> None:
    one, other = signers(2)
    for key in (other.public_key, one.public_key + b"x", b""):
        with pytest.raises(VerificationError) as error:
            add_countersignature(report, counter(report, one), key, "op-1")
        assert error.value.message == f"the public key is not that of {one.keyid}"
        assert error.value.metadata == {"check": "countersignature"}
    assert not (report / "countersigners.txt").exists()


def test_sixteen_may_countersign(report: Path) -> None:
    *first, last = signers(17)
    counted = [add_countersignature(report, counter(report, one), one.public_key, "op-1") for one in first]
    assert counted == list(range(1, 17))
    assert add_countersignature(report, counter(report, first[3]), first[3].public_key, "op-1") == 16
    with pytest.raises(VerificationError) as error:
        add_countersignature(report, counter(report, last), last.public_key, "op-1")
    assert (error.value.message, error.value.metadata) == ("there are 16 already", {"check": "countersignature"})
    lines = verify_report(report, key_bundle(), None, frozenset({first[0].keyid}))
    assert len(lines) == 18
    assert lines[1] == "signed by node node-1, UNANCHORED"
    assert lines[2] == f"countersigned by op-1, key {first[0].keyid}, whose key was brought from outside"
    assert lines[3] == f"countersigned by op-1, key {first[1].keyid}, whose key nobody vouches for"


def test_a_file_beyond_256_megabytes_is_not_read(report: Path) -> None:
    with (report / "report.jsonl").open("r+b") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(InvalidFieldError) as error:
        countersign(report, NODE_KEY, "op-1", 0)
    assert error.value.message == f"{report / 'report.jsonl'} is longer than 268435456 bytes"
    assert (error.value.field, error.value.metadata) == ("report", {"limit": "268435456"})
