"""The server out of an installation of its own, which is changed under it: what it signs, stops and refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rgs.core.statements import parse_line
from rgs.integrity.isolation import HOPELESS
from tests.support.process.installed import QUIET, Installation, checkout, installed, replace
from tests.support.process.served import rgs_here
from tests.support.service.harness import read_statement

pytestmark = pytest.mark.slow

WAIT_S = 60


class Running:
    """`rgs serve` out of an installation."""

    def __init__(self, here: Installation, home: Path) -> None:
        self.home = home
        self.process = subprocess.Popen(
            here.command("serve", "--home", str(home), "--listen", "127.0.0.1:0"),
            cwd=here.venv, env={**QUIET, "PYTHONPATH": "/nowhere", "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"listening address=(\S+)", line)
        assert found is not None, line
        self.address = found[1]

    def logged(self, event: str, count: int) -> dict[str, Any]:
        """The line of that number with this event, once it is there."""
        last = time.monotonic() + WAIT_S
        while True:
            written = (self.home / "log" / "rgs.log").read_text().splitlines(keepends=True)
            lines = [json.loads(line) for line in written if line.endswith("\n")]
            found: list[dict[str, Any]] = [line for line in lines if line["event"] == event]
            if len(found) >= count:
                return found[count - 1]
            assert time.monotonic() < last, (event, lines)
            time.sleep(0.05)

    def call(self, method: str, party: str, **fields: object) -> tuple[Any, str]:
        """The answer, or why there is none."""
        done = rgs_here(
            "call", method, json.dumps(fields), "--home", str(self.home), "--server", self.address, "--as", party
        )
        return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=WAIT_S)
        return self.process.returncode


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    assert rgs_here("init", "--home", str(folder)).returncode == 0
    with (folder / "rgs.toml").open("a") as file:
        file.write("rules_check_s = 1\n")
    return folder


@pytest.fixture
def running(tmp_path: Path, home: Path) -> Iterator[tuple[Installation, Running]]:
    here = installed(tmp_path)
    server = Running(here, home)
    try:
        yield here, server
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_whose_files_are_changed_under_it(running: tuple[Installation, Running], tmp_path: Path) -> None:
    here, server = running
    command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().split(b"\0")
    assert command[1:6] == [b"-I", b"-S", b"-B", b"-X", b"pycache_prefix=/dev/null/none"]
    fields = {"game": "uth-solo", "player": "anna", "currency": "EUR", "operator_reference": "r"}
    session = server.call("SessionService/OpenSession", "operator", **fields)[0]["session"]
    named = {"session_id": session["session_id"]}
    server.call("SessionService/BuyParticipation", "operator", **named, purchase_no=1, amount_minor=5000)
    start = {**named, "round_no": 1, "bets": [{"bet": "ante", "amount_minor": 100}]}

    names = ("rng/drbg.py", "rgs/core/hands.py", "rgs/core/games/rulesets/uth-solo.toml")
    for count, name in enumerate(names, 1):
        path = here.site / name
        honest = path.read_bytes()
        path.write_bytes(honest[:-2] + bytes([honest[-2] ^ 1]) + honest[-1:])
        closed = server.logged("guard_closed", count)
        assert (closed["guard"], closed["code"]) == ("rules", "SOFTWARE_CHANGED"), name
        if count == 1:
            assert server.logged("software_changed", 1)["what"] == "changed rng/drbg.py"
            _, refusal = server.call("PlayService/StartRound", "operator", **start)
            assert "GUARD_CLOSED" in refusal
        path.write_bytes(honest)
        server.call("AdminService/ClearGuard", "admin", name="rules", reason="RESTORED")  # on demand, before it is due

    # Everything else once a day, or on demand.
    library = here.site / "typer" / "main.py"
    honest = library.read_bytes()
    replace(library, honest + b"\n")
    server.call("AdminService/ClearGuard", "admin", name="rules", reason="CHECKED")
    assert server.logged("surroundings_changed", 1)["what"] == "changed typer/main.py"
    guards = {guard["name"]: guard for guard in server.call("AdminService/ListGuards", "admin")[0]["guards"]}
    assert (guards["rules"]["closed"], guards["rules"]["code"]) == (True, "SURROUNDINGS_CHANGED")
    library.write_bytes(honest)
    server.call("AdminService/ClearGuard", "admin", name="rules", reason="RESTORED")
    round_, refusal = server.call("PlayService/StartRound", "operator", **start)
    assert round_ is not None, refusal
    events = server.call("AdminService/ListEvents", "auditor", code="GUARD_CLOSED")[0]["events"]
    assert len(events) == len(names)
    assert server.stop() == 0

    # What it runs on was signed at its start.
    out = tmp_path / "statements.jsonl"
    done = rgs_here("export", "--home", str(server.home), "--out", str(out))
    assert done.returncode == 0, done.stderr
    bodies = [read_statement(parse_line(line).envelope) for line in out.read_bytes().splitlines()]
    signed = [body["name"] for body in bodies if body["kind"] == "artifact"]
    assert signed[:2] == ["manifest", "surroundings"]


def test_a_home_may_say_which_software_it_has_to_be(tmp_path: Path, home: Path) -> None:
    here = checkout(tmp_path)
    made = here.run([here.python, "-B", "-m", "certification", "manifest", "--json"], cwd=here.root)
    assert made.returncode == 0, made.stderr
    (home / "certified.json").write_text(made.stdout)
    server = Running(here, home)
    assert server.stop() == 0
    command = here.command("serve", "--home", str(home), "--listen", "127.0.0.1:0")
    path = here.root / "rng" / "drbg.py"
    replace(path, path.read_bytes() + b"\n")
    (here.root / "rgs" / "late.py").write_bytes(b"")
    done = here.run(command)
    assert done.returncode == HOPELESS
    assert "certified.json, 2 differences: changed rng/drbg.py; unlisted rgs/late.py" in done.stderr
    document = json.loads(made.stdout)
    del document["files"]
    (home / "certified.json").write_text(json.dumps(document))
    done = here.run(command)
    assert (done.returncode, done.stderr) == (HOPELESS, f"rgs: {home / 'certified.json'} is no manifest\n")
