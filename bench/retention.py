"""Measures `rgs archive`: rounds are really played, and the closed sessions are moved out of the store.

    python -m bench.retention FOLDER [--rounds 20000] [--postgres]

It prints the time of the move and its memory, the bytes of the store before and after and those of the part, and how
long one round takes by its id, in the store and in the archive. A file of SQLite is rewritten before each size is
taken; a database is vacuumed, which keeps the room of deleted rows for new ones. Times hold for this machine in this
hour only. Not measured: a folder on another host, servers that play meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import asyncpg

from bench.database import database
from bench.figures import BenchError
from bench.homes import make_home, serving
from bench.windows import play_to_the_end
from rgs.cli.archive import Counted, due_sessions, move
from rgs.node.clock import now_ms
from rgs.node.config import Config, load_config
from rgs.node.stores import reading
from rgs.store.address import PostgresAddress
from rgs.store.archive import Part, part_names
from rgs.store.opening import overwrite_freed

PLAYERS = 100
"""Each plays one session: 200 rounds of 20,000."""
LOOKUPS = 500
LATER_MS = 3_600_000
TABLES = ("statements", "rounds", "finals", "sessions", "operations", "privates")
_SIZES = "SELECT relname, pg_total_relation_size(oid), reltuples::bigint FROM pg_class WHERE relname = ANY($1)"


async def run(folder: Path, rounds: int, store: PostgresAddress | None = None) -> None:
    """Play, move, look up; prints what was measured."""
    made, _ = make_home(folder / "home", store)
    with (made.home / "rgs.toml").open("a", encoding="utf-8") as file:
        file.write('\narchive = "archive"\n')
    config = load_config(made.home)
    async with serving(config.home) as load:
        await play_to_the_end(load, rounds, PLAYERS)
        await _until_read(config)
    ids = await _round_ids(config)
    before_bytes, in_store_s = await _store_bytes(config), await _lookup_s(config, ids)
    rss_before, began_s, cpu_s = _rss(), perf_counter(), process_time()
    moved = await move(config, now_ms() + LATER_MS, now_ms())
    wall_s, cpu_s = perf_counter() - began_s, process_time() - cpu_s
    rss_after, after_bytes = _rss(), await _store_bytes(config)
    if config.archive is None or not moved.rounds:
        raise BenchError("nothing was moved")
    part_bytes = sum(path.stat().st_size for path in config.archive.rglob("*") if path.is_file())
    statements = sum(path.stat().st_size for path in config.archive.rglob("*.jsonl"))
    for name, value in {
        "moved": f"{moved.sessions} sessions, {moved.rounds} rounds",
        "time": f"{wall_s:.1f} s, {cpu_s:.1f} s of CPU: {moved.rounds / wall_s:.0f} rounds/s",
        "memory": f"{rss_before} MiB before, {rss_after} MiB at most",
        "store before": before_bytes,
        "store after": after_bytes,
        "archive": f"{part_bytes} bytes, {part_bytes / moved.rounds:.0f} a round, {statements} of them statements",
        "parts verified in": f"{_verify_s(config.archive):.1f} s",
        "one round": f"{in_store_s * 1e3:.2f} ms from the store, {await _lookup_s(config, ids) * 1e3:.2f} ms archived",
    }.items():
        print(f"{name:18} {value}", flush=True)


async def _until_read(config: Config) -> None:
    for _ in range(600):
        counted = Counted()
        async with reading(config.store) as reads:
            async for _ in due_sessions(reads, now_ms() + LATER_MS, counted):
                pass
        if not counted.stays["unread"]:
            return
        await asyncio.sleep(0.5)
    raise BenchError("the server has not read its finals")


async def _round_ids(config: Config) -> list[str]:
    async with reading(config.store) as reads:
        found = [row.round_id async for row in reads.statements_in_order() if row.kind == "round_final"]
    return found[:: max(1, len(found) // LOOKUPS)]


async def _lookup_s(config: Config, ids: Sequence[str]) -> float:
    """The median time of a round's row with its two envelopes."""
    times = []
    async with reading(config.store, config.archive) as reads:
        for round_id in ids:
            began_s = perf_counter()
            found, envelopes = await reads.round(round_id), await reads.round_envelopes(round_id)
            times.append(perf_counter() - began_s)
            if found is None or not all(envelopes):
                raise BenchError(f"round {round_id} is not found")
    return median(times)


def _verify_s(archive: Path) -> float:
    began_s = perf_counter()
    for name in part_names(archive):
        with closing(Part(archive / name)) as part:
            part.verify()
    return perf_counter() - began_s


async def _store_bytes(config: Config) -> str:
    """The size of the store: the file written anew, or the large tables after a VACUUM, with the WAL so far."""
    if not isinstance(config.store, PostgresAddress):
        overwrite_freed(config.store)
        return f"{config.store.stat().st_size} bytes"
    connection = await asyncpg.connect(config.store.url)
    try:
        wal = await connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        await connection.execute("VACUUM ANALYZE")
        found = await connection.fetch(_SIZES, list(TABLES))
    finally:
        await connection.close()
    return ", ".join([*(f"{name} {size} ({rows} rows)" for name, size, rows in found), f"WAL so far {wal}"])


def _rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description="Measure `rgs archive`.")
    parser.add_argument("folder", type=Path, help="an empty folder; 0.5 GB for 20,000 rounds")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--postgres", action="store_true", help="over a database instead of a file")
    options = parser.parse_args(argv)
    try:
        if options.postgres:
            with database() as (address, _):
                asyncio.run(run(options.folder, options.rounds, address))
        else:
            asyncio.run(run(options.folder, options.rounds))
    except BenchError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
