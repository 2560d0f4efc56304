"""The web server: headers, cookies, origins, sizes, rates, what a page and the back office may show."""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

from yarl import URL

from examples.operator import start
from tests.web.page_client import PASSWORD, Player, RefusedError, new_id
from tests.web.whole import Whole

HOSTILE = "<b onclick=alert(1)>&'\""


@pytest.fixture
async def player(whole: Whole) -> AsyncIterator[Player]:
    async with Player(whole.origin) as found:
        await found.sign_up()
        assert await found.deposit() == 303
        yield found


async def status_of(player: Player, method: str, path: str, **options: Any) -> tuple[int, str]:
    async with player.http.request(method, player.origin + path, allow_redirects=False, **options) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("path", ["/", "/play", "/api/me", "/cashier", "/responsible-play", "/office/sign-in", "/no"])
async def test_every_answer_has_the_strict_headers(player: Player, path: str) -> None:
    async with player.http.get(player.origin + path) as response:
        policy = response.headers["Content-Security-Policy"]
        for part in (
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "base-uri 'none'",
        ):
            assert part in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(whole: Whole) -> None:
    async with Player(whole.origin) as found:
        name = f"n-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "password": PASSWORD, "nickname": name, "language": "de"}
        async with found.http.post(whole.origin + "/api/sign-up", json=body) as response:
            written = response.headers["Set-Cookie"]
            text = await response.text()
        assert "HttpOnly" in written
        assert "SameSite=Strict" in written
        token = written.partition("=")[2].partition(";")[0]
        assert len(token) >= 40
        assert token not in text  # no secret in the page
        files = b"".join(path.read_bytes() for path in (whole.folder / "platform").iterdir())
        assert token.encode() not in files  # and none in the files
        assert PASSWORD.encode() not in files
        assert b"$argon2id$" in files
        launch = await found.launch("uth-solo")
        async with found.page() as page:
            await page.ask("redeem", launch=launch)
        logs = b"".join(path.read_bytes() for path in whole.folder.rglob("*.log"))
        assert b"platform on" in logs
        for secret in (token, launch, PASSWORD):  # none of them is in a log, the game server's included
            assert secret.encode() not in logs


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/sign-in"),
        ("POST", "/api/limits"),
        ("PUT", "/api/settings"),
        ("POST", "/api/exclusion"),
        ("POST", "/api/launches"),
        ("POST", "/cashier"),
        ("POST", "/office/mute"),
    ],
)
async def test_another_origin_changes_nothing(player: Player, method: str, path: str, origin: str) -> None:
    status, text = await status_of(player, method, path, json={}, headers={"Origin": origin})
    assert (status, "WRONG_ORIGIN" in text) == (403, True)


async def test_another_host_is_refused(player: Player) -> None:
    status, text = await status_of(player, "GET", "/api/me", headers={"Host": "evil.example"})
    assert (status, "WRONG_HOST" in text) == (421, True)


async def test_bodies_are_small_and_json(player: Player) -> None:
    status, _ = await status_of(player, "PUT", "/api/settings", json={"settings": {"x": "y" * 20_000}})
    assert status == 413
    status, text = await status_of(player, "PUT", "/api/settings", data="settings=1")
    assert (status, "NOT_JSON" in text) == (415, True)
    status, text = await status_of(player, "POST", "/api/limits", json={"loss": 1})
    assert (status, "loss" in text) == (400, True)


async def test_nobody_is_let_in_without_a_cookie(whole: Whole) -> None:
    async with Player(whole.origin) as nobody:
        for path in (
            "/api/me",
            "/api/limits",
            "/api/catalog",
            "/api/rounds",
            "/api/keys",
            "/api/rounds/x?session_id=y",
        ):
            assert (await status_of(nobody, "GET", path))[0] == 401, path


