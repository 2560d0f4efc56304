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
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
import uvloop

from rgs import __version__
from rgs.adapters.embedded.regulator import EmbeddedRegister
from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.api import admin as admin_api
from rgs.api import audit as audit_api
from rgs.api import catalog as catalog_api
from rgs.api import history as history_api
from rgs.api import play as play_api
from rgs.api import reconciliation as reconciliation_api
from rgs.api import session as session_api
from rgs.api.access import CallLines
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Methods
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.mapping import Encoder
from rgs.api.quotas import Limits
from rgs.core.errors import InvalidFieldError, RgsError
from rgs.core.statements.lines import parse_key_bundle
from rgs.integrity.manifest import Manifest, make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.node.keyring import load_bundle, load_kek, load_node_signer, node_key_in_force
from rgs.node.keys import KeyFiles
from rgs.node.leases import LOST_DUTY, Leases
from rgs.node.logging import Log
from rgs.node.peers import Connections, account_opener, load_outward
from rgs.node.reconcile_process import begin_job
from rgs.node.software_identity import artifacts_of, changed_software, changed_surroundings, configured, modules_of
from rgs.node.stderr import BoundedStderr
from rgs.node.tls_identity import admission, identify_certificate, read_certificate
from rgs.node.transparency_log import LogKeeping
from rgs.node.wiring import Ground, Services
from rgs.node.workers import SERVING
from rgs.ports.regulator import CentralSystem
from rgs.service.admin.watch import Watched
from rgs.service.audit.log import PublicLog
from rgs.service.books import Books
from rgs.service.events import EventCode, Events
from rgs.service.idempotency import Answers
from rgs.service.instance import Instance
from rgs.service.permits import Permits
from rgs.service.play.catalog import Catalog
from rgs.service.play.notices import Relay
from rgs.service.reconciliation.files import Shelf
from rgs.service.reconciliation.reports import ReconciliationReports
from rgs.service.reconciliation.runs import ReconciliationRuns
from rgs.service.reconciliation.submissions import Submissions
from rgs.service.sealing import Sealer
from rgs.store.address import PostgresAddress
from rgs.store.changes import InstanceLostError, StoreError
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
        self._note_fault: Callable[[str], None] = lambda _: None
        self._tell_contradiction: Callable[[str], None] = lambda _: None
        self.services: Services
        """The use cases; there from the start on."""
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
        config, clock, opened = self._config, self._clock, self._open
        outward = load_outward(config.outward, config.home)
        bundle = load_bundle(config)
        node_signer = load_node_signer(config, bundle)
        sealer = Sealer(load_kek(config))
        tls = Tls(
            key=read_whole(config.tls / "server.key", "server key", secret=True),
            chain=read_whole(config.tls / "server.pem", "server certificate"),
            client_ca=read_whole(config.ca, "client authorities"),
        )
        shared = isinstance(config.store, PostgresAddress)
        store = await open_store(config.store)
        store.large_win_minor = config.large_win_minor
        opened.push_async_callback(store.close)
        parties = await open_parties(config.store)
        opened.push_async_callback(parties.close)
        wallet = EmbeddedWallet(WalletStore(config.wallet), clock.now_ms)
        opened.push_async_callback(wallet.close)
        keeping = await LogKeeping.open(
            config,
            clock,
            store,
            lambda: self.services.audit.key_statements(),  # noqa: PLW0108 - the services come later
        )
        instance = Instance(
            store=store,
            clock=clock,
            sealer=sealer,
            node=config.node,
            worker=self._worker,
            shared=shared,
            draws_in_flight_max=config.draws_in_flight_max,
            known=keeping.known,
        )
        connections = Connections(outward, lambda: instance.new_id(clock.now_ms()), self._note_contradiction)
        opened.push_async_callback(connections.close)
        central: CentralSystem | None = connections.central
        if central is None:
            central = EmbeddedRegister(RegisterStore(config.register), instance.new_regulator_id, clock.now_ms)
            opened.push_async_callback(central.close)

        books = Books(outward.fundings)
        admit = admission(tls.client_ca, books)
        encoder = Encoder(Catalog(books).list())
        services = self.services = Services(
            Ground(
                store=store,
                parties=parties,
                instance=instance,
                clock=clock,
                books=books,
                wallet=connections.wallet(wallet),
                central=central,
                node=config.node,
                readings=connections.readings,
            ),
            encode=encoder,
            watched=Watched(
                measure=self._changed_software,
                rules_period_ms=config.rules_check_s * 1000,
                self_test_period_ms=config.self_test_s * 1000,
                surroundings=partial(changed_surroundings, self._manifest),
                surroundings_period_ms=config.surroundings_check_s * 1000,
                log=keeping.code,
            ),
            identify=identify_certificate,
            admit=admit,
            key_statements=parse_key_bundle(bundle),
            open_account=account_opener(wallet, connections),
        )
        await services.load()
        # By the time that is written down, which may be the database's: no statement is dated before its key.
        node_key_in_force(bundle, config.node, clock.now_ms())
        services.monitoring.alarm_stops = config.return_alarm_stops
        events = services.events
        gate = Gate(
            parties,
            clock,
            read_certificate,
            admit,
            lambda reason: events.count(EventCode.AUTHENTICATION_FAILED, reason),
        )
        await gate.refresh()
        services.certificates.refresh = gate.refresh
        self._note_fault = lambda reason: events.count(EventCode.SERVER_FAULT, reason)
        self._tell_contradiction = lambda peer: events.count(EventCode.PEER_CONTRADICTION, peer)
        lines = CallLines(self._log.line, clock) if self._log is not None and config.log_calls else None
        limits = Limits(
            calls_max=config.party_calls_max,
            messages_per_s=config.party_messages_per_s,
            streams_max=config.party_streams_max,
            stall_s=config.stream_stall_s,
            idle_s=config.stream_idle_s,
        )
        calls = Calls(gate, clock, encoder.act, self._note_fault, lines, limits)
        endpoint = Endpoint(
            listen=self._listen,
            shared=bool(self._shared_port),
            tls=tls,
            calls=calls,
            services={
                catalog_api.SERVICE: catalog_api.catalog_methods(services.catalog),
                session_api.SERVICE: session_api.session_methods(services.sessions, encoder),
                play_api.SERVICE: play_api.play_methods(services.play),
                history_api.SERVICE: history_api.history_methods(services.history),
                audit_api.SERVICE: audit_api.audit_methods(
                    services.audit,
                    PublicLog(audit=services.audit, folder=config.translog, vkey_of=keeping.vkey_of),
                ),
                admin_api.SERVICE: admin_api.admin_methods(
                    services.admin, services.certificates, services.reports, services.outbox, services.monitoring
                ),
                reconciliation_api.SERVICE: await self._reconciliations(),
            },
            notices=services.notices,
            with_reflection=config.reflection,
        )
        # The port is bound, so that nothing but the disk can fail between the first statement and the first call.
        await verify_not_behind(store, config.translog)
        await instance.start(
            node_signer,
            manifest_sha256=self._manifest.sha256,
            software_version=__version__,
            artifacts=artifacts_of(books, self._manifest),
        )
        leases = Leases(store=store, clock=clock, instance=instance, is_trusted=services.time.is_trusted)
        self.lost = leases.lost
        opened.push_async_callback(keeping.end)  # behind the last statement of the instance
        opened.push_async_callback(self._end, instance, services.events)
        self._instance = instance
        await leases.renew()
        await events.tell_configuration(config.node, configured(config, outward), first_boot=instance.boot_no == 1)

        await keeping.begin(events, self._run_in_background)

        async def watch() -> None:
            await services.watch.look()
            _tell_health(endpoint, services.permits)

        async def renew() -> None:
            await leases.renew()
            if leases.lost.is_set():
                self.lost_why = leases.why
                services.permits.close_guard("store", InstanceLostError.reason, clock.now_ms(), latched=True)
                endpoint.health.drain()

        def lead(duty: str, work: Callable[[], Awaitable[object]]) -> None:
            """Work that one process does for all over the store."""

            async def led() -> None:
                if await store.lead(duty):
                    await work()

            self._run_in_background(duty, led)

        self._run_in_background("lease", renew, to_the_end=True)
        self._run_in_background("watch", watch)

        async def look_at_calls() -> None:
            calls.look()

        self._run_in_background("calls", look_at_calls)
        self._run_in_background("permits", services.watch.follow)
        self._run_in_background("outbox", services.outbox.log)
        self._run_in_background("allow_list", gate.poll)
        self._run_in_background("events", events.flush)
        lead("stage_reports", services.reporting.report_stages)
        lead("alignment", services.reporting.align_days)
        lead(f"modules {config.node}", partial(services.reporting.report_modules, modules_of(self._manifest)))
        lead("recovery", partial(services.sessions.recover, RECOVERY_AGE_MS if shared else 0))
        lead("interruptions", services.interruptions.finish_due)
        lead("large_wins", events.tell_wins)
        lead("certificates", services.certificates.look)
        lead("returns", services.monitoring.look)
        if shared:
            lead(LOST_DUTY, leases.look)
        self._run_in_background("answers", Answers(store, clock, config.retry_window_h, instance.name).look)
        files = KeyFiles(
            partial(read_whole, config.bundle, "key bundle"),
            lambda bundle: load_node_signer(config, bundle, now_ms=clock.now_ms()),
        )
        self._run_in_background("keys", services.node_keys(bundle, node_signer.keyid, files).look)
        relay = Relay(services.notices, instance.new_id(clock.now_ms()), store.tell)
        await store.listen(relay.take)
        opened.push_async_callback(_cancelled, asyncio.create_task(relay.run()))
        calls.look()  # from now on it has a time to give to streams
        await endpoint.start()
        opened.callback(calls.look)  # a last time, when the last call has ended
        opened.push_async_callback(endpoint.stop, config.drain_s)
        self.port = endpoint.port

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

    async def _end(self, instance: Instance, events: Events) -> None:
        if self.lost.is_set():  # nothing more can be said in its name
            return
        with contextlib.suppress(StoreError):
            await events.flush(everything=True)
        await instance.end(self._end_reason)

    def _note_contradiction(self, peer: str) -> None:
        self._tell_contradiction(peer)

    def _changed_software(self) -> str:
        """Hash the certified files again: a code if they are not what was measured at the start."""
        return changed_software(self._manifest, self._measure)

    def _run_in_background(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        pause_s: float | None = None,
        *,
        to_the_end: bool = False,
    ) -> None:
        """Do the work now and after each pause, until the server stops; the work at hand is finished, not cut short.
        `to_the_end`: until the calls under way have been answered, too.
        """
        ended = asyncio.Event() if to_the_end else self._stopping

        async def repeat() -> None:
            failure = ""
            while not ended.is_set():
                try:
                    await work()
                    failure = ""
                except Exception as error:  # noqa: BLE001 - it is tried again, whatever it was; told when it changes
                    reason = error.reason if isinstance(error, RgsError) else type(error).__name__
                    if not isinstance(error, RgsError):
                        self._note_fault("BACKGROUND")
                    if reason != failure:
                        structlog.get_logger().warning("background_work_failed", work=name, exc_info=error)
                    failure = reason
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), pause_s or BACKGROUND_S)

        task = asyncio.create_task(repeat())
        self._open.push_async_callback(_finished, task, self._config.drain_s)
        self._open.callback(ended.set)


def _tell_health(endpoint: Endpoint, permits: Permits) -> None:
    """Play serves while no guard stops new rounds; sessions while regulator and store take them."""
    endpoint.health.set_serving(play_api.SERVICE, serving=permits.serving)
    serving = not (permits.guard("register").closed or permits.guard("store").closed)
    endpoint.health.set_serving(session_api.SERVICE, serving=serving)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _finished(task: asyncio.Task[None], patience_s: float) -> None:
    """Wait for the task; it is cancelled when patience ends, and its affair goes on at the next start."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(task, patience_s)


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
