"""The JSON API of the page (PROTOCOL.md): account, settings, limits, catalog, launches, history, proofs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from rgs.v1 import catalog_pb2, table_pb2

from . import fields
from .accounts import Accounts, now_ms, rfc3339
from .bridge import Bridge
from .config import Config
from .launches import Launches
from .protection import Protection
from .records import Answer, Records
from .rgs_client import Rgs, as_json
from .store.accounts import Account
from .store.wallet import WalletBook
from .terms import LANGUAGES, Terms
from .web_app import Gate, answered, body_of

LINKS: Final = {"cashier": "/cashier", "responsible_play": "/responsible-play", "help": "/help", "lobby": "/"}
PAGE_SIZE: Final = 50
TABLES_MAX: Final = 200


class Api:
    """The handlers. Each but sign-up and sign-in needs a cookie."""

    def __init__(
        self,
        config: Config,
        gate: Gate,
        accounts: Accounts,
        protection: Protection,
        wallet: WalletBook,
        rgs: Rgs,
        terms: Terms,
        launches: Launches,
        bridge: Bridge,
        records: Records,
    ) -> None:
        self._config = config
        self._gate = gate
        self._accounts = accounts
        self._protection = protection
        self._wallet = wallet
        self._rgs = rgs
        self._terms = terms
        self._launches = launches
        self._bridge = bridge
        self._records = records

    def add_routes(self, app: web.Application) -> None:
        """Add the routes of the API and of the socket."""
        routes = app.router
        routes.add_post("/api/sign-up", self._sign_up)
        routes.add_post("/api/sign-in", self._sign_in)
        routes.add_post("/api/sign-out", self._sign_out)
        routes.add_get("/ws", self._socket)
        answers: tuple[tuple[str, Answer], ...] = (
            ("/api/me", self._me),
            ("/api/limits", self._limits),
            ("/api/catalog", self._catalog),
            *self._records.answers(),
        )
        for path, answer in answers:
            # History and proofs stay open to players who are excluded: the rounds are theirs.
            routes.add_get(path, self._signed_in(answer, even_excluded=path != "/api/catalog"))
        routes.add_put("/api/settings", self._signed_in(self._put_settings, even_excluded=True))
        routes.add_post("/api/limits", self._signed_in(self._set_limits, even_excluded=True))
        routes.add_post("/api/exclusion", self._signed_in(self._exclude, even_excluded=True))
        routes.add_post("/api/launches", self._signed_in(self._launch))

    def token(self, request: web.Request) -> str:
        """The token of the cookie, or nothing."""
        return str(request.cookies.get(self._config.cookie, ""))

    def _signed_in(
        self, answer: Answer, *, even_excluded: bool = False
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            account = await self._accounts.of_token(self.token(request), even_excluded=even_excluded)
            response = answered(await answer(account, request))
            if request.path == "/api/catalog":  # large, and without a secret
                response.enable_compression()
            return response

        return handle

    # --- account ---

    async def _sign_up(self, request: web.Request) -> web.StreamResponse:
        self._gate.sign_ups.take(self._gate.address(request))
        account, token = await self._accounts.sign_up(await body_of(request))
        return await self._welcome(account, token)

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        body = await body_of(request)
        self._gate.sign_ins.take(self._gate.address(request))
        self._gate.names.take(f"name:{str(body.get('name'))[:64].lower()}")
        account, token = await self._accounts.sign_in(body)
        return await self._welcome(account, token)

    async def _welcome(self, account: Account, token: str) -> web.StreamResponse:
        response = answered(await self._me_json(account))
        self._gate.cookie(response, self._config.cookie, token, self._config.sign_in_ms // 1000)
        return response

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        token = self.token(request)
        account = await self._accounts.of_token(token, even_excluded=True)
        await self._accounts.sign_out(token)
        self._bridge.signed_out(account.account_id, token)
        response = answered({})
        self._gate.cookie(response, self._config.cookie, "", 0)
        return response

    async def _me(self, account: Account, _request: web.Request) -> object:
        return await self._me_json(account)

    async def _me_json(self, account: Account) -> dict[str, Any]:
        balances = await self._wallet.balances(account.player)
        until_ms = account.excluded_until_ms
        return {
            "name": account.name,
            "nickname": account.nickname,
            "player": account.player,
            "language": account.language,
            "settings": json.loads(account.settings),
            "balances": [
                {"currency": currency, "exponent": self._terms.exponent(currency), "amount_minor": str(amount)}
                for currency, amount in balances
            ],
            **await self._protection.limits_json(account, account.currency),
            "currencies": list(self._config.currencies),
            "excluded_until": rfc3339(until_ms) if until_ms > now_ms() else None,
            "links": LINKS,
        }

    async def _put_settings(self, account: Account, request: web.Request) -> object:
        settings = await self._accounts.set_settings(account, await body_of(request))
        self._bridge.push_all(account.account_id, {"type": "settings", "value": settings})
        return {"settings": settings}

    # --- protection ---

    async def _limits(self, account: Account, request: web.Request) -> object:
        query = dict(request.query)
        fields.check_known(query, "currency")
        currency = fields.one_of(query, "currency", self._config.currencies, account.currency)
        return await self._protection.limits_json(account, currency)

    async def _set_limits(self, account: Account, request: web.Request) -> object:
        body = await body_of(request)
        currency = fields.one_of(body, "currency", self._config.currencies, account.currency)
        await self._protection.set_limits(account, currency, body)
        found = await self._protection.limits_json(account, currency)
        self._bridge.push_all(account.account_id, {"type": "limits", "value": found})
        return found

    async def _exclude(self, account: Account, request: web.Request) -> object:
        until_ms = await self._protection.exclude(account, await body_of(request))
        return {"excluded_until": rfc3339(until_ms)}

    # --- play ---

    async def _catalog(self, account: Account, request: web.Request) -> object:
        language = fields.language(dict(request.query), default=account.language)
        if language not in LANGUAGES:
            language = LANGUAGES[0]
        games = as_json(await self._rgs.call(self._rgs.catalog.ListGames, catalog_pb2.ListGamesRequest()))
        tables: list[Any] = []
        token = ""
        while len(tables) < TABLES_MAX:
            listing = table_pb2.ListTablesRequest(page_size=PAGE_SIZE, page_token=token)
            found = as_json(await self._rgs.call(self._rgs.tables.ListTables, listing))
            tables += found.get("tables", [])
            token = found.get("next_page_token", "")
            if not token:
                break
        names = [one["ruleset"]["id"] for one in games.get("games", [])]
        return {
            **games,
            "tables": tables,
            "language": language,
            "texts": await self._terms.texts(language, names),
            "jurisdiction": as_json(await self._terms.now()),
            "links": LINKS,
        }

    async def _launch(self, account: Account, request: web.Request) -> object:
        return await self._launches.create(account, await body_of(request))

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        return await self._bridge.serve(request, self.token(request))
