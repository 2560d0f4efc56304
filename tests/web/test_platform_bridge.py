"""The bridge under attack and under broken connections: every message is authorised, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

import aiohttp

from tests.web.page_client import Page, Player, RefusedError, new_id
from tests.web.whole import Whole, until

SOLO = "uth-solo"
TABLE = "uth-online"
ONE_ID = "5f1c9a52-3f0e-4b7a-9a53-2f6d1c0b8e11"
"""Of tests that are named by what they send: each test process must find the same names."""


@pytest.fixture
async def player(whole: Whole) -> AsyncIterator[Player]:
    async with Player(whole.origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


async def refused(page: Page, kind: str, **body: Any) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await page.ask(kind, **body)
    return caught.value


def bets(minor: int = 200) -> list[dict[str, str]]:
    return [{"bet": "ante", "amount_minor": str(minor)}]


async def test_a_round_is_played_and_proved_in_history(player: Player) -> None:
    async with player.page() as page:
        session = await page.seat(SOLO)
        ended = await page.play(session)
    rounds = (await player.call("GET", "/api/rounds"))["rounds"]
    assert [one["round_id"] for one in rounds] == [ended["round"]["round_id"]]
    where = f"{rounds[0]['round_id']}?session_id={session['session_id']}"
    record = await player.call("GET", f"/api/rounds/{where}")
    assert record["final"] == ended["final"]
    receipt = await player.call("GET", f"/api/receipts/{where}")
    assert receipt["record"] == record
    assert receipt["instances"]
    keys = await player.call("GET", "/api/keys")
    assert receipt["keys"] == keys["envelopes"]
    assert len(keys["root_fingerprint"]) == 64


async def test_the_history_is_found_by_time_game_session_code_and_reference(whole: Whole, player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("casino-holdem")
        ended = (await page.play(session))["round"]
        other = await page.seat(SOLO)
        await page.ask("start", session_id=other["session_id"], round_no=1, bets=bets())  # in play: not listed
    one = [ended["round_id"]]
    end, code = ended["end_time"], ended["game_code"].replace("#", "%23")
    for query, found in (
        (f"game=casino-holdem&from={end}", one),
        (f"to={end}", []),  # the end is excluded
        (f"from={end}&to=2100-01-01T00:00:00Z", one),
        (f"code={code}", one),
        (f"code={code[3:]}&from={end}", one),
        (f"code={code}&to={end}", []),
        (f"session={session['session_id']}", one),
        (f"reference={session['operator_reference']}", one),
        (f"session={other['session_id']}", []),
        ("game=uth-lugano", []),
        ("from=2100-01-01T00:00:00Z", []),
        ("to=2020-01-01T00:00:00%2B01:00", []),
    ):
        listed = await player.call("GET", f"/api/rounds?{query}")
        assert [row["round_id"] for row in listed.get("rounds", [])] == found, query
    for wrong in (
        *("from=yesterday", "from=2026-11-23T00:00:00", "day=1", "page_token=xx&game=a", "page_size=201"),
        *("code=x", f"code={code}&from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z", "from=0001-01-01T00:00:00Z"),
        *(f"session={session['session_id']}&game=casino-holdem", f"session={session['session_id']}&reference=x"),
    ):
        with pytest.raises(RefusedError) as caught:
            await player.call("GET", f"/api/rounds?{wrong}")
        assert caught.value.reason == "INVALID_FIELD", wrong
    async with Player(whole.origin) as thief:
        await thief.sign_up()
        for wrong in (f"session={session['session_id']}", f"reference={session['operator_reference']}"):
            with pytest.raises(RefusedError) as caught:
                await thief.call("GET", f"/api/rounds?{wrong}")
            assert caught.value.reason == "SESSION_UNKNOWN", wrong
        assert not await thief.call("GET", f"/api/rounds?code={code}")


async def test_the_history_comes_in_pages(player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("casino-holdem")
        ended = []
        for _ in range(5):
            answer = await page.play(session)
            ended.append(answer["round"])
            session = answer["session"]
    between = f"from={ended[1]['end_time']}&to={ended[4]['end_time']}"  # the newest and the oldest are outside
    for query, wanted in (("", ended), (f"game=casino-holdem&{between}", ended[1:4])):
        found, token = [], ""
        for _ in range(10):
            listed = await player.call("GET", f"/api/rounds?page_size=2&{query}&page_token={token}")
            found += [row["round_id"] for row in listed.get("rounds", [])]
            token = listed.get("next_page_token", "")
            if not token:
                break
        assert found == [one["round_id"] for one in reversed(wanted)]


async def test_another_players_session_is_refused_in_every_message(whole: Whole, player: Player) -> None:
    async with player.page() as page, Player(whole.origin) as thief:
        session = await page.seat(SOLO)
        started = await page.ask("start", session_id=session["session_id"], round_no=1, bets=bets())
        round_id = started["round"]["round_id"]
        await thief.sign_up()
        async with thief.page() as other:
            mine = {"session_id": session["session_id"]}
            messages: dict[str, dict[str, Any]] = {
                "get": {},
                "buy": {"purchase_no": 2, "amount_minor": "100"},
                "start": {"round_no": 2, "bets": bets()},
                "act": {"round_id": round_id, "round_version": 1, "action": "ACTION_CHECK"},
                "round": {"round_id": round_id},
                "end": {},
                "close": {},
                "join": {},
                "leave": {"device_no": 1},
                "bets": {"device_no": 1, "round_id": "", "seat_version": 1, "bets": bets()},
                "decide": {"device_no": 1, "round_id": round_id, "round_version": 1, "action": "ACTION_CHECK"},
                "say": {"text": "hello"},
                "watch": {"table": TABLE},
                "reality_check_seen": {},
            }
            for kind, body in messages.items():
                assert (await refused(other, kind, **mine, **body)).reason == "SESSION_UNKNOWN", kind
            nobody = await refused(other, "get", session_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
            assert nobody.reason == "SESSION_UNKNOWN"  # no difference shows which sessions exist
        for path in (f"/api/rounds/{round_id}", f"/api/receipts/{round_id}"):
            with pytest.raises(RefusedError) as caught:
                await thief.call("GET", f"{path}?session_id={session['session_id']}")
            assert caught.value.reason == "SESSION_UNKNOWN"
        view = (await page.ask("get", **mine))["session"]
        assert view["open_round"]["round_version"] == started["round"]["round_version"]


async def test_a_stolen_launch_token_opens_nothing(whole: Whole, player: Player) -> None:
    token = await player.launch(SOLO)
    async with Player(whole.origin) as thief, player.page() as page:
        await thief.sign_up()
        async with thief.page() as other:
            assert (await refused(other, "redeem", launch=token)).reason == "LAUNCH_REFUSED"
        assert (await page.ask("redeem", launch=token))["session"]["session_id"]
        assert (await refused(page, "redeem", launch=token)).reason == "LAUNCH_REFUSED"  # once
        assert (await refused(page, "redeem", launch="x" * 43)).reason == "LAUNCH_REFUSED"


async def test_a_redeemed_launch_gives_the_same_session_to_its_own_request_again(player: Player) -> None:
    token, request_id = await player.launch(SOLO), new_id()
    async with player.page() as page:
        first = await page.answer(await page.send("redeem", request_id, launch=token))
        page.messages.clear()
        again = await page.answer(await page.send("redeem", request_id, launch=token))
    assert again == first


async def test_a_repeated_launch_replaces_its_token(player: Player) -> None:
    body = {"request_id": new_id(), "game": SOLO}
    first, second = [(await player.call("POST", "/api/launches", body))["url"] for _ in range(2)]
    assert first != second
    async with player.page() as page:
        assert (await refused(page, "redeem", launch=first.partition("=")[2])).reason == "LAUNCH_REFUSED"
        assert (await page.ask("redeem", launch=second.partition("=")[2]))["session"]
    with pytest.raises(RefusedError) as caught:
        await player.call("POST", "/api/launches", {**body, "game": "casino-holdem"})
    assert caught.value.reason == "REQUEST_ID_REUSED"


async def test_play_money_touches_neither_wallet_nor_limits(whole: Whole, player: Player) -> None:
    await player.call("POST", "/api/limits", {"stake_minor": 100, "loss_minor": 100})
    body = {"request_id": new_id(), "game": SOLO, "mode": "demo", "language": "it"}
    async with player.page() as page:
        token = (await player.call("POST", "/api/launches", body))["url"].partition("=")[2]
        opened = await page.ask("redeem", launch=token)
        session = opened["session"]
        assert (opened["mode"], opened["language"], session["mode"]) == ("demo", "it", "MODE_DEMO")
        assert opened["return_url"].startswith("http://")
        await page.ask("buy", session_id=session["session_id"], purchase_no=1, amount_minor="5000")
        # Also where the platform died between the game server's answer and its own row.
        with sqlite3.connect(whole.folder / "platform/platform.db") as database:
            query = "DELETE FROM play_sessions WHERE session_id = ?"
            assert database.execute(query, (session["session_id"],)).rowcount == 1
        await page.play(session)
    assert await player.balance() == 50_000
    assert (await player.call("GET", "/api/limits"))["today"]["staked_minor"] == "0"


async def test_a_frame_that_is_replayed_or_lost_closes_the_socket(player: Player) -> None:
    for wrong in (1, 3, 0, -1):
        async with player.page() as page:
            await page.ask("ping")
            await page.send("ping", n=wrong)
            assert await page.closed() == 4002


@pytest.mark.parametrize("text", ["no json", "[]", json.dumps({"id": ONE_ID, "type": "ping", "n": True})])
async def test_a_malformed_frame_closes_the_socket(player: Player, text: str) -> None:
    async with player.page() as page:
        assert page.socket is not None
        await page.socket.send_str(text)
        assert await page.closed() == 4002


async def test_the_same_id_has_one_effect_and_other_content_is_refused(player: Player) -> None:
    async with player.page() as page:
        session = await page.seat(SOLO)
        body = {"session_id": session["session_id"], "purchase_no": 2, "amount_minor": "300"}
        request_id = new_id()
        first = await page.answer(await page.send("buy", request_id, **body))
        page.messages.clear()
        again = await page.answer(await page.send("buy", request_id, **body))
        assert again == first
        page.messages.clear()
        with pytest.raises(RefusedError) as caught:
            await page.answer(await page.send("buy", request_id, **{**body, "amount_minor": "400"}))
        assert caught.value.reason == "REQUEST_ID_REUSED"
        view = (await page.ask("get", session_id=session["session_id"]))["session"]
    assert view["bought_minor"] == "10300"
    assert await player.balance() == 50_000 - 10_300


async def test_two_players_with_the_same_id_do_not_meet(whole: Whole, player: Player) -> None:
    request_id = new_id()
    async with Player(whole.origin) as other:
        await other.sign_up()
        assert await other.deposit() == 303
        opened = []
        for one in (player, other):
            async with one.page() as page:
                token = await one.launch(SOLO)
                opened.append(await page.answer(await page.send("redeem", request_id, launch=token)))
    assert opened[0]["session"]["session_id"] != opened[1]["session"]["session_id"]
    assert opened[1]["session"]["player"] == other.me["player"]


async def test_a_socket_that_is_cut_between_request_and_answer_loses_and_doubles_nothing(player: Player) -> None:
    page = player.page()
    await page.open()
    session = await page.seat(SOLO)
    session_id = session["session_id"]
    for number in range(1, 6):
        view = (await page.ask("get", session_id=session_id))["session"]
        buying = {"session_id": session_id, "purchase_no": view["next_purchase_no"], "amount_minor": "100"}
        request_id = await page.send("buy", **buying)
        await asyncio.sleep(0.004 * number)  # at another moment each time
        await page.cut()
        before = [one["seq"] for one in page.messages]
        await page.open()
        # What the page does: it sends again what has no answer.
        if not any(one.get("re") == request_id for one in page.messages):
            await page.send("buy", request_id, **buying)
        await page.answer(request_id)
        numbers = [one["seq"] for one in page.messages]
        assert numbers[: len(before)] == before
        assert numbers == sorted(set(numbers))  # each once, in order
        assert numbers[-1] - numbers[0] == len(numbers) - 1  # without a gap
    view = (await page.ask("get", session_id=session_id))["session"]
    assert view["bought_minor"] == str(10_000 + 5 * 100)
    await page.cut()
    assert await player.balance() == 50_000 - 10_500


async def test_a_page_gets_what_it_missed_and_a_gap_is_a_restart(player: Player) -> None:
    async with player.page() as page:
        await page.ask("ping")
        await page.cut()
        await player.call("PUT", "/api/settings", {"settings": {"motion": False}})
        await page.open()
        missed = await page.find(lambda one: one["type"] == "settings")
        assert missed["value"] == {"motion": False}
        await page.cut()
        page.after += 1000  # a number that this bridge never gave
        await page.open()
        assert await page.find(lambda one: one["type"] == "restart")
        assert await page.ask("ping")


async def test_a_slow_page_is_told_to_restart_and_delays_nobody(whole: Whole, player: Player) -> None:
    async with player.page() as fast:
        url = f"{player.origin}/ws?connection={new_id()}&after="
        origin = {"Origin": player.origin}
        slow: Any = await player.http.ws_connect(f"{url}0", headers=origin, max_msg_size=0)
        transport = slow._response.connection.transport
        assert transport is not None
        transport.pause_reading()
        for number in range(1500):
            await player.call("PUT", "/api/settings", {"settings": {"number": number, "filler": "x" * 3900}})
        last = await fast.find(lambda one: one["type"] == "settings" and one["value"]["number"] == 1499)
        assert last
        transport.resume_reading()
        last_seq, count = 0, 0
        async with asyncio.timeout(60):
            while True:
                frame = await slow.receive()
                if frame.type is not aiohttp.WSMsgType.TEXT:  # it has answered no ping for too long: it comes back
                    await slow.close()
                    slow = await player.http.ws_connect(f"{url}{last_seq}", headers=origin, max_msg_size=0)
                    continue
                found = json.loads(frame.data)
                if found["type"] == "restart":
                    break
                last_seq, count = found["seq"], count + 1
        assert count < 1500
        await slow.close()


async def test_settings_follow_to_every_socket(player: Player) -> None:
    async with player.page() as first, player.page() as second:
        settings = {"sound": True, "four_colour": True, "language": "it"}
        await player.call("PUT", "/api/settings", {"settings": settings})
        for page in (first, second):
            assert (await page.find(lambda one: one["type"] == "settings"))["value"] == settings
    me = await player.call("GET", "/api/me")
    assert (me["settings"], me["language"]) == (settings, "it")
    with pytest.raises(RefusedError) as caught:
        await player.call("PUT", "/api/settings", {"settings": {"x": "y" * 5000}})
    assert caught.value.body["metadata"]["limit"] == "4096"


async def test_another_device_sees_what_the_first_plays(player: Player) -> None:
    async with player.page() as first, player.page() as second:
        session = await first.seat(SOLO)
        await second.ask("sessions")
        started = await first.ask("start", session_id=session["session_id"], round_no=1, bets=bets())
        seen = await second.find(lambda one: one["type"] == "round")
        assert seen["value"] == started["round"]
        assert (await second.find(lambda one: one["type"] == "session"))["value"] == started["session"]


async def test_a_socket_from_another_site_is_refused(whole: Whole, player: Player) -> None:
    for origin in ("https://evil.example", "null", whole.origin.replace("http:", "https:"), ""):
        page = player.page()
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await page.open(Origin=origin)
        assert caught.value.status == 403
    async with Player(whole.origin) as nobody:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await nobody.page().open()
        assert caught.value.status == 401


async def test_who_signs_out_elsewhere_is_refused_at_the_next_message(whole: Whole, player: Player) -> None:
    async with player.page() as page:
        await page.ask("ping")  # the platform has let this socket in: one that is refused before gets no frame
        token = next(one.value for one in player.http.cookie_jar)
        with sqlite3.connect(whole.folder / "platform/platform.db") as database:  # another process ends the sign-in
            from hashlib import sha256  # noqa: PLC0415

            database.execute("DELETE FROM sign_ins WHERE token_sha256 = ?", (sha256(token.encode()).digest(),))
        assert (await refused(page, "ping")).reason == "SIGNED_OUT"
        assert await page.closed() == 4003


async def test_signing_out_closes_the_pages_of_this_browser(player: Player) -> None:
    async with player.page() as page:
        await page.ask("ping")
        await player.call("POST", "/api/sign-out", {})
        assert await page.closed() == 4003


# --- tables ----------------------------------------------------------------------------------------------------------


async def seated(page: Page, table: str = TABLE) -> dict[str, Any]:
    session = await page.seat(table, table)
    await page.ask("watch", table=table, session_id=session["session_id"])
    joined = await page.ask("join", session_id=session["session_id"])
    return {**joined["seat"], "session_id": session["session_id"]}


async def place(page: Page, seat: dict[str, Any], minor: int = 500) -> dict[str, Any]:
    """Place a bet in the window that is open, or begin one; it waits for a window where a round is running."""
    for _ in range(60):
        found = await page.ask("get", session_id=seat["session_id"])
        if found["table"]["state"] in ("TABLE_STATE_IDLE", "TABLE_STATE_BETTING"):
            answer = await page.ask(
                "bets",
                session_id=seat["session_id"],
                device_no=found["seat"]["device_no"],
                round_id=found["table"].get("round_id", "") if found["table"]["state"] != "TABLE_STATE_IDLE" else "",
                seat_version=found["seat"].get("seat_version", "0"),
                bets=[{"bet": "ante", "amount_minor": str(minor)}] if minor else [],
            )
            return dict(answer)
        await asyncio.sleep(1)
    raise AssertionError("no betting window has opened")


async def open_bets(page: Page, session_id: str) -> list[Any]:
    found = await page.ask("get", session_id=session_id)
    return list(found["seat"].get("bets", []))


@pytest.mark.parametrize("way", ["hidden", "gone"])
async def test_open_bets_are_taken_back_when_the_page_is_hidden_or_gone(player: Player, way: str) -> None:
    async with player.page() as page, player.page() as watching:
        seat = await seated(page, "uth-seven-box")
        answer = await place(page, seat)
        assert answer["seat"]["bets"]
        if way == "hidden":
            await page.ask("hidden")
        else:
            await page.cut()
            assert await open_bets(watching, seat["session_id"])  # it has three seconds to come back

        async def are_taken_back() -> bool:
            return not await open_bets(watching, seat["session_id"])

        await until(are_taken_back)
        view = (await watching.ask("get", session_id=seat["session_id"]))["session"]
        assert view["balance_minor"] == "10000"


async def test_a_page_that_comes_back_in_time_keeps_its_bets(player: Player) -> None:
    async with player.page() as page:
        seat = await seated(page, "uth-seven-box")
        await place(page, seat)
        await page.cut()
        await asyncio.sleep(1.5)
        await page.open()
        await asyncio.sleep(3.5)
        assert await open_bets(page, seat["session_id"])
        await page.ask("hidden")


async def test_a_player_sees_no_session_ids_of_others_at_the_table(whole: Whole, player: Player) -> None:
    async with player.page() as page, Player(whole.origin) as other:
        await other.sign_up("<img src=x>")
        assert await other.deposit() == 303
        async with other.page() as second:
            mine, theirs = await seated(page, "uth-seven-box"), await seated(second, "uth-seven-box")
            await place(second, theirs)
            view = await page.ask("get", session_id=mine["session_id"])
            boxes = {box["box"]: box for box in view["table"]["boxes"]}
            assert boxes[mine["box"]]["session_id"] == mine["session_id"]
            assert boxes[theirs["box"]]["nickname"] == "<img src=x>"
            await second.ask("hidden")
            await second.ask("say", session_id=theirs["session_id"], text="<script>alert(1)</script>")
            line = await page.find(lambda one: one["type"] == "line" and "alert" in one["value"].get("text", ""))
            assert set(line["value"]) == {"message_id", "table", "time", "nickname", "text"}
            own = await second.find(lambda one: one["type"] == "line" and "alert" in one["value"].get("text", ""))
            assert own["value"]["is_own"] is True
        written = json.dumps(page.messages)
        assert theirs["session_id"] not in written
        assert other.me["player"] not in written
