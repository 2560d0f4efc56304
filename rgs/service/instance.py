"""This process as an instance (node, boot, worker): its key, its generator, its first and last statements (ARCHITECTURE
2.8: draws are numbered without gaps; 2.13: root, node and instance keys).

Start: `instance_start` under the node key; `instance_lost` for the earlier instance of the same worker, if it has not
ended (for every other instance, if the store has one process); the artifacts in force; the generator's first events.
Only then comes the first draw. End: `instance_end` with the number of the last draw.

The draw window bounds the draws in flight, which is how many a lost instance leaves unknown. It is small at the start.
Under load a `draw_window` statement doubles it; draws wait for its commit.

`handover` continues as the node's next instance under another node key, without a stop: new rounds wait until the draws
in flight are committed, then one transaction ends this instance and starts the next, with a small window. Once the
generator has failed, nothing is drawn: dealt rounds are played out, and no new ones start.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial

from rgs.core.clock import Clock
from rgs.core.errors import RngUnavailableError
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS, ULID_RANDOM_BYTES, format_ulid
from rgs.core.statements import Ed25519Signer, Signer
from rgs.core.times import format_time
from rgs.service.cosigned import CosignedCheckpoint
from rgs.service.generators import BeginGenerator, EmbeddedGenerator, RunningGenerator
from rgs.service.sealing import Sealer
from rgs.store.changes import (
    Change,
    Draft,
    InstanceHandover,
    LatchSet,
    NewInstance,
    Record,
    StoreError,
    StoreRefusedError,
)
from rgs.store.interface import RECOVERING, InstanceRow, Store
from rng import __version__ as rng_version
from rng.errors import RngError
from rng.generator import Draw
from rng.scaling import below

KEY_SEED_BYTES = 32
FIRST_WINDOW = 16
"""The first draw window: more than a quiet process ever uses."""
RNG_GUARD = "rng"
"""The guard that a failure of the generator latches."""
KEYS_CHANGED = "KEYS_CHANGED"
"""Reason in `instance_end` if the process continues as another instance."""


@dataclass(frozen=True)
class Artifact:
    """A ruleset, a jurisdiction or the software manifest. Rounds name it by its SHA-256 in hex."""

    name: str
    sha256: str
    content: bytes


@dataclass(kw_only=True, eq=False, repr=False)
class Instance:
    """The running instance. `draw` is the only way to a deck.

    `shared`: other processes use this store, each with a lease of its own (`rgs.node.leases`). `draws_in_flight_max`
    limits the draw window. `known` gives the newest cosigned checkpoint of the log. `begin_generator` makes the
    generator of each instance: in this process, or in one of its own.
    """

    store: Store
    clock: Clock
    sealer: Sealer
    node: str
    worker: int = 0
    shared: bool = False
    draws_in_flight_max: int = 1024
    known: Callable[[], CosignedCheckpoint | None] = lambda: None
    begin_generator: BeginGenerator = EmbeddedGenerator.begin

    _in_flight: int = field(default=0, init=False)
    _last_draw_no: int = field(default=0, init=False)
    _growing: asyncio.Task[None] | None = field(default=None, init=False)
    _landed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when the last draw in flight has been committed or accounted for."""
    _handing_over: asyncio.Task[None] | None = field(default=None, init=False)
    _failure: str = field(default="", init=False)
    """Code of the first failure of the generator or its source."""
    _failure_reported: bool = field(default=False, init=False)
    boot_no: int = field(default=0, init=False)
    name: str = field(default="", init=False)
    """Empty before the start."""
    _generator: RunningGenerator = field(init=False)
    """Set by `start`."""
    _software: dict[str, object] = field(default_factory=dict, init=False)
    """The fields of each `instance_start` of this process about its software and store."""
    _artifacts: tuple[Artifact, ...] = field(default=(), init=False)

    def _name_of(self, boot_no: int) -> str:
        return f"{self.node}-b{boot_no}-w{self.worker}"

    async def start(
        self,
        node_signer: Signer,
        *,
        manifest_sha256: str,
        software_version: str,
        artifacts: Sequence[Artifact],
        recovers: bool = False,
    ) -> None:
        """Sign and commit all statements that come before the first draw. StoreRefusedError for a store whose recovery
        was cut short, unless this instance `recovers` it.
        """
        if not recovers and await self.store.meta(RECOVERING):
            raise StoreRefusedError("the recovery of the store was cut short: run `rgs recover` again")
        previous = await self.store.previous_boot(self.node, self.worker)
        self.boot_no = 1 if previous is None else previous.boot_no + 1
        self.name = self._name_of(self.boot_no)
        self._generator = await self.begin_generator(self.name)
        now_ms = self.clock.now_ms()
        signer = Ed25519Signer.from_seed(self.random_bytes(KEY_SEED_BYTES))
        self._software = {
            "manifest": manifest_sha256,
            "rng_version": rng_version,
            "software_version": software_version,
            "store_epoch": await self.store.meta("store_epoch"),
        }
        self._artifacts = tuple(artifacts)
        body = self._start_body(self.boot_no, signer, now_ms)
        # An instance that is alive may still commit: its `instance_lost` will name its last numbers.
        if previous is not None and not (self.shared and previous.alive):
            body["previous_boot"] = {
                "instance": previous.instance,
                "last_draw_no": str(previous.draw_no),
                "last_statement_no": str(previous.statement_no),
            }
        new = NewInstance(
            instance=self.name,
            node=self.node,
            boot_no=self.boot_no,
            worker=self.worker,
            start_ms=now_ms,
            start=Draft("instance_start", body),
            node_signer=node_signer,
            signer=signer,
        )
        await self.store.start_instance(new)
        await self.report_lost(own_only=self.shared and not recovers)
        for artifact in artifacts:
            await self._sign(
                "artifact", _artifact_body(artifact), artifact=(artifact.sha256, artifact.name, artifact.content)
            )
        for event in self._generator.events():
            await self._sign("event", _life_body(event.kind, event.reason, self.name))

    async def report_lost(self, *, own_only: bool = False) -> int:
        """Sign `instance_lost` for instances without a valid lease, each with its last durable numbers; how many were.
        `own_only`: only for earlier instances of this worker, whatever their lease says.
        """
        signed = 0
        for row in await self.store.lapsed_instances():
            is_own = (row.node, row.worker) == (self.node, self.worker)
            if is_own and row.boot_no >= self.boot_no:
                continue  # the instance that this process is about to become, or a successor that will end it
            if is_own or not own_only:
                with contextlib.suppress(StoreError):  # another process was first, or the instance is alive
                    await self._sign_lost(row)
                    signed += 1
        return signed

    async def successor(self) -> InstanceRow | None:
        """The instance that replaced this one after it was declared lost: in a shared store the next boot of the same
        worker, else any other that is alive. StoreError.
        """
        others = [
            row
            for row in await self.store.instances(alive_only=True)
            if row.instance != self.name and (not self.shared or (row.node, row.worker) == (self.node, self.worker))
        ]
        return max(others, key=lambda row: row.start_ms, default=None)

    def _start_body(self, boot_no: int, signer: Ed25519Signer, now_ms: int) -> dict[str, object]:
        cosigned = self.known()
        return {
            **self._software,
            **({} if cosigned is None else {"checkpoint": cosigned.body()}),
            "boot_no": str(boot_no),
            "draws_in_flight_max": str(min(FIRST_WINDOW, self.draws_in_flight_max)),
            "node": self.node,
            "public_key": signer.public_key.hex(),
            "time": format_time(now_ms),
            "worker": str(self.worker),
        }

    # --- from one instance to the next ----------------------------------------------------------------------------

    async def hand_over(self, node_signer: Signer, drafts: Sequence[Draft]) -> None:
        """End this instance and continue as the next one, started by this node key, which signs `drafts`. Once begun,
        the change completes even if the caller is cancelled.

        RngUnavailableError, StoreError: nothing has changed, and this instance continues.
        """
        boot_no = self.boot_no + 1
        try:
            generator = await self.begin_generator(self._name_of(boot_no))
            signer = Ed25519Signer.from_seed(generator.entropy.read(KEY_SEED_BYTES))
        except RngError:
            raise RngUnavailableError("the generator of the next instance did not start") from None
        if self._handing_over is not None or self.boot_no + 1 != boot_no:
            await generator.close()
            raise RngUnavailableError("another instance follows this one already")
        change = partial(self._turn_change, node_signer, signer, generator, boot_no, tuple(drafts))
        self._handing_over = asyncio.create_task(self._hand_over(generator, boot_no, change), context=Context())
        await asyncio.shield(self._handing_over)

    async def handed_over(self) -> None:
        """Wait until no `handover` is under way."""
        while self._handing_over is not None:
            await asyncio.wait([self._handing_over])

    async def ready(self) -> None:
        """Wait until a draw is possible. Call it before each draw, with no other wait between.

        StoreError: the window is full and its growth could not be committed.
        """
        await self.handed_over()
        while self._draws_out >= self.store.draw_window < self.draws_in_flight_max:
            if self._growing is None:
                self._growing = asyncio.create_task(self._grow(), context=Context())  # for all draws, not for this call
                self._growing.add_done_callback(lambda done: done.cancelled() or done.exception())
            growing = self._growing
            await asyncio.wait([growing])  # a cancelled caller does not cancel the growth
            growing.result()
            await self.handed_over()

    async def _grow(self) -> None:
        window = min(2 * self.store.draw_window, self.draws_in_flight_max)
        try:
            await self._sign("draw_window", {"draws_in_flight_max": str(window)})
        finally:
            self._growing = None

    @property
    def _draws_out(self) -> int:
        """Draws that no durable statement accounts for yet."""
        return self._in_flight + self.store.draws_owed

    async def _hand_over(self, generator: RunningGenerator, boot_no: int, change: Callable[[], Change]) -> None:
        try:
            while self._in_flight:
                self._landed.clear()
                await self._landed.wait()
            if self._growing is not None:  # its statement is this instance's
                await asyncio.wait([self._growing])
            if self.failure:
                raise RngUnavailableError("the generator is in its error state: start the server again")
            await self.store.commit(change())
            generator, self._generator = self._generator, generator
            self.name, self.boot_no, self._last_draw_no = self._generator.instance, boot_no, 0
        finally:
            self._handing_over = None
            await generator.close()  # the one that draws no more

    def _turn_change(
        self,
        node_signer: Signer,
        signer: Ed25519Signer,
        generator: RunningGenerator,
        boot_no: int,
        drafts: tuple[Draft, ...],
    ) -> Change:
        now_ms = self.clock.now_ms()
        time, name = format_time(now_ms), generator.instance
        closed = _life_body("uninstantiated", "CLOSED", self.name)
        end = {"last_draw_no": str(self._last_draw_no), "reason": KEYS_CHANGED, "time": time}
        first = [Draft("artifact", {**_artifact_body(artifact), "time": time}) for artifact in self._artifacts]
        lives = [_life_body(event.kind, event.reason, name) for event in generator.events()]
        first += [Draft("event", {**body, "time": time}) for body in lives]
        handover = InstanceHandover(
            instance=name,
            node=self.node,
            boot_no=boot_no,
            worker=self.worker,
            start_ms=now_ms,
            start=Draft("instance_start", self._start_body(boot_no, signer, now_ms)),
            node_signer=node_signer,
            signer=signer,
            last_draw_no=self._last_draw_no,
            drafts=(*first, *drafts),
            artifacts=tuple((artifact.sha256, artifact.name, artifact.content) for artifact in self._artifacts),
        )
        return Change(
            drafts=(Draft("event", {**closed, "time": time}), Draft("instance_end", end)),
            ends=(self.name, now_ms),
            handover=handover,
        )

    async def end(self, reason: str) -> None:
        """Sign the last statement. Nothing can be drawn or committed afterwards."""
        await self.handed_over()
        event = await self._generator.close()
        await self._sign("event", _life_body(event.kind, event.reason, self.name))
        now_ms = self.clock.now_ms()
        body = {"last_draw_no": str(event.draws), "reason": reason, "time": format_time(now_ms)}
        await self.store.commit(Change(drafts=(Draft("instance_end", body),), ends=(self.name, now_ms)))

    @property
    def failure(self) -> str:
        """The code of the generator's failure; empty while it is healthy."""
        failure = self._generator.failure
        return failure and (self._failure or failure)

    async def selftest(self) -> None:
        """Test the generator's known answers again (SP 800-90A 11.3). RngUnavailableError: the generator has ended."""
        try:
            await self._generator.selftest()
        except RngError as error:
            self._failure = self._failure or error.reason
            raise RngUnavailableError("the self-test of the generator failed: no new rounds") from None

    async def draw(self) -> Draw:
        """Draw the bytes of a deck. RngUnavailableError after a failure, or if too many draws wait for their commit.

        Whoever asks first goes on first. Between this and the commit there must be no wait: then the store takes the
        draws in their order, and a lost instance leaves no gap below its last one.
        """
        if self._handing_over is not None:
            raise RngUnavailableError("another instance is about to begin")
        in_flight, window = self._draws_out, self.store.draw_window
        if in_flight >= window:
            raise RngUnavailableError(
                f"{in_flight} draws wait for their commit, the limit is {window}", value=in_flight, limit=window
            )
        self._in_flight += 1
        try:
            draw = await self._generator.draw()
        except BaseException as error:
            self.draw_done()
            if not isinstance(error, RngError):
                raise
            self._failure = self._failure or error.reason
            raise RngUnavailableError("the generator is in its error state: no new rounds") from None
        self._last_draw_no = draw.draw_no
        return draw

    def draw_done(self) -> None:
        """Note that a draw was committed, or accounted for as discarded, or not made."""
        self._in_flight -= 1
        if not self._in_flight:
            self._landed.set()

    async def report_failure(self) -> None:
        """Sign a failure of the generator or its source once, and latch the node's guard in the same commit: it stays
        closed over restarts until an admin clears it. Dealt rounds continue.
        """
        reason = self._failure or self.failure
        if not reason or self._failure_reported:
            return
        self._failure_reported = True
        try:
            await self._sign(
                "event",
                {"code": "RNG_FAILED", "reason": reason, "subject": self.name},
                records=(LatchSet(self.node, RNG_GUARD, reason, self.clock.now_ms()),),
            )
        except BaseException:
            self._failure_reported = False
            raise

    def random_bytes(self, n_bytes: int) -> bytes:
        """Bytes for salts, ids and keys, from the generator's own tested entropy source."""
        try:
            return self._generator.entropy.read(n_bytes)
        except RngError as error:
            self._failure = self._failure or error.reason
            raise RngUnavailableError("the entropy source is in its error state") from None

    def new_id(self, now_ms: int) -> str:
        """A ULID."""
        return format_ulid(now_ms, self.random_bytes(ULID_RANDOM_BYTES))

    def new_regulator_id(self, prefix: str) -> str:
        """An id of the test regulator."""
        return regulator_id(self.random_bytes, prefix)

    async def _sign_lost(self, row: InstanceRow) -> None:
        """Sign `instance_lost` and end the row in one transaction; it fails if the row has changed since."""
        now_ms = self.clock.now_ms()
        body = {
            "lost": {
                "instance": row.instance,
                "last_draw_no": str(row.draw_no),
                "last_statement_no": str(row.statement_no),
            },
            "reason": "LEASE_ENDED",
            "time": format_time(now_ms),
        }
        await self.store.commit(Change(drafts=(Draft("instance_lost", body),), ends=(row.instance, now_ms)))

    async def _sign(
        self,
        kind: str,
        body: dict[str, object],
        *,
        artifact: tuple[str, str, bytes] | None = None,
        records: tuple[Record, ...] = (),
    ) -> None:
        draft = Draft(kind, {**body, "time": format_time(self.clock.now_ms())})
        await self.store.commit(Change(drafts=(draft,), artifact=artifact, records=records))


def regulator_id(read: Callable[[int], bytes], prefix: str) -> str:
    """A 16-character id as a regulator issues it: the prefix, then unbiased letters and digits from fresh bytes."""
    unread = iter(read(256))
    missing = REGULATOR_ID_CHARACTERS - len(prefix)
    chosen = (REGULATOR_ID_ALPHABET[below(len(REGULATOR_ID_ALPHABET), unread.__next__)] for _ in range(missing))
    return prefix + "".join(chosen)


def _artifact_body(artifact: Artifact) -> dict[str, object]:
    return {"bytes": str(len(artifact.content)), "name": artifact.name, "sha256": artifact.sha256}


def _life_body(kind: str, reason: str, instance: str) -> dict[str, object]:
    return {"code": f"RNG_{kind.upper()}", "reason": reason, "subject": instance}
