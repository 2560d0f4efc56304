"""Cosignatures for published checkpoints: each witness of the log's policy is asked on a thread of its own, and its
cosignature is kept with the checkpoint (docs/log.md).

A round is about one checkpoint, the newest when it begins. The next round begins when all witnesses have answered or
have used up their time. So a witness that is away, slow or wrong delays cosignatures by PATIENCE_MS at most; neither
play nor the sequencer waits. A witness that has failed is not asked again for RETRY_MS.

When a witness refuses because it has seen another history, an event says so. Its word alone stops nothing: strangers
must not be able to stop play. But if it shows a checkpoint that this log key has signed and that is not part of this
log, there are two histories: the sequencer signs nothing more (code FORKED).

For one event loop. A policy must be evidence (`check_evidence`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import InvalidFieldError, RgsError
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import consistency_proof, root_at
from rgs.core.tlog.note import Note, NoteSignature, add_signatures, parse_note, parse_vkey
from rgs.core.tlog.policies import NONE, Policy
from rgs.core.tlog.witness import INCONSISTENT, STALE, WitnessRefusalError
from rgs.tlog.directory import LogDirectory, LogRefusedError
from rgs.tlog.sequencer import Sequencer, shard_folder
from rgs.tlog.witnesses import Witnesses

PERIOD_MS: Final = 1_000
"""From one round to the next, at least."""
PATIENCE_MS: Final = 6_000
"""How long a round waits for a witness."""
RETRY_MS: Final = 10_000
"""How long a witness that has failed is not asked again."""
ENDED_MS: Final = 60_000
"""Between two rounds for the last checkpoint of a shard that has ended without its quorum."""
REPORTED_MS: Final = 60_000
"""Between two events of one witness."""
FINISH_MS: Final = 5_000
"""How long the end of the process waits for the last cosignatures."""
STEP_S: Final = 0.05
FORKED: Final = "FORKED"
AHEAD: Final = "AHEAD"
CONTRADICTS: Final = "INCONSISTENT"
"""Why a witness refuses: it shows another history under our key; it names a larger tree; its history is another."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A witness has refused this checkpoint because of an earlier one. `seen` is that one, if our key has signed it."""

    witness: str
    code: str
    requested: Checkpoint
    seen: Checkpoint | None = None


def check_evidence(policy: Policy, field_: str) -> None:
    """InvalidFieldError unless cosignatures by this policy are evidence, and the quorum can be reached."""
    if policy.quorum == NONE:
        raise InvalidFieldError(
            "the quorum must name a witness or a group: with none a cosignature proves nothing",
            field=field_,
            limit="the name of a witness or of a group",
            value=NONE,
        )
    reached = {name for name, party in policy.witnesses.items() if party.url}
    if not policy.is_met_by(reached):
        raise InvalidFieldError(
            f"the quorum {policy.quorum} cannot be reached: only {', '.join(sorted(reached)) or 'nobody'} has an"
            " address in the policy",
            field=field_,
            limit=policy.quorum,
            value=len(reached),
        )


@dataclass(slots=True)
class _State:
    """What is known of one witness."""

    is_requested: bool = False
    requested_ms: int = 0
    again_ms: int = 0
    failure: str = ""
    """Why it has not cosigned, a code; empty while it does."""
    refusal: Refusal | None = None
    reported: str = ""
    reported_ms: int = -REPORTED_MS


@dataclass(slots=True)
class _Round:
    """One checkpoint that all witnesses are asked about."""

    note: Note
    began_ms: int
    lines: dict[str, list[NoteSignature]] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    kept: int = 0
    """How many witnesses have their lines kept."""


