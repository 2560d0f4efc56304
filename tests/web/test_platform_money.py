"""Money with the whole platform: bet by bet with faults between, several currencies, free bets, their books."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import grpc
import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

from examples.operator import start
from rgs.v1 import admin_pb2, admin_pb2_grpc
from tests.web.faulty_wallet import LOST_REPLY, LOST_REQUEST, FaultyWallet
from tests.web.page_client import Page, Player, RefusedError, new_id
from tests.web.whole import Whole

sys.path.append(str(start.HERE))
from operator_platform.store.wallet import (  # type: ignore[import-not-found]
    Order,
    RefusalError,
    WalletBook,
)

GAME = "casino-holdem"
ULID = "01M851HQZZ1KQKGKHA09SEDNZD"


def bets(minor: int) -> list[dict[str, str]]:
    return [{"bet": "ante", "amount_minor": str(minor)}]


def entries(whole: Whole, account: str) -> list[tuple[str, int, int, str]]:
    """Kind, purpose, what it moved and the round of each entry of an account, oldest first."""
    query = (
        "SELECT kind, purpose, moved_minor, round_reference FROM entries"
        " WHERE account = ? AND kind <> 'deposit' ORDER BY entry_no"
    )
    with sqlite3.connect(whole.folder / "platform/wallet.db") as database:
        return [tuple(row) for row in database.execute(query, (account,))]


async def until(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - another process moves it
            await asyncio.sleep(0.05)


# --- bet by bet ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seamless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Whole, FaultyWallet]]:
    """The platform as the sandbox's seamless operator, with a wallet whose calls get lost on order."""
    front = FaultyWallet(start.free_address())
    folder = tmp_path_factory.mktemp("seamless")
    with Whole(folder, start_options=("--seamless", "--wallet-front", front.address)) as whole:
        front.start(whole.wallet_address(), whole.server_home / "tls")
        try:
            yield whole, front
        finally:
            front.stop()


