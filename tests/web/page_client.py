"""What a page does, without a browser: the JSON API with its cookie, and the socket with its numbers."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

PASSWORD = "correct horse battery"  # noqa: S105 - of accounts that live as long as a test


def new_id() -> str:
    """A new request id."""
    return str(uuid.uuid4())


class RefusedError(Exception):
    """An error of the platform, over HTTP or over the socket."""

    def __init__(self, body: Mapping[str, Any], status: int = 0) -> None:
        super().__init__(f"{status} {body}")
        self.reason = body.get("reason")
        self.body = body
        self.status = status


class Player:
    """A signed-in player."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.http = aiohttp.ClientSession(headers={"Origin": origin}, cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.me: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.http.close()

    async def call(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        """A call of the API. RefusedError."""
        async with self.http.request(
            method, URL(f"{self.origin}{path}", encoded=True), json=body, **options
        ) as response:
            found = await response.json(content_type=None)
            if response.status >= 400:
                raise RefusedError(found, response.status)
            return found

    async def sign_up(self, nickname: str = "") -> Self:
        """Sign up under a new name."""
        name = f"player-{uuid.uuid4().hex[:12]}"
        body = {"name": name, "password": PASSWORD, "nickname": nickname or name[-12:], "language": "en"}
        self.me = await self.call("POST", "/api/sign-up", body)
        return self

    async def deposit(self, amount: str = "500.00", request_id: str = "") -> int:
        """Pay in play money; the status of the answer."""
        form = {"request_id": request_id or new_id(), "amount": amount}
        async with self.http.post(f"{self.origin}/cashier", data=form, allow_redirects=False) as response:
            return int(response.status)

    async def balance(self) -> int:
        """What the wallet holds."""
        return int((await self.call("GET", "/api/me"))["balances"][0]["amount_minor"])

    async def launch(self, game: str, table: str = "") -> str:
        """The token of a launch."""
        wanted = {"game": game, "table": table, "currency": "EUR", "language": "en", "mode": "real"}
        url: str = (await self.call("POST", "/api/launches", {"request_id": new_id(), **wanted}))["url"]
        assert url.startswith("/play#launch=")
        return url.partition("=")[2]

    def page(self, connection: str = "") -> Page:
        """A page of this player, not connected yet."""
        return Page(self, connection or new_id())


class Page:
    """One page: a socket that can be cut and opened again."""

    def __init__(self, player: Player, connection: str) -> None:
        self.player = player
        self.connection = connection
        self.after = 0
        self.messages: list[dict[str, Any]] = []
        """All that came, in order."""
        self.close_code: int | None = None
        self._n = 0
        self.socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.cut()

    async def open(self, **headers: str) -> None:
        """Open a socket, behind what came before."""
        url = f"{self.player.origin}/ws?connection={self.connection}&after={self.after}"
        self.socket = await self.player.http.ws_connect(url, headers={"Origin": self.player.origin, **headers})
        self._n = 0
        self.close_code = None
        self._reader = asyncio.create_task(self._read(self.socket))

    async def cut(self) -> None:
        """Cut the connection without a word."""
        if self._reader is not None:
            self._reader.cancel()
        if self.socket is not None:
            response = self.socket._response
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()
            response.close()
            self.socket = None

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for frame in socket:
            if frame.type is not aiohttp.WSMsgType.TEXT:
                break
            message = json.loads(frame.data)
            self.after = message["seq"]
            self.messages.append(message)
            self._news.set()
        self.close_code = socket.close_code
        self._news.set()

    async def send(self, kind: str, request_id: str = "", n: int | None = None, **body: Any) -> str:
        """Send a message; its id."""
        assert self.socket is not None
        self._n += 1
        request_id = request_id or new_id()
        message = {"id": request_id, "type": kind, "n": self._n if n is None else n, **body}
        await self.socket.send_str(json.dumps(message))
        return request_id

    async def find(self, is_it: Callable[[dict[str, Any]], bool], seconds: float = 30.0) -> dict[str, Any]:
        """The first message of this kind, of all that came or come."""
        async with asyncio.timeout(seconds):
            seen = 0
            while True:
                while seen < len(self.messages):
                    if is_it(self.messages[seen]):
                        return self.messages[seen]
                    seen += 1
                self._news.clear()
                await self._news.wait()

    async def closed(self, seconds: float = 20.0) -> int:
        """Wait until the platform closes the socket; the code."""
        async with asyncio.timeout(seconds):
            while self.close_code is None:
                self._news.clear()
                await self._news.wait()
        return self.close_code

    async def answer(self, request_id: str) -> Any:
        """The answer to a request. RefusedError."""
        found = await self.find(lambda one: one.get("re") == request_id and one["type"] in ("answer", "error", "pong"))
        if found["type"] == "error":
            raise RefusedError(found)
        return found["time"] if found["type"] == "pong" else found["value"]

    async def ask(self, kind: str, **body: Any) -> Any:
        """Send a message and wait for its answer. RefusedError."""
        return await self.answer(await self.send(kind, **body))

    # --- whole steps ---

    async def seat(self, game: str, table: str = "", amount_minor: int = 10_000) -> dict[str, Any]:
        """Launch, redeem and buy: the session."""
        opened = await self.ask("redeem", launch=await self.player.launch(game, table))
        session = opened["session"]
        bought = await self.ask(
            "buy",
            session_id=session["session_id"],
            purchase_no=session["next_purchase_no"],
            amount_minor=str(amount_minor),
        )
        return dict(bought["session"])

    async def play(self, session: dict[str, Any], ante_minor: int = 200) -> dict[str, Any]:
        """One round, checked or folded to its end: the answer to the last decision."""
        session_id = session["session_id"]
        bets = [{"bet": "ante", "amount_minor": str(ante_minor)}]
        answer = await self.ask("start", session_id=session_id, round_no=session["next_round_no"], bets=bets)
        while answer["round"]["status"] == "ROUND_STATUS_OPEN":
            legal = {one["action"] for one in answer["round"]["legal_actions"] if one.get("available")}
            action = "ACTION_CHECK" if "ACTION_CHECK" in legal else "ACTION_FOLD"
            answer = await self.ask(
                "act",
                session_id=session_id,
                round_id=answer["round"]["round_id"],
                round_version=answer["round"]["round_version"],
                action=action,
            )
        return dict(answer)
