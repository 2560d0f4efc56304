"""One process of the platform put together: files, wallet, web server, bridge, and what goes on behind them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import Final

import grpc
from aiohttp import web

from .accounts import Accounts, Passwords, hash_of, now_ms
from .api import Api
from .bridge import Bridge
from .closing import Closing
from .commands import Commands
from .config import DAY_MS, Config
from .connections import Hub
from .feeds import Feeds
from .free_bets import FreeBets, Stakes
from .history import History
from .launches import Launches
from .office import Office
from .office_door import Door
from .office_free_bets import OfficeFreeBets
from .pages import Pages
from .protection import Protection
from .reality import RealityChecks
from .records import Records
from .rgs_client import Rgs
from .sessions import Sessions
from .site import Site
from .store.accounts import AccountRows
from .store.platform import open_platform
from .store.play import PlayRows
from .store.wallet import WalletBook
from .terms import Terms
from .wallet import WalletService, WalletTls
from .web_app import Gate, new_app

FORGET_S: Final = 3600.0
RETRY_WINDOW_MS: Final = 3 * DAY_MS
"""As long as the game server keeps the answers to repeated requests."""

log = logging.getLogger(__name__)


class Platform:
    """Everything of one process. `run` serves until it is cancelled."""

    def __init__(self, config: Config) -> None:
        self._config = config
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = open_platform(config.home / "platform.db")
        self._book = WalletBook(config.home / "wallet.db")
        self._account_rows = AccountRows(self._database)
        self._play_rows = PlayRows(self._database)

    async def run(self, started: asyncio.Event | None = None) -> None:
        """Serve players and the game server."""
        config = self._config
        rgs, hub, gate = Rgs(config), Hub(), Gate(config)
        passwords, terms = Passwords(), Terms(config, rgs)
        accounts = Accounts(config, self._account_rows, self._book, passwords)
        protection = Protection(terms, self._account_rows, self._play_rows)
        sessions = Sessions(rgs, self._play_rows)
        feeds = Feeds(rgs, hub, sessions, self._play_rows)
        launches = Launches(
            config,
            rgs,
            self._account_rows,
            self._play_rows,
            sessions,
            protection,
            terms,
            self._book,
            f"{gate.origins[0]}/",
        )
        checks = RealityChecks(hub, sessions, self._play_rows, protection)
        stakes = Stakes(rgs)
        free_bets = FreeBets(rgs, self._book, stakes)
        commands = Commands(rgs, self._play_rows, sessions, feeds, launches, protection, checks, stakes, free_bets)
        bridge = Bridge(accounts, hub, self._play_rows, sessions, feeds, commands)
        closing = Closing(rgs, self._account_rows, self._play_rows, commands)

        def exclude(account_id: int) -> None:
            bridge.excluded(account_id)
            closing.wake()

        protection.on_excluded = exclude
        app = new_app(gate)
        history = History(rgs, sessions)
        records = Records(config, rgs, history, sessions, free_bets)
        api = Api(config, gate, accounts, protection, self._book, rgs, terms, launches, bridge, records)
        api.add_routes(app)
        door = Door(config, gate, self._account_rows, passwords)
        office = Office(config, door, self._account_rows, self._book, rgs, feeds, protection, terms, history)
        office.add_routes(app)
        OfficeFreeBets(config, door, self._account_rows, self._book, rgs, free_bets, terms, bridge).add_routes(app)
        Pages(config, gate, accounts, protection, self._book, bridge, terms).add_routes(app)
        site = Site(config.page)

        async def serve_site(request: web.Request) -> web.StreamResponse:
            return site.serve(request)

        app.router.add_get("/{path:.*}", serve_site)
        wallet = await self._serve_wallet()
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, config.http_host, config.http_port, ssl_context=self._tls()).start()
            if started is not None:
                started.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(feeds.run())
                group.create_task(bridge.run())
                group.create_task(closing.run())
                group.create_task(checks.run())
                group.create_task(self._forget())
        finally:
            with contextlib.suppress(Exception):
                await bridge.close()
            await runner.cleanup()
            await wallet.stop(1.0)
            await rgs.close()
            self._database.close()
            self._book.close()

    def _tls(self) -> ssl.SSLContext | None:
        if self._config.http_certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._config.http_certificate, self._config.http_key)
        return context

    async def _serve_wallet(self) -> grpc.aio.Server:
        config = self._config
        certificate, key = config.wallet_certificate or config.certificate, config.wallet_key or config.key
        client_ca = config.wallet_ca or config.ca
        service = WalletService(self._book, config.operator, self._refusal)
        tls = WalletTls(key.read_bytes(), certificate.read_bytes(), client_ca.read_bytes())
        server, _ = service.serve(config.wallet_listen, tls)
        await server.start()
        return server

    async def _refusal(self, player: str, token: str) -> str:
        """Why the wallet refuses a new debit of the player."""
        time_ms = now_ms()
        account = await self._account_rows.by_player(player)
        if account is not None and account.excluded_until_ms > time_ms:
            return "PLAYER_BLOCKED"
        found = await self._play_rows.play_token(hash_of(token))
        if account is not None and (found is None or found[0] != player or found[1] <= time_ms):
            return "TOKEN_EXPIRED"
        return ""

    async def _forget(self) -> None:
        while True:
            await self._play_rows.forget(now_ms() - RETRY_WINDOW_MS)
            await asyncio.sleep(FORGET_S)