async def test_wrong_passwords_say_nothing_and_are_limited(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Whole(tmp_path_factory.mktemp("rates"), "--rate-factor", "1") as strict:
        async with Player(strict.origin) as found:
            await found.sign_up()
            errors = []
            for number in range(14):
                name = found.me["name"] if number % 2 else f"nobody-{number}"
                with pytest.raises(RefusedError) as caught:
                    await found.call("POST", "/api/sign-in", {"name": name, "password": "wrong wrong wrong"})
                errors.append(caught.value)
            assert [one.reason for one in errors[:10]] == ["WRONG_PASSWORD"] * 10
            assert errors[-1].reason == "RATE_LIMIT"
            assert int(errors[-1].body["metadata"]["retry_after_ms"]) > 0
            # A page that floods its socket is told to wait, and goes on after that.
            async with found.page() as page:
                ids = [await page.send("ping") for _ in range(200)]
                await page.find(lambda one: one.get("re") == ids[-1])
                assert "RATE_LIMIT" in {one.get("reason") for one in page.messages}
                assert "pong" in {one["type"] for one in page.messages}


async def test_names_and_nicknames_are_of_one_player(whole: Whole, player: Player) -> None:
    async with Player(whole.origin) as other:
        for field in ("name", "nickname"):
            body = {"name": "a new name", "nickname": "new nick", "password": PASSWORD, "language": "en"}
            body[field] = player.me[field].upper()
            with pytest.raises(RefusedError) as caught:
                await other.call("POST", "/api/sign-up", body)
            assert (caught.value.reason, caught.value.body["metadata"]["field"]) == ("NAME_TAKEN", field)


# --- the page and the cashier ----------------------------------------------------------------------------------------


async def test_without_a_built_page_one_line_says_what_to_do(whole: Whole, player: Player) -> None:
    status, text = await status_of(player, "GET", "/")
    if (start.HERE / "page/dist/index.html").is_file():
        assert status == 200
    else:
        assert (status, text.count("\n"), "make web" in text) == (503, 1, True)


async def test_no_path_leads_out_of_the_pages_folder(player: Player) -> None:
    for path in ("/../README.md", "/%2e%2e/README.md", "/assets/../../requirements.txt", "//etc/passwd"):
        async with player.http.get(URL(player.origin + path, encoded=True)) as response:
            assert response.status in (400, 404, 503)


async def test_a_deposit_counts_once_and_keeps_its_limit(player: Player) -> None:
    request_id = new_id()
    for _ in range(3):
        assert await player.deposit("10.50", request_id) == 303
    assert await player.balance() == 50_000 + 1_050
    await player.call("POST", "/api/limits", {"deposit_minor": 60_000})
    assert await player.deposit("89.51") == 409  # 510.50 were paid in today
    assert await player.deposit("89.50") == 303
    assert await player.balance() == 60_000
    for wrong in ("-1", "1.234", "abc", "0", "99999999"):
        assert await player.deposit(wrong) == 400
    assert await player.balance() == 60_000


# --- the back office -------------------------------------------------------------------------------------------------


class Office:
    """A member of staff, without a script."""

    def __init__(self, whole: Whole) -> None:
        self.http = Player(whole.origin)
        self.password = (whole.folder / "staff-password").read_text().strip()

    async def sign_in(self, password: str = "") -> int:
        form = {"name": "staff", "password": password or self.password}
        return (await status_of(self.http, "POST", "/office/sign-in", data=form))[0]

    async def read(self, path: str) -> str:
        status, text = await status_of(self.http, "GET", path)
        assert status == 200, text
        return text

    async def order(self, path: str, form_token: str, **form: str) -> int:
        return (await status_of(self.http, "POST", path, data={"form_token": form_token, **form}))[0]


@pytest.fixture
async def office(whole: Whole) -> AsyncIterator[Office]:
    found = Office(whole)
    async with found.http:
        yield found


def form_token(text: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', text)
    assert found
    return unescape(found[1])


async def test_the_office_is_for_staff_only(whole: Whole, office: Office, player: Player) -> None:
    for path in ("", "players/x", "credits", "breaks", "chat", "actions", "rounds/x", "sessions/x", "receipts/x"):
        for http in (office.http, player):
            assert (await status_of(http, "GET", f"/office/{path}"))[0] == 303
    assert await office.sign_in("wrong wrong wrong") == 403
    assert await office.sign_in() == 303
    text = await office.read("/office/")
    assert await office.order("/office/mute", "wrong", player=player.me["player"], days="1") == 403
    assert await office.order("/office/sign-out", form_token(text)) == 303
    assert (await status_of(office.http, "GET", "/office/"))[0] == 303


async def test_staff_finds_a_round_by_code_player_and_id_and_sees_its_proof(office: Office, player: Player) -> None:
    async with player.page() as page:
        session = await page.seat("uth-solo")
        ended = (await page.play(session))["round"]
    assert await office.sign_in() == 303
    path = f"/office/rounds/{ended['round_id']}?session_id={session['session_id']}"
    for wanted in (ended["game_code"], ended["game_code"].lstrip("#"), ended["round_id"]):
        text = await office.read(f"/office/?q={wanted.replace('#', '%23')}")
        assert path.replace("&", "&amp;") in text
    for wanted in (player.me["name"], player.me["nickname"], player.me["player"]):
        assert f"/office/players/{player.me['player']}" in await office.read(f"/office/?q={wanted}")
    assert path in await office.read(f"/office/players/{player.me['player']}")
    text = await office.read(path)
    assert ended["game_code"] in text
    assert "round_final" in unescape(text) or '"deck"' in unescape(text)
    assert session["regulator_session_id"] in text
    assert session["regulator_session_id"] in await office.read(f"/office/sessions/{session['session_id']}")
    receipt = await office.read(path.replace("rounds", "receipts"))
    assert ended["round_id"] in receipt
    assert "No reconciliation" in await office.read("/office/breaks")
    assert "None." in await office.read("/office/credits")


async def test_what_players_write_is_escaped_in_the_office(whole: Whole, office: Office) -> None:
    async with Player(whole.origin) as hostile:
        name = f"{HOSTILE}{uuid.uuid4().hex[:6]}"
        nickname = f"<i>{uuid.uuid4().hex[:8]}"
        hostile.me = await hostile.call(
            "POST", "/api/sign-up", {"name": name, "password": PASSWORD, "nickname": nickname, "language": "en"}
        )
        assert await hostile.deposit() == 303
        async with hostile.page() as page:
            session = await page.seat("uth-online", "uth-online")
            await page.ask("join", session_id=session["session_id"])
            line = await page.ask("say", session_id=session["session_id"], text=f"</td><script>{HOSTILE}</script>")
            await page.ask("watch", table="uth-online", session_id=session["session_id"])
            assert await office.sign_in() == 303
            chat = await office.read("/office/chat?table=uth-online")
            found = await office.read(f"/office/players/{hostile.me['player']}")
            listed = await office.read(f"/office/?q={nickname.replace('<', '%3C')}")
            for text in (chat, found, listed):
                assert "<script" not in text
                assert "<b onclick" not in text
                assert "<i>" not in text
            assert "&lt;script&gt;" in chat
            assert "&lt;i&gt;" in chat
            # The office hides the line and mutes the player.
            token = form_token(chat)
            assert await office.order("/office/hide", token, message_id=line["message_id"], table="uth-online") == 303
            assert (await page.find(lambda one: one["type"] == "line_hidden"))["message_id"] == line["message_id"]
            lines = (await page.ask("messages", table="uth-online"))["lines"]
            assert line["message_id"] not in {one["message_id"] for one in lines}
            assert await office.order("/office/mute", token, player=hostile.me["player"], days="1") == 303
            with pytest.raises(RefusedError) as caught:
                await page.ask("say", session_id=session["session_id"], text="again")
            assert caught.value.reason == "CHAT_MUTED"
            actions = await office.read("/office/actions")
            assert f"player={hostile.me['player']} days=1" in actions


def test_a_missing_option_is_named() -> None:
    command = [*start.PLATFORM, "--home", "unused"]
    found = subprocess.run(
        command, capture_output=True, text=True, env=start.environment(), cwd=start.ROOT, check=False
    )
    assert (found.returncode, "--ca must name a file" in found.stderr) == (2, True)
