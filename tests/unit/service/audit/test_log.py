"""The log over the contract, below the wire: what a published checkpoint covers and no more, and each party its own."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError, NotLoggedYetError
from rgs.core.receipts import parse_key_path
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.times import parse_time
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.merkle import leaf_hash, verify_consistency
from rgs.core.tlog.note import ED25519, format_vkey, note_key, parse_note, parse_vkey, verify_note
from rgs.core.tlog.proofs import parse_log_proof, verify_log_proof
from rgs.service.audit.log import LogEntry, LogUnreadableError, PublicLog
from rgs.service.callers import Caller
from rgs.service.sealing import Sealer
from rgs.tlog.directory import LogDirectory
from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.log.logs import signed_checkpoint
from tests.support.log.sequencing import PREFIX, SIGNER, Logged
from tests.support.service.harness import NODE_KEY, OPERATOR, ServiceHarness, key_bundle
from tests.support.service.leaks import leaks, secret_of
from tests.support.service.player import Player
from tests.unit.service.play.test_reads import AUDITOR, LAB, REGULATOR, STRANGER

NEXT_HALF_YEAR_MS = parse_time("2027-01-02T00:00:00.000Z")


class Kept:
    """A server, its log, and the log as parties see it."""

    def __init__(self, harness: ServiceHarness, folder: Path) -> None:
        self.harness = harness
        self.folder = folder
        self.clock = ManualClock(harness.clock.now_ms())
        self.sequencer = Sequencer(
            store=harness.store, clock=self.clock, folder=folder, prefix=PREFIX, signer=SIGNER, delay_ms=60_000
        )
        harness.audit.take_key_statements(parse_key_bundle(key_bundle()))
        self.log = PublicLog(audit=harness.audit, folder=folder, vkey_of=self.sequencer.vkey_of)

    @property
    def shard(self) -> Path:
        (folder,) = (path.parent for path in self.folder.glob("*/checkpoint"))
        return folder

    @property
    def origin(self) -> str:
        return parse_checkpoint(parse_note(LogDirectory(self.shard).checkpoint()).text).origin

    async def streamed(self, **given: Any) -> list[LogEntry]:
        requested = {"origin": "", "start_index": 0, "resume_token": "", "follow": False, **given}
        return [one async for one in self.log.entries(**requested) if one is not None]

    async def record(self, caller: Caller = OPERATOR, /, **given: Any) -> tuple[Any, bytes]:
        requested: Any = {"hash": b"", "round_id": "", "session_id": "", "kind": "", **given}
        return await self.log.record(caller, **requested)


@pytest.fixture
async def kept(harness: ServiceHarness, tmp_path: Path) -> AsyncIterator[Kept]:
    kept = Kept(harness, tmp_path / "log")
    yield kept
    await kept.sequencer.close()


async def play(kept: Kept) -> Player:
    anna = Player(kept.harness)
    await anna.sit()
    await anna.play()
    await kept.sequencer.work()
    return anna


# --- checkpoint and consistency ---------------------------------------------------------------------------------------


async def test_the_checkpoint_is_the_published_note_and_the_key_verifies_it(kept: Kept) -> None:
    with pytest.raises(NotFoundError):
        await kept.log.checkpoint("")
    await play(kept)
    found = await kept.log.checkpoint("")
    assert found == await kept.log.checkpoint(found.origin)
    assert found.note == (kept.shard / "checkpoint").read_bytes()
    verify_note(parse_note(found.note), [parse_vkey(found.vkey)])
    checkpoint = parse_checkpoint(parse_note(found.note).text)
    assert (found.origin, found.size, found.root) == (checkpoint.origin, checkpoint.size, checkpoint.root)
    other = PublicLog(
        audit=kept.harness.audit,
        folder=kept.folder,
        vkey_of=lambda origin: format_vkey(note_key(origin, ED25519, NODE_KEY)),
    )
    assert (await other.checkpoint("")).vkey == "", "the shard was signed by another key"


@pytest.mark.parametrize("origin", ["x", "../../etc/2026h2", "log.example/2026h3", "a" * 200 + "/2026h2", "\x00"])
async def test_what_is_no_origin_is_refused_by_name(kept: Kept, origin: str) -> None:
    await play(kept)
    for call in (kept.log.checkpoint(origin), kept.log.consistency(origin, 0, 0), kept.streamed(origin=origin)):
        with pytest.raises(InvalidFieldError) as caught:
            await call
        assert caught.value.field == "origin"


async def test_another_log_is_not_found(kept: Kept) -> None:
    await play(kept)
    for origin in (kept.origin.replace(PREFIX, "other.example"), kept.origin.replace("2026", "2025")):
        with pytest.raises(NotFoundError):
            await kept.log.checkpoint(origin)
        with pytest.raises(NotFoundError):
            await kept.streamed(origin=origin)


async def test_consistency_between_any_two_sizes(kept: Kept) -> None:
    await play(kept)
    logged = Logged(kept.shard)
    size = logged.checkpoint.size
    assert size == 7
    for old in range(size + 1):
        for new in {max(old, 1), size - 1, size} - set(range(old)):
            found = await kept.log.consistency("", old, new)
            verify_consistency(old, logged.root(old), new, logged.root(new), found.hashes)
            assert (found.origin, found.old, found.new) == (kept.origin, old, new)
    assert (await kept.log.consistency(kept.origin, 3, 0)).new == size
    for old, new, field in ((-1, 3, "old_size"), (4, 3, "old_size"), (0, size + 1, "new_size"), (0, -1, "new_size")):
        with pytest.raises(InvalidFieldError) as caught:
            await kept.log.consistency("", old, new)
        assert caught.value.field == field
        assert int(caught.value.metadata["value"]) in {old, new}


# --- records ----------------------------------------------------------------------------------------------------------


async def test_a_record_verifies_offline(kept: Kept) -> None:
    anna = await play(kept)
    for kind in ("round_opening", "round_final"):
        row, proof = await kept.record(round_id=anna.round["round_id"], session_id=anna.session_id, kind=kind)
        assert row.kind == parse_statement(parse_envelope(row.envelope))[0].name == kind
        parsed = parse_log_proof(proof)
        assert verify_log_proof(parsed, leaf_hash(row.envelope)) == Logged(kept.shard).checkpoint
        bundle, start = parse_key_path(parsed.extra or b"")
        assert parse_statement(parse_envelope(start))[1]["instance"] == row.instance
        assert bundle
        assert await kept.record(hash=row.hash) == (row, proof)


async def test_a_party_has_the_records_of_its_own(kept: Kept) -> None:
    anna = await play(kept)
    requested = {"round_id": anna.round["round_id"], "session_id": anna.session_id, "kind": "round_final"}
    row, proof = await kept.record(**requested)
    assert row.private == b""
    for caller in (AUDITOR, REGULATOR, LAB):
        assert (await kept.record(caller, **requested))[1] == proof
    opened = (await kept.harness.store.statements_of_session(anna.session_id, 0, 1))[0]
    assert (await kept.record(AUDITOR, hash=opened.hash))[0].private
    assert not (await kept.record(LAB, hash=opened.hash))[0].private
    for given in (requested, {"hash": row.hash}, {"hash": opened.hash}):
        with pytest.raises(NotFoundError):
            await kept.record(STRANGER, **given)


async def test_what_is_no_record_is_refused_by_name(kept: Kept) -> None:
    anna = await play(kept)
    requested = {"round_id": anna.round["round_id"], "session_id": anna.session_id, "kind": "round_final"}
    for field, value in (("round_id", "x"), ("session_id", "../x"), ("kind", "session_open"), ("kind", "x" * 99)):
        with pytest.raises(InvalidFieldError) as caught:
            await kept.record(**{**requested, field: value})
        assert caught.value.field == field
    with pytest.raises(InvalidFieldError):
        await kept.record(hash=b"short")
    for given in ({"hash": bytes(32)}, {**requested, "session_id": "0" * 26}, {**requested, "round_id": "0" * 26}):
        with pytest.raises(NotFoundError):
            await kept.record(**given)


async def test_a_statement_is_no_record_before_a_published_checkpoint_covers_it(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = Player(kept.harness)
    await anna.sit()
    requested = {"session_id": anna.session_id, "kind": "round_final"}
    rows = await kept.harness.store.statements_of_session(anna.session_id, 0, 1)
    with pytest.raises(NotLoggedYetError):
        await kept.record(hash=rows[0].hash)
    await kept.sequencer.work()
    before = (await kept.log.checkpoint("")).size
    await anna.play()
    # Ordered, written and signed, but not published.
    with monkeypatch.context() as patch:
        patch.setattr(LogDirectory, "publish", _full)
        with pytest.raises(OSError, match="No space"):
            await kept.sequencer.work()
    (final,) = [
        row
        for row in await kept.harness.store.statements_of_round(anna.round["round_id"], 0, 9)
        if row.kind == "round_final"
    ]
    with pytest.raises(NotLoggedYetError) as caught:
        await kept.record(round_id=anna.round["round_id"], **requested)
    assert caught.value.metadata["limit"] == str(before)
    assert len(await kept.streamed()) == before
    with pytest.raises(InvalidFieldError):
        await kept.log.consistency("", 0, before + 1)
    await kept.sequencer.work()
    assert (await kept.record(round_id=anna.round["round_id"], **requested))[0] == final


def _full(_self: LogDirectory, _note: bytes) -> None:
    raise OSError(28, "No space left on device")


# --- entries ----------------------------------------------------------------------------------------------------------


async def test_all_entries_come_in_order_and_each_token_goes_on_behind_it(kept: Kept) -> None:
    await play(kept)
    logged = Logged(kept.shard)
    entries = await kept.streamed()
    assert [one.entry for one in entries] == logged.entries
    assert [one.index for one in entries] == list(range(len(entries)))
    for one in entries:
        rest = await kept.streamed(resume_token=one.resume_token)
        assert rest == entries[one.index + 1 :] == await kept.streamed(start_index=one.index + 1)
    assert await kept.streamed(origin=kept.origin, resume_token=entries[4].resume_token) == entries[5:]


async def test_a_place_outside_the_log_is_refused_by_name(kept: Kept) -> None:
    await play(kept)
    size = Logged(kept.shard).checkpoint.size
    for index in (-1, size + 1, 1 << 62):
        with pytest.raises(InvalidFieldError) as caught:
            await kept.streamed(start_index=index)
        assert caught.value.field == "start_index"
        assert caught.value.metadata["limit"] == ("0" if index < 0 else str(size))
    entries = await kept.streamed()
    with pytest.raises(InvalidFieldError) as caught:
        await kept.streamed(resume_token=entries[0].resume_token, start_index=1)
    assert caught.value.field == "start_index"


def token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def test_what_is_no_token_of_this_log_is_refused(kept: Kept) -> None:
    await play(kept)
    entries = await kept.streamed()
    good, origin = entries[4].resume_token, kept.origin
    mark = leaf_hash(entries[4].entry)[:8].hex()
    assert token(f"e1 {origin} 5 {mark}") == good
    elsewhere = origin.replace(PREFIX, "other.example")
    for bad in (
        *("x", "=", "é", good + "=", good + "\n", " " + good, good[:-1], "A" * 10_000),
        token(f"e2 {origin} 5 {mark}"),
        token(f"e1 {origin} 05 {mark}"),
        token(f"e1 {origin} -5 {mark}"),
        token(f"e1 {origin} 0 {mark}"),
        token(f"e1 ../../x 5 {mark}"),
        token(f"e1 {origin} 5 {mark} 5"),
        token(f"e1 {origin} 5 "),  # nothing to compare with
        token(f"e1 {origin} 6 {mark}"),  # another entry stands there: another log, or a forger
        token(f"e1 {origin} 5 {'0' * 16}"),
        token(f"e1 {origin} {len(entries) + 1} {mark}"),  # longer than this log
    ):
        with pytest.raises(InvalidFieldError) as caught:
            await kept.streamed(resume_token=bad)
        assert caught.value.field == "resume_token", bad
    with pytest.raises(InvalidFieldError) as caught:
        await kept.streamed(resume_token=token(f"e1 {origin} 5 {'0' * 16}"))
    assert caught.value.message == "resume_token is not of the log as it is: entry 4 was another one"
    assert caught.value.metadata == {"limit": "of the log as it is", "value": "4"}
    with pytest.raises(NotFoundError):
        await kept.streamed(resume_token=token(f"e1 {elsewhere} 5 {mark}"))
    with pytest.raises(InvalidFieldError) as caught:
        await kept.streamed(resume_token=good, origin=elsewhere)
    assert (caught.value.field, caught.value.metadata["limit"]) == ("resume_token", elsewhere)


async def test_who_follows_is_given_what_comes_until_another_shard_follows(kept: Kept) -> None:
    await play(kept)
    first = Logged(kept.shard)
    stream = kept.log.entries(origin="", start_index=0, resume_token="", follow=True)
    got: list[bytes] = []
    async for one in stream:
        if one is None:
            break
        got.append(one.entry)
    assert got == first.entries
    assert await anext(stream) is None
    other = Player(kept.harness, name="berta")
    await other.sit()
    await kept.sequencer.work()
    grown = Logged(kept.shard)
    assert len(grown.entries) > len(got)
    for entry in grown.entries[len(got) :]:
        one = await anext(stream)
        assert one is not None
        assert one.entry == entry
    assert await anext(stream) is None
    kept.clock.time_ms = NEXT_HALF_YEAR_MS
    await kept.sequencer.work()
    assert [one async for one in stream] == []
    assert (await kept.log.checkpoint("")).origin == f"{PREFIX}/2027h1"
    (begin, *_) = await kept.streamed()
    assert begin.entry.startswith(grown.checkpoint.origin.encode())
    assert len(await kept.streamed(origin=grown.checkpoint.origin)) == len(grown.entries)


async def test_a_log_that_shrinks_under_who_follows_it_is_no_log(kept: Kept) -> None:
    await play(kept)
    stream = kept.log.entries(origin="", start_index=0, resume_token="", follow=True)
    while await anext(stream) is not None:
        pass
    logged = Logged(kept.shard)
    older = signed_checkpoint(5, logged.root(5), origin=kept.origin, signer=SIGNER)
    (kept.shard / "checkpoint").write_bytes(older)
    with pytest.raises(LogUnreadableError, match=f"had {len(logged.entries)} entries, and has 5"):
        await anext(stream)


async def test_files_that_are_gone_or_changed_are_a_fault_and_nothing_is_served_of_them(kept: Kept) -> None:
    anna = await play(kept)
    size = Logged(kept.shard).checkpoint.size
    tile = kept.shard / "tile" / "0" / "000.p" / str(size)
    good = tile.read_bytes()
    tile.write_bytes(bytes(len(good)))
    with pytest.raises(LogUnreadableError):
        await kept.record(round_id=anna.round["round_id"], session_id=anna.session_id, kind="round_final")
    tile.write_bytes(good[:-1])
    with pytest.raises(LogUnreadableError):
        await kept.log.consistency("", 1, size)
    (kept.shard / "tile" / "entries" / "000.p" / str(size)).unlink()
    with pytest.raises(LogUnreadableError):
        await kept.streamed()
    (kept.shard / "checkpoint").write_bytes(b"nothing")
    with pytest.raises(LogUnreadableError):
        await kept.log.checkpoint("")


# --- secrets ----------------------------------------------------------------------------------------------------------


async def test_an_open_round_s_deck_is_in_nothing_that_the_log_tells(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[bytes, bytes]] = []
    seal = Sealer.seal

    def keep(self: Sealer, instance: str, draw_no: int, core: bytes, salt: bytes, transcript: bytes) -> bytes:
        drawn.append((salt, transcript))
        return seal(self, instance, draw_no, core, salt, transcript)

    monkeypatch.setattr(Sealer, "seal", keep)
    anna = Player(kept.harness)
    await anna.sit()
    await anna.start()
    await kept.sequencer.work()
    requested = {"round_id": anna.round["round_id"], "session_id": anna.session_id}
    row, proof = await kept.record(AUDITOR, **requested, kind="round_opening")
    result = b"\n".join([row.envelope, proof, *(one.entry for one in await kept.streamed())])
    assert anna.round["round_id"] in str(parse_statement(parse_envelope(row.envelope))[1])
    assert leaks(secret_of(*drawn[0], 0), {"log": result}) == []
    with pytest.raises(NotFoundError):
        await kept.record(AUDITOR, **requested, kind="round_final")
