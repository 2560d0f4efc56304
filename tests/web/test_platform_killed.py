"""The platform is killed after each of its writes, and started anew: the page repeats, and everything happens once."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

import aiohttp

from tests.web.page_client import PASSWORD, Page, Player, RefusedError, new_id
from tests.web.whole import Whole, until

WRITES_MAX = 80
GONE = (aiohttp.ClientError, ConnectionError, TimeoutError)


class Life:
    """A player's whole visit, each step repeated under its id until it is answered."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.player = Player(whole.origin)
        self.page: Page = self.player.page()
        self.deaths = 0

    async def until_done(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Do the step; where the platform dies under it, start it anew and do the step again."""
        for _ in range(3):
            try:
                return await step()
            except GONE:
                await asyncio.to_thread(self.whole.platform.process.wait, 10)
                self.deaths += 1
                await asyncio.to_thread(self.whole.restart_platform)
        raise AssertionError("the platform died more than once")

    async def ask(self, kind: str, **body: Any) -> Any:
        request_id = new_id()

        async def step() -> Any:
            if self.page.socket is None or self.page.close_code is not None or self.page.socket.closed:
                self.page.messages.clear()
                await self.page.open()
            await self.page.send(kind, request_id, **body)
            answered = asyncio.create_task(self.page.answer(request_id))
            ended = asyncio.create_task(self.page.closed(seconds=20))
            await asyncio.wait((answered, ended), return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                answered.cancel()
                raise ConnectionError
            ended.cancel()
            try:
                return await answered
            except RefusedError as error:
                if error.reason != "OUTCOME_UNKNOWN":
                    raise
                self.page.messages.clear()  # the wallet is the platform: the game server is still waiting for it
                return await self.page.answer(await self.page.send(kind, request_id, **body))

        return await self.until_done(step)

    async def sign_up(self) -> None:
        name = f"n-{uuid.uuid4().hex[:12]}"

        async def step() -> None:
            body = {"name": name, "password": PASSWORD}
            try:
                new = {**body, "nickname": name, "language": "en"}
                self.player.me = await self.player.call("POST", "/api/sign-up", new)
            except RefusedError as error:
                if error.reason != "NAME_TAKEN":
                    raise
                # The account is there: its sign-up was not answered.
                self.player.me = await self.player.call("POST", "/api/sign-in", body)

        await self.until_done(step)

    async def live(self) -> str:
        """From sign-up to the close of the session; the session's id."""
        await self.sign_up()
        deposit = new_id()

        async def pay_in() -> None:
            assert await self.player.deposit("500.00", deposit) == 303

        await self.until_done(pay_in)
        launch = {"request_id": new_id(), "game": "casino-holdem", "mode": "real"}

        async def prepare() -> Any:
            return await self.player.call("POST", "/api/launches", launch)

        token = (await self.until_done(prepare))["url"].partition("=")[2]
        session = (await self.ask("redeem", launch=token))["session"]
        at = {"session_id": session["session_id"]}
        await self.ask("buy", **at, purchase_no=1, amount_minor="10000")
        round_ = (await self.ask("start", **at, round_no=1, bets=[{"bet": "ante", "amount_minor": "200"}]))["round"]
        version = {"round_id": round_["round_id"], "round_version": round_["round_version"]}
        ended = await self.ask("act", **at, **version, action="ACTION_FOLD")
        assert ended["session"]["balance_minor"] == "9800"
        await self.ask("end", **at)
        await self.ask("close", **at)
        return str(session["session_id"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """One of these tests' own, which they kill."""
    with Whole(tmp_path_factory.mktemp("own")) as started:
        yield started


def one(file: Path, query: str, *values: object) -> Any:
    with sqlite3.connect(file) as database:
        return database.execute(query, values).fetchone()[0]


@pytest.mark.timeout(3600)
async def test_a_visit_has_its_effects_once_whatever_write_the_platform_dies_after(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Whole(tmp_path_factory.mktemp("killed")) as whole:
        died = 0
        for fatal in range(1, WRITES_MAX):
            whole.restart_platform(kill_after=fatal)
            life = Life(whole)
            try:
                session_id = await life.live()
                player = life.player.me["player"]
                assert await life.until_done(life.player.balance) == 50_000 - 200, fatal
            finally:
                await life.page.cut()
                await life.player.http.close()
            wallet, platform = whole.folder / "platform/wallet.db", whole.folder / "platform/platform.db"
            for kind, moved in (("deposit", 50_000), ("debit", -10_000), ("credit", 9_800)):
                query = "SELECT count(*) FROM entries WHERE player = ? AND kind = ? AND moved_minor = ?"
                assert one(wallet, query, player, kind, moved) == 1, (fatal, kind)
            assert one(wallet, "SELECT sum(moved_minor) FROM entries WHERE player = ?", player) == 49_800
            query = "SELECT staked_minor FROM play_sessions WHERE session_id = ?"
            assert one(platform, query, session_id) == 200
            account = "SELECT account_id FROM accounts WHERE player = ?"
            query = f"SELECT sum(staked_minor - returned_minor) FROM day_figures WHERE account_id = ({account})"  # noqa: S608
            assert one(platform, query, player) == 200, fatal
            died += life.deaths
            if not life.deaths:
                break
        else:
            raise AssertionError(f"more than {WRITES_MAX} writes")
        assert died == fatal - 1 >= 20


async def test_requests_outlive_the_bridge(whole: Whole) -> None:
    async with Player(whole.origin) as player:
        await player.sign_up()
        assert await player.deposit() == 303
        page = player.page()
        await page.open()
        session = await page.seat("casino-holdem")
        body = {"session_id": session["session_id"], "purchase_no": 2, "amount_minor": "700"}
        request_id = new_id()
        first = await page.answer(await page.send("buy", request_id, **body))
        await asyncio.to_thread(whole.kill_platform)
        await asyncio.to_thread(whole.restart_platform)
        await page.cut()
        await page.open()
        assert await page.find(lambda found: found["type"] == "restart")
        page.messages.clear()
        assert await page.answer(await page.send("buy", request_id, **body)) == first
        page.messages.clear()
        with pytest.raises(RefusedError) as caught:
            await page.answer(await page.send("buy", request_id, **{**body, "amount_minor": "800"}))
        assert caught.value.reason == "REQUEST_ID_REUSED"
        await page.cut()
        assert await player.balance() == 50_000 - 10_700


async def test_open_bets_of_a_page_that_died_with_the_bridge_are_taken_back(whole: Whole) -> None:
    async with Player(whole.origin) as player:
        await player.sign_up()
        assert await player.deposit() == 303
        page = player.page()
        await page.open()
        session = await page.seat("uth-seven-box", "uth-seven-box")
        at = {"session_id": session["session_id"]}
        seat = (await page.ask("join", **at))["seat"]
        bets = [{"bet": "ante", "amount_minor": "500"}]
        named = {"device_no": seat["device_no"], "seat_version": seat["seat_version"]}
        assert (await page.ask("bets", **at, **named, round_id="", bets=bets))["seat"]["bets"]
        await asyncio.to_thread(whole.kill_platform)
        await page.cut()
        await asyncio.to_thread(whole.restart_platform)
        async with player.page() as other:

            async def are_taken_back() -> bool:
                return "bets" not in (await other.ask("get", **at))["seat"]

            await until(are_taken_back)
            found = await other.ask("get", **at)
        assert found["session"]["balance_minor"] == "10000"
