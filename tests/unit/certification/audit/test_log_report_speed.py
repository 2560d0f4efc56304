"""How fast an audit was is told where the clock saw it (`certification/log_report.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from certification import log
from tests.support.records.audited import Case
from tests.support.records.factory import RecordFactory


@pytest.mark.parametrize(
    ("bare_s", "is_reported"), [((1e-4, 1e-4), True), ((0.0, 1e-4), False), ((1e-4, 0.0), False), ((0.0, 0.0), False)]
)
def test_a_clock_that_saw_nothing_spoils_no_audit(
    bare_s: tuple[float, float], is_reported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On some machines the clock of CPU time has steps of 10 ms: twenty signatures take none of them."""
    monkeypatch.setattr(log, "measure_bare", lambda _: bare_s)
    factory = RecordFactory("speed")
    worker = factory.start("node-1-b1-w0")
    factory.end(worker)
    case = Case(tmp_path, factory)
    case.publish()
    assert case.audit() == 0
    assert ("speed" in case.report) == is_reported
