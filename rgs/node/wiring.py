"""The services of one node, put together over a store, an instance and peers that are opened elsewhere.

Nothing is started or closed here. All services share one clock, one set of locks and one set of availability.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from rgs.api import admin as admin_api
from rgs.api import audit as audit_api
from rgs.api import catalog as catalog_api
from rgs.api import free_bets as free_bets_api
from rgs.api import history as history_api
from rgs.api import play as play_api
from rgs.api import report as report_api
from rgs.api import session as session_api
from rgs.api import support as support_api
from rgs.api import table as table_api
from rgs.api import table_admin as table_admin_api
from rgs.api.calls import Methods
from rgs.api.mapping import Encoder
from rgs.api.quotas import PartyLimits
from rgs.api.table_mapping import watched_line, watched_table
from rgs.core.clock import Clock, TrustedClock
from rgs.core.returns.certified import load_certified_returns, why_not
from rgs.node.config import Config
from rgs.node.keys import KeyFiles, NodeKeys
from rgs.node.peers import OpenAccount
from rgs.node.tables import TableServices
from rgs.node.tls_identity import Admit
from rgs.ports.readings import CircuitReading
from rgs.ports.regulator import Regulator
from rgs.ports.wallet import Wallet
from rgs.service.admin.admin import Admin
from rgs.service.admin.certificates import Certificates, Identify
from rgs.service.admin.health_monitor import CountedRegulator, HealthMonitor, MonitoredParts
from rgs.service.admin.monitoring import Monitoring
from rgs.service.admin.orders import Orders
from rgs.service.admin.outbox import Outbox
from rgs.service.audit.audit import StatementReader
from rgs.service.audit.finals import FinalsList, FinalsReader
from rgs.service.audit.log import PublicLog
from rgs.service.audit.totals import Reports
from rgs.service.availability import Availability
from rgs.service.callers import Encode, SessionLocks
from rgs.service.events import Events
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.money.returning import Returning
from rgs.service.play.catalog import Catalog
from rgs.service.play.decks import Decks
from rgs.service.play.free_bets import FreeBets
from rgs.service.play.history import History
from rgs.service.play.interruptions import Interruptions
from rgs.service.play.launches import Launches
from rgs.service.play.notices import Notices
from rgs.service.play.opening_rules import OpeningRules
from rgs.service.play.operations import Operations
from rgs.service.play.play import Play
from rgs.service.play.seamless import Seamless
from rgs.service.play.sessions import Sessions
from rgs.service.play.terms import OperatorTerms
from rgs.service.play.updates import Updates
from rgs.service.regulator.reports import Reporting
from rgs.service.support.lookup import Support
from rgs.service.tables.feed import Elsewhere, Feed
from rgs.service.tables.seats import TableEncode
from rgs.service.timekeeping import Timekeeping
from rgs.store.interface import Parties, Store

LINES_MAX = 1_000
"""Lines of chat of other processes that are taken up at once."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the services of a node work with, opened elsewhere."""

    store: Store
    parties: Parties
    instance: Instance
    clock: TrustedClock
    games: GameCatalog
    wallet: Wallet
    regulator: Regulator
    node: str
    readings: Callable[[], Sequence[CircuitReading]] = tuple
    """The states of the connections to the peers."""


async def _no_refresh() -> None: ...


@dataclass(frozen=True, slots=True)
class Encoders:
    """How answers become bytes: of sessions and solo play, and of seats at tables."""

    sessions: Encode
    tables: TableEncode


