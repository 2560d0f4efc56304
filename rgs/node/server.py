"""The server: one node put together, from its first statement to its last (ARCHITECTURE 2.8, 2.13, 2.17).

Start: keys, store, instance (its opening statements are committed before the port is served), then calls. Stop: health
says NOT_SERVING, calls under way are answered, work in the background comes to its end, `instance_end` is signed with
the number of the last draw, and the store is let go.

Refuses to serve without mutual TLS, and operators whose jurisdiction does not allow the development CA.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

import structlog
import uvloop

from rgs import __version__
from rgs.adapters.embedded.regulator import EmbeddedRegister
from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.api import play as play_api
from rgs.api import reconciliation as reconciliation_api
from rgs.api import session as session_api
from rgs.api.access import CallLines
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Methods
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.mapping import Encoder
from rgs.core.errors import InvalidFieldError
from rgs.core.statements import Signer
from rgs.core.statements.lines import parse_key_bundle
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.background import Background, Work, lead
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.keyring import load_bundle, load_kek, load_node_signer, node_key_in_force
from rgs.node.keys import key_files
from rgs.node.leases import LOST_DUTY, Leases
from rgs.node.logging import Log
from rgs.node.peers import Connections, OpenAccount, Outward, account_opener, load_outward
from rgs.node.reconcile_process import begin_job
from rgs.node.software_identity import artifacts_of, changed_software, changed_surroundings, configured, modules_of
from rgs.node.stderr import BoundedStderr
from rgs.node.tls_identity import Admit, admission, identify_certificate, load_tls, read_certificate
from rgs.node.transparency_log import LogKeeping
from rgs.node.wiring import Ground, Services, limits_of, methods_of
from rgs.node.workers import SERVING
from rgs.ports.regulator import CentralSystem
from rgs.service.admin.watch import Watched
from rgs.service.audit.audit import StatementReader
from rgs.service.audit.log import PublicLog
from rgs.service.books import Books
from rgs.service.events import EventCode, Events
from rgs.service.idempotency import Answers
from rgs.service.instance import Instance
from rgs.service.play.catalog import Catalog
from rgs.service.play.notices import Relay
from rgs.service.reconciliation.files import Shelf
from rgs.service.reconciliation.reports import ReconciliationReports
from rgs.service.reconciliation.runs import ReconciliationRuns
from rgs.service.reconciliation.submissions import Submissions
from rgs.service.sealing import Sealer
from rgs.store.address import PostgresAddress
from rgs.store.changes import InstanceLostError, StoreError
from rgs.store.interface import Parties, Store
from rgs.store.opening import open_parties, open_store
from rgs.store.register import RegisterStore
from rgs.store.wallet import WalletStore
from rgs.tlog.gap import verify_not_behind

BACKGROUND_S = 1.0
"""Between two rounds of the work in the background."""
RECOVERY_AGE_MS = 3_000
"""So old is an affair before it is recovered, where it may be under way in another process."""


class Server:
    """One node. `start`, then `port` is served until `stop`; both at most once."""

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
        """`measure` makes the software manifest again, to be compared with the one given; `log` takes a line a call.
        `worker` is the number of this process behind `shared_port`, which others of its node serve too; 0: none do.
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
        """Whether other processes may live over the store, too."""
        self._events: Events
        self.services: Services
        """The use cases; there from the start on, as the events are."""
        self.port = 0
        """What is served; 0 before the start."""
        self._instance: Instance | None = None
        self.lost = asyncio.Event()
        """Others have declared this process's instance lost: it has to end."""
        self.lost_why = ""
        """Who has taken its place, since when, and what a person does; for people."""

    @property
    def instance(self) -> str:
        """The name under which this server draws and signs; empty before the start."""
        return "" if self._instance is None else self._instance.name

    async def start(self) -> None:
        """Open everything, sign the beginning, serve. On an error what was opened is closed, and nothing was served."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        self._end_reason = "DRAINED"

    async def stop(self) -> None:
        """Serve no more, finish what is under way, sign the end, close."""
        self._stopping.set()
        await self._open.aclose()

    # --- the start, in order; the stop is the same backwards ----------------------------------------------------------

    async def _start(self) -> None:
        """A step needs those before it. What can be refused is refused before the instance signs its beginning."""
        config, clock = self._config, self._clock
        outward = load_outward(config.outward, config.home)
        bundle = load_bundle(config)
        node_signer = load_node_signer(config, bundle)
        sealer = Sealer(load_kek(config))
        tls = load_tls(config)
        store, parties, wallet = await self._open_stores()
        self._events = Events(store=store, clock=clock)
        audit = StatementReader(store=store, key_statements=parse_key_bundle(bundle))
        keeping = await LogKeeping.open(config, clock, store, audit.key_statements)
        instance = self._make_instance(store, sealer, keeping)
        ground = self._connect(outward, store, parties, instance, wallet)
        admit = admission(tls.client_ca, ground.books)
        encoder = Encoder(Catalog(ground.books).list())
        self.services = self._wire(ground, keeping, audit, encoder, admit, account_opener(wallet, outward))
        await self.services.load()
        # By the time that is written down, which may be the database's: no statement is dated before its key.
        node_key_in_force(bundle, config.node, clock.now_ms())
        gate = await self._open_gate(parties, admit)
        calls = self._make_calls(gate, encoder)
        endpoint = await self._bind(tls, calls, encoder, keeping)
        # The port is bound, so that nothing but the disk can fail between the first statement and the first call.
        await verify_not_behind(store, config.translog)
        leases = await self._begin_instance(ground, node_signer, keeping)
        told = configured(config, outward)
        await self._events.tell_configuration(config.node, told, first_boot=instance.boot_no == 1)
        background = Background(self._open, self._stopping, BACKGROUND_S, config.drain_s, self._note_fault)
        await keeping.begin(self._events, background.run)
        self._begin_looks(background, leases, endpoint, calls, gate)
        self._begin_duties(background, store, leases)
        self._follow_keys(background, ground, bundle, node_signer.keyid)
        await self._relay_notices(ground)
        await self._serve(endpoint, calls)

    async def _open_stores(self) -> tuple[Store, Parties, EmbeddedWallet]:
        """The store, its allow-list over a connection of its own, and the embedded wallet's file."""
        config = self._config
        store = await open_store(config.store)
        store.large_win_minor = config.large_win_minor
        self._open.push_async_callback(store.close)
        parties = await open_parties(config.store)
        self._open.push_async_callback(parties.close)
        wallet = EmbeddedWallet(WalletStore(config.wallet), self._clock.now_ms)
        self._open.push_async_callback(wallet.close)
        return store, parties, wallet

    def _make_instance(self, store: Store, sealer: Sealer, keeping: LogKeeping) -> Instance:
        """It has no name and signs nothing before `_begin_instance`."""
        return Instance(
            store=store,
            clock=self._clock,
            sealer=sealer,
            node=self._config.node,
            worker=self._worker,
            shared=self._shared_store,
            draws_in_flight_max=self._config.draws_in_flight_max,
            known=keeping.known,
        )

    def _connect(
        self, outward: Outward, store: Store, parties: Parties, instance: Instance, wallet: EmbeddedWallet
    ) -> Ground:
        """The operators' wallets and the central system: those of the file, the embedded ones where it names none."""
        clock, count = self._clock, self._events.count
        connections = Connections(
            outward, lambda: instance.new_id(clock.now_ms()), partial(count, EventCode.PEER_CONTRADICTION)
        )
        self._open.push_async_callback(connections.close)
        central: CentralSystem | None = connections.central
        if central is None:
            central = EmbeddedRegister(RegisterStore(self._config.register), instance.new_regulator_id, clock.now_ms)
            self._open.push_async_callback(central.close)
        return Ground(
            store=store,
            parties=parties,
            instance=instance,
            clock=clock,
            books=Books(outward.fundings),
            wallet=connections.wallet(wallet),
            central=central,
            node=self._config.node,
            readings=connections.readings,
        )

    def _wire(
        self,
        ground: Ground,
        keeping: LogKeeping,
        audit: StatementReader,
        encoder: Encoder,
        admit: Admit,
        open_account: OpenAccount,
    ) -> Services:
        """The use cases."""
        services = Services(
            ground,
            encode=encoder,
            watched=self._watched(keeping),
            identify=identify_certificate,
            admit=admit,
            events=self._events,
            audit=audit,
            open_account=open_account,
        )
        services.monitoring.alarm_stops = self._config.return_alarm_stops
        return services

    def _watched(self, keeping: LogKeeping) -> Watched:
        config = self._config
        return Watched(
            measure=self._changed_software,
            rules_period_ms=config.rules_check_s * 1000,
            self_test_period_ms=config.self_test_s * 1000,
            surroundings=partial(changed_surroundings, self._manifest),
            surroundings_period_ms=config.surroundings_check_s * 1000,
            log=keeping.code,
        )

    async def _open_gate(self, parties: Parties, admit: Admit) -> Gate:
        """Who is let in; it has read the allow-list, and reads it again after every change."""
        note = partial(self._events.count, EventCode.AUTHENTICATION_FAILED)
        gate = Gate(parties, self._clock, read_certificate, admit, note)
        await gate.refresh()
        self.services.certificates.refresh = gate.refresh
        return gate

    def _make_calls(self, gate: Gate, encoder: Encoder) -> Calls:
        config, clock = self._config, self._clock
        lines = CallLines(self._log.line, clock) if self._log is not None and config.log_calls else None
        return Calls(gate, clock, encoder.act, self._note_fault, lines, limits_of(config))

    async def _bind(self, tls: Tls, calls: Calls, encoder: Encoder, keeping: LogKeeping) -> Endpoint:
        """The port is bound from now on; nobody is answered before `_serve`."""
        config, services = self._config, self.services
        log = PublicLog(audit=services.audit, folder=config.translog, vkey_of=keeping.vkey_of)
        methods = methods_of(services, encoder, log)
        return Endpoint(
            listen=self._listen,
            shared=bool(self._shared_port),
            tls=tls,
            calls=calls,
            services={**methods, reconciliation_api.SERVICE: await self._reconciliations()},
            notices=services.notices,
            with_reflection=config.reflection,
        )

    async def _begin_instance(self, ground: Ground, node_signer: Signer, keeping: LogKeeping) -> Leases:
        """The first statements of this process, and its lease."""
        instance = ground.instance
        await instance.start(
            node_signer,
            manifest_sha256=self._manifest.sha256,
            software_version=__version__,
            artifacts=artifacts_of(ground.books, self._manifest),
        )
        is_trusted = self.services.time.is_trusted
        leases = Leases(store=ground.store, clock=self._clock, instance=instance, is_trusted=is_trusted)
        self.lost = leases.lost
        self._open.push_async_callback(keeping.end)  # behind the last statement of the instance
        self._open.push_async_callback(self._end, instance)
        self._instance = instance
        await leases.renew()
        return leases

    def _begin_looks(
        self, background: Background, leases: Leases, endpoint: Endpoint, calls: Calls, gate: Gate
    ) -> None:
        """What every process does for itself."""
        services, run = self.services, background.run
        run("lease", partial(self._renew, leases, endpoint), to_the_end=True)
        run("watch", partial(_watch, services, endpoint))
        run("calls", partial(_look_at_calls, calls))
        run("permits", services.watch.follow)
        run("outbox", services.outbox.log)
        run("allow_list", gate.poll)
        run("events", services.events.flush)

    def _begin_duties(self, background: Background, store: Store, leases: Leases) -> None:
        """What one process does for all over the store."""
        services = self.services
        node_modules = partial(services.reporting.report_modules, modules_of(self._manifest))
        duties: dict[str, Work] = {
            "stage_reports": services.reporting.report_stages,
            "alignment": services.reporting.align_days,
            f"modules {self._config.node}": node_modules,
            "recovery": partial(services.sessions.recover, RECOVERY_AGE_MS if self._shared_store else 0),
            "interruptions": services.interruptions.finish_due,
            "large_wins": services.events.tell_wins,
            "certificates": services.certificates.look,
            "returns": services.monitoring.look,
        }
        if self._shared_store:
            duties[LOST_DUTY] = leases.look
        for duty, work in duties.items():
            background.run(duty, partial(lead, store, duty, work))

    def _follow_keys(self, background: Background, ground: Ground, bundle: bytes, keyid: str) -> None:
        """Stored answers are dropped in time; the node goes on under what its key bundle says."""
        config, clock, instance = self._config, self._clock, ground.instance
        background.run("answers", Answers(ground.store, clock, config.retry_window_h, instance.name).look)
        background.run("keys", self.services.node_keys(bundle, keyid, key_files(config, clock)).look)

    async def _relay_notices(self, ground: Ground) -> None:
        """Between this process's clients and those of the others over the store."""
        relay = Relay(self.services.notices, ground.instance.new_id(self._clock.now_ms()), ground.store.tell)
        await ground.store.listen(relay.take)
        self._open.push_async_callback(_cancelled, asyncio.create_task(relay.run()))

    async def _serve(self, endpoint: Endpoint, calls: Calls) -> None:
        calls.look()  # from now on it has a time to give to streams
        await endpoint.start()
        self._open.callback(calls.look)  # a last time, when the last call has ended
        self._open.push_async_callback(endpoint.stop, self._config.drain_s)
        self.port = endpoint.port

    async def _renew(self, leases: Leases, endpoint: Endpoint) -> None:
        """The lease; whose instance was declared lost takes no more calls."""
        await leases.renew()
        if leases.lost.is_set():
            self.lost_why = leases.why
            now_ms = self._clock.now_ms()
            self.services.permits.close_guard("store", InstanceLostError.reason, now_ms, latched=True)
            endpoint.health.drain()

    async def _reconciliations(self) -> Methods:
        """Submissions and reports in the home's folder, runs in processes of their own, which end with this one."""
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
        if self.lost.is_set():  # nothing more can be said in its name
            return
        with contextlib.suppress(StoreError):
            await self._events.flush(everything=True)
        await instance.end(self._end_reason)

    def _note_fault(self, reason: str) -> None:
        self._events.count(EventCode.SERVER_FAULT, reason)

    def _changed_software(self) -> str:
        """Hash the certified files again: a code if they are not what was measured at the start."""
        return changed_software(self._manifest, self._measure)


