"""The back office (/office/): rounds, players, sessions, credits that are owed, breaks, chat. Its one script verifies a
round in the browser of the staff (page/entries/office.ts); everything else needs none.

Staff have accounts of their own. Each form carries the token of its sign-in; what staff changes is kept with its name.
Everything that players have written is escaped like all other values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

from aiohttp import web

from rgs.v1 import admin_pb2, history_pb2, reconciliation_pb2, session_pb2, table_pb2

from . import fields
from .accounts import now_ms
from .config import DAY_MS, Config
from .errors import PlatformError
from .feeds import Feeds
from .history import History
from .markup import Html, join, major, named_rows, render, table
from .office_door import MANAGER, SUPPORT, Change, Door, Show, Staff
from .office_views import RoundPage, word
from .pages import shown_time
from .protection import Protection
from .records import receipt_of
from .rgs_client import Rgs, as_json
from .store.accounts import AccountRows
from .store.wallet import WalletBook
from .terms import Terms
from .web_app import answered

VERIFIER: Final = "/office.js"
"""Of the built page."""
PAGE_SIZE: Final = 50
FOUND_MAX: Final = 50
CODE: Final = re.compile(r"#?([0-9]{2}:[0-9]{2}:[0-9]{2}(?:-[0-9]{1,3})?)")
ULID: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
REFERENCE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Of a session: the platform's own name of it."""
DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MUTE_DAYS_MAX: Final = 365


