"""The walks of docs/architecture.md, walked: what runs passes every step of the page, in its order."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from certification import replay
from rgs.store.sqlite.store import SqliteReads, connect
from rng.generator import Generator
from tests.support.api.client import ApiClient
from tests.support.api.harness import serving
from tests.support.records.ready_made import small_factory
from tests.support.service.reconciling import export_day
from tests.support.service.seamless import BRITISH, Better, opened
from tests.support.waiting import all_at_once

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^\| `([\w/]+\.py)::([\w.]+)` \| ", re.MULTILINE)
Steps = list[tuple[str, str]]
ELSEWHERE = ("rgs/api/endpoint.py", "rgs/api/access.py", "rgs/cli/reconcile.py")
"""What is walked when the server starts, only where a log is kept, and by the command line."""


def tables_of(walk: int) -> list[Steps]:
    """File and function of each step, as the tables of the page have them."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tables = text.split(f"\n## Walk {walk}: ")[1].split("\n## ")[0].split("\n|---|---|\n")[1:]
    return [[step for step in STEP.findall(table) if step[0] not in ELSEWHERE] for table in tables]


def missed(steps: Steps, calls: Steps) -> str:
    """The first step that does not come behind the one before it; empty where all do."""
    left = iter(calls)
    for path, name in steps:
        if not any(file == path and (called == name or called.startswith(f"{name}.<locals>")) for file, called in left):
            return f"{path}::{name}"
    return ""


@contextmanager
def noted(*, is_on: bool = True) -> Iterator[Steps]:
    """The calls of our functions, in this thread (from now on, if `is_on`) and in those that begin inside."""
    calls: Steps = []
    tops = tuple(f"{ROOT}/{top}/" for top in ("rng", "rgs", "certification"))

    def note(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(tops):
            calls.append((file.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname))

    threading.setprofile(note)
    if is_on:
        sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def test_a_start_of_a_round(tmp_path: Path) -> None:
    steps = [step for table in tables_of(1) for step in table]
    assert len(steps) > 45
    with noted(is_on=False) as threads:  # the writer's begins here
        async with serving(tmp_path) as harness:
            player = ApiClient(harness.channel())
            await player.open()
            await player.buy()
            sys.setprofile(threading.getprofile())
            threads.clear()
            await player.start()
            calls = [*threads]
            sys.setprofile(None)
    assert missed(steps, calls) == ""
    assert missed(steps[::-1], calls) == "rgs/api/mapping.py::reply_bytes"


def test_a_byte_is_drawn() -> None:
    generator = Generator("node-1-b1-w0")
    with noted() as calls:
        generator.draw()
    assert missed(tables_of(2)[0], calls) == ""


def test_a_byte_is_replayed(tmp_path: Path) -> None:
    factory = small_factory()
    (tmp_path / "export").write_bytes(factory.export())
    (tmp_path / "keys").write_bytes(factory.keys())
    with noted() as calls:
        assert replay.main([str(tmp_path / "export"), "--keys", str(tmp_path / "keys")]) == 0
    steps = tables_of(2)[-1]
    assert len(steps) > 25
    assert missed(steps, calls) == ""


async def test_a_credit_is_decided_owed_and_paid(tmp_path: Path) -> None:
    decided, paid, _, recovered, _ = tables_of(3)
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        await anna.start(100)
        harness.wallet_script.plan("credit", "before")
        with noted() as calls:
            await anna.finish_round(lambda legal: "check" if "check" in legal else "play_1x")
        assert missed([*decided, *paid], calls) == ""
        with noted() as calls:
            assert await harness.sessions.recover() == 1
        assert missed(recovered, calls) == ""


def test_a_credit_is_reconciled(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    async def play() -> None:
        async with opened(home) as harness:
            anna = Better(harness)
            await anna.open()
            for _ in range(3):
                await anna.play(100)
            await anna.close()

    asyncio.run(play())
    with closing(connect(home / "rgs.db", read_only=True)) as connection:
        day = export_day(home, all_at_once(SqliteReads(connection).statements_in_order()), tmp_path / "day")
    day.change_wallet(lambda rows: [{**rows[0], "amount_minor": "123456"}, *rows[1:-1]])
    plain = day.wallet.read_text()
    day.wallet.write_text(plain.replace(",GBP,", ',"GBP",'))  # quotes: no fast way
    assert day.wallet.read_text() != plain
    with noted() as calls:
        assert day.run(tmp_path / "out", operator=BRITISH.party, regulator=None).open_breaks
    assert missed(tables_of(3)[-1], calls) == ""
