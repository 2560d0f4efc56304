"""The files beside the store that the log and its witness keep: the newest checkpoint, the order, what was cosigned."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import UnavailableError
from rgs.core.tlog.witness import SeenTree
from rgs.store.changes import StoreError, StoreRefusedError
from rgs.store.checkpoints import CheckpointRaceError, CheckpointRow, Checkpoints
from rgs.store.sequence import LogOrder, LogShard, SequenceRaceError, read_place
from rgs.store.witness import WitnessStore

ORIGIN, OTHER = "rgs.example/2026h1", "rgs.example/2026h2"
ROOTS = [bytes([number]) * 32 for number in range(10)]


def row(size: int, root: bytes = b"", note: bytes = b"", origin: str = ORIGIN) -> CheckpointRow:
    return CheckpointRow(origin, size, root or ROOTS[size], note or b"note %d" % size)


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[Checkpoints]:
    made = Checkpoints(tmp_path / "checkpoints")
    yield made
    made.close()


def test_a_checkpoint_takes_the_place_of_the_one_that_it_follows(checkpoints: Checkpoints) -> None:
    assert checkpoints.newest(ORIGIN) is None
    checkpoints.swap(None, row(0))
    checkpoints.swap(None, row(5, origin=OTHER))
    checkpoints.swap(row(0), row(3))
    checkpoints.swap(row(3), row(3, note=b"cosigned"))
    assert checkpoints.newest(ORIGIN) == row(3, note=b"cosigned")
    assert checkpoints.newest(OTHER) == row(5, origin=OTHER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, row(4)),
        (row(2), row(4)),
        (row(3, root=ROOTS[9]), row(4)),
        (row(3, note=b"another"), row(4)),
        (row(3), row(2)),
        (row(3), row(3, root=ROOTS[9])),
        (row(3, origin=OTHER), row(4, origin=OTHER)),
    ],
    ids=["a first one", "from a size", "from a root", "from a note", "a smaller one", "another root", "of another log"],
)
def test_a_checkpoint_that_does_not_follow_the_newest_is_refused(
    checkpoints: Checkpoints, old: CheckpointRow | None, new: CheckpointRow
) -> None:
    checkpoints.swap(None, row(3))
    with pytest.raises(CheckpointRaceError, match=f"{new.origin} is not the one that size {new.size} was to follow"):
        checkpoints.swap(old, new)
    assert checkpoints.newest(ORIGIN) == row(3)
    assert checkpoints.newest(OTHER) is None


# --- the order --------------------------------------------------------------------------------------------------------


@pytest.fixture
def order(tmp_path: Path) -> Iterator[LogOrder]:
    made = LogOrder(tmp_path / "order")
    yield made
    made.close()


def test_every_statement_gets_its_place_once(order: LogOrder, tmp_path: Path) -> None:
    assert order.shard() is None
    order.open_shard(LogShard(1, ORIGIN, b""))
    order.assign(1, 0, [("a", 1), ("b", 1), ("a", 2)])
    order.assign(1, 3, [("b", 2)])
    assert (order.positions(), order.count(1), order.count(2)) == ({"a": 2, "b": 2}, 4, 0)
    assert order.statements(1, 0, 9) == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert order.statements(1, 1, 3) == [("b", 1), ("a", 2)]
    order.open_shard(LogShard(2, OTHER, b"the last checkpoint"))
    assert order.shard() == LogShard(2, OTHER, b"the last checkpoint")
    order.assign(2, 1, [("a", 3)])
    assert order.statements(2, 0, 9) == [("", 0), ("a", 3)]
    path = tmp_path / "order"
    assert [read_place(path, *named) for named in (("a", 2), ("b", 2), ("a", 3), ("a", 4), ("c", 1))] == [
        (ORIGIN, 2),
        (ORIGIN, 3),
        (OTHER, 1),
        None,
        None,
    ]


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_shard_that_is_not_the_next_is_refused(order: LogOrder, number: int) -> None:
    for shard in (LogShard(number, OTHER, b""), LogShard(1, ORIGIN, b"")):
        if shard.number != 1:
            with pytest.raises(SequenceRaceError, match=f"shard {number} is not the next one"):
                order.open_shard(shard)
        else:
            order.open_shard(shard)
    with pytest.raises(SequenceRaceError, match="shard 1 is not the next one"):
        order.open_shard(LogShard(1, OTHER, b""))
    assert order.shard() == LogShard(1, ORIGIN, b"")


@pytest.mark.parametrize(
    ("shard", "first", "statements"),
    [
        (1, 1, [("a", 3)]),
        (1, 3, [("a", 3)]),
        (1, 2, [("a", 2)]),
        (1, 2, [("a", 4)]),
        (1, 2, [("b", 2)]),
        (1, 2, [("a", 1)]),
        (1, 2, [("a", 3), ("a", 5)]),
    ],
)
def test_an_order_that_is_not_the_next_is_refused_whole(
    order: LogOrder, shard: int, first: int, statements: list[tuple[str, int]]
) -> None:
    order.open_shard(LogShard(1, ORIGIN, b""))
    order.assign(1, 0, [("a", 1), ("a", 2)])
    with pytest.raises(SequenceRaceError):
        order.assign(shard, first, statements)
    assert order.statements(1, 0, 9) == [("a", 1), ("a", 2)]
    assert order.positions() == {"a": 2}


def test_nothing_gets_a_place_in_a_shard_that_another_one_follows(order: LogOrder) -> None:
    order.open_shard(LogShard(1, ORIGIN, b""))
    order.open_shard(LogShard(2, OTHER, b""))
    with pytest.raises(SequenceRaceError, match="0 is not the next index of shard 1"):
        order.assign(1, 0, [("a", 1)])
    assert order.positions() == {}


def test_a_place_is_read_from_no_file_and_not_from_another_one(tmp_path: Path) -> None:
    assert read_place(tmp_path / "order", "a", 1) is None
    assert not (tmp_path / "order").exists()
    (tmp_path / "order").write_bytes(b"no database at all, whatever its name says")
    with pytest.raises(StoreError, match="order cannot be read") as refused:
        read_place(tmp_path / "order", "a", 1)
    assert refused.value.metadata["file"] == "order"


# --- the witness ------------------------------------------------------------------------------------------------------


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessStore]:
    made = WitnessStore(tmp_path / "witness")
    yield made
    made.close()


def test_a_witness_remembers_the_largest_tree_of_each_log(witness: WitnessStore) -> None:
    seen: list[SeenTree] = []

    def to(size: int, note: bytes, origin: str = ORIGIN) -> None:
        def decide(before: SeenTree) -> tuple[SeenTree, bytes]:
            seen.append(before)
            return SeenTree(size, ROOTS[size]), note

        witness.advance(origin, decide)

    to(3, b"three")
    to(5, b"five")
    to(2, b"two of another", OTHER)
    to(5, b"five again")
    assert seen == [SeenTree(), SeenTree(3, ROOTS[3]), SeenTree(), SeenTree(5, ROOTS[5])]
    assert witness.notes() == {ORIGIN: b"five again", OTHER: b"two of another"}


@pytest.mark.parametrize(
    "after", [SeenTree(4, ROOTS[4]), SeenTree(5, ROOTS[9])], ids=["a smaller tree", "another root"]
)
def test_a_witness_does_not_go_back_whoever_asks(witness: WitnessStore, after: SeenTree) -> None:
    witness.advance(ORIGIN, lambda _: (SeenTree(5, ROOTS[5]), b"five"))
    with pytest.raises(UnavailableError):
        witness.advance(ORIGIN, lambda _: (after, b"a fork"))
    assert witness.notes() == {ORIGIN: b"five"}


def test_what_a_decision_raises_leaves_the_row_as_it_is(witness: WitnessStore) -> None:
    def refuses(_: SeenTree) -> tuple[SeenTree, bytes]:
        raise ValueError("no")

    witness.advance(ORIGIN, lambda _: (SeenTree(5, ROOTS[5]), b"five"))
    with pytest.raises(ValueError, match="no"):
        witness.advance(ORIGIN, refuses)
    assert witness.notes() == {ORIGIN: b"five"}


# --- which file it is -------------------------------------------------------------------------------------------------

KINDS = [Checkpoints, LogOrder, WitnessStore]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_found_again_and_no_other_is_taken_for_it(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(2):
        kind(path).close()
    for other in KINDS:
        if other is not kind:
            with pytest.raises(StoreRefusedError):
                other(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_schema_is_refused_with_both_numbers(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "file"
    kind(path).close()
    with closing(sqlite3.connect(path)) as by_hand:
        by_hand.execute("PRAGMA user_version = 7")
    with pytest.raises(StoreRefusedError) as refused:
        kind(path)
    assert refused.value.metadata == {"file": "file", "limit": "1", "value": "7"}
