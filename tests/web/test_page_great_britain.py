"""The page under the rules of Great Britain as the server has them (`gb-ukgc`), with certificates of its own CA.

The operator, its tables and its players are of that jurisdiction, so what the page has comes from the shipped data.
It allows no test regulator: the simulator stands in for a real one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from examples.operator import start
from rgs.core.jurisdictions import load_jurisdiction
from rgs.node.clock import SystemClock
from rgs.node.pki import Issued, issue_client, issue_peer_certificate, issue_server
from rgs.service.callers import Role
from tests.integration.test_money_outside import real_authority
from tests.support.api.harness import entropy
from tests.web.page_browser import Visitor, until, visit
from tests.web.test_page_play import SLOW_TURNS, TURNING

LAW: Final = load_jurisdiction("gb-ukgc")
OPERATOR: Final = "british-operator"
TABLES: Final = ("london", "leeds")

pytestmark = pytest.mark.timeout(600)


def rgs(*arguments: str) -> None:
    done = subprocess.run(
        [*start.SERVER, *arguments], cwd=start.ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr


def write(stem: Path, issued: Issued) -> None:
    """Certificate and key beside each other."""
    stem.with_suffix(".pem").write_bytes(issued.certificate_pem)
    stem.with_suffix(".key").touch(0o600)
    stem.with_suffix(".key").write_bytes(issued.key_pem)


def set_up(home: Path) -> None:
    """A server's home whose certificates are of a CA that nothing marks as one for development, with an operator in
    Great Britain.
    """
    rgs("init", "--home", str(home))
    tls, authority, read, time_ms = home / "tls", real_authority(), entropy().read, SystemClock().now_ms()
    (tls / "ca.key").unlink()
    (tls / "ca.pem").write_bytes(authority.certificate_pem)
    write(tls / "server", issue_server(authority, ["localhost", "127.0.0.1"], read, time_ms))
    write(tls / "peers", issue_peer_certificate(authority, "node1", read, time_ms))
    for role, party, law in ((Role.ADMIN, "demo-admin", ()), (Role.OPERATOR, OPERATOR, ("--jurisdiction", LAW.id))):
        write(tls / "clients" / party, issue_client(authority, role, party, read, time_ms))
        certificate = str(tls / "clients" / f"{party}.pem")
        named = ("--role", role.value, "--party", party)
        rgs("party", "add", "--home", str(home), *named, *law, "--cert", certificate)


def british(name: str, beside: str = "false") -> str:
    """The shipped table, in Great Britain; `beside`: whether its players may sit at others, too."""
    config = (start.TABLES / "uth-online.toml").read_text("utf-8")
    for key, value in (
        ("id", f'"{name}"'),
        ("jurisdiction", f'"{LAW.id}"'),
        ("currency", '"GBP"'),
        ("early_close", "false"),
        ("tables_beside", beside),
        ("operators", f'["{OPERATOR}"]'),
    ):
        config, found = re.subn(rf"^{key} = .*?(?=$| #)", f"{key} = {value}", config, flags=re.MULTILINE)
        assert found == 1, key
    return config


@pytest.fixture(scope="module")
def great_britain(page_needs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    folder = tmp_path_factory.mktemp("britain")
    set_up(folder / "rgs")
    (folder / "rgs/tables-are-set-up").touch()  # the shipped ones are of another jurisdiction
    address = start.free_address()
    command = [*start.SERVER, "simulate", "regulator", "--as-real", "--home", str(folder / "rgs"), "--listen", address]
    regulator = start.Part("the regulator", command, folder / "regulator.log")
    with contextlib.ExitStack() as running, pytest.MonkeyPatch.context() as patched:
        running.callback(regulator.stop)
        start.await_port(regulator, address)
        patched.setattr(start, "PEERS", f'{start.PEERS}\n[regulator]\ntarget = "{address}"\n')
        patched.setattr(start, "OPERATOR", OPERATOR)
        patched.setattr(start, "CURRENCIES", ("GBP",))
        http, tls = start.free_address(), folder / "rgs/tls"
        origin = f"https://localhost:{http.rpartition(':')[2]}"
        certificate = ("--http-certificate", str(tls / "server.pem"), "--http-key", str(tls / "server.key"))
        with Whole(folder, "--origin", origin, *certificate, start_options=("--http", http)) as whole:
            whole.origin = origin  # the law refuses a page without TLS, on this machine, too
            for name in TABLES:
                start.set_up_table(whole.server_home, whole.server_address, british(name))
            yield whole


@pytest.fixture
def visitor(browser: Any, great_britain: Any) -> Any:
    found = visit(browser, great_britain.origin, locale="de-DE", ignore_https_errors=True).sign_up()
    yield found
    assert found.faults == []
    found.page.context.close()


def test_the_page_gets_the_shipped_rules(visitor: Visitor) -> None:
    given = visitor.api("/api/catalog")["jurisdiction"]
    assert given["jurisdiction"]["id"] == LAW.id
    assert int(given["min_round_interval_ms"]) == LAW.min_round_interval_ms == 5000
    assert given["tables_max"] == LAW.tables_max == 1
    for name in ("demo_allowed", "repeat_allowed", "skip_animations_allowed", "free_bets_allowed"):
        assert not given.get(name, False)
        assert getattr(LAW, name) is False
    assert visitor.page.evaluate("document.documentElement.lang") == "en", "a German browser gets the language allowed"
    visitor.page.click("[data-does=settings]")
    assert visitor.page.locator("rgs-settings [name=language] option").count() == 1


def test_no_play_money_and_one_table(great_britain: Any, visitor: Visitor) -> None:
    page = visitor.page
    assert page.locator("[data-does=demo]").count() == 0
    assert page.locator("[data-table]").count() == len(TABLES)
    visitor.sit(TABLES[0])
    page.click("[data-does=lobby]")
    other = page.locator(f"rgs-dialog [data-table={TABLES[1]}]")
    other.wait_for()
    assert other.locator("[data-does=beside]").count() == 0, "one table at once"
    assert page.evaluate("document.querySelector('rgs-page').store.sessions.tablesMax") == 1
    with pytest.raises(start.StartError, match="gb-ukgc allows a player one table at once"):
        start.set_up_table(great_britain.server_home, great_britain.server_address, british("york", beside="true"))


def test_the_time_to_a_result_is_not_shortened(visitor: Visitor) -> None:
    page = visitor.play("uth-solo").page
    page.evaluate(SLOW_TURNS)
    visitor.bet("ante", 100)
    visitor.deal()
    turning = page.evaluate(TURNING)
    assert turning >= 2, "the two cards of the player are turning"
    page.locator("rgs-solo .cloth").click(position={"x": 3, "y": 3})
    assert page.evaluate(TURNING) == turning


def test_each_round_is_a_deliberate_act_five_seconds_after_the_last(visitor: Visitor) -> None:
    page = visitor.play("uth-solo").page
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    assert page.locator("[data-does=repeat]").count() == 0
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    page.wait_for_timeout(300)
    assert page.locator("[data-result]").count() == 1, "one key places and starts nothing"
    visitor.bet("ante", 100)
    # The page offers no deal that the server would refuse: what is clicked as soon as it is there starts a round.
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    until(page, "async () => (await (await fetch('/api/rounds')).json()).rounds.length === 2")
    rounds = visitor.api("/api/rounds")["rounds"]
    first, second = sorted(dt.datetime.fromisoformat(one["start_time"]) for one in rounds)
    assert (second - first).total_seconds() >= LAW.min_round_interval_ms / 1000
    page.wait_for_timeout(LAW.min_round_interval_ms)
    assert len(visitor.api("/api/rounds")["rounds"]) == 2, "no round starts by itself"
