"""The platform's web server: its routes, its headers, and what every request has to pass.

Host and Origin must be the page's own, so that no other site can act for a player. Bodies are small and JSON (forms in
the office). Every answer carries a strict policy; an embedding site is refused.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from . import fields
from .config import Config
from .errors import PlatformError
from .rates import RateLimit, network_of
from .site import POLICY

BODY_BYTES_MAX: Final = 16 * 1024
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=(), payment=()",
    "Cache-Control": "no-store",
}
SOCKET: Final = "/ws"
CHANGING: Final = ("POST", "PUT", "DELETE", "PATCH")

log = logging.getLogger(__name__)
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """What every request passes before it is looked at."""

    def __init__(self, config: Config) -> None:
        self._config = config
        port = f":{config.http_port}"
        scheme = "https" if config.http_certificate else "http"
        self.origins = config.origins or (f"{scheme}://localhost{port}", f"{scheme}://127.0.0.1{port}")
        self._hosts = {origin.partition("://")[2] for origin in self.origins}
        self._requests = RateLimit("requests", 200 * config.rate_factor, 1200 * config.rate_factor)
        self.sign_ins = RateLimit("sign-in", 10 * config.rate_factor, 10 * config.rate_factor)
        # An account is tried from many addresses; whoever knows a name must not lock its owner out with a few tries.
        self.names = RateLimit("sign-in", 60 * config.rate_factor, 60 * config.rate_factor)
        self.sign_ups = RateLimit("sign-up", 10 * config.rate_factor, 2 * config.rate_factor)

    async def pass_through(self, request: web.Request, handle: Handle) -> web.StreamResponse:
        """The answer of the handler, or that of the gate."""
        try:
            self._verify(request)
            response = await handle(request)
        except PlatformError as error:
            response = refused(error)
        except web.HTTPException as error:
            response = refused(PlatformError(f"HTTP_{error.status}", error.reason, error.status))
        except Exception:
            incident = uuid.uuid4().hex[:12]
            log.exception("incident %s", incident)
            response = refused(PlatformError("INTERNAL", f"the platform has failed; incident {incident}", 500))
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            if self._config.is_secure:
                response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        return response

    def _verify(self, request: web.Request) -> None:
        if request.host not in self._hosts:
            raise PlatformError("WRONG_HOST", "this is not the address of the page", 421)
        self._requests.take(self.address(request))
        origin = request.headers.get("Origin")
        if (request.method in CHANGING or request.path == SOCKET) and origin not in self.origins:
            raise PlatformError("WRONG_ORIGIN", "this request does not come from the page", 403)

    def address(self, request: web.Request) -> str:
        """Who asks, for the rates: the network of the address, which a proxy in front says of its caller."""
        remote = request.remote or ""
        if remote in self._config.proxies:
            remote = request.headers.get("X-Forwarded-For", remote).rpartition(",")[2].strip()
        return network_of(remote)

    def cookie(self, response: web.Response, name: str, token: str, max_age_s: int) -> None:
        """Set a cookie that no script reads; an empty token takes it away."""
        options: dict[str, Any] = {
            "path": "/",
            "httponly": True,
            "samesite": "Strict",
            "secure": self._config.is_secure,
            "max_age": max_age_s if token else 0,
        }
        response.set_cookie(name, token, **options)


def refused(error: PlatformError) -> web.Response:
    """An error as JSON."""
    return web.json_response(error.as_json(), status=error.status)


def answered(value: object) -> web.Response:
    """A value as JSON."""
    return web.json_response(value, dumps=lambda found: json.dumps(found, ensure_ascii=False))


async def body_of(request: web.Request) -> dict[str, Any]:
    """The body of a request: a small JSON object."""
    if request.content_type != "application/json":
        raise PlatformError("NOT_JSON", "send Content-Type: application/json", 415)
    return fields.parse_object(await request.read(), BODY_BYTES_MAX)


def new_app(gate: Gate) -> web.Application:
    """An application behind the gate."""

    async def through(request: web.Request, handler: Handle) -> web.StreamResponse:
        return await gate.pass_through(request, handler)

    return web.Application(middlewares=[web.middleware(through)], client_max_size=BODY_BYTES_MAX)
