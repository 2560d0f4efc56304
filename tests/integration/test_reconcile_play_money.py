"""A report says how much was played with play money, of the operator that it is made for."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.test_demo_books import played


async def test_play_money_is_counted_and_shown(tmp_path: Path) -> None:
    day = await played(tmp_path)
    done = day.run(tmp_path / "out")
    assert (done.verdict, done.document["play_money"]) == ("clean", {"rounds": 3, "sessions": 2})
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["play_money"] == {"rounds": 3, "sessions": 2}
    assert "2 sessions with 3 ended rounds are left out" in (tmp_path / "out" / "report.html").read_text()