class Office:
    """The handlers."""

    def __init__(
        self,
        config: Config,
        door: Door,
        accounts: AccountRows,
        wallet: WalletBook,
        rgs: Rgs,
        feeds: Feeds,
        protection: Protection,
        terms: Terms,
        history: History,
    ) -> None:
        self._config = config
        self._door = door
        self._accounts = accounts
        self._wallet = wallet
        self._rgs = rgs
        self._feeds = feeds
        self._protection = protection
        self._terms = terms
        self._history = history

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        routes = app.router
        shown: tuple[tuple[str, Show], ...] = (
            ("/office/", self._find),
            ("/office/rounds/{round_id}", self._round),
            ("/office/receipts/{round_id}", self._receipt),
            ("/office/players/{player}", self._player),
            ("/office/sessions/{session_id}", self._session),
            ("/office/credits", self._credits),
            ("/office/breaks", self._breaks),
            ("/office/chat", self._chat),
            ("/office/actions", self._actions),
        )
        for path, show in shown:
            routes.add_get(path, self._door.for_staff(show))
        changed: tuple[tuple[str, Change, str], ...] = (
            ("/office/hide", self._hide, SUPPORT),
            ("/office/mute", self._mute, SUPPORT),
            ("/office/bar", self._bar, MANAGER),
        )
        for path, change, role in changed:
            routes.add_post(path, self._door.form(change, role))
        self._door.add_routes(app)

    def _major(self, amount: object, currency: str) -> str:
        return major(int(str(amount or 0)), self._terms.exponent(currency), currency)

    # --- find ---

    async def _find(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        wanted = fields.text({"q": query.get("q", "").strip()}, "q", 0, 64)
        day = query.get("day", "").strip()
        if day and not DAY.fullmatch(day):
            raise PlatformError("INVALID_FIELD", "day must be like 2026-11-23", 400, {"field": "day"})
        form = render(
            '<form action="/office/"><label>Game code, round id, session id, reference of a session, or the beginning '
            'of a name, nickname or pseudonym <input name="q" value="{q}" autofocus></label><label>Day (UTC) for a '
            'code; else the last 31 <input name="day" value="{day}" placeholder="2026-11-23"></label>'
            "<button>Find</button></form>",
            q=wanted,
            day=day,
        )
        found = await self._found(wanted, day) if wanted else Html("")
        return self._door.page(staff, "Back office", join([form, found]))

    async def _found(self, wanted: str, day: str) -> Html:
        if code := CODE.fullmatch(wanted):
            found = [as_json(one) for one in await self._history.with_code(code[1], day)]
            rows: list[list[object]] = [
                [
                    _link(_round_path(one["round_id"], one["session_id"]), one["game_code"]),
                    one.get("start_time", ""),
                    _link(f"/office/players/{quote(one.get('player', ''))}", one.get("player", "erased")),
                ]
                for one in found
            ]
            return join([Html("<h2>Rounds</h2>"), table(["code", "start", "player"], rows)])
        if ULID.fullmatch(wanted):
            return await self._found_id(wanted)
        if REFERENCE.fullmatch(wanted):
            session = await self._history.session_of_reference(wanted)
            text = (
                render('<p><a href="/office/sessions/{one}">Session {one}</a></p>', one=session.session_id)
                if session
                else ""
            )
            return Html(text or "<p>None.</p>")
        accounts = await self._accounts.find(wanted, FOUND_MAX)
        rows = [[_link(f"/office/players/{quote(one.player)}", one.player), one.name, one.nickname] for one in accounts]
        return join([Html("<h2>Players</h2>"), table(["player", "name", "nickname"], rows)])

    async def _found_id(self, wanted: str) -> Html:
        try:
            request = history_pb2.GetRoundRecordRequest(round_id=wanted)
            records = (await self._rgs.call(self._rgs.history.GetRoundRecord, request)).records
        except PlatformError as error:
            if error.status not in (400, 404):
                raise
            records = []
        rows: list[list[object]] = [
            [_link(_round_path(wanted, one.summary.session_id), one.summary.game_code), one.summary.session_id]
            for one in records
        ]
        session = render('<p><a href="/office/sessions/{one}">Session {one}</a></p>', one=wanted)
        return table(["round", "session"], rows) if rows else session

    # --- rounds, sessions, players ---

    async def _record(self, request: web.Request) -> Any:
        session_id = fields.text(dict(request.query), "session_id", 0, 64, "")
        wanted = history_pb2.GetRoundRecordRequest(round_id=request.match_info["round_id"], session_id=session_id)
        records = (await self._rgs.call(self._rgs.history.GetRoundRecord, wanted)).records
        if not records:
            raise PlatformError("ROUND_UNKNOWN", "there is no such round", 404)
        return records[0]

    async def _round(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        record = await self._record(request)
        summary = record.summary
        receipt = f"/office/receipts/{quote(summary.round_id)}?{urlencode({'session_id': summary.session_id})}"
        view = RoundPage(as_json(record), self._terms.exponent(summary.currency))
        content = view.html(receipt, self._config.root_fingerprint)
        session = render('<p><a href="/office/sessions/{one}">Session</a></p>', one=summary.session_id)
        return self._door.page(staff, f"Round {summary.game_code}", join([session, content]), VERIFIER)

    async def _receipt(self, _staff: Staff, request: web.Request) -> web.StreamResponse:
        found = answered(await receipt_of(self._rgs, await self._record(request)))
        found.headers["Content-Disposition"] = 'attachment; filename="receipt.json"'
        return found

    async def _session(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        wanted = session_pb2.GetSessionRequest(session_id=request.match_info["session_id"])
        view = as_json((await self._rgs.call(self._rgs.sessions.GetSession, wanted)).session)
        rows: list[list[object]] = []
        for name, value in view.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if name.endswith("_minor"):
                shown = self._major(value, view["currency"])
            rows.append([name.replace("_", " "), word(shown)] if name == "status" else [name.replace("_", " "), shown])
        player = render('<p><a href="/office/players/{one}">Player</a></p>', one=view["player"])
        return self._door.page(staff, "Session", join([player, named_rows(rows)]))

    async def _player(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        account = await self._accounts.by_player(request.match_info["player"])
        if account is None:
            raise PlatformError("PLAYER_UNKNOWN", "there is no such player", 404)
        balances = await self._wallet.balances(account.player)
        limits = [await self._protection.limits_json(account, currency) for currency, _ in balances]
        facts: list[list[object]] = [
            ["name", account.name],
            ["nickname", account.nickname],
            ["pseudonym", account.player],
            ["language", account.language],
            ["excluded until", shown_time(account.excluded_until_ms) if account.excluded_until_ms else "-"],
            ["muted until", shown_time(account.muted_until_ms) if account.muted_until_ms else "-"],
            *_rows([f"balance {currency}", self._major(amount, currency)] for currency, amount in balances),
            *(row for one in limits for row in _limit_rows(one)),
        ]
        days = '<input name="days" value="1" size="4" aria-label="days">'
        tables = '<input name="table" size="16" aria-label="table" placeholder="table">'
        orders = join(
            [
                render('<p><a href="/office/free-bets?player={one}">Free bets</a></p>', one=account.player),
                self._door.button(staff, "/office/mute", "Mute for days", days, player=account.player),
                self._door.button(staff, "/office/bar", "Bar from table", tables, role=MANAGER, player=account.player),
            ]
        )
        listing = session_pb2.ListSessionsRequest(player=account.player, page_size=PAGE_SIZE)
        sessions = as_json(await self._rgs.call(self._rgs.sessions.ListSessions, listing)).get("sessions", [])
        session_rows: list[list[object]] = [
            [
                _link(f"/office/sessions/{one['session_id']}", one["session_id"]),
                one["ruleset"]["id"],
                word(one["status"]),
                one.get("open_time", ""),
                self._major(one.get("net_position_minor"), one["currency"]),
            ]
            for one in sessions
        ]
        rounds = await self._round_rows(account.player, fields.text(dict(request.query), "page_token", 0, 400, ""))
        entries: list[list[object]] = [
            [
                entry.entry_no,
                shown_time(entry.time_ms),
                entry.kind,
                self._major(entry.moved_minor, entry.order.currency),
                entry.order.transaction_id,
                entry.order.reference,
                entry.reason,
            ]
            for entry in await self._wallet.entries_of(account.player, fields.AMOUNT_MAX, PAGE_SIZE)
        ]
        content = join(
            [
                *(named_rows(facts), orders, Html("<h2>Sessions</h2>")),
                *(table(["session", "game", "status", "opened", "net"], session_rows), Html("<h2>Rounds</h2>"), rounds),
                Html("<h2>Wallet</h2>"),
                table(["#", "time", "entry", "moved", "transaction", "reference", "reason"], entries),
            ]
        )
        return self._door.page(staff, "Player", content)

    async def _round_rows(self, player: str, page_token: str) -> Html:
        request = history_pb2.ListRoundsRequest(player=player, page_size=PAGE_SIZE, page_token=page_token)
        found = as_json(await self._rgs.call(self._rgs.history.ListRounds, request))
        rows: list[list[object]] = [
            [
                _link(_round_path(one["round_id"], one["session_id"]), one["game_code"]),
                one.get("start_time", ""),
                one["game"],
                word(one.get("status", "")),
                self._major(one.get("staked_minor"), one["currency"]),
                self._major(one.get("returned_minor"), one["currency"]),
            ]
            for one in found.get("rounds", [])
        ]
        more = Html("")
        if token := found.get("next_page_token"):
            path = f"/office/players/{quote(player)}?{urlencode({'page_token': token})}"
            more = _link(path, "Older rounds")
        return join([table(["code", "start", "game", "status", "staked", "returned"], rows), more])

    # --- money ---

    async def _credits(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        listing = admin_pb2.ListPendingCreditsRequest(
            page_size=PAGE_SIZE, page_token=fields.text(dict(request.query), "page_token", 0, 400, "")
        )
        found = as_json(await self._rgs.call(self._rgs.admin.ListPendingCredits, listing))
        rows: list[list[object]] = [
            [
                _link(f"/office/players/{quote(one['player'])}", one["player"]),
                self._major(one.get("amount_minor"), one["currency"]),
                one.get("kind", ""),
                one.get("since_time", ""),
                one.get("attempts", 0),
                one.get("last_reason", ""),
                _link(f"/office/sessions/{one['session_id']}", one["session_id"]),
            ]
            for one in found.get("credits", [])
        ]
        head = ["player", "amount", "what", "since", "attempts", "last reason", "session"]
        more = Html("")
        if token := found.get("next_page_token"):
            more = _link(f"/office/credits?{urlencode({'page_token': token})}", "More")
        text = Html("<p>The game server owes these to the wallet, and sends each until it is accepted.</p>")
        return self._door.page(staff, "Credits owed", join([text, table(head, rows), more]))

    async def _breaks(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        operator = self._config.operator
        reports = await self._rgs.call(
            self._rgs.reconciliation.ListReports,
            reconciliation_pb2.ListReportsRequest(operator=operator, page_size=1),
        )
        if not reports.reports:
            return self._door.page(staff, "Breaks", Html("<p>No reconciliation has been run.</p>"))
        report = as_json(reports.reports[0])
        listing = reconciliation_pb2.ListBreaksRequest(
            report_id=report["report_id"],
            operator=operator,
            page_size=PAGE_SIZE,
            page_token=fields.text(dict(request.query), "page_token", 0, 400, ""),
        )
        found = as_json(await self._rgs.call(self._rgs.reconciliation.ListBreaks, listing))
        names = ("break_class", "subject", "player", "amount_minor", "age", "action", "found")
        rows: list[list[object]] = [[one.get(name, "") for name in names] for one in found.get("breaks", [])]
        text = render(
            "<p>Report {report} of {time}: {verdict}, {open} open, {resolved} resolved.</p>",
            report=report["report_id"],
            time=report.get("time", ""),
            verdict=report.get("verdict", ""),
            open=report.get("open_breaks", 0),
            resolved=report.get("resolved_breaks", 0),
        )
        more = Html("")
        if token := found.get("next_page_token"):
            more = _link(f"/office/breaks?{urlencode({'page_token': token})}", "More")
        head = ["class", "subject", "player", "minor units", "age", "action", "what the books say"]
        return self._door.page(staff, "Breaks of the last reconciliation", join([text, table(head, rows), more]))

    # --- chat ---

    async def _chat(self, staff: Staff, request: web.Request) -> web.StreamResponse:
        listed = as_json(await self._rgs.call(self._rgs.tables.ListTables, table_pb2.ListTablesRequest(page_size=200)))
        names = [entry["table"] for entry in listed.get("tables", [])]
        links = join([render('<p><a href="/office/chat?table={one}">{one}</a></p>', one=quote(name)) for name in names])
        wanted = fields.text(dict(request.query), "table", 0, 64, "")
        if not wanted:
            return self._door.page(staff, "Chat", links)
        request_ = table_pb2.ListMessagesRequest(table=wanted, page_size=200)
        lines = as_json(await self._rgs.call(self._rgs.tables.ListMessages, request_)).get("lines", [])
        rows: list[list[object]] = []
        for line in lines:
            player = line.get("player", "")
            is_hidden = line["message_id"] in self._feeds.hidden
            hide = self._door.button(staff, "/office/hide", "Hide", message_id=line["message_id"], table=wanted)
            rows.append(
                [
                    line.get("time", ""),
                    line.get("nickname") or line.get("code", ""),
                    line.get("text", ""),
                    _link(f"/office/players/{quote(player)}", player) if player else "",
                    "hidden" if is_hidden else hide if line.get("text") else "",
                ]
            )
        return self._door.page(staff, f"Chat of {wanted}", table(["time", "who", "text", "player", ""], rows))

    async def _hide(self, staff: Staff, form: dict[str, str]) -> str:
        message_id = fields.text(form, "message_id", 26, 26)
        await self._feeds.hide(message_id, staff.name, now_ms())
        return f"/office/chat?{urlencode({'table': fields.text(form, 'table', 1, 64)})}"

    async def _mute(self, _staff: Staff, form: dict[str, str]) -> str:
        account = await self._accounts.by_player(fields.text(form, "player", 1, 64))
        if account is None:
            raise PlatformError("PLAYER_UNKNOWN", "there is no such player", 404)
        days = fields.number(form, "days", 0, MUTE_DAYS_MAX)
        await self._accounts.mute(account.account_id, now_ms() + days * DAY_MS if days else 0)
        return f"/office/players/{quote(account.player)}"

    async def _bar(self, _staff: Staff, form: dict[str, str]) -> str:
        player, name = fields.text(form, "player", 1, 64), fields.text(form, "table", 1, 64)
        order = table_pb2.BarPlayerRequest(
            request_id=fields.request_id(form), table=name, player=player, barred=True, reason="CHAT_MODERATION"
        )
        await self._rgs.call(self._rgs.table_admin.BarPlayer, order)
        return f"/office/players/{quote(player)}"

    async def _actions(self, staff: Staff, _request: web.Request) -> web.StreamResponse:
        rows: list[list[object]] = [[shown_time(one[0]), *one[1:]] for one in await self._accounts.actions(200)]
        return self._door.page(staff, "Actions of staff", table(["time", "who", "what", "whom"], rows))


def _limit_rows(limits: dict[str, Any]) -> Iterable[list[object]]:
    """The limits of a player in one currency, in minor units and milliseconds."""
    currency = limits["currency"]
    yield from ([f"{currency} limit {name}", value] for name, value in limits["limits"].items())
    for one in limits["pending_limits"]:
        yield [f"{currency} waits: {one['name']}", f"{one['value']} {shown_time(one['due_ms'])}"]
    yield from ([f"{currency} today {name}", value] for name, value in limits["today"].items())


def _rows(found: Iterable[list[str]]) -> list[list[object]]:
    return [list(row) for row in found]


def _link(path: str, text: str) -> Html:
    return render('<a href="{path}">{text}</a>', path=path, text=text)


def _round_path(round_id: str, session_id: str) -> str:
    return f"/office/rounds/{quote(round_id)}?{urlencode({'session_id': session_id})}"