async def _watch(services: Services, endpoint: Endpoint) -> None:
    """Look, and tell health: play serves while no guard stops new rounds, sessions while regulator and store take
    them.
    """
    await services.watch.look()
    permits = services.permits
    endpoint.health.set_serving(play_api.SERVICE, serving=permits.serving)
    serving = not (permits.guard("register").closed or permits.guard("store").closed)
    endpoint.health.set_serving(session_api.SERVICE, serving=serving)


async def _look_at_calls(calls: Calls) -> None:
    calls.look()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


# --- the process ------------------------------------------------------------------------------------------------------


async def run(
    config: Config, manifest: Manifest, log: Log, stderr: BoundedStderr, worker: int | None, port: int
) -> None:
    """Serve until SIGTERM or SIGINT, a worker also until its supervisor has gone. People are told where; from then on
    the log is a file. InstanceLostError.
    """
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    if worker is not None:
        loop.add_reader(sys.stdin.fileno(), told_to_stop.set)  # nobody writes there: it is the end of the supervisor
    server = Server(config, manifest, log=log, worker=worker or 0, shared_port=port)
    await server.start()
    try:
        host = config.listen.rpartition(":")[0]
        structlog.get_logger().info("listening", address=f"{host}:{server.port}", instance=server.instance)
        log.quiet()
        if worker is not None:
            sys.stdout.buffer.write(SERVING)
            sys.stdout.buffer.flush()
        # What lives as long as the process is not looked at again by the collector.
        gc.collect()
        gc.freeze()
        while not (told_to_stop.is_set() or server.lost.is_set()):
            log.flush()
            stderr.look()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told_to_stop.wait(), BACKGROUND_S)
        structlog.get_logger().info("draining", limit_s=config.drain_s)
    finally:
        if worker is not None:
            loop.remove_reader(sys.stdin.fileno())
        await server.stop()
    if server.lost.is_set():
        raise InstanceLostError(server.lost_why, instance=server.instance)
    structlog.get_logger().info("stopped", instance=server.instance)


def schedule(config: Config) -> None:
    """Before any thread is started, for threads take over how their starter is scheduled. InvalidFieldError where the
    setting asks for what the system does not do.
    """
    if not config.sched_batch:
        return
    if not hasattr(os, "sched_setscheduler"):
        raise InvalidFieldError("sched_batch must be false: only Linux knows SCHED_BATCH", field="sched_batch")
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError as error:
        why = error.strerror
        raise InvalidFieldError(
            f"sched_batch must be false: the system refuses it ({why})", field="sched_batch"
        ) from None


def serve(
    config: Config, manifest: Manifest, stderr: BoundedStderr, *, worker: int | None = None, port: int = 0
) -> int:
    """`rgs serve`: the log, the loop, the server; 0 after an orderly end. A worker has its number, a log of its own,
    and shares the port. What is counted of `stderr` stands in the log.
    """
    schedule(config)
    clock = SystemClock()
    path = config.log if worker is None else config.log.with_stem(f"{config.log.stem}-w{worker}")
    with Log(path, config.log_level, clock) as log, contextlib.ExitStack() as ending:
        ending.callback(stderr.end)
        runner = ending.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        runner.run(run(config, manifest, log, stderr, worker, port))
    return 0
