"""The server: one process put together, from its first statement to its last (ARCHITECTURE 2.8, draw accounting).

Start: keys, store and instance, then calls; the opening statements of the instance are committed before the port is
served. Stop: health says NOT_SERVING, calls under way are answered, background work ends, `instance_end` is signed with
the number of the last draw, and the store is closed. The port has mutual TLS only. Operators whose jurisdiction does
not allow the development CA are not served.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable
from functools import partial

import structlog
import uvloop

from rgs import __version__
from rgs.api import play as play_api
from rgs.api import reconciliation as reconciliation_api
from rgs.api import session as session_api
from rgs.api import table as table_api
from rgs.api.access import CallLines
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Methods
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.mapping import Encoder
from rgs.api.table_mapping import TableEncoder
from rgs.core.errors import InvalidFieldError
from rgs.core.statements import Signer
from rgs.core.statements.lines import parse_key_bundle
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.background import Background, Work, lead
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.expiries import certificates_of
from rgs.node.generator.client import begins_generators
from rgs.node.keyring import load_bundle, load_kek, load_node_signer, node_key_in_force
from rgs.node.keys import key_files
from rgs.node.leases import LOST_DUTY, Leases
from rgs.node.logging import Log
from rgs.node.observed import Observed, Watched
from rgs.node.peers import Connections, NodePeers, load_peers
from rgs.node.reconcile_process import begin_job
from rgs.node.software_identity import artifacts_of, changed_software, changed_surroundings, configured, modules_of
from rgs.node.stderr import BoundedStderr
from rgs.node.tls_identity import admit_with, identify_certificate, load_tls, read_certificate
from rgs.node.transparency_log import LogKeeping
from rgs.node.wiring import Encoders, NodeContext, Services, feed_of, limits_of, methods_of
from rgs.node.workers import SERVING, follow_signals
from rgs.service.admin.health_monitor import MonitoredParts
from rgs.service.audit.audit import StatementReader
from rgs.service.audit.log import PublicLog
from rgs.service.events import EventCode, Events
from rgs.service.game_catalog import GameCatalog
from rgs.service.idempotency import Answers
from rgs.service.instance import Instance
from rgs.service.play.catalog import Catalog
from rgs.service.play.notices import Relay
from rgs.service.reconciliation.files import Shelf
from rgs.service.reconciliation.reports import ReconciliationReports
from rgs.service.reconciliation.runs import ReconciliationRuns
from rgs.service.reconciliation.submissions import Submissions
from rgs.service.sealing import Sealer
from rgs.service.tables.feed import Feed
from rgs.store.address import PostgresAddress
from rgs.store.changes import InstanceLostError, StoreError
from rgs.store.interface import Parties, Store
from rgs.store.opening import open_parties, open_store, opened_archive
from rgs.tlog.gap import verify_not_behind

BACKGROUND_S = 1.0
"""Seconds between two runs of background work."""
TABLES_S = 0.1
"""Seconds between two looks for tables that are due."""
TABLES_SCAN_S = 0.2
"""Seconds between two looks for tables that other processes moved."""
SEATS_SCAN_S = 1.0
"""And for seats that they changed."""
SESSIONS_SCAN_S = 0.5
"""And for sessions that streams of this process follow."""
RETURNS_S = 5.0
"""Seconds between two looks of the watch over returns: each has a cost of its own, and no player waits for it."""
RECOVERY_AGE_MS = 3_000
"""Age of an operation before it is recovered, if another process may be working on it."""


class Server:
    """One process of a node. `start`, then `port` is served until `stop`; both at most once."""

    def __init__(
        self,
        config: Config,
        manifest: Manifest,
        *,
        clock: SystemClock | None = None,
        measure: Callable[[], Manifest] = make_manifest,
        log: Log | None = None,
        worker: int = 0,
        shared_port: int = 0,
    ) -> None:
        """`measure` makes the software manifest again, to compare it with `manifest`. `log` gets a line for each call.
        `worker` is the number of this process behind `shared_port`, which other workers serve too; 0: no other does.
        """
        self._worker = worker
        self._shared_port = shared_port
        self._log = log
        self._config = config
        self._manifest = manifest
        self._measure = measure
        self._clock = SystemClock() if clock is None else clock
        self._open = contextlib.AsyncExitStack()
        self._stopping = asyncio.Event()
        self._end_reason = "START_FAILED"
        self._shared_store = isinstance(config.store, PostgresAddress)
        """Whether other processes may use the store, too."""
        self._events: Events
        self.services: Services
        """The use cases; set by `start`, as the events are."""
        self._feed: Feed
        self._observed: Observed
        self.port = 0
        """The port that is served; 0 before the start."""
        self._instance: Instance | None = None
        self.lost = asyncio.Event()
        """Set when another process has declared this process's instance lost: this process has to end."""
        self.lost_why = ""
        """For people: which instance took its place, since when, and what to do."""

    @property
    def metrics_port(self) -> int:
        """The port of the metrics; 0 if this process serves none."""
        return self._observed.port

    @property
    def instance(self) -> str:
        """The name under which this server draws and signs; empty before the start."""
        return "" if self._instance is None else self._instance.name

    async def start(self) -> None:
        """Open everything, sign the first statements, serve. An error closes what was opened; nothing was served."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        self._end_reason = "DRAINED"

    async def stop(self) -> None:
        """Stop serving, finish what is under way, sign `instance_end`, close everything."""
        self._stopping.set()
        await self._open.aclose()

    # --- the start, in order; the stop is the same backwards ----------------------------------------------------------

    async def _start(self) -> None:
        """Each step needs those before it. Everything that can fail comes before the instance signs anything."""
        config, clock = self._config, self._clock
        node_peers = load_peers(config.peers, config.home)
        bundle = load_bundle(config)
        node_signer = load_node_signer(config, bundle)
        self._observed = Observed(config, clock, self._log, self._worker, self._open, shared=bool(self._shared_port))
        tls = load_tls(config)
        store, parties = await self._open_stores()
        sealer = Sealer(load_kek(config), beside_older=store.beside_older)
        self._events = Events(store=store, clock=clock)
        audit = StatementReader(store=store, key_statements=parse_key_bundle(bundle))
        keeping = await LogKeeping.open(config, clock, store, audit.key_statements)
        instance = self._make_instance(store, sealer, keeping)
        peers = self._connect(node_peers, instance)
        self._observed.follow(store, list(peers.peers))
        context = self._context(store, parties, instance, node_peers.catalog(), peers)
        admit = admit_with(tls.client_ca, context.games)
        encoder = Encoder(Catalog(context.games).list())
        gate = Gate(parties, clock, read_certificate, admit, self._count(EventCode.AUTHENTICATION_FAILED))
        self.services = Services(
            context,
            encoders=Encoders(encoder, TableEncoder(encoder)),
            monitored=self._monitored(keeping),
            identify=identify_certificate,
            admit=admit,
            events=self._events,
            audit=audit,
            open_account=peers.open_account,
            refresh=gate.refresh,
            alarm_stops=config.return_alarm_stops,
        )
        self._feed = feed_of(self.services.tables, store, clock, shared=self._shared_store)
        await self.services.load()
        # The clock may follow the database's by now: no statement may be dated before its key.
        node_key_in_force(bundle, config.node, clock.now_ms())
        await gate.refresh()
        calls = self._make_calls(gate, encoder)
        endpoint = await self._bind(tls, calls, encoder, keeping)
        # The port is bound, so that only the disk can fail between the first statement and the first call.
        await verify_not_behind(store, config.translog)
        leases = await self._begin_instance(context, node_signer, keeping)
        settings = configured(config, node_peers)
        await self._events.report_configuration(config.node, settings, first_boot=instance.boot_no == 1)
        faults = self._count(EventCode.SERVER_FAULT)
        background = Background(self._open, self._stopping, BACKGROUND_S, config.drain_s, faults)
        await keeping.begin(self._events, background.run)
        self._begin_polls(background, leases, endpoint, calls, gate)
        self._begin_duties(background, store, leases)
        self._follow_keys(background, context, bundle, node_signer.keyid)
        await self._relay_notices(context)
        shown = certificates_of(tls.chain, tls.client_ca, node_peers)
        watched = Watched(store, parties, self.services, calls, leases, keeping, shown)
        await self._observed.begin(watched, background)
        await self._serve(endpoint, calls)

    async def _open_stores(self) -> tuple[Store, Parties]:
        """The store, and its allow-list over a connection of its own."""
        config = self._config
        store = await open_store(config.store)
        store.large_win_minor = config.large_win_minor
        self._open.push_async_callback(store.close)
        store.archive = self._open.enter_context(opened_archive(config.archive))
        parties = await open_parties(config.store)
        self._open.push_async_callback(parties.close)
        return store, parties

    def _make_instance(self, store: Store, sealer: Sealer, keeping: LogKeeping) -> Instance:
        """The instance, without a name: it signs nothing before `_begin_instance`."""
        return Instance(
            store=store,
            clock=self._clock,
            sealer=sealer,
            node=self._config.node,
            worker=self._worker,
            shared=self._shared_store,
            draws_in_flight_max=self._config.draws_in_flight_max,
            known=keeping.known,
            begin_generator=begins_generators(self._config, self._manifest),
        )

    def _connect(self, node_peers: NodePeers, instance: Instance) -> Connections:
        """The operators' wallets and the regulator's system."""
        note = self._count(EventCode.PEER_CONTRADICTION)
        return Connections(self._config, node_peers, instance, self._clock, note, self._open)

    def _context(
        self, store: Store, parties: Parties, instance: Instance, games: GameCatalog, peers: Connections
    ) -> NodeContext:
        return NodeContext(
            store=store,
            parties=parties,
            instance=instance,
            clock=self._clock,
            games=games,
            wallet=peers.wallet,
            regulator=peers.regulator,
            node=self._config.node,
            readings=peers.readings,
        )

    def _monitored(self, keeping: LogKeeping) -> MonitoredParts:
        config = self._config
        return MonitoredParts(
            measure=partial(changed_software, self._manifest, self._measure),
            rules_period_ms=config.rules_check_s * 1000,
            self_test_period_ms=config.self_test_s * 1000,
            surroundings=partial(changed_surroundings, self._manifest),
            surroundings_period_ms=config.surroundings_check_s * 1000,
            log=keeping.code,
        )

    def _make_calls(self, gate: Gate, encoder: Encoder) -> Calls:
        config, clock = self._config, self._clock
        lines = CallLines(self._log.line, clock) if self._log is not None and config.logging_calls else None
        faults = self._count(EventCode.SERVER_FAULT)
        return Calls(gate, clock, encoder.act, faults, lines, limits_of(config), self._observed.tracer)

    async def _bind(self, tls: Tls, calls: Calls, encoder: Encoder, keeping: LogKeeping) -> Endpoint:
        """Bind the port. No call is answered before `_serve`."""
        config, services = self._config, self.services
        log = PublicLog(audit=services.audit, folder=config.translog, vkey_of=keeping.vkey_of)
        methods = methods_of(services, encoder, log, self._feed)
        return Endpoint(
            listen=self._listen,
            shared=bool(self._shared_port),
            tls=tls,
            calls=calls,
            services={**methods, reconciliation_api.SERVICE: await self._reconciliations()},
            with_reflection=config.reflection,
        )

    async def _begin_instance(self, context: NodeContext, node_signer: Signer, keeping: LogKeeping) -> Leases:
        """Sign the first statements of this process, and take its lease."""
        instance = context.instance
        await instance.start(
            node_signer,
            manifest_sha256=self._manifest.sha256,
            software_version=__version__,
            artifacts=artifacts_of(context.games, self._manifest),
        )
        is_trusted = self.services.time.is_trusted
        leases = Leases(store=context.store, clock=self._clock, instance=instance, is_trusted=is_trusted)
        self.lost = leases.lost
        self._open.push_async_callback(keeping.end)  # runs after the last statement of the instance
        self._open.push_async_callback(self._end, instance)
        self._instance = instance
        await leases.renew()
        return leases

    def _begin_polls(
        self, background: Background, leases: Leases, endpoint: Endpoint, calls: Calls, gate: Gate
    ) -> None:
        """Start the background work that every process does for itself."""
        services, run = self.services, background.run
        run("lease", partial(self._renew, leases, endpoint), to_the_end=True)
        run("monitor", partial(_monitor, services, endpoint))
        run("calls", partial(_check_calls, calls))
        # Tables go on until the calls under way are answered: another process takes them over without a late phase.
        self._open.push_async_callback(services.tables.dealer.stop)
        run("tables", services.tables.dealer.poll, TABLES_S, to_the_end=True)
        run("table_views", self._feed.scan, TABLES_SCAN_S if self._shared_store else None, to_the_end=True)
        run("seat_views", self._feed.scan_seats, SEATS_SCAN_S if self._shared_store else None, to_the_end=True)
        run("session_updates", services.updates.scan, SESSIONS_SCAN_S if self._shared_store else None, to_the_end=True)
        run("chat", services.tables.chat.forget)
        run("reservations", services.tables.reservations.poll)
        run("idle_seats", services.tables.idle_seats.poll)
        run("availability", services.monitor.follow)
        run("outbox", services.outbox.log)
        run("allow_list", gate.poll)
        run("events", services.events.flush)

    def _begin_duties(self, background: Background, store: Store, leases: Leases) -> None:
        """Start the background work that one process does for all over the store."""
        services = self.services
        node_modules = partial(services.reporting.report_modules, modules_of(self._manifest))
        paces = {"returns": RETURNS_S}
        duties: dict[str, Work] = {
            "stage_reports": services.reporting.report_stages,
            "alignment": services.reporting.align_days,
            f"modules {self._config.node}": node_modules,
            "recovery": partial(services.sessions.recover, RECOVERY_AGE_MS if self._shared_store else 0),
            "interruptions": services.interruptions.finish_due,
            "large_wins": services.events.report_wins,
            "certificates": services.certificates.poll,
            "returns": services.monitoring.poll,
            "finals": services.finals_list.poll,
        }
        if self._shared_store:
            duties[LOST_DUTY] = leases.poll
        for duty, work in duties.items():
            background.run(duty, partial(lead, store, duty, work), paces.get(duty))

    def _follow_keys(self, background: Background, context: NodeContext, bundle: bytes, keyid: str) -> None:
        """Start dropping old stored answers, and following the key bundle."""
        config, clock, instance = self._config, self._clock, context.instance
        background.run("answers", Answers(context.store, clock, config.retry_window_h, instance.name).poll)
        background.run("keys", self.services.node_keys(bundle, keyid, key_files(config, clock)).poll)

    async def _relay_notices(self, context: NodeContext) -> None:
        """Pass notices between this process's clients and those of the other processes over the store."""
        relay = Relay(self.services.notices, context.instance.new_id(self._clock.now_ms()), context.store.emit)
        await context.store.listen(relay.take)
        self._open.push_async_callback(_cancelled, asyncio.create_task(relay.run()))

    async def _serve(self, endpoint: Endpoint, calls: Calls) -> None:
        calls.poll()  # sets the time that streams take
        await endpoint.start()
        self._open.callback(calls.poll)  # once more after the last call
        self._open.push_async_callback(endpoint.stop, self._config.drain_s)
        self.port = endpoint.port

    async def _renew(self, leases: Leases, endpoint: Endpoint) -> None:
        """Renew the lease. Take no more calls once the instance was declared lost."""
        await leases.renew()
        if leases.lost.is_set():
            self.lost_why = leases.why
            now_ms = self._clock.now_ms()
            self.services.availability.close_guard("store", InstanceLostError.reason, now_ms, latched=True)
            endpoint.health.drain()

    async def _reconciliations(self) -> Methods:
        """Reconciliations: submissions and reports in the home's folder, runs in processes that end with this one."""
        config, clock = self._config, self._clock
        shelf = Shelf(config.reconciliation, stored_mb=config.reconciliation_stored_mb)
        runs = ReconciliationRuns(shelf, clock, partial(begin_job, config), memory_mb=config.reconciliation_memory_mb)
        await runs.start()
        self._open.push_async_callback(runs.stop)
        submissions = Submissions(shelf, clock, rows_max=config.reconciliation_rows_max)
        return reconciliation_api.reconciliation_methods(submissions, runs, ReconciliationReports(shelf, clock))

    @property
    def _listen(self) -> str:
        host = self._config.listen.rpartition(":")[0]
        return f"{host}:{self._shared_port}" if self._shared_port else self._config.listen

    async def _end(self, instance: Instance) -> None:
        if self.lost.is_set():  # nothing more can be signed in its name
            return
        with contextlib.suppress(StoreError):
            await self._events.flush(everything=True)
        await instance.end(self._end_reason)

    def _count(self, code: EventCode) -> Callable[[str], None]:
        """A function that counts events of this code, by reason."""
        return partial(self._events.count, code)


