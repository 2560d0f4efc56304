"""Cosignatures for what is published: rounds, patience, retries, and what a refusal does and does not do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import leaf_hash, root_of
from rgs.core.tlog.note import COSIGNATURE, ED25519, Note, NoteKey, NoteSignature, cosign, note_key, parse_note
from rgs.core.tlog.policies import Party, Policy, WitnessGroup
from rgs.core.tlog.witness import WitnessRefusalError
from rgs.tlog.cosigning import (
    AHEAD,
    CONTRADICTS,
    ENDED_MS,
    FINISH_MS,
    FORKED,
    PATIENCE_MS,
    PERIOD_MS,
    REPORTED_MS,
    RETRY_MS,
    Cosigner,
    Refusal,
    check_evidence,
)
from rgs.tlog.directory import LogDirectory, LogRefusedError
from rgs.tlog.sequencer import Sequencer
from rgs.tlog.witnesses import Prove, Witnesses, WitnessUnavailableError
from tests.support.clocks import ManualClock
from tests.support.log.sequencing import AUTUMN_MS, PREFIX, SIGNER, SUMMER_MS, Shelf, make_sequencer

NAMES = ("a", "b", "c")
SIGNERS = {name: Ed25519Signer.from_seed(name.encode() * 32) for name in NAMES}
PARTIES = {
    name: Party(note_key(f"{name}.example", COSIGNATURE, signer), f"https://{name}.example")
    for name, signer in SIGNERS.items()
}
LOG = Party(note_key(f"{PREFIX}/2026h1", ED25519, SIGNER))
TWO_OF_THREE = Policy((LOG,), PARTIES, {"q": WitnessGroup(2, NAMES)}, "q")
ONE = Policy((LOG,), {"a": PARTIES["a"]}, {}, "a")

Script = Callable[[Note], None]


class Hanging:
    """Does not answer before it is released."""

    def __init__(self, released: threading.Event, then: Script | None = None) -> None:
        self.released = released
        self._then = then

    def __call__(self, note: Note) -> None:
        self.released.wait(60)
        if self._then is not None:
            self._then(note)


class Scripted(Witnesses):
    """Witnesses that do what the test says before they cosign: wait, or raise."""

    def __init__(self, clock: ManualClock, policy: Policy) -> None:
        super().__init__(policy.witnesses, clock)
        self.scripts: dict[str, Script] = {}
        self.shown: dict[str, Checkpoint] = {}
        self.requested: list[tuple[str, int]] = []

    def ask(self, name: str, note: Note, prove: Prove) -> list[NoteSignature]:
        size = parse_checkpoint(note.text).size
        self.requested.append((name, size))
        prove(1, size)  # the files it is made of are there
        if name in self.scripts:
            self.scripts[name](note)
        return [cosign(note.text, f"{name}.example", SIGNERS[name], self.clock.now_ms() // 1000)]

    def seen_by(self, name: str, key: NoteKey) -> Checkpoint:
        assert key == note_key(key.name, ED25519, SIGNER)
        if name not in self.shown:
            raise WitnessUnavailableError("shows nothing")
        return self.shown[name]


class Bench:
    """A sequencer over a shelf, its cosigner, and the steps of time."""

    def __init__(self, folder: Path, policy: Policy = TWO_OF_THREE) -> None:
        self.clock = ManualClock(SUMMER_MS)
        self.shelf = Shelf()
        self.folder = folder
        self.sequencer = make_sequencer(self.shelf, folder, self.clock)
        self.witnesses = Scripted(self.clock, policy)
        self.reported: list[Refusal] = []
        self.cosigner = self.cosigner_of(self.sequencer, policy)

    def cosigner_of(self, sequencer: Sequencer, policy: Policy) -> Cosigner:
        async def emit(refusal: Refusal) -> None:
            self.reported.append(refusal)

        return Cosigner(
            witnesses=self.witnesses,
            policy=policy,
            sequencer=sequencer,
            folder=self.folder,
            clock=self.clock,
            emit=emit,
        )

    @property
    def shard(self) -> LogDirectory:
        return LogDirectory(max(path.parent for path in self.folder.glob("*/checkpoint")))

    async def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.shelf.commit("i")
        await self.sequencer.work()

    async def work(self, until: Callable[[], bool]) -> None:
        """Steps without time passing, until something has come of them."""
        for _ in range(3_000):
            await self.cosigner.work()
            if until():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it does not come to that")

    async def step(self, milliseconds: int) -> None:
        """Time passes, one step is taken, and who has been asked has answered."""
        self.clock.tick(milliseconds)
        await self.cosigner.work()
        hangs = any(isinstance(one, Hanging) and not one.released.is_set() for one in self.witnesses.scripts.values())
        for _ in range(30 if hangs else 2_000):
            if not any(state.is_requested for state in self.cosigner._states.values()):
                break
            await asyncio.sleep(0.01)
        await self.cosigner.work()

    def cosigned(self) -> tuple[int, list[str]]:
        return _reported(self.shard.cosigned())

    def published(self) -> tuple[int, list[str]]:
        return _reported(self.shard.checkpoint())


def _reported(note: bytes) -> tuple[int, list[str]]:
    """Size and witnesses of a note; (0, []) for none."""
    if not note:
        return 0, []
    parsed = parse_note(note)
    return parse_checkpoint(parsed.text).size, sorted(line.name[0] for line in parsed.signatures[1:])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "log")


def refuse(status: int, size: int | None = None) -> Script:
    def script(_note: Note) -> None:
        seen: dict[str, Any] = {} if size is None else {"size": size}
        raise WitnessRefusalError("no", status=status, **seen)

    return script


def away(_note: Note) -> None:
    raise WitnessUnavailableError("away")


# --- rounds -----------------------------------------------------------------------------------------------------------


async def test_what_is_published_is_cosigned_and_the_newest_alone_is_asked_for(bench: Bench) -> None:
    await bench.publish(3)
    await bench.work(lambda: bench.published() == (3, ["a", "b", "c"]))
    assert bench.cosigned() == bench.published()
    for _ in range(5):
        await bench.publish()
        await bench.step(PERIOD_MS // 10)
    assert bench.cosigned() == (3, ["a", "b", "c"])  # not lost by what was published since
    assert bench.published() == (8, [])
    bench.clock.tick(PERIOD_MS)
    await bench.work(lambda: bench.published() == (8, ["a", "b", "c"]))
    assert sorted(bench.witnesses.requested) == [(name, size) for name in NAMES for size in (3, 8)]
    await bench.step(10 * PERIOD_MS)
    assert len(bench.witnesses.requested) == 6  # nothing new: nobody is asked
    await bench.sequencer.close()


async def test_a_witness_that_hangs_keeps_neither_the_log_nor_the_quorum_waiting(bench: Bench) -> None:
    released = threading.Event()
    bench.witnesses.scripts["c"] = Hanging(released)
    await bench.publish(3)
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b"]))
    await bench.publish(2)
    assert bench.published() == (5, [])
    await bench.step(PATIENCE_MS - 1)
    assert ("a", 5) not in bench.witnesses.requested  # so long the round waits for it
    with capture_logs() as logs:
        bench.clock.tick(1)
        await bench.work(lambda: bench.cosigned() == (5, ["a", "b"]))
    assert [(log["event"], log["witness"], log["code"]) for log in logs] == [("witness_failed", "c", "SILENT")]
    await bench.step(RETRY_MS)
    assert [size for name, size in bench.witnesses.requested if name == "c"] == [3]  # it has one thread, not many
    released.set()
    bench.witnesses.scripts.clear()
    await bench.step(RETRY_MS)
    await bench.publish()
    bench.clock.tick(PERIOD_MS)
    await bench.work(lambda: bench.published() == (6, ["a", "b", "c"]))
    await bench.sequencer.close()


async def test_a_line_that_comes_after_the_quorum_is_added(bench: Bench) -> None:
    released = threading.Event()
    bench.witnesses.scripts["c"] = Hanging(released)
    await bench.publish(3)
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b"]))
    released.set()
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b", "c"]))
    assert bench.published() == (3, ["a", "b", "c"])
    await bench.sequencer.close()


async def test_without_the_quorum_what_there_is_is_published_and_not_called_cosigned(bench: Bench) -> None:
    bench.witnesses.scripts |= {"b": away, "c": refuse(404)}
    await bench.publish(3)
    with capture_logs() as logs:
        await bench.work(lambda: bench.published() == (3, ["a"]))
        await bench.step(RETRY_MS - 1)
        assert bench.witnesses.requested.count(("b", 3)) == 1
        await bench.step(1)
        assert bench.witnesses.requested.count(("b", 3)) == 2
    assert bench.cosigned() == (0, [])
    failures = {(log["witness"], log["code"]) for log in logs}
    assert failures == {("b", "WITNESS_UNAVAILABLE"), ("c", "WITNESS_REFUSED 404")}
    assert len(logs) == 2  # told once, not with every attempt
    bench.witnesses.scripts.clear()
    with capture_logs() as logs:
        bench.clock.tick(RETRY_MS)
        await bench.work(lambda: bench.cosigned() == (3, ["a", "b", "c"]))
    assert {(log["event"], log["witness"]) for log in logs} == {("witness_cosigns", "b"), ("witness_cosigns", "c")}
    assert bench.reported == []
    assert bench.sequencer.code == ""
    await bench.sequencer.close()


@pytest.mark.parametrize("error", [FormatError("nonsense"), OSError("the disk"), ZeroDivisionError()])
async def test_whatever_goes_wrong_on_a_thread_is_a_failure_of_that_witness(bench: Bench, error: Exception) -> None:
    def fail(_note: Note) -> None:
        raise error

    bench.witnesses.scripts["b"] = fail
    await bench.publish(3)
    with capture_logs() as logs:
        await bench.work(lambda: bench.cosigned() == (3, ["a", "c"]))
        await bench.step(0)
    assert [log["witness"] for log in logs] == ["b"]
    await bench.sequencer.close()


async def test_the_last_checkpoint_of_a_half_year_is_cosigned_too_and_keeps_the_next_one_not_waiting(
    bench: Bench,
) -> None:
    await bench.publish(3)
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b", "c"]))
    ended = bench.shard
    await bench.publish()  # nobody has been asked about this one when the half-year ends
    bench.witnesses.scripts |= {"b": away, "c": away}
    bench.clock.time_ms = AUTUMN_MS
    await bench.publish()
    assert bench.shard.folder != ended.folder
    await bench.work(lambda: _reported(ended.checkpoint()) == (4, ["a"]))
    bench.witnesses.scripts.clear()
    bench.clock.tick(RETRY_MS)
    await bench.work(lambda: bench.cosigned() == (2, ["a", "b", "c"]))
    assert _reported(ended.cosigned()) == (3, ["a", "b", "c"])
    bench.clock.tick(ENDED_MS)
    await bench.work(lambda: _reported(ended.cosigned()) == (4, ["a", "b", "c"]))
    assert _reported(ended.checkpoint()) == (4, ["a", "b", "c"])
    requested = len(bench.witnesses.requested)
    await bench.step(2 * ENDED_MS)
    # The newest of the shard that grows is asked about again after it, and then nobody is.
    assert [size for _, size in bench.witnesses.requested[requested:]] == [2, 2, 2]
    requested = len(bench.witnesses.requested)
    await bench.step(2 * ENDED_MS)
    assert len(bench.witnesses.requested) == requested
    await bench.sequencer.close()


# --- the end, and other lives -----------------------------------------------------------------------------------------


async def test_the_end_waits_for_the_last_cosignatures_and_not_for_long(bench: Bench) -> None:
    await bench.publish(3)
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b", "c"]))
    await bench.publish()
    await bench.cosigner.finish()  # less than a period after the round before
    assert bench.cosigned() == bench.published() == (4, ["a", "b", "c"])
    released = threading.Event()
    bench.witnesses.scripts["c"] = Hanging(released)
    await bench.publish()
    ended = asyncio.create_task(bench.cosigner.finish())
    await asyncio.sleep(0.2)
    assert not ended.done()
    bench.clock.tick(FINISH_MS)
    await asyncio.wait_for(ended, 20)
    assert bench.cosigned() == (5, ["a", "b"])
    released.set()
    await bench.sequencer.close()
    await bench.cosigner.finish()  # nothing more can be kept


async def test_who_leads_again_asks_for_what_was_not_cosigned(bench: Bench) -> None:
    bench.witnesses.scripts |= {"b": away, "c": away}
    await bench.publish(3)
    await bench.work(lambda: bench.published() == (3, ["a"]))
    bench.shelf.is_leader = False
    await bench.sequencer.work()
    await bench.step(0)
    bench.witnesses.scripts.clear()
    bench.shelf.is_leader = True
    await bench.sequencer.work()
    bench.clock.tick(RETRY_MS)
    await bench.work(lambda: bench.cosigned() == (3, ["a", "b", "c"]))
    await bench.sequencer.close()


async def test_an_answer_to_an_earlier_life_accuses_nobody(bench: Bench) -> None:
    """While it was asked another process has led, and published more: what the witness has seen is that."""
    released = threading.Event()
    bench.witnesses.scripts["a"] = Hanging(released, refuse(409))
    bench.witnesses.shown["a"] = Checkpoint(f"{PREFIX}/2026h1", 9, bytes(32))
    await bench.publish(3)
    await bench.work(lambda: bench.cosigned() == (3, ["b", "c"]))
    bench.shelf.is_leader = False
    await bench.sequencer.work()
    await bench.step(0)
    released.set()
    await bench.step(0)
    assert (bench.reported, bench.sequencer.code) == ([], "")
    await bench.sequencer.close()


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(refuse(409, 4), AHEAD), (refuse(409), CONTRADICTS), (refuse(422), CONTRADICTS)],
    ids=["409 with a size", "409", "422"],
)
async def test_a_refusal_is_told_once_a_minute_and_stops_nothing(tmp_path: Path, refusal: Script, code: str) -> None:
    bench = Bench(tmp_path / "log", ONE)
    bench.witnesses.scripts["a"] = refusal
    await bench.publish(3)
    await bench.work(lambda: len(bench.reported) == 1)
    requested = Checkpoint(f"{PREFIX}/2026h1", 3, root_of([leaf_hash(row.envelope) for row in bench.shelf.rows["i"]]))
    assert bench.reported == [Refusal("a", code, requested)]
    await bench.step(RETRY_MS)
    assert len(bench.reported) == 1  # still the same
    for _ in range(2):  # it cosigns and refuses in turn
        bench.witnesses.scripts.clear()
        await bench.step(RETRY_MS)
        bench.witnesses.scripts["a"] = refusal
        await bench.publish()
        await bench.step(PERIOD_MS)
    assert len(bench.reported) == 1
    await bench.step(REPORTED_MS)
    assert len(bench.reported) == 2
    # Of what it shows nothing is another history: it stays a claim.
    bench.witnesses.shown["a"] = requested
    await bench.step(RETRY_MS)
    await bench.sequencer.work()
    assert bench.sequencer.code == ""
    await bench.sequencer.close()


@pytest.mark.parametrize("size", [2, 3, 4])
async def test_another_history_under_our_key_stops_signing(tmp_path: Path, size: int) -> None:
    bench = Bench(tmp_path / "log", ONE)
    bench.witnesses.scripts["a"] = refuse(422 if size < 4 else 409)
    bench.witnesses.shown["a"] = Checkpoint(f"{PREFIX}/2026h1", size, b"\x07" * 32)
    await bench.publish(3)
    await bench.work(lambda: len(bench.reported) == 1)
    assert (bench.reported[0].code, bench.reported[0].seen) == (FORKED, bench.witnesses.shown["a"])
    assert bench.sequencer.code == FORKED
    with pytest.raises(LogRefusedError, match=f"witness a shows {size} leaves with the root 0707"):
        await bench.publish()
    assert bench.published() == (3, [])
    bench.witnesses.scripts.clear()
    await bench.step(RETRY_MS)
    assert bench.sequencer.code == FORKED  # what was shown stays shown
    await bench.sequencer.close()


# --- what is no evidence ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "limit", "value"),
    [
        (Policy((LOG,), PARTIES), "the name of a witness or of a group", "none"),
        (Policy((LOG,), {"a": Party(PARTIES["a"].key)}, {}, "a"), "a", "0"),
        (Policy((LOG,), {**PARTIES, "b": Party(PARTIES["b"].key)}, {"q": WitnessGroup(3, NAMES)}, "q"), "q", "2"),
    ],
)
def test_a_policy_that_is_no_evidence_is_refused(policy: Policy, limit: str, value: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        check_evidence(policy, "log_policy")
    error = refused.value
    assert (error.field, error.metadata["limit"], error.metadata["value"]) == ("log_policy", limit, value)
    check_evidence(TWO_OF_THREE, "log_policy")
