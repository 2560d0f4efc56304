"""`rgs support` and `rgs admin` against a real server: what staff finds, what it is told, and two admins who void."""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from rgs.devkit.client import Client, ClientIdentity
from rgs.node.config import load_config
from rgs.v1 import common_pb2, play_pb2, session_pb2
from rgs.v1.audit_pb2 import GetStatementRequest
from tests.support.process.served import PARTY, Served, rgs, rgs_here, serving
from tests.unit.test_imports_counted import RUN, verify_counted

EVENT = re.compile(r"  statement ([0-9a-f]{64})\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("support")) as one:
        home = ("--issue", "--home", str(one.home))
        for added in (
            ("admin", "--party", "second-admin"),
            ("operator", "--party", "other-operator", "--jurisdiction", "demo"),
            ("support", "--party", "desk", "--operator", PARTY),
            ("support", "--party", "other-desk", "--operator", "other-operator"),
        ):
            done = rgs_here("party", "add", "--role", *added, *home)
            assert done.returncode == 0, done.stderr
        time.sleep(4)  # the server reads its allow-list once a second
        yield one


@pytest.fixture(scope="module")
def played(served: Served) -> dict[str, str]:
    """A session with an ended round and one in play, whose cards the player knows."""
    with Client(served.address, ClientIdentity.of_party(load_config(served.home), PARTY)) as client:
        opened = client.call(
            client.sessions.OpenSession,
            session_pb2.OpenSessionRequest(
                request_id=client.request_id(), player="berta", game="uth-solo", currency="EUR",
                operator_reference="ref-berta",
            ),
        ).session  # fmt: skip
        bought = session_pb2.BuyParticipationRequest(
            request_id=client.request_id(), session_id=opened.session_id, purchase_no=1, amount_minor=10_000
        )
        client.call(client.sessions.BuyParticipation, bought)
        rounds = []
        for number in (1, 2):
            start = client.requests.start(client.call(
                client.sessions.GetSession, session_pb2.GetSessionRequest(session_id=opened.session_id)
            ).session, {"ante": 100})  # fmt: skip
            round_ = client.call(client.play.StartRound, start).round
            if number == 1:
                act = play_pb2.ActRequest(
                    request_id=client.request_id(), session_id=opened.session_id, round_id=round_.round_id,
                    round_version=round_.round_version, action=common_pb2.ACTION_PLAY_4X,
                )  # fmt: skip
                round_ = client.call(client.play.Act, act).round
            rounds.append(round_)
    return {
        "session": opened.session_id,
        "ended": rounds[0].round_id,
        "open": rounds[1].round_id,
        "cards": " ".join(rounds[1].hole_cards),
    }


def support(served: Served, *arguments: str, party: str = "desk") -> CompletedProcess[str]:
    done = rgs_here("support", *arguments, "--home", str(served.home), "--server", served.address, "--party", party)
    assert "Traceback" not in done.stderr
    return done


def admin(served: Served, *arguments: str, party: str = "demo-admin") -> CompletedProcess[str]:
    done = rgs_here("admin", *arguments, "--home", str(served.home), "--server", served.address, "--party", party)
    assert "Traceback" not in done.stderr
    return done


def test_every_name_leads_there(served: Served, played: dict[str, str]) -> None:
    for text, kind in (("berta", "player"), ("ref-berta", "operator_reference"), (played["ended"], "round_id")):
        done = support(served, "find", text)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{kind}: operator {PARTY}, player berta"), done.stdout
        none = support(served, "find", text, party="other-desk")
        assert (none.returncode, none.stdout) == (1, "")
        assert "nothing has exactly this name" in none.stderr
    shell = rgs("support", "find", "berta", "--home", str(served.home), "--server", served.address)
    assert (shell.returncode, shell.stdout.count("\n")) == (0, 1)
    shown = support(served, "player", "berta").stdout
    assert f"session {played['session']} open" in shown
    refused = support(served, "player", "berta", "--operator", PARTY, party="other-desk")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "[INVALID_FIELD field=operator" in refused.stderr


def test_a_session_and_a_round_in_words(served: Served, played: dict[str, str]) -> None:
    session = support(served, "session", played["session"]).stdout
    assert "  bought 100.00 EUR, staked 8.00 EUR" in session
    assert " purchase 100.00 EUR, transaction 01" in session
    assert [line.split()[1] for line in session.splitlines() if line.startswith("  round ")] == [
        played["open"], played["ended"],
    ]  # fmt: skip
    ended = support(served, "round", played["ended"]).stdout
    assert "  The player chose play 4x for 4.00 EUR, before the flop, at " in ended
    assert "  In all 6.00 EUR were staked and " in ended
    in_play = support(served, "round", played["open"]).stdout
    assert "  The round is in play. Its cards are not shown here before its final reveals them.\n" in in_play
    assert not set(played["cards"].split()) & set(re.findall(r"\b[2-9TJQKA][shdc]\b", in_play))
    assert support(served, "round", played["ended"], party="other-desk").returncode == 1
    assert played["ended"] in support(served, "rounds", "berta").stdout


@pytest.mark.usefixtures("played")
def test_what_a_lookup_costs(served: Served) -> None:
    """Gated by the modules that it imports, which are nearly all that it costs. The CPU is printed: `pytest -s`."""
    call = ["support", "find", "berta", "--home", str(served.home), "--server", served.address, "--party", "desk"]
    verify_counted("rgs support find", RUN.format(call))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert rgs(*call).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(f"\nrgs support find: {cpu_s:.2f} s of CPU, the interpreter's start in it\n")


def test_two_admins_void_a_round_after_dry_runs(served: Served, played: dict[str, str]) -> None:
    round_id = played["open"]
    early = admin(served, "propose-void", round_id, "--reason", "DISPLAY_FAULT", "--dry-run")
    assert (early.returncode, early.stdout) == (1, f"round {round_id} refused: ROUND_NOT_PAUSED\n")
    assert f"round {round_id} is paused\n" in admin(served, "pause", round_id, "--malfunction", "DISPLAY_FAULT").stdout
    propose = ("propose-void", round_id, "--reason", "DISPLAY_FAULT")
    would = f"round {round_id} would be proposed (DISPLAY_FAULT), 2.00 EUR of stakes would come back\n"
    for _ in range(2):
        dry = admin(served, *propose, "--dry-run")
        assert (dry.returncode, dry.stdout, dry.stderr) == (0, would, "dry run: nothing was changed\n")
    assert f"round {round_id} proposed\n" in admin(served, *propose).stdout
    assert admin(served, "approve-void", round_id).stdout == f"round {round_id} refused: SECOND_ADMIN_NEEDED\n"
    dry = admin(served, "approve-void", round_id, "--dry-run", party="second-admin")
    assert dry.stdout == f"round {round_id} would be void (DISPLAY_FAULT), 2.00 EUR of stakes would come back\n"
    done = admin(served, "approve-void", round_id, party="second-admin")
    assert done.stdout.startswith(f"round {round_id} void\n")
    (final,) = EVENT.findall(done.stdout)
    with Client(served.address, ClientIdentity.of_party(load_config(served.home), "demo-auditor")) as client:
        client.call(client.audit.GetStatement, GetStatementRequest(hash=bytes.fromhex(final)))
    assert "Every stake came back." in support(served, "round", round_id).stdout


def test_switches_and_guards(served: Served) -> None:
    switch = ("switch", "player", "off", "--operator", PARTY, "--player", "carla", "--reason", "ASKED_FOR")
    dry = admin(served, *switch, "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, f"player {PARTY} carla was on, would be off\n")
    assert admin(served, "switches").stdout == ""
    assert admin(served, *switch).stdout.startswith(f"player {PARTY} carla was on, is off\n")
    assert f"player {PARTY} carla off since " in admin(served, "switches").stdout
    assert "rng open\n" in admin(served, "guards").stdout
    wrong = admin(served, "switch", "play", "half", "--reason", "ASKED_FOR")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "is on or off" in wrong.stderr
    assert "[NOT_FOUND" in admin(served, "clear-guard", "nothing", "--reason", "CHECKED").stderr
    denied = admin(served, "guards", party="desk")
    assert denied.returncode == 1
    assert "ROLE_NOT_ALLOWED" in denied.stderr