@dataclass(kw_only=True, eq=False, repr=False)
class Cosigner:
    """The witnesses of one process's sequencer. `work` is called again and again; it waits for no witness.

    `folder` holds the log's shards; `emit` signs the event of a refusal.
    """

    witnesses: Witnesses
    policy: Policy
    sequencer: Sequencer
    folder: Path
    clock: Clock
    emit: Callable[[Refusal], Awaitable[object]]

    def __post_init__(self) -> None:
        self._states = {name: _State() for name in self.witnesses.parties}
        self._newest: Note | None = None
        self._ended: Note | None = None
        """The last checkpoint of the shard before, while it has no quorum."""
        self._ended_ms = -ENDED_MS
        self._round: _Round | None = None
        self._period_ms = PERIOD_MS
        self._life = 0
        """Counts how often this process has begun to lead: answers to requests from an earlier time are dropped."""
        self.sequencer.on_published = self.published

    def published(self, note: bytes) -> None:
        """There is a newer checkpoint."""
        parsed = parse_note(note)
        before = self._newest
        if before is not None and _origin(before) != _origin(parsed) and not self._has_quorum(before):
            self._ended, self._ended_ms = before, -ENDED_MS
        self._newest = parsed

    @property
    def is_settled(self) -> bool:
        """Whether every witness was asked about the newest checkpoint, and has answered or failed."""
        return self._newest is None or (
            self._round is not None and self._round.note.text == self._newest.text and not self._pending(self._round)
        )

    async def work(self) -> None:
        """Keep new cosignatures, ask witnesses that are due, report refusals. StoreError, OSError, LogRefusedError."""
        if not self.sequencer.leads:
            if self._newest is not None:
                self._newest = self._ended = self._round = None
                self._life += 1
            return
        await self._keep()
        self._begin_round()
        self._ask()
        await self._report_refusals()

    async def finish(self) -> None:
        """Try for FINISH_MS to have the last checkpoint cosigned."""
        self._period_ms, began_ms = 0, self.clock.running_ms()
        while self.sequencer.leads and self.clock.running_ms() - began_ms < FINISH_MS:
            await self.work()
            if self.is_settled:
                await self._keep()
                return
            await asyncio.sleep(STEP_S)

    # --- a round --------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        current = self._round
        if current is None or len(current.lines) == current.kept:
            return
        has_quorum = self.policy.is_met_by(current.lines.keys())
        if not has_quorum and self._pending(current):
            return
        count = len(current.lines)
        note = add_signatures(current.note, [line for lines in current.lines.values() for line in lines])
        if await self.sequencer.cosign(note, has_quorum=has_quorum):
            current.kept = count
            if has_quorum and self._ended is not None and self._ended.text == note.text:
                self._ended = None

    def _begin_round(self) -> None:
        now_ms, current = self.clock.running_ms(), self._round
        if current is not None and (now_ms - current.began_ms < self._period_ms or self._pending(current)):
            return
        due = self._newest
        if self._ended is not None and now_ms - self._ended_ms >= ENDED_MS:
            due, self._ended_ms = self._ended, now_ms
        if due is not None and (current is None or due.text != current.note.text):
            self._round = _Round(due, now_ms)

    def _has_quorum(self, note: Note) -> bool:
        """Whether the cosignatures of a checkpoint are kept already."""
        kept = LogDirectory(shard_folder(self.folder, _origin(note))).cosigned()
        return bool(kept) and parse_note(kept).text == note.text

    def _pending(self, current: _Round) -> bool:
        """Whether a witness may still answer in this round."""
        now_ms = self.clock.running_ms()
        return any(
            state.is_requested and now_ms - state.requested_ms < PATIENCE_MS
            for name, state in self._states.items()
            if name in current.tried and name not in current.lines
        )

    def _ask(self) -> None:
        current, now_ms, loop = self._round, self.clock.running_ms(), asyncio.get_running_loop()
        if current is None:
            return
        for name, state in self._states.items():
            if state.is_requested:
                if now_ms - state.requested_ms >= PATIENCE_MS:
                    self._failed(name, "SILENT", f"has not answered for {PATIENCE_MS} ms")
            elif name not in current.lines and now_ms >= state.again_ms:
                state.is_requested, state.requested_ms = True, now_ms
                current.tried.add(name)
                life = self._life

                # A daemon thread: the process can end while a witness keeps it waiting.
                threading.Thread(
                    target=self._ask_one, args=(name, current, life, loop), name=f"witness {name}", daemon=True
                ).start()

    # --- one witness, on its thread -------------------------------------------------------------------------------

    def _ask_one(self, name: str, current: _Round, life: int, loop: asyncio.AbstractEventLoop) -> None:
        answer: list[NoteSignature] | Refusal | RgsError
        try:
            answer = self._answer(name, current.note)
        except RgsError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - a file that cannot be read now, or whatever it was: told as that
            answer = RgsError(f"{type(error).__name__}: {error}")
        with contextlib.suppress(RuntimeError):  # the process has ended
            loop.call_soon_threadsafe(self._answered, name, current, life, answer)

    def _answer(self, name: str, note: Note) -> list[NoteSignature] | Refusal:
        requested = parse_checkpoint(note.text)
        subtrees = LogDirectory(shard_folder(self.folder, requested.origin)).subtrees(requested.size)

        def prove(old: int, new: int) -> Sequence[bytes]:
            return consistency_proof(subtrees, old, new)

        try:
            return self.witnesses.ask(name, note, prove)
        except WitnessRefusalError as error:
            if error.status not in {STALE, INCONSISTENT}:
                raise
            # Some answer 409 to another root of the same size, too: it is ahead only if it names a size.
            code = CONTRADICTS if error.size is None else AHEAD
        try:
            seen = self.witnesses.seen_by(name, parse_vkey(self.sequencer.vkey_of(requested.origin)))
            if seen.size > requested.size or root_at(subtrees, seen.size) != seen.root:
                return Refusal(name, FORKED, requested, seen)
        except RgsError:
            pass  # it shows nothing that this log key has signed
        return Refusal(name, code, requested)

    # --- what has come of it --------------------------------------------------------------------------------------

    def _answered(
        self, name: str, current: _Round, life: int, answer: list[NoteSignature] | Refusal | RgsError
    ) -> None:
        state = self._states[name]
        state.is_requested = False
        if life != self._life:
            return
        if isinstance(answer, Refusal):
            state.refusal = answer
            self._failed(name, answer.code, f"refuses {answer.requested.size} leaves of {answer.requested.origin}")
            if answer.code == FORKED and answer.seen is not None:
                self.sequencer.accuse(
                    LogRefusedError(
                        FORKED,
                        f"witness {name} shows {answer.seen.size} leaves with the root {answer.seen.root.hex()}, signed"
                        f" by this log key: not the {answer.requested.origin} that lies here",
                    )
                )
        elif isinstance(answer, RgsError):
            status = answer.metadata.get("status", "")
            self._failed(name, f"{answer.reason} {status}".strip(), answer.message)
        else:
            current.lines[name] = answer
            if state.failure:
                structlog.get_logger().info("witness_cosigns", witness=name, after=state.failure)
            state.failure, state.refusal, state.reported, state.again_ms = "", None, "", 0

    def _failed(self, name: str, code: str, why: str) -> None:
        state = self._states[name]
        state.again_ms = self.clock.running_ms() + RETRY_MS
        if code != state.failure:
            structlog.get_logger().warning("witness_failed", witness=name, code=code, why=why)
        state.failure = code

    async def _report_refusals(self) -> None:
        now_ms = self.clock.running_ms()
        for state in self._states.values():
            refusal = state.refusal
            if refusal is not None and refusal.code != state.reported and now_ms - state.reported_ms >= REPORTED_MS:
                await self.emit(refusal)
                state.reported, state.reported_ms = refusal.code, now_ms


def _origin(note: Note) -> str:
    return parse_checkpoint(note.text).origin
