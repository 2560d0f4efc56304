"""Transfers of a session that is funded bet by bet leave the store with its rounds, and are read with them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rgs.store.archiving import Gone, PartWriter
from rgs.store.opening import dropping, open_reads, opened_archive
from tests.support.service.seamless import Better, opened

ROUNDS = 3


async def test_transfers_go_with_their_rounds(tmp_path: Path) -> None:
    store, part = tmp_path / "rgs.db", tmp_path / "archive" / "2026-11-21.1"
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        for _ in range(ROUNDS):
            await anna.play()
        await anna.close()
        session_id = anna.session_id
    part.mkdir(parents=True)
    reads = await open_reads(store)
    try:
        rows = await reads.statements_of_session(session_id, 0, 100)
        rounds = await reads.rounds_of_session(session_id, before_no=100, limit=100)
        with closing(PartWriter(part)) as writer:
            for row in rows:
                writer.add(row)
            for number, round_ in rounds:
                writer.add_round(number, round_)
            bounds = writer.finish([])
        kinds = [row.kind for row in rows]
        assert kinds.count("transfer") >= 2 * ROUNDS
        moved = [row for row in rows if row.kind not in ("session_open", "session_close")]
        assert (bounds.statements, bounds.round_count, bounds.session_count) == (len(moved), ROUNDS, 1)
        async with dropping(store) as drop:
            await drop([Gone(session_id, len(moved), ROUNDS)])
        assert [row.kind for row in await reads.statements_of_session(session_id, 0, 100)] == [kinds[0], kinds[-1]]
        with opened_archive(part.parent) as reads.archive:
            assert await reads.statements_of_session(session_id, 0, 100) == rows
            paged = [await reads.statements_of_session(session_id, after, 1) for after in range(len(rows) + 1)]
            assert [page[0] if page else None for page in paged] == [*rows, None]
            assert await reads.rounds_of_session(session_id, before_no=100, limit=100) == rounds
            for _, round_ in rounds:
                assert await reads.round(round_.round_id) == round_
    finally:
        await reads.close()
