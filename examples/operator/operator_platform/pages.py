"""Pages of the platform besides the game: sign-in without a script, cashier, limits and self-exclusion, help.

They are forms that need no script, in the player's language as far as this example has it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from . import fields
from .accounts import Accounts, now_ms
from .bridge import Bridge
from .config import Config
from .errors import PlatformError
from .markup import STYLE, Html, join, major, page, render, table
from .page_texts import TEXTS
from .protection import LIMITS, Protection, day_start_ms
from .store.accounts import Account
from .store.wallet import Order, RefusalError, WalletBook
from .terms import Terms
from .web_app import Gate

DEPOSIT_MAX: Final = 1_000_000
ENTRIES: Final = 50


class Pages:
    """The handlers."""

    def __init__(
        self,
        config: Config,
        gate: Gate,
        accounts: Accounts,
        protection: Protection,
        wallet: WalletBook,
        bridge: Bridge,
        terms: Terms,
    ) -> None:
        self._config = config
        self._gate = gate
        self._accounts = accounts
        self._protection = protection
        self._wallet = wallet
        self._bridge = bridge
        self._terms = terms

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        routes = app.router
        routes.add_get("/pages.css", _style)
        for path, show, change in (
            ("/cashier", self._cashier, self._deposit),
            ("/responsible-play", self._responsible, self._protect),
            ("/help", self._help, None),
        ):
            routes.add_get(path, self._shown(show))
            if change is not None:
                routes.add_post(path, self._changed(path, change))

    def _shown(
        self, show: Callable[[Account, dict[str, str]], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            account = await self._account(request)
            return await show(account, TEXTS.get(account.language, TEXTS["en"]))

        return handle

    def _changed(
        self, path: str, change: Callable[[Account, dict[str, Any]], Awaitable[None]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            account = await self._account(request)
            form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
            texts = TEXTS.get(account.language, TEXTS["en"])
            try:
                await change(account, form)
            except PlatformError as error:
                back = render(
                    '<p class="note">{message}</p><p><a href="{path}">{back}</a></p>',
                    message=error.message,
                    path=path,
                    back=texts["back"],
                )
                response = page(texts["refused"], back, language=account.language)
                response.set_status(error.status)
                return response
            return web.Response(status=303, headers={"Location": path})

        return handle

    async def _account(self, request: web.Request) -> Account:
        token = request.cookies.get(self._config.cookie, "")
        return await self._accounts.of_token(token, even_excluded=True)

    def _major(self, amount_minor: int, currency: str) -> str:
        return major(amount_minor, self._terms.exponent(currency), currency)

    # --- cashier ---

    async def _cashier(self, account: Account, texts: dict[str, str]) -> web.Response:
        balances = [
            render("<p><strong>{amount}</strong></p>", amount=self._major(amount, currency))
            for currency, amount in await self._wallet.balances(account.player)
        ]
        deposit = Html("")
        if self._config.play_deposits:
            deposit = render(
                '<p class="note">{note}</p><form method="post" action="/cashier">'
                '<input type="hidden" name="request_id" value="{request_id}">'
                '<label>{label} <input name="amount" inputmode="decimal" required value="100"></label>{currencies}'
                "<button>{button}</button></form>",
                note=texts["play_deposit_note"],
                request_id=fields.new_request_id(),
                label=texts["amount"],
                currencies=self._currencies(account, texts),
                button=texts["pay_in"],
            )
        rows: list[list[object]] = [
            [
                shown_time(entry.time_ms),
                texts.get(f"entry_{entry.kind}", entry.kind),
                self._major(entry.moved_minor, entry.order.currency),
                ""
                if entry.balance_after_minor is None
                else self._major(entry.balance_after_minor, entry.order.currency),
                entry.entry_no,
            ]
            for entry in await self._wallet.entries_of(account.player, fields.AMOUNT_MAX, ENTRIES)
        ]
        head = [texts["time"], texts["entry"], texts["amount"], texts["balance"], "#"]
        content = join([*balances, deposit, render("<h2>{one}</h2>", one=texts["entries"]), table(head, rows)])
        return page(texts["cashier"], content, _nav(texts), account.language)

    async def _deposit(self, account: Account, form: dict[str, Any]) -> None:
        if not self._config.play_deposits:
            raise PlatformError("NO_DEPOSITS", "the cashier takes no play deposits", 403)
        request_id = fields.request_id(form)
        await self._terms.known()  # the decimal places of the currency
        currency = fields.one_of(form, "currency", self._config.currencies, account.currency)
        amount = self._minor(fields.text(form, "amount", 1, 12), currency)
        time_ms = now_ms()
        order = Order(f"deposit:{account.player}:{request_id}", account.player, currency, amount)
        limit = await self._protection.deposit_limit(account, currency)
        try:
            await self._wallet.open_account(account.player, currency)
            await self._wallet.deposit(order, day_start_ms(time_ms), limit, time_ms)
        except RefusalError as error:
            raise PlatformError(error.reason, str(error), 409) from None
        self._bridge.push_all(account.account_id, {"type": "balance"})

    def _currencies(self, account: Account, texts: dict[str, str]) -> Html:
        """The choice of an account; one that is not there yet is opened with the first deposit."""
        known = self._config.currencies
        if len(known) == 1:
            return Html("")
        options = [
            render("<option{chosen}>{one}</option>", one=one, chosen=" selected" if one == account.currency else "")
            for one in known
        ]
        return render(
            '<label>{label} <select name="currency">{options}</select></label>',
            label=texts["currency"],
            options=join(options),
        )

    def _minor(self, text: str, currency: str) -> int:
        """Minor units of an amount that a person typed: "12.50" or "12,50"."""
        whole, _, part = text.replace(",", ".").partition(".")
        digits = self._terms.exponent(currency)
        if not (whole.isascii() and whole.isdigit()) or (part and not (part.isascii() and part.isdigit())):
            raise PlatformError("INVALID_FIELD", "the amount must be a number, such as 12.50", 400, {"field": "amount"})
        if len(part) > digits:
            raise PlatformError("INVALID_FIELD", f"at most {digits} decimals", 400, {"field": "amount"})
        return fields.number({"amount": int(whole + part.ljust(digits, "0"))}, "amount", 1, DEPOSIT_MAX)

    # --- limits and exclusion ---

    async def _responsible(self, account: Account, texts: dict[str, str]) -> web.Response:
        accounts = [currency for currency, _ in await self._wallet.balances(account.player)] or [account.currency]
        limits: list[Html] = []
        for currency in accounts:
            title = render("<h2>{one}</h2>", one=currency) if len(accounts) > 1 else Html("")
            limits += [title, await self._limits_table(account, currency, texts)]
        until = account.excluded_until_ms
        state = render('<p class="note">{one} {time}</p>', one=texts["excluded_until"], time=shown_time(until))
        days = join([render('<option value="{n}">{n}</option>', n=n) for n in (1, 7, 30, 90, 180, 365, 1825)])
        exclusion = render(
            '{state}<h2>{title}</h2><p>{text}</p><form method="post" action="/responsible-play">'
            '<input type="hidden" name="what" value="exclusion"><label>{label} '
            '<select name="days">{days}</select></label>'
            "<button>{button}</button></form>",
            state=state if until > now_ms() else Html(""),
            title=texts["exclusion"],
            text=texts["exclusion_text"],
            label=texts["days"],
            days=days,
            button=texts["exclude"],
        )
        intro = render("<p>{one}</p>", one=texts["limits_text"])
        return page(texts["responsible"], join([intro, *limits, exclusion]), _nav(texts), account.language)

    async def _limits_table(self, account: Account, currency: str, texts: dict[str, str]) -> Html:
        found = await self._protection.limits_json(account, currency)
        pending = {one["name"]: one for one in found["pending_limits"]}
        rows: list[list[object]] = []
        for name in LIMITS:
            waits, shown = pending.get(name), ""
            if waits is not None:
                value = self._limit_shown(name, waits["value"], currency, texts)
                shown = f"{value} {shown_time(waits['due_ms'])}"
            now = self._limit_shown(name, found["limits"].get(name), currency, texts)
            rows.append([texts[name], now, shown, self._limit_form(name, currency, texts)])
        return table([texts["limit"], texts["now"], texts["waits"], texts["change"]], rows)

    def _limit_shown(self, name: str, value: str | None, currency: str, texts: dict[str, str]) -> str:
        if value is None:
            return texts["none"]
        if name == "duration_ms":
            return f"{int(value) // 60_000} min"
        return self._major(int(value), currency)

    def _limit_form(self, name: str, currency: str, texts: dict[str, str]) -> Html:
        return render(
            '<form class="inline" method="post" action="/responsible-play">'
            '<input type="hidden" name="what" value="{name}"><input type="hidden" name="currency" value="{currency}">'
            '<input name="value" size="8" inputmode="decimal" aria-label="{label}"><button>{button}</button></form>',
            name=name,
            currency=currency,
            label=texts[name],
            button=texts["set"],
        )

    async def _protect(self, account: Account, form: dict[str, Any]) -> None:
        what = fields.text(form, "what", 1, 20)
        if what == "exclusion":
            await self._protection.exclude(account, {"days": form.get("days", "")})
            return
        if what not in LIMITS:
            raise PlatformError("INVALID_FIELD", "there is no such limit", 400, {"field": "what"})
        text = fields.text(form, "value", 0, 12, "")
        currency = fields.one_of(form, "currency", (account.currency, *self._config.currencies))
        if text and what != "duration_ms":
            await self._terms.known()  # the decimal places of the currency
        value: int | None = None
        if text:
            value = (
                fields.number({"min": text}, "min", 0, 1440) * 60_000
                if what == "duration_ms"
                else self._minor(text, currency)
            )
        await self._protection.set_limits(account, currency, {what: value})
        limits = await self._protection.limits_json(account, currency)
        self._bridge.push_all(account.account_id, {"type": "limits", "value": limits})

    async def _help(self, account: Account, texts: dict[str, str]) -> web.Response:
        content = render("<p>{one}</p><p>{two}</p>", one=texts["help_text"], two=texts["help_code"])
        return page(texts["help"], content, _nav(texts), account.language)


async def _style(_request: web.Request) -> web.StreamResponse:
    return web.Response(text=STYLE, content_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _nav(texts: dict[str, str]) -> Html:
    links = (("/", "lobby"), ("/cashier", "cashier"), ("/responsible-play", "responsible"), ("/help", "help"))
    return render(
        "<nav>{links}</nav>",
        links=join([render('<a href="{path}">{text}</a>', path=path, text=texts[name]) for path, name in links]),
    )


def shown_time(time_ms: int) -> str:
    """A time in UTC for people."""
    return dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
