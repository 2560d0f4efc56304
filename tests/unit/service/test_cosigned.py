"""What the server says of the newest cosigned checkpoint: in its instance_start, and by an event once in a while."""

from __future__ import annotations

import threading
from pathlib import Path

from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import Ed25519Signer, ExportLine, format_line
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.note import Note, cosign, format_note, sign_text
from rgs.service.cosigned import PERIOD_MS, CosignedCheckpoint, CosignedNews, parse_cosigned
from tests.support.service.harness import ServiceHarness, key_bundle, read_statement

ORIGIN = "rgs.example/rounds/2026h2"
LOG = Ed25519Signer.from_seed(b"\x21" * 32)
WITNESS = Ed25519Signer.from_seed(b"\x22" * 32)


def note(size: int, *, cosigned: bool = True) -> bytes:
    text = format_checkpoint(Checkpoint(ORIGIN, size, bytes([size]) * 32))
    lines = [sign_text(text, ORIGIN, LOG)]
    if cosigned:
        lines.append(cosign(text, "witness.example", WITNESS, 1_795_000_000))
    return format_note(Note(text, tuple(lines)))


def test_the_logs_own_signature_makes_nothing_known() -> None:
    assert parse_cosigned(b"") is None
    assert parse_cosigned(note(3, cosigned=False)) is None
    assert parse_cosigned(note(3)) == CosignedCheckpoint(ORIGIN, 3, "03" * 32)


async def test_start_and_events_name_it_and_the_replay_takes_both(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    known = [note(3)]
    harness.instance.known = lambda: parse_cosigned(known[-1])
    await harness.start()
    news = CosignedNews(known=harness.instance.known, events=harness.services.events, clock=harness.clock)
    for size, wait in ((3, PERIOD_MS), (4, PERIOD_MS), (5, PERIOD_MS - 1), (5, 0), (6, 1)):
        harness.clock.tick(wait)
        known.append(note(size))
        await news.poll()
    rows = [row async for row in harness.store.statements_in_order()]
    assert read_statement(rows[0].envelope)["checkpoint"] == {"origin": ORIGIN, "root": "03" * 32, "size": "3"}
    result = [body for row in rows if (body := read_statement(row.envelope)).get("code") == "CHECKPOINT_KNOWN"]
    assert [(body["subject"], body["after"]) for body in result] == [
        (ORIGIN, f"4 {'04' * 32}"),
        (ORIGIN, f"6 {'06' * 32}"),
    ]
    await harness.instance.end("DRAINED")
    replay = Replay(KeyBook(key_bundle()), Rulebook())
    failures = []
    async for row in harness.store.statements_in_order():
        failures += replay.feed(format_line(ExportLine(row.envelope, None)))
    assert [*failures, *replay.finish()] == []
    await harness.stop(ended=False)


async def test_a_server_without_a_log_names_nothing(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    await harness.start()
    rows = [row async for row in harness.store.statements_in_order()]
    assert "checkpoint" not in read_statement(rows[0].envelope)
    await harness.stop()


async def test_a_folder_that_hangs_does_not_stop_the_loop(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    await harness.start()
    threads = []

    def known() -> None:
        threads.append(threading.current_thread())

    news = CosignedNews(known=known, events=harness.services.events, clock=harness.clock)
    harness.clock.tick(PERIOD_MS)
    await news.poll()
    assert threads[0] is threading.main_thread(), "the start reads it before it serves"
    assert threads[1] is not threading.main_thread()
    await harness.stop()
