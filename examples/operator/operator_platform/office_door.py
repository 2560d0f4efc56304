"""The door of the back office: who is signed in, and what every page and form of it has.

Staff are support or managers. Support sees everything, hides lines and mutes players; a manager also bars players from
tables and grants free bets. What a form asks for is noted before it is done, with the name of who sent it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from . import fields
from .accounts import Passwords, hash_of, new_token, now_ms
from .config import Config
from .errors import PlatformError
from .markup import Html, join, page, render
from .store.accounts import AccountRows
from .web_app import Gate

SUPPORT: Final = "support"
MANAGER: Final = "manager"
ROLES: Final = (SUPPORT, MANAGER)
NOTED_MAX: Final = 400
UNNOTED: Final = ("form_token", "sign_in", "request_id", "made_ms")
SIGN_IN_MS: Final = 8 * 3600 * 1000
LINKS: Final = (
    ("/office/", "Find"),
    ("/office/credits", "Credits owed"),
    ("/office/breaks", "Breaks"),
    ("/office/chat", "Chat"),
    ("/office/actions", "Actions of staff"),
)


@dataclass(frozen=True, slots=True)
class Staff:
    """Who is signed in. `form_token` stands in each form."""

    name: str
    form_token: str
    role: str

    def may(self, role: str) -> bool:
        """Whether staff of this role may do it."""
        return role == SUPPORT or self.role == MANAGER


Show = Callable[[Staff, web.Request], Awaitable[web.StreamResponse]]
Change = Callable[[Staff, dict[str, str]], Awaitable[str]]


class Door:
    """Sign-in of staff."""

    def __init__(self, config: Config, gate: Gate, accounts: AccountRows, passwords: Passwords) -> None:
        self._config = config
        self._gate = gate
        self._accounts = accounts
        self._passwords = passwords

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        routes = app.router
        routes.add_get("/office", self._to_office)
        routes.add_get("/office/sign-in", self._ask_sign_in)
        routes.add_post("/office/sign-in", self._sign_in)
        routes.add_post("/office/sign-out", self.form(self._sign_out))

    def _token(self, request: web.Request) -> str:
        return str(request.cookies.get(self._config.staff_cookie, ""))

    async def _staff(self, request: web.Request) -> Staff | None:
        found = await self._accounts.staff_of(hash_of(self._token(request)), now_ms())
        return None if found is None else Staff(*found)

    def for_staff(self, show: Show) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler of a page that only staff sees."""

        async def handle(request: web.Request) -> web.StreamResponse:
            staff = await self._staff(request)
            if staff is None:
                return _to("/office/sign-in")
            try:
                return await show(staff, request)
            except PlatformError as error:
                found = self.page(staff, "Not found", render('<p class="note">{one}</p>', one=error.message))
                found.set_status(error.status)
                return found

        return handle

    def form(self, change: Change, role: str = SUPPORT) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler of a form of staff of this role. Its answer leads to the page that `change` names."""

        async def handle(request: web.Request) -> web.StreamResponse:
            staff = await self._staff(request)
            if staff is None:
                return _to("/office/sign-in")
            form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
            if not secrets.compare_digest(form.get("form_token", "").encode(), staff.form_token.encode()):
                raise PlatformError("WRONG_FORM", "this form is not one of this sign-in; load the page again", 403)
            if not staff.may(role):
                raise PlatformError("WRONG_ROLE", f"only a {role} may do this; you are signed in as {staff.role}", 403)
            subject = " ".join(f"{name}={value}" for name, value in form.items() if name not in UNNOTED)
            await self._accounts.note_action(staff.name, request.path, subject[:NOTED_MAX], now_ms())
            form["sign_in"] = self._token(request)
            return _to(await change(staff, form))

        return handle

    async def _to_office(self, _request: web.Request) -> web.StreamResponse:
        return _to("/office/")

    async def _ask_sign_in(self, _request: web.Request) -> web.StreamResponse:
        form = Html(
            '<form method="post" action="/office/sign-in"><label>Name <input name="name" required></label>'
            '<label>Password <input name="password" type="password" required></label><button>Sign in</button></form>'
        )
        return page("Back office", form)

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        self._gate.sign_ins.take(f"staff:{self._gate.address(request)}")
        name = fields.text(form, "name", 1, 64)
        self._gate.names.take(f"staff:{name.lower()}")
        found = await self._accounts.staff_password(name)
        known = found[1] if found else None
        if not await self._passwords.verify(known, form.get("password", "")) or found is None:
            raise PlatformError("WRONG_PASSWORD", "name or password is wrong", 403)
        token, token_sha256 = new_token()
        time_ms = now_ms()
        await self._accounts.staff_sign_in(
            found[0], token_sha256, secrets.token_urlsafe(24), time_ms + SIGN_IN_MS, time_ms
        )
        response = _to("/office/")
        self._gate.cookie(response, self._config.staff_cookie, token, SIGN_IN_MS // 1000)
        return response

    async def _sign_out(self, _staff: Staff, form: dict[str, str]) -> str:
        await self._accounts.staff_sign_out(hash_of(form["sign_in"]))
        return "/office/sign-in"

    def page(self, staff: Staff, title: str, content: Html, script: str = "") -> web.Response:
        """A page of the office. `script` is the path of a module that it loads."""
        links = join([render('<a href="{path}">{text}</a>', path=path, text=text) for path, text in LINKS])
        out = self.button(staff, "/office/sign-out", f"Sign out {staff.name}")
        return page(title, content, render("<nav>{links}{out}</nav>", links=links, out=out), script=script)

    def button(self, staff: Staff, path: str, text: str, extra: str = "", role: str = SUPPORT, **values: str) -> Html:
        """A form of one button; nothing for staff of another role. `extra` is HTML of further fields. The form has a
        request id of its own, so that what it asks for happens once however often it is sent.
        """
        if not staff.may(role):
            return Html("")
        made = {"form_token": staff.form_token, "request_id": fields.new_request_id(), "made_ms": str(now_ms())}
        hidden = join(
            [
                render('<input type="hidden" name="{name}" value="{value}">', name=name, value=value)
                for name, value in {**made, **values}.items()
            ]
        )
        return render(
            '<form class="inline" method="post" action="{path}">{hidden}{extra}<button>{text}</button></form>',
            path=path,
            hidden=hidden,
            extra=Html(extra),
            text=text,
        )


def _to(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path})