@pytest.fixture
async def bettor(seamless: tuple[Whole, FaultyWallet]) -> AsyncIterator[Player]:
    async with Player(seamless[0].origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


async def opened(page: Page, game: str = GAME) -> dict[str, Any]:
    """A session that needs no purchase."""
    return dict((await page.ask("redeem", launch=await page.player.launch(game)))["session"])


async def repeated(page: Page, kind: str, **body: Any) -> Any:
    """Ask, and ask again under the same id while nobody knows what came of it."""
    request_id = new_id()
    for _ in range(10):
        try:
            return await page.answer(await page.send(kind, request_id, **body))
        except RefusedError as error:
            if error.reason != "OUTCOME_UNKNOWN":
                raise
            page.messages.clear()
            await asyncio.sleep(0.2)
    raise AssertionError("still not known")


@pytest.mark.parametrize("fault", ["", LOST_REPLY, LOST_REQUEST])
async def test_each_bet_is_debited_once_and_each_return_credited_once(
    seamless: tuple[Whole, FaultyWallet], bettor: Player, fault: str
) -> None:
    whole, front = seamless
    async with bettor.page() as page:
        session = await opened(page)
        at = {"session_id": session["session_id"]}
        with pytest.raises(RefusedError) as caught:
            await page.ask("buy", **at, purchase_no=1, amount_minor="1000")
        assert caught.value.reason == "FUNDING_MODE"
        before = front.seen["Debit"]
        if fault:
            front.faults["Debit"] = fault
        started = await repeated(page, "start", **at, round_no=1, bets=bets(200))
        round_ = started["round"]
        # A lost reply is looked up, a lost request is sent again.
        assert front.seen["Debit"] - before == (2 if fault == LOST_REQUEST else 1)
        assert await bettor.balance() == 50_000 - 200
        if fault:
            front.faults["Debit"] = fault
            front.faults["Credit"] = fault
        version = {"round_id": round_["round_id"], "round_version": round_["round_version"]}
        ended = (await repeated(page, "act", **at, **version, action="ACTION_CALL"))["round"]
        assert ended["status"] == "ROUND_STATUS_SETTLED"
        staked, returned = int(ended["staked_minor"]), int(ended.get("returned_minor", 0))
        assert staked == 600
        await until(lambda: len(entries(whole, bettor.me["player"])) == 3)
        assert await bettor.balance() == 50_000 - staked + returned
        await page.ask("close", **at)
    id_ = ended["round_id"]
    booked = [("debit", 3, -200, id_), ("debit", 3, -400, id_), ("credit", 4, returned, id_)]
    assert entries(whole, bettor.me["player"]) == booked
    today = (await bettor.call("GET", "/api/limits"))["today"]
    assert (today["staked_minor"], today["returned_minor"]) == (str(staked), str(returned))


async def test_a_bet_that_cannot_be_dealt_any_more_is_rolled_back(
    seamless: tuple[Whole, FaultyWallet], bettor: Player
) -> None:
    """The wallet has taken the bet, nobody hears of it, and meanwhile an admin stops new rounds."""
    whole, front = seamless
    async with bettor.page() as page:
        session = await opened(page)
        front.faults["Debit"] = LOST_REPLY
        front.away = {"GetTransaction"}
        start_ = {"session_id": session["session_id"], "round_no": 1, "bets": bets(300)}
        request_id = new_id()
        try:
            with pytest.raises(RefusedError) as caught:
                await page.answer(await page.send("start", request_id, **start_))
            assert caught.value.reason == "OUTCOME_UNKNOWN"
            assert await bettor.balance() == 50_000 - 300
            switch(whole, enabled=False)
        finally:
            front.away = set()
        try:
            await until(lambda: len(entries(whole, bettor.me["player"])) == 2)
            assert await bettor.balance() == 50_000
            for _ in range(2):
                page.messages.clear()
                with pytest.raises(RefusedError) as caught:
                    await page.answer(await page.send("start", request_id, **start_))
                assert caught.value.reason == "TRANSACTION_ROLLED_BACK"
        finally:
            switch(whole, enabled=True)
        # The next bet is another one, and goes through.
        again = await page.ask("start", **start_)
        assert again["round"]["status"] == "ROUND_STATUS_OPEN"
    kinds = [(kind, moved) for kind, _, moved, _ in entries(whole, bettor.me["player"])]
    assert kinds == [("debit", -300), ("rollback", 300), ("debit", -300)]


def switch(whole: Whole, *, enabled: bool) -> None:
    """Stop or allow new rounds of the game, as an admin."""
    clients = whole.server_home / "tls/clients"
    credentials = grpc.ssl_channel_credentials(
        (whole.server_home / "tls/ca.pem").read_bytes(),
        (clients / "demo-admin.key").read_bytes(),
        (clients / "demo-admin.pem").read_bytes(),
    )
    address = whole.server.command[whole.server.command.index("--listen") + 1]
    with grpc.secure_channel(address, credentials) as channel:
        order = admin_pb2.SetSwitchRequest(
            request_id=str(uuid.uuid4()),
            scope=admin_pb2.SWITCH_SCOPE_GAME,
            game=GAME,
            enabled=enabled,
            reason="TEST",
        )
        admin_pb2_grpc.AdminServiceStub(channel).SetSwitch(order, timeout=30)


# --- several currencies ----------------------------------------------------------------------------------------------


@pytest.fixture
async def player(whole: Whole) -> AsyncIterator[Player]:
    async with Player(whole.origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


async def pay_in(player: Player, currency: str, amount: str) -> int:
    form = {"request_id": new_id(), "amount": amount, "currency": currency}
    async with player.http.post(f"{player.origin}/cashier", data=form, allow_redirects=False) as response:
        return int(response.status)


async def balances(player: Player) -> dict[str, int]:
    found = (await player.call("GET", "/api/me"))["balances"]
    return {one["currency"]: int(one["amount_minor"]) for one in found}


async def launched(page: Page, currency: str, game: str = "uth-solo") -> dict[str, Any]:
    body = {"request_id": new_id(), "game": game, "currency": currency}
    url = (await page.player.call("POST", "/api/launches", body))["url"]
    return dict((await page.ask("redeem", launch=url.partition("=")[2]))["session"])


async def test_an_account_in_each_currency_with_limits_of_its_own(player: Player) -> None:
    assert await pay_in(player, "CHF", "80.50") == 303
    assert await pay_in(player, "JPY", "7000") == 303
    assert await pay_in(player, "JPY", "1.5") == 400  # a yen has no decimal places
    assert await pay_in(player, "USD", "1") == 400
    me = await player.call("GET", "/api/me")
    assert [(one["currency"], one["exponent"]) for one in me["balances"]] == [("EUR", 2), ("CHF", 2), ("JPY", 0)]
    assert await balances(player) == {"EUR": 50_000, "CHF": 8_050, "JPY": 7_000}
    assert (me["currency"], me["currencies"]) == ("EUR", ["EUR", "CHF", "GBP", "JPY"])
    # Limits of one currency say nothing of another; the time of play is limited over all of them.
    await player.call("POST", "/api/limits", {"currency": "CHF", "stake_minor": 1_000, "deposit_minor": 8_100})
    await player.call("POST", "/api/limits", {"stake_minor": 5_000, "duration_ms": 3_600_000})
    found = {name: await player.call("GET", f"/api/limits?currency={name}") for name in ("EUR", "CHF", "JPY")}
    assert {name: one["limits"] for name, one in found.items()} == {
        "EUR": {"stake_minor": "5000", "duration_ms": "3600000"},
        "CHF": {"stake_minor": "1000", "deposit_minor": "8100", "duration_ms": "3600000"},
        "JPY": {"duration_ms": "3600000"},
    }
    assert await pay_in(player, "CHF", "0.51") == 409
    assert await pay_in(player, "CHF", "0.50") == 303
    async with player.page() as page:
        session = await launched(page, "CHF")
        assert (session["currency"], session["limits"]["stake_minor"]) == ("CHF", "1000")
        at = {"session_id": session["session_id"]}
        await page.ask("buy", **at, purchase_no=1, amount_minor="3000")
        with pytest.raises(RefusedError) as caught:
            await page.ask("start", **at, round_no=1, bets=bets(600))  # with the blind 12.00
        assert caught.value.reason == "LIMIT_REACHED"
        await page.ask("start", **at, round_no=1, bets=bets(500))
        with pytest.raises(RefusedError) as caught:
            await launched(page, "CHF")
        assert caught.value.reason == "LIMIT_REACHED"
        assert (await launched(page, "EUR"))["limits"]["stake_minor"] == "5000"
    assert await balances(player) == {"EUR": 50_000, "CHF": 8_100 - 3_000, "JPY": 7_000}
    today = {name: await player.call("GET", f"/api/limits?currency={name}") for name in ("EUR", "CHF")}
    assert {name: one["today"]["staked_minor"] for name, one in today.items()} == {"EUR": "0", "CHF": "1000"}
    for path, body in (("/api/limits", {"currency": "USD", "loss_minor": 1}), ("/api/launches", {"currency": "usd"})):
        named = {"request_id": new_id(), "game": "uth-solo"} if path == "/api/launches" else {}
        with pytest.raises(RefusedError) as caught:
            await player.call("POST", path, {**named, **body})
        assert (caught.value.reason, caught.value.body["metadata"]["field"]) == ("INVALID_FIELD", "currency")
    # The pages of the platform have both accounts.
    async with player.http.get(f"{player.origin}/responsible-play") as response:
        text = await response.text()
    assert re.findall("<h2>([A-Z]{3})</h2>", text) == ["EUR", "CHF", "JPY"]
    form = {"what": "loss_minor", "currency": "JPY", "value": "700"}
    async with player.http.post(f"{player.origin}/responsible-play", data=form, allow_redirects=False) as response:
        assert response.status == 303
    assert (await player.call("GET", "/api/limits?currency=JPY"))["limits"]["loss_minor"] == "700"


async def test_a_new_account_may_be_in_another_currency(whole: Whole) -> None:
    async with Player(whole.origin) as found:
        name = f"n-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "password": "correct horse battery", "nickname": name, "currency": "GBP"}
        me = await found.call("POST", "/api/sign-up", body)
        assert [one["currency"] for one in me["balances"]] == ["GBP"]
        assert me["currency"] == "GBP"
        async with found.page() as page:
            launch = {"request_id": new_id(), "game": "uth-solo"}
            url = (await found.call("POST", "/api/launches", launch))["url"]
            assert (await page.ask("redeem", launch=url.partition("=")[2]))["session"]["currency"] == "GBP"


# --- free bets -------------------------------------------------------------------------------------------------------


class StaffMember:
    """Staff with a browser, without a script."""

    def __init__(self, whole: Whole, name: str = "staff") -> None:
        self.http = Player(whole.origin)
        self.name = name
        self.password = (whole.folder / "staff-password").read_text().strip()

    async def sign_in(self) -> None:
        status, _ = await self.post("/office/sign-in", name=self.name, password=self.password)
        assert status == 303

    async def read(self, path: str) -> str:
        async with self.http.http.get(self.http.origin + path) as response:
            assert response.status == 200
            return str(await response.text())

    async def post(self, path: str, **form: str) -> tuple[int, str]:
        async with self.http.http.post(self.http.origin + path, data=form, allow_redirects=False) as response:
            return response.status, await response.text()

    @staticmethod
    def hidden(text: str, action: str, **wanted: str) -> dict[str, str]:
        """The hidden fields of the form of this action."""
        for form in re.findall(rf'<form[^>]*action="{action}">(.*?)</form>', text):
            fields = {unescape(name): unescape(value) for name, value in HIDDEN.findall(form)}
            if wanted.items() <= fields.items():
                return fields
        raise AssertionError(f"no form {action}")


HIDDEN = re.compile('<input type="hidden" name="([^"]*)" value="([^"]*)">')


@pytest.fixture
async def manager(whole: Whole) -> AsyncIterator[StaffMember]:
    found = StaffMember(whole)
    async with found.http:
        await found.sign_in()
        yield found


async def granted(
    manager: StaffMember, player: Player, campaign: str, stake: int, count: int = 1
) -> list[dict[str, Any]]:
    path = f"/office/free-bets?player={player.me['player']}"
    form = manager.hidden(await manager.read(path), "/office/grant")
    wanted = {"game": "uth-solo", "currency": "EUR", "stake_minor": str(stake), "count": str(count), "days": "3"}
    for _ in range(3):  # a form that is sent again grants nothing more
        status, text = await manager.post("/office/grant", **form, campaign=campaign, **wanted)
        assert status == 303, text
    return list((await player.call("GET", "/api/free-bets"))["free_bets"])


async def test_a_free_bet_is_granted_played_booked_and_shown(
    whole: Whole, manager: StaffMember, player: Player
) -> None:
    campaign = f"welcome-{uuid.uuid4().hex[:6]}"
    async with player.page() as page:
        found = await granted(manager, player, campaign, 500, count=2)
        assert await page.find(lambda one: one["type"] == "free_bets")
        assert [(one["campaign"], one["stake_minor"]) for one in found] == [(campaign, "500")] * 2
        free_bet = found[0]["grant_id"]
        # Own limits count own money only: this one would stop a bet of the player's.
        await player.call("POST", "/api/limits", {"stake_minor": 600})
        session = await page.seat("uth-solo", amount_minor=1_000)
        at = {"session_id": session["session_id"]}
        with pytest.raises(RefusedError) as caught:
            await page.ask("start", **at, round_no=1, bets=bets(500))
        assert caught.value.reason == "LIMIT_REACHED"
        started = await page.ask("start", **at, round_no=1, bets=bets(500), free_bet=free_bet)
        assert started["session"]["balance_minor"] == "1000"
        round_ = started["round"]
        while round_["status"] == "ROUND_STATUS_OPEN":
            legal = {one["action"] for one in round_["legal_actions"] if one.get("available")}
            action = "ACTION_CHECK" if "ACTION_CHECK" in legal else "ACTION_FOLD"
            version = {"round_id": round_["round_id"], "round_version": round_["round_version"]}
            round_ = (await page.ask("act", **at, **version, action=action))["round"]
        assert (round_["grant_id"], round_["granted_minor"]) == (free_bet, "1000")
    back = int(round_.get("reclaimed_minor", 0))
    account = f"campaign/{campaign}"
    await until(lambda: len(entries(whole, account)) == 2)
    id_ = round_["round_id"]
    assert entries(whole, account) == [("debit", 5, -1_000, id_), ("credit", 6, back, id_)]
    assert entries(whole, player.me["player"]) == [("debit", 1, -1_000, "")]  # the purchase alone
    with sqlite3.connect(whole.folder / "platform/wallet.db") as database:
        query = "SELECT balance_minor FROM accounts WHERE player = ?"
        assert database.execute(query, (account,)).fetchone()[0] == 2_000 - 1_000 + back
    # One is left, and is taken back; the history and the pages of staff show the one that was played.
    assert [one["grant_id"] for one in (await player.call("GET", "/api/free-bets"))["free_bets"]] == [
        found[1]["grant_id"]
    ]
    record = await player.call("GET", f"/api/rounds/{id_}?session_id={session['session_id']}")
    assert (record["round"]["grant_id"], record["round"]["granted_minor"]) == (free_bet, "1000")
    text = await manager.read(f"/office/rounds/{id_}?session_id={session['session_id']}")
    assert f"Free bet {free_bet}: the campaign has paid 10.00 EUR" in text
    assert free_bet in await manager.read(f"/office/campaigns?campaign={campaign}")
    path = f"/office/free-bets?player={player.me['player']}"
    form = manager.hidden(await manager.read(path), "/office/take-back", grant_id=found[1]["grant_id"])
    assert (await manager.post("/office/take-back", **form))[0] == 303
    assert (await player.call("GET", "/api/free-bets"))["free_bets"] == []
    assert campaign in await manager.read("/office/actions")


async def test_a_free_bet_is_its_players_and_the_wallet_pays_what_it_knows_only(
    whole: Whole, manager: StaffMember, player: Player
) -> None:
    campaign = f"spring-{uuid.uuid4().hex[:6]}"
    [free_bet] = await granted(manager, player, campaign, 300)
    async with Player(whole.origin) as other:
        await other.sign_up()
        assert await other.deposit() == 303
        assert (await other.call("GET", "/api/free-bets"))["free_bets"] == []
        async with other.page() as page:
            session = await page.seat("uth-solo", amount_minor=1_000)
            wanted = {"session_id": session["session_id"], "round_no": 1, "free_bet": free_bet["grant_id"]}
            with pytest.raises(RefusedError):
                await page.ask("start", **wanted, bets=bets(300))
    assert entries(whole, f"campaign/{campaign}") == []
    # The process died between game server and wallet: the wallet does not know the grant. It learns of it in time.
    with sqlite3.connect(whole.folder / "platform/wallet.db") as database:
        database.execute("DELETE FROM free_bets")
        database.execute("DROP TRIGGER entries_last")
        database.execute("DELETE FROM entries WHERE account = ?", (f"campaign/{campaign}",))
        database.execute("UPDATE accounts SET balance_minor = 0 WHERE player = ?", (f"campaign/{campaign}",))
    async with player.page() as page:
        session = await page.seat("uth-solo", amount_minor=1_000)
        wanted = {"session_id": session["session_id"], "round_no": 1, "free_bet": free_bet["grant_id"]}
        assert (await page.ask("start", **wanted, bets=bets(300)))["round"]["granted_minor"] == "600"
    assert [row[:3] for row in entries(whole, f"campaign/{campaign}")] == [("debit", 5, -600)]


async def test_the_book_pays_a_free_bet_once_from_its_campaign(tmp_path: Path) -> None:
    book = WalletBook(tmp_path / "wallet.db")
    named = f"spring:{ULID}"

    def order(number: int, player: str = "p-1", amount: int = 600, free_bet: str = named) -> Any:
        return Order(f"{number:026d}", player, "EUR", amount, "s-1", 5, "r-1", free_bet)

    async def reason(found: Any) -> str:
        return str((await book.debit(found, "", 2))[0].reason)

    try:
        for player in ("p-1", "p-2"):
            await book.open_account(player, "EUR")
        assert not await book.knows_campaign("spring", "EUR")
        assert await reason(order(1)) == "FREE_BET_UNKNOWN"
        assert await book.grant(named, "p-1", "EUR", 600, 1)
        assert not await book.grant(named, "p-1", "EUR", 600, 1)
        with pytest.raises(RefusalError):
            await book.grant(named, "p-1", "EUR", 700, 1)
        assert await reason(order(1)) == "FREE_BET_UNKNOWN"  # a refused debit is refused for good
        wrong = (order(2, player="p-2"), order(3, amount=599), order(4, free_bet=f"summer:{ULID}"))
        assert [await reason(one) for one in wrong] == ["FREE_BET_UNKNOWN"] * 3
        assert await reason(order(5)) == ""
        assert await reason(order(5)) == ""
        assert await reason(order(6)) == "FREE_BET_UNKNOWN"
        await book.rollback(order(5), 3)
        assert await reason(order(7)) == ""
        with pytest.raises(RefusalError) as caught:
            await book.debit(order(7, free_bet=f"summer:{ULID}"), "", 4)
        assert caught.value.reason == "TRANSACTION_CONFLICT"
        await book.credit(replace(order(8), amount_minor=300, purpose=6), 5)
        assert await book.balances("campaign/spring") == [("EUR", 600 - 600 + 300)]
        assert await book.balances("p-1") == [("EUR", 0)]
        assert await book.entries_of("p-1", 10**9, 10) == []
    finally:
        book.close()


async def test_support_sees_and_a_manager_grants_and_bars(whole: Whole, manager: StaffMember, player: Player) -> None:
    name, password = f"support-{uuid.uuid4().hex[:6]}", "a password of support"
    command = [*start.PLATFORM, "--home", str(whole.folder / "platform"), "--add-staff", name]
    await asyncio.to_thread(start.run, command, f"{password}\n")
    support = StaffMember(whole, name)
    support.password = password
    async with support.http:
        await support.sign_in()
        path = f"/office/free-bets?player={player.me['player']}"
        text = await support.read(path)
        assert "/office/grant" not in text
        theirs = support.hidden(await support.read(f"/office/players/{player.me['player']}"), "/office/mute")
        form = {**manager.hidden(await manager.read(path), "/office/grant"), "form_token": theirs["form_token"]}
        wanted = {"campaign": "x", "game": "uth-solo", "stake_minor": "100", "count": "1", "days": "1"}
        for action, more in (
            ("grant", wanted),
            ("take-back", {"grant_id": "0" * 26}),
            ("bar", {"table": "uth-online"}),
        ):
            status, text = await support.post(f"/office/{action}", **form, **more)
            assert (status, "WRONG_ROLE" in text) == (403, True), action
        assert (await support.post("/office/mute", **theirs, days="1"))[0] == 303
    assert (await player.call("GET", "/api/free-bets"))["free_bets"] == []
