"""The back office's page of free bets: what a player can play now, grants, and what campaigns paid."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from rgs.v1 import catalog_pb2, free_bet_pb2

from . import fields
from .accounts import now_ms
from .bridge import Bridge
from .config import Config
from .errors import PlatformError
from .free_bets import FreeBets, expiry
from .markup import Html, join, major, render, table
from .office_door import MANAGER, Door, Staff
from .pages import shown_time
from .rgs_client import Rgs, as_json
from .store.accounts import Account, AccountRows
from .store.wallet import WalletBook, account_of_campaign
from .terms import Terms

COUNT_MAX: Final = 100
DAYS_MAX: Final = 366
ENTRIES: Final = 50


class OfficeFreeBets:
    """The handlers."""

    def __init__(
        self,
        config: Config,
        door: Door,
        accounts: AccountRows,
        wallet: WalletBook,
        rgs: Rgs,
        free_bets: FreeBets,
        terms: Terms,
        bridge: Bridge,
    ) -> None:
        self._config = config
        self._door = door
        self._accounts = accounts
        self._wallet = wallet
        self._rgs = rgs
        self._free_bets = free_bets
        self._terms = terms
        self._bridge = bridge

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/office/free-bets", self._door.for_staff(self._of_player))
        app.router.add_get("/office/campaigns", self._door.for_staff(self._campaign))
        app.router.add_post("/office/grant", self._door.form(self._grant, role=MANAGER))
        app.router.add_post("/office/take-back", self._door.form(self._take_back, role=MANAGER))

    def _major(self, amount_minor: object, currency: str) -> str:
        return major(int(str(amount_minor or 0)), self._terms.exponent(currency), currency)

    async def _account(self, form: dict[str, str]) -> Account:
        account = await self._accounts.by_player(fields.text(form, "player", 1, 64))
        if account is None:
            raise PlatformError("PLAYER_UNKNOWN", "there is no such player", 404)
        return account

    async def _of_player(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        account = await self._account(dict(request.query))
        rows: list[list[object]] = []
        for one in map(as_json, await self._free_bets.playable(account.player)):
            campaign = render(
                '<a href="/office/campaigns?{query}">{name}</a>',
                query=urlencode({"campaign": one["campaign"]}),
                name=one["campaign"],
            )
            back = self._door.button(
                staff,
                "/office/take-back",
                "Take back",
                role=MANAGER,
                grant_id=one["grant_id"],
                player=account.player,
            )
            stake = self._major(one["stake_minor"], one["currency"])
            rows.append([one["grant_id"], campaign, one["game"], stake, one["expiry_time"], back])
        head = ["free bet", "campaign", "game", "ante", "until", ""]
        player = render('<p><a href="/office/players/{one}">Player {one}</a></p>', one=account.player)
        playable = [Html("<h2>Can be played now</h2>"), table(head, rows)]
        content = join([player, *playable, await self._form(staff, account)])
        return self._door.page(staff, "Free bets", content)

    async def _form(self, staff: Staff, account: Account) -> Html:
        games = (await self._rgs.call(self._rgs.catalog.ListGames, catalog_pb2.ListGamesRequest())).games
        alone = [one.ruleset.id for one in games if not one.table_only]
        choices = join([render("<option>{one}</option>", one=one) for one in alone])
        currencies = join([render("<option>{one}</option>", one=one) for one in self._config.currencies])
        inputs = render(
            '<label>Game <select name="game">{games}</select></label>'
            '<label>Currency <select name="currency">{currencies}</select></label>'
            '<label>Campaign <input name="campaign" required maxlength="32" placeholder="welcome.2026"></label>'
            '<label>Ante, minor units <input name="stake_minor" required inputmode="numeric"></label>'
            '<label>How many <input name="count" value="1" required inputmode="numeric"></label>'
            '<label>Days <input name="days" value="7" required inputmode="numeric"></label>',
            games=choices,
            currencies=currencies,
        )
        button = self._door.button(staff, "/office/grant", "Grant", inputs, role=MANAGER, player=account.player)
        return join([Html("<h2>Grant</h2>"), button or Html("<p>A manager grants free bets.</p>")])

    async def _grant(self, _staff: Staff, form: dict[str, str]) -> str:
        account = await self._account(form)
        request = free_bet_pb2.GrantFreeBetsRequest(
            request_id=fields.request_id(form),
            player=account.player,
            game=fields.text(form, "game", 1, 64),
            currency=fields.one_of(form, "currency", self._config.currencies),
            campaign=fields.text(form, "campaign", 1, 32),
            stake_minor=fields.number(form, "stake_minor", 1, fields.AMOUNT_MAX),
            count=fields.number(form, "count", 1, COUNT_MAX),
            # Of the form, not of now: a repeat under the same request id has to say the same.
            expiry_time=expiry(
                fields.number(form, "days", 1, DAYS_MAX), fields.number(form, "made_ms", 1, now_ms() + 1)
            ),
        )
        await self._free_bets.grant(request)
        self._bridge.push_all(account.account_id, {"type": "free_bets"})
        return f"/office/free-bets?{urlencode({'player': account.player})}"

    async def _take_back(self, _staff: Staff, form: dict[str, str]) -> str:
        account = await self._account(form)
        await self._free_bets.cancel(fields.request_id(form), fields.text(form, "grant_id", 26, 26))
        self._bridge.push_all(account.account_id, {"type": "free_bets"})
        return f"/office/free-bets?{urlencode({'player': account.player})}"

    async def _campaign(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        """What a campaign has paid in, what free bets took from it, and what came back."""
        campaign = fields.text(dict(request.query), "campaign", 1, 32)
        account = account_of_campaign(campaign)
        balances: list[list[object]] = [
            [currency, self._major(amount, currency)] for currency, amount in await self._wallet.balances(account)
        ]
        rows: list[list[object]] = [
            [
                entry.entry_no,
                shown_time(entry.time_ms),
                entry.kind,
                self._major(entry.moved_minor, entry.order.currency),
                entry.order.player,
                entry.order.free_bet.rpartition(":")[2],
                entry.order.round_reference,
                entry.reason,
            ]
            for entry in await self._wallet.entries_of(account, fields.AMOUNT_MAX, ENTRIES)
        ]
        head = ["#", "time", "entry", "moved", "player", "free bet", "round", "reason"]
        content = join([table(["currency", "not spent"], balances), Html("<h2>Entries</h2>"), table(head, rows)])
        return self._door.page(staff, f"Campaign {campaign}", content)
