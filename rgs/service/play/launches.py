"""Launches: an operator prepares a session for a player's page, and a one-use token opens it.

The token is 256 random bits. The server keeps its SHA-256 only, for LAUNCH_MS by the store's clock. Whoever presents
another operator's token learns no more than from one that nobody has made. A token stands in no log, error, event or
row.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any, Final

from rgs.core.bet_limits import bet_limits_body, parse_bet_limits
from rgs.core.clock import Clock
from rgs.core.errors import (
    InvalidFieldError,
    LaunchExpiredError,
    LaunchUsedError,
    NotFoundError,
    SessionChangedError,
)
from rgs.core.ids import check_reference, check_request_id
from rgs.core.limits import SessionLimits, parse_limits
from rgs.core.sessions import Mode
from rgs.core.statements import format_canonical, parse_canonical
from rgs.service.callers import Caller, verify_same_content
from rgs.service.instance import Instance
from rgs.service.play.opening_rules import OpeningRules
from rgs.service.play.requests import CreateLaunch, OpenSession
from rgs.store.changes import Change, SessionRaceError
from rgs.store.interface import Store
from rgs.store.launches import Launch, LaunchRedeemed, LaunchTokenReplaced

LAUNCH_MS: Final = 60_000
TOKEN_BYTES: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_DOMAIN: Final = b"rgs/launch/v1\0"
_TEXTS: Final = ("game", "currency", "operator_reference", "table", "language", "return_url")


def launch_hash(token: str) -> bytes:
    """What is kept of a token. InvalidFieldError, which does not repeat it, for what cannot be one."""
    if _TOKEN.fullmatch(token) is None:
        raise InvalidFieldError(
            f"launch_token has {len(token)} characters, or others than base64url: CreateLaunch gives 43",
            field="launch_token",
            value=len(token),
            limit=43,
        )
    return hashlib.sha256(_DOMAIN + token.encode("ascii")).digest()


@dataclass(kw_only=True, eq=False, repr=False)
class Launches:
    """The launches of all operators."""

    store: Store
    instance: Instance
    clock: Clock
    opening_rules: OpeningRules

    async def create(self, caller: Caller, request: CreateLaunch) -> tuple[str, int]:
        """Prepare a session; its token, and when it ends. A repeat gets the same launch under a new token."""
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        known = await self.store.launch_of_request(caller.party, request.request_id)
        if known is not None:
            return await self._again(known, digest)
        wanted = request.wanted()
        check_reference(wanted.player, "player")
        check_reference(wanted.operator_reference, "operator_reference")
        await self.opening_rules.verify(caller, wanted)
        now_ms = await self._now_ms()
        launch_id = self.instance.new_id(now_ms)
        token = self._token()
        sealer = self.instance.sealer
        launch = Launch(
            launch_id=launch_id,
            operator=caller.party,
            player=wanted.player,
            request_id=request.request_id,
            digest=digest,
            token_hash=launch_hash(token),
            content=_content_of(wanted),
            sealed=sealer.seal_token(launch_id, wanted.session_token) if wanted.session_token else b"",
            created_ms=now_ms,
            expire_ms=now_ms + LAUNCH_MS,
        )
        try:
            await self.store.commit(Change(records=(launch,)))
        except SessionRaceError:
            known = await self.store.launch_of_request(caller.party, request.request_id)
            if known is None:
                raise SessionChangedError("the launch was changed by another request; send it again") from None
            return await self._again(known, digest)
        return token, launch.expire_ms

    async def resolve(self, caller: Caller, request: OpenSession) -> tuple[OpenSession, LaunchRedeemed]:
        """What the session of the request's token is to be, and the record that redeems it; `session_id` is still empty
        there. NotFoundError, LaunchUsedError, LaunchExpiredError, InvalidFieldError.
        """
        token_hash = launch_hash(request.launch_token)
        launch = await self.store.launch_of_token(token_hash)
        if launch is None or launch.operator != caller.party:
            raise NotFoundError("no launch has this token", kind="launch", field="launch_token")
        await self._verify_unused(launch)
        prepared = self._prepared(launch)
        default = OpenSession(request.request_id, "", "", "", "")
        for name in (*_TEXTS, "player", "limits", "session_token", "mode", "bet_limits"):
            given = getattr(request, name)
            if given not in (getattr(default, name), prepared[name]):
                raise InvalidFieldError(
                    f"{name} is not that of the launch: leave it empty", field=name, limit="empty, or as in the launch"
                )
        return replace(request, **prepared), LaunchRedeemed("", launch.launch_id, token_hash)

    async def _again(self, launch: Launch, digest: bytes) -> tuple[str, int]:
        verify_same_content(launch.digest, digest, launch.request_id, "CreateLaunch")
        await self._verify_unused(launch)
        token = self._token()
        try:
            await self.store.commit(Change(records=(LaunchTokenReplaced(launch_hash(token), launch.launch_id),)))
        except SessionRaceError:
            raise _used() from None
        return token, launch.expire_ms

    async def _verify_unused(self, launch: Launch) -> None:
        if launch.session_id:
            raise _used()
        now_ms = await self._now_ms()
        if now_ms >= launch.expire_ms:
            raise LaunchExpiredError(
                f"the launch was valid for {LAUNCH_MS} ms, they have passed: create another one",
                field="launch_token",
                limit=LAUNCH_MS,
                value=now_ms - launch.created_ms,
            )

    async def _now_ms(self) -> int:
        """The store's own clock, which all processes share; that of this process where the store is a file."""
        reported_ms = await self.store.clock_ms()
        return self.clock.now_ms() if reported_ms is None else reported_ms

    def _token(self) -> str:
        return base64.urlsafe_b64encode(self.instance.random_bytes(TOKEN_BYTES)).rstrip(b"=").decode("ascii")

    def _prepared(self, launch: Launch) -> dict[str, Any]:
        """The fields of the session, as the launch has them."""
        content = parse_canonical(launch.content.encode("ascii"))
        token = self.instance.sealer.unseal_token(launch.launch_id, launch.sealed) if launch.sealed else ""
        return {
            **{name: content[name] for name in _TEXTS},
            "player": launch.player,
            "limits": parse_limits(content["limits"]) if content["limits"] else SessionLimits(),
            "mode": Mode(content["mode"]),
            "bet_limits": parse_bet_limits(content["bet_limits"]),
            "session_token": token,
        }


def _content_of(wanted: OpenSession) -> str:
    content = {
        **{name: getattr(wanted, name) for name in _TEXTS},
        "bet_limits": bet_limits_body(wanted.bet_limits),
        "limits": wanted.limits.body(),
        "mode": (wanted.mode or Mode.REAL).value,
    }
    return format_canonical(content).decode("ascii")


def _used() -> LaunchUsedError:
    return LaunchUsedError("the launch has opened its session already: create another one", field="launch_token")
