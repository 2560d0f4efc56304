"""rgs.tlog: how long the partial tiles of a log stay."""

from __future__ import annotations

from pathlib import Path

from tests.support.clocks import ManualClock
from tests.support.log.sequencing import SUMMER_MS, Logged, Shelf, make_sequencer


async def test_partial_tiles_go_when_the_full_one_has_been_there_for_a_while(tmp_path: Path) -> None:
    shelf, clock, log = Shelf(), ManualClock(SUMMER_MS), tmp_path / "log"
    sequencer = make_sequencer(shelf, log, clock)

    def fill(count: int) -> None:
        for _ in range(count):
            shelf.commit("a")

    def partials() -> set[str]:
        return {str(path.relative_to(log / "2026h1" / "tile")) for path in log.rglob("*.p")}

    for _ in range(200):
        fill(4)
        await sequencer.work()
    edge = {"0/003.p", "entries/003.p", "1/000.p"}
    assert partials() == edge | {f"{level}/{index}.p" for level in ("0", "entries") for index in ("001", "002")}
    assert len(Logged(log / "2026h1").entries) == 800
    await sequencer.close()
    # What was left behind by a kill near the end goes with the next checkpoint, and what cannot go stays.
    for left in ("0/000.p", "entries/000.p"):
        (log / "2026h1" / "tile" / left).mkdir()
    (log / "2026h1" / "tile" / "0/000.p" / "somebody").mkdir()
    again = make_sequencer(shelf, log, clock)
    fill(1)
    await again.work()
    assert partials() >= edge
    assert "entries/000.p" not in partials()
    assert "0/000.p" in partials()
    await again.close()
