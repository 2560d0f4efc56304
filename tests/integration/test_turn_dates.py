"""What was written down before a change of keys and is signed after it is older than the instance that signs it; so is
all that follows when the clock is set back. It replays all the same, in the whole file and in every cut of it, whose
reader may not see that the keys changed or the clock was set.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from certification import replay as certify
from rgs.cli.export import Exporter, line_of, scope_lines
from rgs.core.statements import format_line
from rgs.store.sqlite.store import SqliteReads, SqliteStore, connect
from tests.support.clocks import NOW_MS
from tests.support.service.harness import NODE_KEY, ROOT_KEY, ServiceHarness, key_bundle, open_harness, read_statement
from tests.support.service.player import Player
from tests.unit.service.admin.test_health_monitor import clearing
from tests.verifier import independent_verifier

ONE, TWO = "node-1-b1-w0", "node-1-b2-w0"


async def note_while_the_store_is_away(harness: ServiceHarness) -> None:
    """Guards close and the store takes nothing: their events wait for the monitor's next look."""
    harness.store._db.execute("PRAGMA busy_timeout = 5")
    with closing(connect(harness.folder / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        harness.log = "STORE_BEHIND"
        await harness.services.monitor.poll()
        other.execute("ROLLBACK")
    harness.log = ""
    assert harness.services.availability.guard("store").closed


async def turned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Events wait for the store, and a decision for its commit, while the keys change. The session."""
    commit = SqliteStore.commit
    deciding, released = asyncio.Event(), asyncio.Event()

    async def slow(self: SqliteStore, change: Any) -> Any:
        if any(draft.kind == "round_final" for draft in change.drafts) and not deciding.is_set():
            deciding.set()
            await released.wait()
        return await commit(self, change)

    async with open_harness(folder) as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.start()
        harness.clock.tick(1_000)
        await note_while_the_store_is_away(harness)
        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "commit", slow)
            decision = asyncio.create_task(anna.finish_round())
            await deciding.wait()
            harness.clock.tick(5_000)
            await harness.instance.hand_over(NODE_KEY, ())
            released.set()
            await decision
        await harness.services.monitor.poll()
        await anna.leave()
        await harness.settle()
    return anna.session_id


async def exported(folder: Path, out: Path, instances: list[str], sessions: list[str]) -> list[dict[str, Any]]:
    """Write what `rgs export` would; the statements of it."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        reads = SqliteReads(connection)
        plan = await Exporter(reads).plan(instances, sessions)
        lines = [*scope_lines(plan, NODE_KEY, NOW_MS)] if plan.reason else []
        is_cut, rows = bool(plan.reason), Exporter(reads).rows(plan)
        lines += [await line_of(reads, row, private=True, is_cut=is_cut) async for row in rows]
    out.write_bytes(b"".join(format_line(line) + b"\n" for line in lines))  # noqa: ASYNC240
    return [read_statement(line.envelope) for line in lines]


def before_its_start(bodies: list[dict[str, Any]], instance: str) -> set[str]:
    """What an instance has signed that is dated before its start: the kinds, of events the codes."""
    start = next(body["time"] for body in bodies if body["kind"] == "instance_start" and body["instance"] == instance)
    late = [body for body in bodies if body.get("instance") == instance and body["time"] < start]
    return {body.get("code", body["kind"]) for body in late}


@pytest.mark.parametrize(
    ("instances", "of_session", "late"),
    [
        ([], False, {"GUARD_CLOSED", "round_final"}),
        ([TWO], False, {"GUARD_CLOSED", "round_final"}),
        ([ONE, TWO], False, {"GUARD_CLOSED", "round_final"}),
        ([TWO], True, {"GUARD_CLOSED", "round_final"}),
        ([], True, {"round_final"}),
    ],
    ids=["everything", "the second", "both", "the second and the session", "the session"],
)
async def test_what_is_older_than_its_instance_replays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    instances: list[str],
    of_session: bool,
    late: set[str],
) -> None:
    session_id = await turned(tmp_path, monkeypatch)
    assert await replayed(tmp_path, instances, [session_id] if of_session else [], capsys, TWO) == late


@pytest.mark.parametrize(("instances", "of_session"), [([], False), ([ONE], False), ([], True), ([ONE], True)])
async def test_what_follows_a_clock_that_was_set_back_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], instances: list[str], of_session: bool
) -> None:
    async with open_harness(tmp_path) as harness:
        await harness.let_in("admin-1")
        harness.clock.jump(-86_400_000)
        await harness.services.monitor.poll()
        await harness.services.admin.clear_guard(clearing("clock"), "clock", "TIME_SERVER_MENDED")
        anna = Player(harness)
        await anna.sit()
        await anna.play()
        await anna.leave()
        await harness.settle()
    late = await replayed(tmp_path, instances, [anna.session_id] if of_session else [], capsys, ONE)
    assert late >= {"session_open", "purchase", "round_opening", "round_final", "session_close"}


async def replayed(
    folder: Path, instances: list[str], sessions: list[str], capsys: pytest.CaptureFixture[str], instance: str
) -> set[str]:
    """Export and replay it, without a failure in either verifier; what is dated before the start of the instance."""
    export, keys = folder / "export.jsonl", folder / "keys.json"
    bodies = await exported(folder, export, instances, sessions)
    keys.write_bytes(key_bundle())
    for main in (certify.main, independent_verifier.main):
        status = main([str(export), "--keys", str(keys), "--root", ROOT_KEY.keyid])
        assert status == 0, capsys.readouterr().out
    return before_its_start(bodies, instance)
