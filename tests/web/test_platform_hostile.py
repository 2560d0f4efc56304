"""The platform in the hands of a hostile stranger: malformed input, floods, names, what outlives a sign-in."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
import uuid
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

import argon2
from aiohttp.test_utils import make_mocked_request

from examples.operator import start
from tests.web.page_client import PASSWORD, Player, RefusedError, new_id
from tests.web.whole import Whole, until

sys.path.append(str(start.HERE))
from operator_platform import accounts, connections, rates, web_app  # type: ignore[import-not-found]
from operator_platform.config import Config  # type: ignore[import-not-found]
from operator_platform.errors import PlatformError  # type: ignore[import-not-found]


@pytest.fixture
async def player(whole: Whole) -> AsyncIterator[Player]:
    async with Player(whole.origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


def platform_file(whole: Whole) -> sqlite3.Connection:
    return sqlite3.connect(whole.folder / "platform/platform.db")


# --- what is no JSON -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"settings": {"x": NaN}}',
        '{"settings": {}, "settings": {"x": 1}}',
        '{"settings": {"x": "\\ud800"}}',
        "[" * 7000,
    ],
)
async def test_what_no_other_reader_would_take_is_refused(player: Player, text: str) -> None:
    json_ = {"Content-Type": "application/json"}
    async with player.http.put(f"{player.origin}/api/settings", data=text, headers=json_) as response:
        assert (response.status, (await response.json())["reason"]) == (400, "INVALID_FIELD")
    assert (await player.call("GET", "/api/me"))["settings"] == {}
    async with player.page() as page:
        assert page.socket is not None
        await page.socket.send_str(text)
        assert await page.closed() == 4002
        await page.open()  # the connection is as good as before
        assert await page.ask("ping")


# --- floods ----------------------------------------------------------------------------------------------------------


async def test_another_connection_is_no_new_allowance(player: Player) -> None:
    pages = [player.page() for _ in range(6)]
    for page in pages:
        await page.open()
    refused: list[Any] = []
    for _ in range(20):  # a slow platform takes them as slowly as they are allowed
        ids = [[await page.send("ping") for _ in range(60)] for page in pages]
        for page, sent in zip(pages, ids, strict=True):
            await page.find(lambda one, last=sent[-1]: one.get("re") == last)  # type: ignore[misc]
            assert all(one["type"] == "pong" or one.get("reason") == "RATE_LIMIT" for one in page.messages)
        refused = [one for page in pages for one in page.messages if one.get("reason") == "RATE_LIMIT"]
        if refused:
            break
    assert refused
    assert {one["metadata"]["limit"] for one in refused} == {"frames of all pages"}
    for page in pages:
        await page.cut()


def test_an_address_counts_as_its_network() -> None:
    for address, network in (
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1%eth0", "2001:db8:1:2::/64"),
        ("", ""),
    ):
        assert rates.network_of(address) == network


def test_only_a_proxy_is_believed_who_its_caller_is(tmp_path: Any) -> None:
    def caller(remote: str, forwarded: str, *proxies: str) -> str:
        path = tmp_path / "x"
        gate = web_app.Gate(Config(tmp_path, "localhost:1", path, path, path, proxies=proxies))
        request = make_mocked_request("GET", "/", headers={"X-Forwarded-For": forwarded}).clone(remote=remote)
        return str(gate.address(request))

    assert caller("198.51.100.1", "192.0.2.7") == "198.51.100.1"
    assert caller("198.51.100.1", "192.0.2.7", "10.0.0.1") == "198.51.100.1"
    # What the caller wrote itself stands before what the proxy has added.
    assert caller("10.0.0.1", "203.0.113.5, 192.0.2.7", "10.0.0.1") == "192.0.2.7"


def test_a_name_is_not_locked_by_a_few_tries_of_others(tmp_path: Any) -> None:
    path = tmp_path / "x"
    gate = web_app.Gate(Config(tmp_path, "localhost:1", path, path, path))
    for _ in range(10):
        gate.sign_ins.take("192.0.2.7")
        gate.names.take("name:victim")
    with pytest.raises(PlatformError):
        gate.sign_ins.take("192.0.2.7")
    gate.sign_ins.take("198.51.100.1")  # the owner, from elsewhere
    gate.names.take("name:victim")


async def test_a_queue_of_passwords_ends() -> None:
    passwords = accounts.Passwords()

    def slow(_password: str) -> str:
        time.sleep(0.02)
        return "hash"

    passwords.hash_now = slow
    answers = await asyncio.gather(*(passwords.hash("x") for _ in range(60)), return_exceptions=True)
    refused = [one for one in answers if isinstance(one, PlatformError)]
    assert {one.reason for one in refused} == {"BUSY"}
    assert len(refused) == 60 - accounts.HASHES_WAITING_MAX
    assert await passwords.hash("x") == "hash"


async def test_one_connection_too_many_ends_the_oldest_and_its_open_bets(player: Player) -> None:
    pages = [player.page() for _ in range(9)]
    await pages[0].open()
    session = await pages[0].seat("uth-seven-box", "uth-seven-box")
    at = {"session_id": session["session_id"]}
    seat = (await pages[0].ask("join", **at))["seat"]
    named = {"device_no": seat["device_no"], "seat_version": seat["seat_version"]}
    placed = [{"bet": "ante", "amount_minor": "500"}]
    assert (await pages[0].ask("bets", **at, **named, round_id="", bets=placed))["seat"]["bets"]
    await pages[0].cut()
    for page in pages[1:]:
        await page.open()

    async def are_taken_back() -> bool:
        return "bets" not in (await pages[1].ask("get", **at))["seat"]

    await until(are_taken_back)
    await player.page().open()
    assert await pages[1].closed() == 4008
    for page in pages[2:]:
        await page.cut()


# --- passwords, sign-ins, names --------------------------------------------------------------------------------------


async def test_passwords_are_hashed_as_the_rfc_says_and_old_hashes_made_anew(whole: Whole, player: Player) -> None:
    def known() -> str:
        with platform_file(whole) as database:
            query = "SELECT password FROM accounts WHERE player = ?"
            return str(database.execute(query, (player.me["player"],)).fetchone()[0])

    assert known().startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    old = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    with platform_file(whole) as database:
        database.execute("UPDATE accounts SET password = ? WHERE player = ?", (old, player.me["player"]))
    body = {"name": player.me["name"], "password": PASSWORD}
    await player.call("POST", "/api/sign-in", body)
    assert known().startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    await player.call("POST", "/api/sign-in", body)


async def test_a_page_that_only_listens_is_closed_when_its_sign_in_ends(whole: Whole, player: Player) -> None:
    async with player.page() as page:
        await page.ask("ping")
        token = next(one.value for one in player.http.cookie_jar)
        with platform_file(whole) as database:
            hashed = sha256(token.encode()).digest()
            database.execute("UPDATE sign_ins SET expires_ms = 1 WHERE token_sha256 = ?", (hashed,))
        assert await page.closed(seconds=40) == 4003


async def test_another_form_of_the_letters_is_no_other_name(whole: Whole, player: Player) -> None:
    plain = f"dealer-{uuid.uuid4().hex[:6]}"
    async with Player(whole.origin) as other, Player(whole.origin) as third:
        await other.sign_up(plain)
        wide = "".join(chr(ord(one) + 0xFEE0) for one in plain)
        assert wide != plain
        body = {"name": f"n-{uuid.uuid4().hex[:8]}", "password": PASSWORD, "language": "en"}
        for nickname in (wide, wide.upper()):
            with pytest.raises(RefusedError) as caught:
                await third.call("POST", "/api/sign-up", {**body, "nickname": nickname})
            assert caught.value.reason == "NAME_TAKEN"
        with pytest.raises(RefusedError) as caught:
            await third.call("POST", "/api/sign-up", {**body, "nickname": "dealer\u200b"})
        assert caught.value.reason == "INVALID_FIELD"


# --- the socket ------------------------------------------------------------------------------------------------------


async def test_the_sockets_address_needs_the_pages_origin_whatever_it_is_asked_for(player: Player) -> None:
    for headers in ({}, {"Upgrade": "websocket\u00a0"}, {"Upgrade": "h2c, websocket"}):
        async with player.http.get(f"{player.origin}/ws", headers={**headers, "Origin": "https://evil.example"}) as got:
            assert (got.status, "WRONG_ORIGIN" in await got.text()) == (403, True)


async def test_what_players_write_is_not_kept_with_their_requests(whole: Whole, player: Player) -> None:
    text = f"hello {uuid.uuid4().hex}"
    async with player.page() as page:
        session = await page.seat("uth-online", "uth-online")
        await page.ask("join", session_id=session["session_id"])
        request_id = new_id()
        say = {"session_id": session["session_id"], "text": text}
        await page.answer(await page.send("say", request_id, **say))
        page.messages.clear()
        with pytest.raises(RefusedError) as caught:
            await page.answer(await page.send("say", request_id, **{**say, "text": "other"}))
        assert caught.value.reason == "REQUEST_ID_REUSED"
    files = b"".join(path.read_bytes() for path in (whole.folder / "platform").iterdir())
    assert session["session_id"].encode() in files
    assert text.encode() not in files


def test_a_number_of_an_earlier_process_is_never_taken_for_one_of_this() -> None:
    def sent(connection: Any) -> list[dict[str, Any]]:
        found = []
        while (unsent := connection._next()) is not None:
            connection._sent = unsent[0]
            found.append(json.loads(unsent[1]))
        return found

    fresh = connections.Connection(1, new_id())
    fresh.resume(0)
    assert sent(fresh) == []
    after = connections.Connection(1, new_id())
    for _ in range(2):  # the first answer to the page got lost with its socket
        after.resume(5)
        assert sent(after)[-1]["type"] == "restart"
        for number in range(10):
            after.push({"type": "settings", "value": {"number": number}})
    seen = sent(after)
    after.resume(seen[3]["seq"])
    assert [one["seq"] for one in sent(after)] == [one["seq"] for one in seen[4:]]


async def test_what_staff_asks_for_is_escaped_wherever_it_is_shown(whole: Whole) -> None:
    async with Player(whole.origin) as staff:
        form = {"name": "staff", "password": (whole.folder / "staff-password").read_text().strip()}
        async with staff.http.post(f"{whole.origin}/office/sign-in", data=form, allow_redirects=False) as response:
            assert response.status == 303
        hostile = "%3Cscript%3Ealert(1)%3C/script%3E"
        for path in (f"campaigns?campaign={hostile}", f"?q={hostile}", f"free-bets?player={hostile}"):
            async with staff.http.get(f"{whole.origin}/office/{path}") as response:
                assert "<script" not in await response.text(), path
