"""What `certify log` holds to more than the entries: the files of artifacts, the time at which a checkpoint was seen,
the auditor's own clock. Each fault is planted, and the same log without it passes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from rgs.core.times import format_time
from tests.support.log.logs import ORIGIN
from tests.support.records.audited import SEEN_S, Case, a_round
from tests.support.records.factory import RecordFactory

FILES = {"manifest": b"a manifest", "rulesets/uth-solo": b'{"id":"uth-solo"}'}
MARGIN_S = 300


def kept(folder: Path, name: str) -> Path:
    return folder / "log" / "artifact" / sha256(FILES[name]).hexdigest()


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A server that names its artifacts twice, as two boots do, with a round."""
    factory = RecordFactory("files")
    worker = factory.start("node-1-b1-w0")
    for name, content in (*FILES.items(), *FILES.items()):
        body = {"bytes": str(len(content)), "name": name, "sha256": sha256(content).hexdigest()}
        factory.numbered(worker, "artifact", body)
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    a_round(factory, worker, player)
    made = Case(tmp_path, factory)
    made.publish()
    for name, content in FILES.items():
        kept(tmp_path, name).parent.mkdir(exist_ok=True)
        kept(tmp_path, name).write_bytes(content)
    return made


def test_the_files_of_artifacts_are_compared(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.audit() == 0
    assert [row["name"] for row in case.report["artifacts"]] == sorted(FILES)
    assert "artifacts    2 files compared with their statements" in capsys.readouterr().out


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "is missing"),
    "altered": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"), "is another"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "its statement says"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "its statement says"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_what_was_signed_fails_by_its_name(case: Case, name: str, change: str) -> None:
    """Planted in either file, before the first run and behind one that passed."""
    apply, why = CHANGES[change]
    for has_passed in (False, True):
        if has_passed:
            case.state.unlink(missing_ok=True)
            kept(case.folder, name).write_bytes(FILES[name])
            assert case.audit() == 0
        apply(kept(case.folder, name))
        assert case.audit() == 1
        (failure,) = case.report["failures"]
        assert (failure["check"], failure["artifact"]) == ("log artifacts", name)
        assert why in failure["message"]


def test_a_file_too_long_to_be_read_fails_by_its_name(tmp_path: Path) -> None:
    factory = RecordFactory("long")
    body = {"bytes": str(1 << 27), "name": "manifest", "sha256": "0" * 64}
    factory.numbered(factory.start("node-1-b1-w0"), "artifact", body)
    case = Case(tmp_path, factory)
    case.publish()
    assert case.audit() == 1
    assert [row["artifact"] for row in case.report["failures"]] == ["manifest"]


@pytest.mark.parametrize(("late_s", "status"), [(MARGIN_S, 0), (MARGIN_S + 1, 1)])
def test_a_statement_from_the_future_of_its_checkpoint(case: Case, late_s: int, status: int) -> None:
    factory = case.factory
    worker = factory.start("node-2-b1-w0", "node-2")
    factory.event(worker, time=format_time((SEEN_S + late_s) * 1000 + (late_s > MARGIN_S)))
    case.publish()
    assert case.audit() == status
    assert case.checks == ({"log times"} if status else set())


@pytest.mark.parametrize(("ahead_s", "status"), [(MARGIN_S, 0), (MARGIN_S + 1, 1)])
def test_a_cosignature_from_the_future_of_the_auditor(case: Case, ahead_s: int, status: int) -> None:
    case.publish(time_s=SEEN_S + ahead_s)
    now = format_time(SEEN_S * 1000)
    assert case.audit("--now", now) == status
    assert case.checks == ({"log times"} if status else set())
    assert case.audit("--now", format_time((SEEN_S + ahead_s) * 1000)) == 0  # it has come


def test_a_cosignature_to_come_covers_no_statement_to_come(case: Case) -> None:
    """Server and witness agree on next year: the auditor's clock decides."""
    factory, late_s = case.factory, SEEN_S + 400 * 86_400
    factory.clock_ms = late_s * 1000
    factory.start("node-2-b1-w0", "node-2")
    case.publish(time_s=late_s)
    assert case.audit("--now", format_time(SEEN_S * 1000)) == 1
    assert [row["check"] for row in case.report["failures"]] == ["log times", "log times"]


def test_hidden_decks_are_told_in_capitals(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    factory = case.factory
    worker = factory.start("node-2-b1-w0", "node-2")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    factory.deal(worker, [player], {"ante": 100})
    factory.void(worker, player, "DECK_UNRECOVERABLE")
    case.publish()
    assert case.audit() == 0
    assert case.report["summary"]["seats_unrecoverable"] == case.report["summary"]["draws_exposed"] == 1
    assert "EXPOSED      1 void seats whose deck was never shown (DECK_UNRECOVERABLE)" in capsys.readouterr().out


def test_boots_of_a_log_that_goes_on_may_have_come_no_further_than_their_start(tmp_path: Path) -> None:
    """The boot before is declared lost in the next statement; until that is in the log nothing can be said."""
    factory = RecordFactory("boots")
    first = factory.start("node-1-b1-w0")
    second = factory.start("node-1-b2-w0", boot_no=2)
    case = Case(tmp_path, factory)
    case.publish()
    assert case.audit() == 0
    before = list(factory.lines)
    factory.event(second)
    case.publish()
    assert case.audit() == 1
    assert case.checks == {"21 instance"}
    factory.lines[:] = before
    second.statement_no -= 1
    factory.lose(second, first)
    case.state.unlink()
    shutil.rmtree(case.log)
    case.publish()
    assert case.audit() == 0


def test_a_killed_boot_that_nobody_declares_lost_is_named(tmp_path: Path) -> None:
    """The next boot names more statements of it than the log holds, and goes on without an `instance_lost`."""
    factory = RecordFactory("killed")
    first = factory.start("node-1-b1-w0")
    factory.event(first)
    named = {**factory.boot(first), "last_statement_no": "90"}
    second = factory.start("node-1-b2-w0", boot_no=2, previous_boot=named)
    case = Case(tmp_path, factory)
    case.publish()
    assert case.audit() == 0
    factory.event(second)
    case.publish()
    assert case.audit() == 1
    assert case.checks == {"21 instance"}


@pytest.mark.parametrize(("more", "status"), [(0, 0), (1, 1)])
def test_nothing_knows_a_checkpoint_that_covers_it(tmp_path: Path, more: int, status: int) -> None:
    for kind in ("instance_start", "event"):
        factory, folder = RecordFactory("knows"), tmp_path / kind
        folder.mkdir()
        worker = factory.start("node-1-b1-w0")
        size = str(len(factory.lines) + more)
        if kind == "event":
            factory.event(worker, "CHECKPOINT_KNOWN", subject=ORIGIN, after=f"{size} {'0' * 64}")
        else:
            factory.start("node-2-b1-w0", "node-2", checkpoint={"origin": ORIGIN, "root": "0" * 64, "size": size})
        case = Case(folder, factory)
        case.publish()
        assert case.audit() == status
        assert case.checks == ({"log times"} if status else set())


def test_what_is_named_and_no_artifact_tells_is_told(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.audit() == 0
    assert [row["name"] for row in case.report["artifacts_unreported"]] == [
        "jurisdiction demo",
        "manifest",
        "ruleset uth-solo",
    ]
    assert "NO ARTIFACT  ruleset uth-solo" in capsys.readouterr().out