class Services:
    """Every use case of the node, by name.

    `open_account` opens accounts in the embedded wallet, in the demo jurisdiction only. `refresh` makes the gate read
    the allow-list again. `events` and `audit` are made here if the peers and the log do not have them already.
    """

    def __init__(
        self,
        context: NodeContext,
        *,
        encoders: Encoders,
        monitored: MonitoredParts,
        identify: Identify,
        admit: Admit,
        events: Events | None = None,
        audit: StatementReader | None = None,
        open_account: OpenAccount | None = None,
        refresh: Callable[[], Awaitable[None]] = _no_refresh,
        alarm_stops: bool = False,
    ) -> None:
        store, instance, clock, games = context.store, context.instance, context.clock, context.games
        node, wallet = context.node, context.wallet
        games.counted_from = clock.counted_from
        self.locks = SessionLocks()
        self.notices = Notices()
        self.availability = Availability()
        self.events = Events(store=store, clock=clock) if events is None else events
        counted = CountedRegulator(context.regulator, clock)
        self.time = Timekeeping(store=store, clock=clock, node=node)
        self.monitor = HealthMonitor(
            store=store,
            instance=instance,
            availability=self.availability,
            events=self.events,
            clock=clock,
            time=self.time,
            regulator=counted,
            monitored=monitored,
            node=node,
        )
        self.decks = Decks(instance, games)
        self.interruptions = Interruptions(
            store=store, clock=clock, games=games, locks=self.locks, decks=self.decks, notices=self.notices
        )
        self.play = Play(
            store=store,
            instance=instance,
            games=games,
            clock=clock,
            locks=self.locks,
            encode=encoders.sessions,
            availability=self.availability,
            decks=self.decks,
        )
        orders = Orders(store=store, clock=clock)
        self.certificates = Certificates(
            store=store,
            parties=context.parties,
            clock=clock,
            events=self.events,
            orders=orders,
            identify=identify,
            admit=admit,
            refresh=refresh,
        )
        self.tables = TableServices(
            store=store,
            instance=instance,
            games=games,
            clock=clock,
            locks=self.locks,
            availability=self.availability,
            orders=orders,
            verify_admin=self.certificates.verify_admin,
            encode=encoders.tables,
        )
        self.reporting = Reporting(
            store=store,
            instance=instance,
            events=self.events,
            clock=clock,
            regulator=counted,
            node=node,
        )
        self.operations = Operations(
            store=store,
            instance=instance,
            games=games,
            clock=clock,
            wallet=wallet,
            regulator=counted,
            encode=encoders.sessions,
            reporting=self.reporting,
            returning=Returning(context.readings),
            left_table=self.tables.signals.seat,
        )
        self.opening_rules = OpeningRules(games=games, availability=self.availability, tables=self.tables.configs)
        self.launches = Launches(store=store, instance=instance, clock=clock, opening_rules=self.opening_rules)
        self.sessions = Sessions(
            store=store,
            instance=instance,
            games=games,
            clock=clock,
            locks=self.locks,
            operations=self.operations,
            play=self.play,
            availability=self.availability,
            interruptions=self.interruptions,
            opening_rules=self.opening_rules,
            launches=self.launches,
            open_account=open_account,
        )
        self.updates = Updates(store=store, session=self.sessions.get, view=self.decks.view)
        store.on_committed = self.updates.committed
        self.seamless = Seamless(
            store=store, instance=instance, clock=clock, operations=self.operations, play=self.play
        )
        self.admin = Admin(
            store=store,
            clock=clock,
            locks=self.locks,
            decks=self.decks,
            notices=self.notices,
            availability=self.availability,
            events=self.events,
            orders=orders,
            monitor=self.monitor,
            verify_admin=self.certificates.verify_admin,
        )
        self.reports = Reports(store)
        self.finals_list = FinalsList(store)
        self.finals = FinalsReader(store)
        self.monitoring = Monitoring(store=store, clock=clock, alarm_stops=alarm_stops)
        self.outbox = Outbox(store=store, clock=clock, events=self.events, orders=orders, readings=context.readings)
        self.history = History(store=store, decks=self.decks, tables=self.tables.views)
        self.free_bets = FreeBets(store=store, instance=instance, games=games, clock=clock)
        self.support = Support(store=store, games=games, availability=self.availability)
        self.catalog = Catalog(games)
        self.terms = OperatorTerms(store, games)
        self.audit = StatementReader(store=store, key_statements=()) if audit is None else audit
        self._context = context

    async def load(self) -> None:
        """Read what admins and guards have left in the store; log the games that cannot be offered."""
        for ruleset in self._context.games.rulesets.values():
            if load_certified_returns(ruleset) is None:
                structlog.get_logger().error("game_without_certificate", game=ruleset.id, why=why_not(ruleset))
        await self.monitor.begin()

    def node_keys(self, bundle: bytes, keyid: str, files: KeyFiles) -> NodeKeys:
        """The follower of the key bundle; `keyid` is the node key that started the instance."""
        context = self._context
        return NodeKeys(
            node=context.node,
            bundle=bundle,
            keyid=keyid,
            files=files,
            store=context.store,
            clock=context.clock,
            instance=context.instance,
            audit=self.audit,
            availability=self.availability,
        )


def feed_of(tables: TableServices, store: Store, clock: Clock, *, shared: bool) -> Feed:
    """The fan-out of tables to the streams of this process. `shared`: other processes may use the store, too."""
    elsewhere = Elsewhere(partial(store.chat_after, limit=LINES_MAX), store.box_marks, store.devices)
    return Feed(
        signals=tables.signals,
        clock=clock,
        table=tables.views.table,
        seat=tables.views.seat,
        versions=store.table_versions,
        encode=watched_table,
        encode_line=watched_line,
        elsewhere=elsewhere if shared else None,
    )


def methods_of(services: Services, encoder: Encoder, log: PublicLog, feed: Feed) -> dict[str, Methods]:
    """The methods of each gRPC service by its full name; without reconciliation, which works on files."""
    tables = services.tables
    return {
        catalog_api.SERVICE: catalog_api.catalog_methods(services.catalog, services.terms),
        session_api.SERVICE: session_api.session_methods(services.sessions, services.launches, encoder),
        play_api.SERVICE: play_api.play_methods(services.play, services.notices, services.updates, encoder),
        free_bets_api.SERVICE: free_bets_api.free_bet_methods(services.free_bets),
        history_api.SERVICE: history_api.history_methods(services.history),
        report_api.SERVICE: report_api.report_methods(services.reports, services.finals),
        support_api.SERVICE: support_api.support_methods(services.support),
        audit_api.SERVICE: audit_api.audit_methods(services.audit, log),
        admin_api.SERVICE: admin_api.admin_methods(
            services.admin, services.certificates, services.reports, services.outbox, services.monitoring
        ),
        table_api.SERVICE: table_api.table_methods(
            seats=tables.seats, views=tables.views, lobby=tables.lobby, chat=tables.chat, feed=feed, encoder=encoder
        ),
        table_admin_api.SERVICE: table_admin_api.table_admin_methods(tables.admin),
    }


def limits_of(config: Config) -> PartyLimits:
    """The limits of one party in this process, from the settings."""
    return PartyLimits(
        calls_max=config.party_calls_max,
        messages_per_s=config.party_messages_per_s,
        streams_max=config.party_streams_max,
        stall_s=config.stream_stall_s,
        idle_s=config.stream_idle_s,
    )
