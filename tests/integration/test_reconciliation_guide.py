"""docs/reconciliation.md does what it says over gRPC: its Python runs at a real server, its calls are all of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from examples import minimal_client
from rgs.core.reconcile.classes import BreakClass
from rgs.node.config import SETTINGS
from rgs.v1 import reconciliation_pb2
from tests.support.process.served import serving

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reconciliation.md"
TEXT = GUIDE.read_text("utf-8")
ADDRESS = "localhost:50551"


@pytest.mark.slow
def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    with serving(tmp_path) as served:
        with minimal_client.connect(served.address, *map(str, served.identity)) as channel:
            minimal_client.play_session(channel, 1)
        for file, name in zip(served.identity, ("ca.pem", "operator.pem", "operator.key"), strict=True):
            shutil.copy(file, tmp_path / name)
        monkeypatch.chdir(tmp_path)
        assert source.count(ADDRESS) == 1
        capsys.readouterr()
        exec(compile(source.replace(ADDRESS, served.address), str(GUIDE), "exec"), {})  # noqa: S102 - our own page
    result = capsys.readouterr().out.splitlines()
    # Nobody paid in or out of this wallet what was played; and it tells of a debit that nobody signed.
    assert result[0].split()[0] == "breaks"
    assert "missing_in_rgs 500 EUR" in result
    assert {line.split()[0] for line in result[1:]} <= set(BreakClass)
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_every_call_and_setting_is_told_of() -> None:
    (service,) = reconciliation_pb2.DESCRIPTOR.services_by_name.values()
    assert [method.name for method in service.methods if f"`{method.name}`" not in TEXT] == []
    assert [name for name in SETTINGS if name.startswith("reconciliation") and f"`{name}`" not in TEXT] == []
