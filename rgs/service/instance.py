"""This process as an instance (node, boot, worker): its key, its generator, its first and last statements (ARCHITECTURE
2.8, 2.13).

Start: `instance_start` under the node key, `instance_lost` for instances that ended without a word, the artifacts in
force, the generator's life events; only then the first draw. End: `instance_end` with the number of the last draw.
Draws in flight are bounded by what `instance_start` promised. Refuses to draw once the generator has failed: dealt
rounds are played out, new ones are not begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rgs.clock import Clock
from rgs.core.errors import RngUnavailableError
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS, ULID_RANDOM_BYTES, format_ulid
from rgs.core.statements import Ed25519Signer
from rgs.core.times import format_time
from rgs.service.sealing import Sealer
from rgs.store.changes import Change, Draft
from rgs.store.sqlite import SqliteStore
from rng import __version__ as rng_version
from rng.errors import RngError
from rng.generator import Draw, Generator
from rng.scaling import below

KEY_SEED_BYTES = 32


@dataclass(frozen=True)
class Artifact:
    """Something that the house runs by: a ruleset, a jurisdiction, the software manifest. Its SHA-256 in hex is its
    name in rounds.
    """

    name: str
    sha256: str
    content: bytes


class Instance:
    """The running instance. `draw` is the only way to a deck."""

    def __init__(
        self,
        *,
        store: SqliteStore,
        clock: Clock,
        sealer: Sealer,
        node: str,
        worker: int = 0,
        draws_in_flight_max: int = 1024,
    ) -> None:
        self._store = store
        self._clock = clock
        self.sealer = sealer
        self._node = node
        self._worker = worker
        self._draws_in_flight_max = draws_in_flight_max
        self._in_flight = 0
        self._failure = ""
        """Reason of the first failure of the generator or its source, a code."""
        self._failure_told = False
        previous = store.previous_boot(node, worker)
        self._previous = previous
        self.boot_no = 1 if previous is None else previous.boot_no + 1
        self.name = f"{node}-b{self.boot_no}-w{worker}"
        self._generator = Generator(self.name)

    async def start(
        self, node_signer: Ed25519Signer, *, manifest_sha256: str, software_version: str, artifacts: Sequence[Artifact]
    ) -> None:
        """Sign and commit everything that must stand before the first draw."""
        now_ms = self._clock.now_ms()
        signer = Ed25519Signer.from_seed(self.random_bytes(KEY_SEED_BYTES))
        body: dict[str, object] = {
            "boot_no": str(self.boot_no),
            "draws_in_flight_max": str(self._draws_in_flight_max),
            "manifest": manifest_sha256,
            "node": self._node,
            "public_key": signer.public_key.hex(),
            "rng_version": rng_version,
            "software_version": software_version,
            "store_epoch": self._store.meta("store_epoch"),
            "time": format_time(now_ms),
            "worker": str(self._worker),
        }
        if self._previous is not None:
            body["previous_boot"] = {
                "instance": self._previous.instance,
                "last_draw_no": str(self._previous.draw_no),
                "last_statement_no": str(self._previous.statement_no),
            }
        self._store.start_instance(
            instance=self.name,
            node=self._node,
            boot_no=self.boot_no,
            worker=self._worker,
            start_ms=now_ms,
            start=Draft("instance_start", body),
            node_signer=node_signer,
            signer=signer,
        )
        for row in self._store.instances(alive_only=True):
            if row.instance != self.name:
                await self._sign_lost(row.instance, row.draw_no, row.statement_no)
        for artifact in artifacts:
            body = {"bytes": str(len(artifact.content)), "name": artifact.name, "sha256": artifact.sha256}
            await self._sign("artifact", body, artifact=(artifact.sha256, artifact.name, artifact.content))
        for event in self._generator.events():
            await self._sign(
                "event", {"code": f"RNG_{event.kind.upper()}", "reason": event.reason, "subject": self.name}
            )

    async def end(self, reason: str) -> None:
        """Sign the last statement. Nothing may be drawn or committed afterwards."""
        event = self._generator.close()
        await self._sign("event", {"code": f"RNG_{event.kind.upper()}", "reason": event.reason, "subject": self.name})
        now_ms = self._clock.now_ms()
        body = {"last_draw_no": str(event.draws), "reason": reason, "time": format_time(now_ms)}
        await self._store.commit(Change(drafts=(Draft("instance_end", body),), ends=(self.name, now_ms)))

    @property
    def healthy(self) -> bool:
        """Whether the generator may be asked for a draw."""
        return self._generator.healthy

    def draw(self) -> Draw:
        """A deck's transcript; RngUnavailableError after a failure, or with too many draws not yet committed."""
        in_flight = self._in_flight + self._store.draws_owed
        if in_flight >= self._draws_in_flight_max:
            raise RngUnavailableError(
                f"{in_flight} draws wait for their commit, the limit is {self._draws_in_flight_max}",
                value=in_flight,
                limit=self._draws_in_flight_max,
            )
        try:
            draw = self._generator.draw()
        except RngError as error:
            self._failure = self._failure or error.reason
            raise RngUnavailableError("the generator is in its error state: no new rounds") from None
        self._in_flight += 1
        return draw

    def draw_done(self) -> None:
        """The draw of one `draw` has been committed or accounted for."""
        self._in_flight -= 1

    async def tell_failure(self) -> None:
        """Sign the failure of the generator or its source, if there is one, once; dealt rounds go on."""
        if not self._failure or self._failure_told:
            return
        self._failure_told = True
        try:
            await self._sign("event", {"code": "RNG_FAILED", "reason": self._failure, "subject": self.name})
        except BaseException:
            self._failure_told = False
            raise

    def random_bytes(self, n_bytes: int) -> bytes:
        """Salts, ids and keys: from the generator's own tested entropy source."""
        try:
            return self._generator.entropy.read(n_bytes)
        except RngError as error:
            self._failure = self._failure or error.reason
            raise RngUnavailableError("the entropy source is in its error state") from None

    def new_id(self, now_ms: int) -> str:
        """A ULID."""
        return format_ulid(now_ms, self.random_bytes(ULID_RANDOM_BYTES))

    def new_regulator_id(self, prefix: str) -> str:
        """A 16-character id of the embedded test register: a prefix, then unbiased letters and digits."""
        unread = iter(self.random_bytes(256))
        letters = [
            REGULATOR_ID_ALPHABET[below(len(REGULATOR_ID_ALPHABET), unread.__next__)]
            for _ in range(REGULATOR_ID_CHARACTERS - len(prefix))
        ]
        return prefix + "".join(letters)

    async def _sign_lost(self, instance: str, draw_no: int, statement_no: int) -> None:
        now_ms = self._clock.now_ms()
        body = {
            "lost": {"instance": instance, "last_draw_no": str(draw_no), "last_statement_no": str(statement_no)},
            "reason": "LEASE_ENDED",
            "time": format_time(now_ms),
        }
        await self._store.commit(Change(drafts=(Draft("instance_lost", body),), ends=(instance, now_ms)))

    async def _sign(
        self, kind: str, body: dict[str, object], *, artifact: tuple[str, str, bytes] | None = None
    ) -> None:
        draft = Draft(kind, {**body, "time": format_time(self._clock.now_ms())})
        await self._store.commit(Change(drafts=(draft,), artifact=artifact))
