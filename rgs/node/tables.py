"""The services of tables, put together: seats, dealer, views, lobby, chat, admin (`rgs.node.wiring` for all others)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rgs.core.clock import Clock
from rgs.service.admin.orders import Orders
from rgs.service.availability import Availability
from rgs.service.callers import SessionLocks
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.tables.admin import TableAdmin
from rgs.service.tables.chat import Chat
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.dealer import Dealer
from rgs.service.tables.decks import TableDecks
from rgs.service.tables.idle_seats import IdleSeats
from rgs.service.tables.lobby import Lobby
from rgs.service.tables.reservations import Reservations
from rgs.service.tables.rounds import TableRounds
from rgs.service.tables.seat_rounds import SeatRounds
from rgs.service.tables.seats import Seats, TableEncode
from rgs.service.tables.signals import Signals
from rgs.service.tables.views import TableViews
from rgs.store.interface import Store


class TableServices:
    """Every use case of tables, by name."""

    def __init__(
        self,
        *,
        store: Store,
        instance: Instance,
        games: GameCatalog,
        clock: Clock,
        locks: SessionLocks,
        availability: Availability,
        orders: Orders,
        verify_admin: Callable[[str], Awaitable[int]],
        encode: TableEncode,
    ) -> None:
        """`verify_admin` is that of `rgs.service.admin.certificates.Certificates`."""
        store.follow(clock.now_ms)
        self.signals = Signals()
        self.configs = TableConfigs(store, games)
        decks = TableDecks(store, instance.sealer, games)
        self.views = TableViews(store=store, games=games, clock=clock, configs=self.configs, decks=decks)
        self.seat_rounds = SeatRounds(store=store, games=games, clock=clock, decks=decks)
        self.rounds = TableRounds(
            store=store, instance=instance, games=games, configs=self.configs, decks=decks, seats=self.seat_rounds
        )
        self.chat = Chat(
            store=store, instance=instance, clock=clock, games=games, configs=self.configs, said=self.signals.said
        )
        self.dealer = Dealer(
            store=store,
            instance=instance,
            games=games,
            clock=clock,
            availability=availability,
            configs=self.configs,
            rounds=self.rounds,
            seats=self.seat_rounds,
            chat=self.chat,
            signals=self.signals,
        )
        self.reservations = Reservations(store=store, clock=clock, configs=self.configs, dealer=self.dealer)
        self.idle_seats = IdleSeats(store=store, clock=clock, games=games, signals=self.signals)
        self.seats = Seats(
            store=store,
            games=games,
            clock=clock,
            locks=locks,
            availability=availability,
            configs=self.configs,
            dealer=self.dealer,
            views=self.views,
            encode=encode,
            signals=self.signals,
        )
        self.lobby = Lobby(store=store, clock=clock, games=games, configs=self.configs)
        self.admin = TableAdmin(
            store=store,
            clock=clock,
            games=games,
            configs=self.configs,
            orders=orders,
            dealer=self.dealer,
            signals=self.signals,
            rounds=self.rounds,
            lobby=self.lobby,
            verify_admin=verify_admin,
        )
