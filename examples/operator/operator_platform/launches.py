"""Launches: the game server gives a one-use token, 60 seconds, which the page redeems over its socket for a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from rgs.v1 import common_pb2, session_pb2

from . import fields
from .accounts import new_token, now_ms
from .config import Config
from .errors import PlatformError, invalid
from .protection import Protection
from .rgs_client import Rgs, as_json, own_request_id
from .sessions import Sessions, mode_of
from .store.accounts import Account, AccountRows
from .store.play import PlayRows
from .store.wallet import WalletBook
from .terms import Terms

MODES: Final = {"real": common_pb2.MODE_REAL, "demo": common_pb2.MODE_DEMO}
REFUSED: Final = frozenset({"LAUNCH_USED", "LAUNCH_EXPIRED", "NOT_FOUND", "INVALID_FIELD", "MISMATCH"})
"""Why the game server opens nothing by a token."""


class Launches:
    """Make and redeem launches."""

    def __init__(
        self,
        config: Config,
        rgs: Rgs,
        accounts: AccountRows,
        rows: PlayRows,
        sessions: Sessions,
        protection: Protection,
        terms: Terms,
        wallet: WalletBook,
        return_url: str,
    ) -> None:
        self._config = config
        self._rgs = rgs
        self._accounts = accounts
        self._rows = rows
        self._sessions = sessions
        self._protection = protection
        self._terms = terms
        self._wallet = wallet
        self._return_url = return_url

    async def create(self, account: Account, body: Mapping[str, Any]) -> dict[str, str]:
        """A launch for a game or a table. A repeat gets another token, and the one before it opens nothing any more."""
        fields.check_known(body, "request_id", "game", "table", "currency", "language", "mode")
        request_id = fields.request_id(body)
        wanted = {
            "game": fields.text(body, "game", 1, 64),
            "table": fields.text(body, "table", 0, 64, ""),
            "currency": fields.one_of(body, "currency", self._config.currencies, account.currency),
            "language": fields.language(body, default=account.language),
            "mode": fields.text(body, "mode", 1, 10, "real"),
        }
        if wanted["mode"] not in MODES:
            raise invalid("mode", f"mode must be {' or '.join(MODES)}", value=wanted["mode"])
        limits: dict[str, str] = {}
        if wanted["mode"] == "real":
            limits = await self._protection.session_limits(account, wanted["currency"])
            await self._wallet.open_account(account.player, wanted["currency"])
        # What is left of a limit changes from second to second: a repeat says what the first request said.
        content, limits_text = json.dumps(wanted, sort_keys=True), json.dumps(limits)
        kept = await self._rows.keep_launch(account.account_id, request_id, content, limits_text, now_ms())
        if kept is None:
            raise PlatformError("REQUEST_ID_REUSED", "this request id stands for another request", 409)
        own_id = own_request_id(account.account_id, request_id)
        request = session_pb2.CreateLaunchRequest(
            request_id=own_id,
            game=wanted["game"],
            table=wanted["table"],
            player=account.player,
            currency=wanted["currency"],
            operator_reference=own_id,
            limits=common_pb2.SessionLimits(**{name: int(value) for name, value in json.loads(kept).items()}),
            session_token=await self._play_token(account) if wanted["mode"] == "real" else "",
            mode=MODES[wanted["mode"]],
            language=wanted["language"] if wanted["language"] in (await self._terms.now()).languages else "",
            return_url=self._return_url,
        )
        created = await self._rgs.call(self._rgs.sessions.CreateLaunch, request)
        return {"url": f"/play#launch={created.launch_token}"}

    async def redeem(self, account: Account, token: str, request_id: str) -> tuple[Any, dict[str, Any]]:
        """The session that the launch opens, and the answer for the page. A token of another player is refused."""
        request = session_pb2.OpenSessionRequest(
            request_id=own_request_id(account.account_id, request_id), launch_token=token, player=account.player
        )
        try:
            opened = await self._rgs.call(self._rgs.sessions.OpenSession, request)
        except PlatformError as error:
            if error.reason in REFUSED:
                raise PlatformError(
                    "LAUNCH_REFUSED", "this launch was used, is too old, or is not yours", 409, {"cause": error.reason}
                ) from None
            raise
        await self._sessions.add(account, opened.session, opened.session.language)
        await self._accounts.close_if_excluded(account.account_id, now_ms())
        answer = as_json(opened)
        return opened.session, {
            "session": answer["session"],
            "opening": answer.get("statement", ""),
            "language": opened.session.language,
            "mode": mode_of(opened.session),
            "return_url": opened.session.return_url,
        }

    async def _play_token(self, account: Account) -> str:
        """A token that the wallet gets with each debit of the session."""
        token, token_sha256 = new_token()
        await self._rows.add_play_token(token_sha256, account.player, now_ms() + 2 * self._config.sign_in_ms)
        return token
