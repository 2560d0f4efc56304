"""What protects players: exclusion at once, limits of the day, reality checks; and the wallet's conformance."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

import aiohttp

from examples.operator.start import HERE
from tests.web.page_client import Page, Player, RefusedError
from tests.web.whole import Whole, bound

sys.path.append(str(HERE))
from operator_platform.store.wallet import WalletBook  # type: ignore[import-not-found]

DELAY_MS = 60_000
"""As the jurisdiction `demo` says."""
CHECK_S = 4


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A platform where a reality check is due every four seconds."""
    with Whole(tmp_path_factory.mktemp("quick"), "--reality-check-s", str(CHECK_S)) as found:
        yield found


@pytest.fixture
async def player(quick: Whole) -> AsyncIterator[Player]:
    async with Player(quick.origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


def bets(minor: int) -> list[dict[str, str]]:
    return [{"bet": "ante", "amount_minor": str(minor)}]


async def start(page: Page, session: dict[str, Any], minor: int) -> Any:
    """Start a round. A reality check that is due is seen first; the pace is kept."""
    while True:
        try:
            return await page.ask("start", session_id=session["session_id"], round_no=1, bets=bets(minor))
        except RefusedError as error:
            if error.reason != "REALITY_CHECK":
                raise
            await page.ask("reality_check_seen", session_id=session["session_id"])


async def test_an_exclusion_ends_all_open_pages_within_a_second_and_gives_the_money_back(player: Player) -> None:
    async with player.page() as solo, player.page() as table, Player(player.origin) as elsewhere:
        await solo.seat("uth-solo")
        session = await table.seat("uth-online", "uth-online")
        seat = (await table.ask("join", session_id=session["session_id"]))["seat"]
        named = {"device_no": seat["device_no"], "seat_version": seat["seat_version"]}
        await table.ask("reality_check_seen", session_id=session["session_id"])  # a busy machine is slower than a check
        await table.ask("bets", session_id=session["session_id"], **named, round_id="", bets=bets(200))
        playing = (await table.ask("sessions"))["sessions"]
        assert len(playing) == 2
        assert await player.balance() == 50_000 - 20_000
        begun = time.monotonic()
        found = await player.call("POST", "/api/exclusion", {"days": 7})
        for page in (solo, table):
            assert await page.closed() == 4001
            assert page.messages[-1]["type"] == "excluded"
        assert time.monotonic() - begun < bound(1.0)
        # Nothing goes any more, also after another sign-in; the history does.
        await elsewhere.call("POST", "/api/sign-in", {"name": player.me["name"], "password": "correct horse battery"})
        for path, body in (("/api/launches", {}), ("/api/catalog", None)):
            with pytest.raises(RefusedError) as caught:
                await elsewhere.call("POST" if body is not None else "GET", path, body)
            assert caught.value.reason == "EXCLUDED"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await elsewhere.page().open()
        await elsewhere.call("GET", "/api/rounds")
        # It is never made shorter.
        again = await elsewhere.call("POST", "/api/exclusion", {"days": 1})
        assert again["excluded_until"] == found["excluded_until"]
        # The sessions are ended, and what was left is back.
        for _ in range(200):
            if await player.balance() == 50_000:
                break
            await asyncio.sleep(0.1)
        assert await player.balance() == 50_000


async def test_a_round_in_play_is_not_taken_from_an_excluded_player(player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("uth-solo")
        started = await start(page, session, 200)
        await player.call("POST", "/api/exclusion", {"days": 1})
        assert await page.closed() == 4001
    await asyncio.sleep(1.5)
    where = f"/api/rounds/{started['round']['round_id']}?session_id={session['session_id']}"
    record = await player.call("GET", where)
    assert record["round"]["status"] == "ROUND_STATUS_OPEN"  # the game server finishes it by its rules
    assert await player.balance() == 40_000


async def test_a_lower_limit_holds_at_once_and_a_higher_one_after_the_delay(quick: Whole, player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("uth-solo")
        found = await player.call("POST", "/api/limits", {"stake_minor": "350", "loss_minor": 100_000})
        assert found["limits"] == {"stake_minor": "350", "loss_minor": "100000"}
        assert (await page.find(lambda one: one["type"] == "limits"))["value"] == found
        with pytest.raises(RefusedError) as caught:
            await start(page, session, 200)  # with the blind this is 400
        assert (caught.value.reason, caught.value.body["metadata"]["limit"]) == ("LIMIT_REACHED", "stake_minor")
        raised = await player.call("POST", "/api/limits", {"stake_minor": 5000, "loss_minor": None})
        assert raised["limits"]["stake_minor"] == "350"
        assert [(one["name"], one["value"]) for one in raised["pending_limits"]] == [
            ("loss_minor", None),
            ("stake_minor", "5000"),
        ]
        with pytest.raises(RefusedError):
            await start(page, session, 200)
        due_ms = [one["due_ms"] - time.time() * 1000 for one in raised["pending_limits"]]
        assert all(DELAY_MS - 10_000 < one <= DELAY_MS for one in due_ms)
        with sqlite3.connect(quick.folder / "platform/platform.db") as database:  # the delay has passed
            database.execute("UPDATE pending_limits SET due_ms = due_ms - ?", (DELAY_MS,))
        assert (await start(page, session, 200))["round"]["status"] == "ROUND_STATUS_OPEN"
        now = await player.call("GET", "/api/limits")
        assert (now["limits"], now["pending_limits"]) == ({"stake_minor": "5000"}, [])
        assert now["today"]["staked_minor"] == "400"


async def test_the_game_server_signs_what_is_left_of_the_day(player: Player) -> None:
    await player.call("POST", "/api/limits", {"stake_minor": 3000, "loss_minor": 2000, "duration_ms": 3_600_000})
    async with player.page() as page:
        session = await page.seat("uth-solo")
        limits = session["limits"]
        assert (limits["stake_minor"], limits["loss_minor"]) == ("3000", "2000")
        assert 3_590_000 <= int(limits["duration_ms"]) <= 3_600_000
        await start(page, session, 200)
        again = await page.seat("casino-holdem")
        assert again["limits"]["stake_minor"] == "2600"
    await player.call("POST", "/api/limits", {"stake_minor": 400})
    with pytest.raises(RefusedError) as caught:
        await player.launch("uth-solo")
    assert caught.value.reason == "LIMIT_REACHED"


async def test_no_round_starts_before_a_reality_check_was_seen(player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("uth-solo")
        await asyncio.sleep(CHECK_S + 0.3)
        with pytest.raises(RefusedError) as caught:
            await page.ask("start", session_id=session["session_id"], round_no=1, bets=bets(200))
        assert caught.value.reason == "REALITY_CHECK"
        shown = (await page.find(lambda one: one["type"] == "reality_check"))["value"]
        assert shown["session_id"] == session["session_id"]
        assert int(shown["elapsed_ms"]) >= CHECK_S * 1000
        assert (shown["net_position_minor"], shown["currency"]) == ("0", "EUR")
        await page.ask("reality_check_seen", session_id=session["session_id"])
        assert await page.ask("start", session_id=session["session_id"], round_no=1, bets=bets(200))


async def test_a_reality_check_is_told_when_it_is_due_and_takes_nothing_from_the_round_in_play(player: Player) -> None:
    async with player.page() as page, player.page() as other:
        session = await page.seat("uth-solo")
        at = {"session_id": session["session_id"]}
        await other.ask("sessions")
        round_ = (await page.ask("start", **at, round_no=1, bets=bets(200)))["round"]
        shown = [await one.find(lambda found: found["type"] == "reality_check", CHECK_S + 30) for one in (page, other)]
        for message in shown:
            assert message["value"]["session_id"] == session["session_id"]
            assert (message["value"]["net_position_minor"], message["value"]["currency"]) == ("-400", "EUR")
            assert (message["value"]["staked_minor"], message["value"]["returned_minor"]) == ("400", "0")
            # By the game server's clock: not before it is due, and within a second of it.
            assert CHECK_S * 1000 <= int(message["value"]["elapsed_ms"]) < CHECK_S * 1000 + bound(1.0) * 1000
        # The round goes on; the next one waits.
        version = {"round_id": round_["round_id"], "round_version": round_["round_version"]}
        assert (await page.ask("act", **at, **version, action="ACTION_CHECK"))["round"]
        # A page that is opened now is told, too, and all others know when the player has seen it.
        async with player.page() as third:
            await third.ask("get", **at)
            assert await third.find(lambda found: found["type"] == "reality_check")
            await third.ask("reality_check_seen", **at)
        assert (await other.find(lambda found: found["type"] == "reality_check_seen"))["value"] == at
        # It is told once, and then again when the next one is due.
        again = "reality_check"
        first = [one for one in other.messages if one["type"] == again]
        assert len([one for one in first if int(one["value"]["elapsed_ms"]) < 2000 * CHECK_S]) == 1
        await other.find(lambda found: found["type"] == again and int(found["value"]["elapsed_ms"]) >= 2000 * CHECK_S)
        assert len([one for one in other.messages if one["type"] == "reality_check"]) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/limits", {}),
        ("/api/limits", {"loss_minor": -1}),
        ("/api/limits", {"loss_minor": 1.5}),
        ("/api/limits", {"loss_minor": True}),
        ("/api/limits", {"loss_minor": "1e9"}),
        ("/api/exclusion", {}),
        ("/api/exclusion", {"days": 0}),
        ("/api/exclusion", {"days": 10**9}),
    ],
)
async def test_malformed_wishes_change_nothing(player: Player, path: str, body: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as caught:
        await player.call("POST", path, body)
    assert (caught.value.status, caught.value.reason) == (400, "INVALID_FIELD")
    me = await player.call("GET", "/api/me")
    assert (me["limits"], me["excluded_until"]) == ({}, None)


# --- the wallet ------------------------------------------------------------------------------------------------------


def add_token(quick: Whole, player: str, token: str, expires_ms: int) -> None:
    with sqlite3.connect(quick.folder / "platform/platform.db") as database:
        row = (sha256(token.encode()).digest(), player, expires_ms)
        database.execute("INSERT INTO play_tokens VALUES (?, ?, ?)", row)


async def granted(quick: Whole, player: str) -> str:
    """A free bet that the wallet knows."""
    named = "spring:01M851HQZZ1KQKGKHA09SEDNZD"
    book = WalletBook(quick.folder / "platform/wallet.db")
    try:
        assert await book.grant(named, player, "EUR", 100, 1)
    finally:
        book.close()
    return named


async def conformance(quick: Whole, player: Player, second: Player, *options: str) -> tuple[int, str]:
    names = ("--player", player.me["player"], "--second-player", second.me["player"], "--unknown-player", "nobody")
    target = ("--target", quick.wallet_address(), "--home", str(quick.server_home))
    found = await asyncio.to_thread(quick.rgs, "conformance", "wallet", *target, *names, *options)
    return found.returncode, found.stdout + found.stderr


async def test_the_wallet_passes_the_conformance_checks(quick: Whole, player: Player) -> None:
    async with Player(quick.origin) as second:
        await second.sign_up()
        add_token(quick, player.me["player"], "good", 2**52)
        add_token(quick, player.me["player"], "old", 1)
        status, text = await conformance(quick, player, second, "--token", "good", "--expired-token", "old")
        assert (status, "56 checks: 52 passed, 0 FAILED, 4 skipped" in text) == (0, True), text
        known = await granted(quick, player.me["player"])
        status, text = await conformance(
            quick, player, second, "--token", "good", "--expired-token", "old", "--free-bet", known
        )
        assert (status, "56 checks: 56 passed" in text) == (0, True), text
        # Without a token, or with another player's, no debit goes through.
        add_token(quick, second.me["player"], "theirs", 2**52)
        for token in ("theirs", "unknown"):
            status, text = await conformance(quick, player, second, "--token", token)
            assert (status, "TOKEN_EXPIRED" in text) == (2, True), text


async def test_the_wallet_refuses_debits_of_excluded_players_and_takes_their_credits(
    quick: Whole, player: Player
) -> None:
    async with Player(quick.origin) as second:
        await second.sign_up()
        add_token(quick, player.me["player"], f"t-{player.me['player']}", 2**52)
        await player.call("POST", "/api/exclusion", {"days": 1})
        token = f"t-{player.me['player']}"
        status, text = await conformance(quick, player, second, "--token", token)
        assert (status, "PLAYER_BLOCKED" in text) == (2, True), text
        assert any("credit_gives_money" in line and "passed" in line for line in text.splitlines()), text


async def test_only_the_game_server_may_call_the_wallet(quick: Whole, player: Player) -> None:
    folder = quick.folder / "stranger"
    folder.mkdir()
    tls = quick.server_home / "tls"
    (folder / "ca.pem").write_bytes((tls / "ca.pem").read_bytes())
    for suffix in ("pem", "key"):  # a certificate of the same authority, but an operator's
        (folder / f"peers.{suffix}").write_bytes((tls / f"clients/demo-operator.{suffix}").read_bytes())
    async with Player(quick.origin) as second:
        await second.sign_up()
        status, text = await conformance(quick, player, second, "--tls", str(folder))
    assert status != 0
    assert "balance_is_reported" not in text or "passed │ GetBalance" not in text
    assert await player.balance() == 50_000
