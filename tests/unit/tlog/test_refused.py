"""rgs.tlog: everything that makes it refuse to sign, and what its two databases refuse."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rgs.store.checkpoints import CheckpointRaceError, CheckpointRow, Checkpoints
from rgs.store.sequence import LogOrder, LogShard, SequenceRaceError, read_place
from rgs.tlog.directory import LogDirectory, LogRefusedError
from rgs.tlog.sequencer import CHECKPOINTS_FILE, ORDER_FILE, Sequencer
from rgs.tlog.shard import ShardWriter
from tests.support.clocks import ManualClock
from tests.support.log.sequencing import PREFIX, SIGNER, Logged, Shelf, fill, make_sequencer
from tests.support.service.harness import NODE_KEY

H1 = f"{PREFIX}/2026h1"


# --- what makes it refuse to sign -------------------------------------------------------------------------------------


Harm = Callable[[Path, Shelf], None]


def _keep(log: Path, name: str) -> None:
    shutil.copy(log / name, log.parent / name)


def _put_back(name: str) -> Harm:
    return lambda log, _shelf: Path(shutil.copy(log.parent / name, log / name)).touch()


def _lose(name: str) -> Harm:
    return lambda log, _shelf: (log / name).unlink()


def _store_behind(_log: Path, shelf: Shelf) -> None:
    del shelf.rows["a"][250:]


def _store_without_an_instance(_log: Path, shelf: Shelf) -> None:
    del shelf.rows["b"]


def _store_went_on(_log: Path, shelf: Shelf) -> None:
    del shelf.rows["a"][-1:]
    shelf.commit("a", text="of another life")


def _file(name: str, content: bytes) -> Harm:
    return lambda log, _shelf: _write(log / "2026h1" / name, content)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _flip(name: str) -> Harm:
    def flip(log: Path, _shelf: Shelf) -> None:
        path = log / "2026h1" / name
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)

    return flip


REFUSED: list[tuple[str, Harm, str]] = [
    ("the store behind the log", _store_behind, "STORE_BEHIND"),
    ("the store without an instance", _store_without_an_instance, "STORE_BEHIND"),
    ("the store with another history", _store_went_on, "STORE_DIFFERS"),
    ("an older checkpoint database", _put_back(CHECKPOINTS_FILE), "CHECKPOINT_BEHIND"),
    ("no checkpoint database", _lose(CHECKPOINTS_FILE), "CHECKPOINT_LOST"),
    ("an older order", _put_back(ORDER_FILE), "ORDER_BEHIND"),
    ("no order", _lose(ORDER_FILE), "ORDER_LOST"),
    ("a leaf of the edge changed", _flip("tile/0/001.p/46"), "FILE_DIFFERS"),
    ("an entry of the edge changed", _flip("tile/entries/001.p/46"), "FILE_DIFFERS"),
    ("a tile changed", _flip("tile/1/000.p/1"), "ROOT_DIFFERS"),
    ("a tile missing", _lose("2026h1/tile/1/000.p/1"), "FILE_MISSING"),
    ("a bundle missing", _lose("2026h1/tile/entries/001.p/46"), "FILE_MISSING"),
    ("a tile cut", _file("tile/0/001.p/46", b"short"), "FILE_MALFORMED"),
    ("a checkpoint that is none", _file("checkpoint", b"nothing"), "KEY_DIFFERS"),
]


@pytest.mark.parametrize(("harm", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_it_refuses_to_start_where_not_all_agree(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock, harm: Harm, code: str
) -> None:
    fill(shelf, 270)
    await sequencer.work()
    await sequencer.close()
    for name in (CHECKPOINTS_FILE, ORDER_FILE):
        _keep(log, name)
    again = make_sequencer(shelf, log, clock)
    fill(shelf, 32, "b")
    await again.work()
    await again.close()
    harm(log, shelf)
    signed = (log / "2026h1" / "checkpoint").read_bytes()

    after = make_sequencer(shelf, log, clock)
    fill(shelf, 5, "c")
    for _ in range(2):  # the second time it is not even looked at
        with pytest.raises(LogRefusedError) as refused:
            await after.work()
        assert refused.value.code == after.code == code
    clock.tick(5_000)
    with pytest.raises(LogRefusedError):
        await after.work()
    assert (log / "2026h1" / "checkpoint").read_bytes() == signed
    assert not after.leads
    await after.close()


async def test_another_key_or_another_name_is_refused(
    shelf: Shelf, sequencer: Sequencer, log: Path, clock: ManualClock
) -> None:
    fill(shelf, 3)
    await sequencer.work()
    await sequencer.close()
    for options, code in (({"signer": NODE_KEY}, "KEY_DIFFERS"), ({"prefix": "other.example"}, "ORIGIN_DIFFERS")):
        other = make_sequencer(shelf, log, clock, **options)
        with pytest.raises(LogRefusedError) as refused:
            await other.work()
        assert refused.value.code == code
        await other.close()


async def test_a_file_in_the_way_is_named(shelf: Shelf, sequencer: Sequencer, log: Path) -> None:
    await sequencer.work()
    (log / "2026h1/tile/0/000.p").mkdir(parents=True)
    (log / "2026h1/tile/0/000.p/3").write_bytes(b"somebody else's")
    fill(shelf, 3)
    with pytest.raises(LogRefusedError, match=r"tile/0/000\.p/3 is there with other content"):
        await sequencer.work()
    assert Logged(log / "2026h1").checkpoint.size == 0
    await sequencer.close()


async def test_a_gap_in_the_store_is_refused(shelf: Shelf, sequencer: Sequencer) -> None:
    fill(shelf, 3)
    del shelf.rows["a"][1]
    with pytest.raises(LogRefusedError) as refused:
        await sequencer.work()
    assert refused.value.code == "STORE_GAP"
    await sequencer.close()


async def test_an_older_published_checkpoint_is_replaced_and_one_of_another_history_is_not(
    shelf: Shelf, log: Path, clock: ManualClock
) -> None:
    sequencer = make_sequencer(shelf, log, clock)
    fill(shelf, 3)
    await sequencer.work()
    older = (log / "2026h1" / "checkpoint").read_bytes()
    fill(shelf, 3)
    await sequencer.close()
    newest = (log / "2026h1" / "checkpoint").read_bytes()
    (log / "2026h1" / "checkpoint").write_bytes(older)  # killed before it was published
    again = make_sequencer(shelf, log, clock)
    await again.work()
    assert (log / "2026h1" / "checkpoint").read_bytes() == newest
    await again.close()
    with closing(Checkpoints(log.parent / "other.db")) as checkpoints:
        other = ShardWriter.open(LogDirectory(log.parent / "other"), checkpoints, H1, SIGNER)
        other.write([b"another history"])
        other.sign()
    (log / "2026h1" / "checkpoint").write_bytes(other.newest.note)
    last = make_sequencer(shelf, log, clock)
    with pytest.raises(LogRefusedError) as refused:
        await last.work()
    assert refused.value.code == "ROOT_DIFFERS"
    await last.close()


def test_nothing_is_signed_over_files_that_are_not_the_entries(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints.db")
    writer = ShardWriter.open(LogDirectory(tmp_path / "log"), checkpoints, H1, SIGNER)
    writer.write([b"one", b"two"])
    (tmp_path / "log" / "tile/0/000.p/2").write_bytes(bytes(64))
    with pytest.raises(LogRefusedError) as refused:
        writer.sign()
    assert refused.value.code == "INCONSISTENT"
    newest = checkpoints.newest(H1)
    assert newest is not None
    assert newest.size == 0
    checkpoints.close()


# --- a backup of the whole log ----------------------------------------------------------------------------------------


async def test_a_log_that_was_restored_whole_is_refused_by_what_a_witness_saw(
    shelf: Shelf, log: Path, clock: ManualClock
) -> None:
    async def led(expected: str = "") -> None:
        sequencer = make_sequencer(shelf, log, clock)
        if expected:
            with pytest.raises(LogRefusedError, match="a witness has seen") as refused:
                await sequencer.work()
            assert refused.value.code == sequencer.code == expected
        else:
            await sequencer.work()
        await sequencer.close()

    fill(shelf, 40)
    await led()
    shutil.copytree(log, log.parent / "backup")
    fill(shelf, 40)
    await led()
    shutil.copytree(log, log.parent / "newest")
    shelf.witnessed("a", Logged(log / "2026h1").checkpoint)
    await led()
    for restored, code in (("backup", "WITNESSED_DIFFERS"), ("newest", "")):
        shutil.rmtree(log)
        shutil.copytree(log.parent / restored, log)
        signed = (log / "2026h1" / "checkpoint").read_bytes()
        await led(code)
        assert ((log / "2026h1" / "checkpoint").read_bytes() == signed) == bool(code)
    # Of another history, and as long: gone on with before anybody had told.
    shelf.reported[-1:], reported = [], shelf.reported[-1:]
    shutil.rmtree(log)
    shutil.copytree(log.parent / "backup", log)
    shelf.rows["b"] = []
    shelf.commit("b", id_=0)
    await led()
    shelf.reported += reported
    await led("WITNESSED_DIFFERS")


# --- the two databases ------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[Checkpoints]:
    opened = Checkpoints(tmp_path / "checkpoints.db")
    yield opened
    opened.close()


def test_checkpoints_are_swapped_one_after_the_other(checkpoints: Checkpoints) -> None:
    empty, first = CheckpointRow("o", 0, bytes(32), b"n0"), CheckpointRow("o", 5, b"r" * 32, b"n1")
    checkpoints.swap(None, empty)
    with pytest.raises(CheckpointRaceError):
        checkpoints.swap(None, first)
    checkpoints.swap(empty, first)
    for new in (
        CheckpointRow("o", 4, b"r" * 32, b"smaller"),
        CheckpointRow("o", 5, b"q" * 32, b"another root"),
        CheckpointRow("p", 6, b"r" * 32, b"another origin"),
    ):
        with pytest.raises(CheckpointRaceError):
            checkpoints.swap(first, new)
    with pytest.raises(CheckpointRaceError):
        checkpoints.swap(empty, CheckpointRow("o", 6, b"r" * 32, b"from an older one"))
    cosigned = CheckpointRow("o", 5, b"r" * 32, b"n1 with more lines")
    checkpoints.swap(first, cosigned)
    assert checkpoints.newest("o") == cosigned
    assert checkpoints.newest("p") is None


def test_places_are_given_once_and_without_a_gap(tmp_path: Path) -> None:
    order = LogOrder(tmp_path / "order.db")
    with pytest.raises(SequenceRaceError):
        order.open_shard(LogShard(2, "o/2", b""))
    order.open_shard(LogShard(1, "o/1", b""))
    order.assign(1, 0, [("a", 1), ("b", 1), ("a", 2)])
    for first, statements in (
        (2, [("a", 3)]),  # the index is taken
        (4, [("a", 3)]),  # leaves a gap
        (3, [("a", 2)]),  # stands there already
        (3, [("a", 4)]),  # leaves a gap
        (3, [("c", 2)]),  # begins in the middle
        (3, [("a", 3), ("b", 1)]),  # one bad one spoils all
    ):
        with pytest.raises(SequenceRaceError):
            order.assign(1, first, statements)
    assert order.positions() == {"a": 2, "b": 1}
    assert read_place(tmp_path / "order.db", "a", 2) == ("o/1", 2)
    assert read_place(tmp_path / "order.db", "a", 3) is None
    assert read_place(tmp_path / "none.db", "a", 2) is None
    assert not (tmp_path / "none.db").exists()
    order.open_shard(LogShard(2, "o/2", b"the end of the first"))
    assert order.shard() == LogShard(2, "o/2", b"the end of the first")
    with pytest.raises(SequenceRaceError):
        order.assign(1, 3, [("a", 3)])
    order.assign(2, 1, [("a", 3)])
    assert order.statements(2, 0, 2) == [("", 0), ("a", 3)]
    assert (order.count(1), order.count(2)) == (3, 2)
    order.close()