async def _monitor(services: Services, endpoint: Endpoint) -> None:
    """Check everything that is monitored, and set the health: of play by all guards, of sessions by those of regulator
    and store.
    """
    await services.monitor.poll()
    availability = services.availability
    for service in (play_api.SERVICE, table_api.SERVICE):
        endpoint.health.set_serving(service, serving=availability.serving)
    serving = not (availability.guard("regulator").closed or availability.guard("store").closed)
    endpoint.health.set_serving(session_api.SERVICE, serving=serving)


async def _check_calls(calls: Calls) -> None:
    calls.poll()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


# --- the process ------------------------------------------------------------------------------------------------------


async def run(
    config: Config, manifest: Manifest, log: Log, stderr: BoundedStderr, worker: int | None, port: int
) -> None:
    """Serve until SIGTERM or SIGINT; a worker also ends when its supervisor is gone. The address is printed to stderr,
    after that the log goes to its file only. InstanceLostError.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    follow_signals(stopping.set)
    if worker is not None:
        loop.add_reader(sys.stdin.fileno(), stopping.set)  # nothing is written there: its end is the supervisor's end
    server = Server(config, manifest, log=log, worker=worker or 0, shared_port=port)
    await server.start()
    try:
        host = config.listen.rpartition(":")[0]
        structlog.get_logger().info("listening", address=f"{host}:{server.port}", instance=server.instance)
        log.quiet()
        if worker is not None:
            sys.stdout.buffer.write(SERVING)
            sys.stdout.buffer.flush()
        # The collector need not look again at objects that live as long as the process.
        gc.collect()
        gc.freeze()
        while not (stopping.is_set() or server.lost.is_set()):
            log.flush()
            stderr.poll()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), BACKGROUND_S)
        structlog.get_logger().info("draining", limit_s=config.drain_s)
    finally:
        if worker is not None:
            loop.remove_reader(sys.stdin.fileno())
        await server.stop()
    if server.lost.is_set():
        raise InstanceLostError(server.lost_why, instance=server.instance)
    structlog.get_logger().info("stopped", instance=server.instance)


def schedule(config: Config) -> None:
    """Apply `sched_batch`. To be called before any thread is started, because threads inherit the scheduling.
    InvalidFieldError if the system does not support it.
    """
    if not config.sched_batch:
        return
    if not hasattr(os, "sched_setscheduler"):
        raise InvalidFieldError("sched_batch must be false: only Linux has SCHED_BATCH", field="sched_batch")
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError as error:
        why = f"sched_batch must be false: the system refuses it ({error.strerror})"
        raise InvalidFieldError(why, field="sched_batch") from None


def serve(
    config: Config, manifest: Manifest, stderr: BoundedStderr, *, worker: int | None = None, port: int = 0
) -> int:
    """Run the server under its log and event loop; 0 after an orderly end. A worker has a number and a log of its own,
    and shares the port. The log gets the counts of `stderr`.
    """
    schedule(config)
    clock = SystemClock()
    path = config.log if worker is None else config.log.with_stem(f"{config.log.stem}-w{worker}")
    with Log(path, config.logging_level, clock) as log, contextlib.ExitStack() as ending:
        ending.callback(stderr.end)
        runner = ending.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        runner.run(run(config, manifest, log, stderr, worker, port))
    return 0
