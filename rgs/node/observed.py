"""What makes a process observable: its metrics, its traces, one line in the log for each call to a peer, and a warning
of each certificate that ends soon. Nothing here stops play: what cannot be watched is missed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from rgs.adapters.grpc.peer import Peer, PeerCall
from rgs.api.access import quoted, trace_field
from rgs.api.calls import Calls
from rgs.core.clock import Clock, TrustedClock
from rgs.core.times import format_time, parse_time
from rgs.node.background import Background
from rgs.node.config import Config
from rgs.node.disks import free_bytes
from rgs.node.expiries import Expiries
from rgs.node.files import FileRefusedError
from rgs.node.keyring import load_bundle, node_key_in_force
from rgs.node.leases import Leases
from rgs.node.log_folder import read_shard, shards
from rgs.node.logging import Log
from rgs.node.metrics.process_samples import ProcessParts
from rgs.node.metrics.samples import Scraped, joined
from rgs.node.metrics.store_samples import StoreSamples
from rgs.node.metrics.witness_ages import WitnessAges
from rgs.node.metrics.workers import answering
from rgs.node.parts import part
from rgs.node.traces import TraceFile, make_tracer
from rgs.node.transparency_log import LogKeeping
from rgs.node.wiring import Services
from rgs.observe.traces import Tracer
from rgs.store.interface import Parties, Store

ENDPOINT: Final = "rgs.node.metrics.endpoint"


@dataclass(frozen=True, slots=True)
class Watched:
    """The parts of a process that are watched; `certificates` by name, in PEM."""

    store: Store
    parties: Parties
    services: Services
    calls: Calls
    leases: Leases
    keeping: LogKeeping
    certificates: Mapping[str, bytes]


class Observed:
    """The observation of one process. `worker` is its number; `shared`: a supervisor serves the metrics of all."""

    def __init__(
        self,
        config: Config,
        clock: TrustedClock,
        log: Log | None,
        worker: int,
        opened: contextlib.AsyncExitStack,
        *,
        shared: bool,
    ) -> None:
        self._config = config
        self._clock = clock
        self._worker = worker
        self._shared = shared
        self._line = log.line if log is not None and config.logging_calls else None
        self._peers: list[Peer] = []
        self.tracer: Tracer | None = None
        """None: nothing is traced."""
        self._traces: TraceFile | None = None
        if config.traces is not None:
            path = config.traces.with_stem(f"{config.traces.stem}-w{worker}") if shared else config.traces
            self._traces = TraceFile(path, {"service.name": "rgs", "rgs.node": config.node, "rgs.worker": str(worker)})
            opened.callback(self._traces.close)
            self.tracer = make_tracer(self._traces, clock)
        self.port = 0
        """The port of the metrics in this process; 0: it serves none."""

    def follow(self, store: Store, peers: list[Peer]) -> None:
        """Trace commits and calls to peers, and log these."""
        store.tracer = self.tracer
        self._store, self._peers = store, peers
        for peer in peers:
            peer.tracer = self.tracer
            if self._line is not None:
                peer.on_call = peer_line(self._line, self._clock)

    async def begin(self, watched: Watched, background: Background) -> None:
        """Serve the metrics, and begin what is done once in a while. InvalidFieldError, FileRefusedError."""
        expiries = Expiries(clock=self._clock, parties=watched.parties, certificates=watched.certificates)
        background.run("expiries", expiries.poll)
        if self._traces is not None:
            background.run("traces", _each_second(self._traces.flush), to_the_end=True)
        if not self._config.metrics_listen:
            return
        process, store = self._readers(watched, expiries)
        if self._shared:

            async def read(of_store: bool) -> Scraped:
                return Scraped((), await store.read()) if of_store else Scraped(process.read().found)

            await background.opened.enter_async_context(answering(self._config.home, self._worker, read))
            return

        async def scrape() -> object:
            return joined([(str(self._worker), Scraped(process.read().found, await store.read()))])

        endpoint = part(ENDPOINT, "metrics").MetricsEndpoint(self._config, scrape)
        await background.opened.enter_async_context(endpoint)
        self.port = endpoint.port

    def _readers(self, watched: Watched, expiries: Expiries) -> tuple[ProcessParts, StoreSamples]:
        config, services = self._config, watched.services
        process = ProcessParts(
            node=config.node,
            clock=self._clock,
            calls=watched.calls,
            store=watched.store,
            availability=services.availability,
            leases=watched.leases,
            dealer=services.tables.dealer,
            peers=lambda: self._peers,
            log=watched.keeping.progress,
        )
        store = StoreSamples(
            store=watched.store,
            parties=watched.parties,
            clock=self._clock,
            expiries=expiries,
            returns=services.monitoring.measured,
            entries=lambda: newest_entries(config),
            witnesses=WitnessAges(config=config).read,
            disks=partial(free_bytes, config),
            key_ms=lambda: parse_time(node_key_in_force(load_bundle(config), config.node, None).time),
        )
        return process, store


def newest_entries(config: Config) -> int:
    """The entries of the log's newest shard; 0 if there is none that can be read."""
    found = shards(config)
    try:
        return read_shard(found[-1]).size if found else 0
    except FileRefusedError:
        return 0


def peer_line(write: Callable[[str], None], clock: Clock) -> Callable[[PeerCall], None]:
    """Writes one line for each call to a peer, in one piece as `rgs.api.access` does."""

    def emit(call: PeerCall) -> None:
        write(
            f'{{"time":"{format_time(clock.now_ms())}","level":"info","event":"peer_call","peer":"{call.peer}"'
            f',"method":"{call.method}","transaction_id":{quoted(call.transaction_id)}'
            f',"attempt_id":{quoted(call.attempt_id)},"reason":"{call.reason}","ms":{call.passed_s * 1000:.1f}'
            f"{trace_field()}}}"
        )

    return emit


def _each_second(work: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        work()

    return run
