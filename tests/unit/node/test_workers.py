"""The supervisor over workers that are small scripts: begun again, replaced one by one, drained, given up."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, UnavailableError
from rgs.integrity.isolation import HOPELESS, isolated_command
from rgs.node import workers
from rgs.node.workers import ServingAlreadyError, Supervisor, WorkerPlan, port_kept, serving_alone, worker_command
from tests.support.waiting import until

WORKER = """
import os, select, signal, sys, time
folder, number = sys.argv[1:]
told, tell = os.pipe()
os.set_blocking(tell, False)
signal.set_wakeup_fd(tell)  # a signal that comes just before the wait ends it, too
note = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def say(text):  # unbuffered: the signal may come amid a line
    os.write(note, f"{text} {os.getpid()} {time.monotonic_ns()}\\n".encode())
def drain(*_):
    say("drained")
    sys.exit(0)
signal.signal(signal.SIGTERM, drain)
if os.path.exists(f"{folder}/broken"):
    say("broken")
    sys.exit(4)
if os.path.exists(f"{folder}/hopeless"):
    say("hopeless")
    sys.exit(int(open(f"{folder}/hopeless").read()))
say("serving")
sys.stdout.write("serving\\n")
sys.stdout.flush()
while 0 not in select.select([0, told], [], [], 0.01)[0]:
    if os.path.exists(f"{folder}/ends"):
        status = int(open(f"{folder}/ends").read())
        os.unlink(f"{folder}/ends")
        sys.exit(status)
say("left")
"""


class Crew:
    """A supervisor under way, and what its workers have noted."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.folder = folder
        self.supervisor = Supervisor(WorkerPlan(count, self._command, drain_s=1))

    def _command(self, number: int) -> list[str]:
        return [sys.executable, "-S", "-c", WORKER, str(self.folder), str(number)]

    def noted(self, number: int) -> list[tuple[str, int, int]]:
        """What, by which process, when."""
        path = self.folder / str(number)
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(word, int(pid), int(time_ns)) for word, pid, time_ns in lines]

    def words(self, number: int) -> list[str]:
        return [word for word, _, _ in self.noted(number)]


@asynccontextmanager
async def crew(folder: Path, count: int = 2) -> AsyncIterator[Crew]:
    """All of them serve."""
    made = Crew(folder, count)
    running = asyncio.create_task(made.supervisor.run())
    await until(lambda: all("serving" in made.words(number) for number in range(count)))
    yield made
    made.supervisor.stop()
    assert await running == 0
    assert all(made.words(number)[-1] == "drained" for number in range(count))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PAUSE_S", 0.01)


async def test_a_worker_that_dies_is_begun_again(tmp_path: Path) -> None:
    async with crew(tmp_path) as made:
        os.kill(made.noted(0)[0][1], signal.SIGKILL)
        await until(lambda: made.words(0) == ["serving", "serving"])
        assert made.words(1) == ["serving"]
        assert made.noted(0)[1][1] != made.noted(0)[0][1]


async def test_a_rolling_restart_replaces_one_after_the_other(tmp_path: Path) -> None:
    async with crew(tmp_path, 3) as made:
        first = {number: made.noted(number)[0][1] for number in range(3)}
        made.supervisor.roll()
        await until(lambda: all(made.words(number).count("serving") == 2 for number in range(3)))
        for number in range(3):
            assert made.words(number)[:3] == ["serving", "drained", "serving"]
            assert made.noted(number)[1][1] == first[number]
        for number in (1, 2):
            assert made.noted(number - 1)[2][2] < made.noted(number)[1][2], (
                "the one before serves, then this one drains"
            )


async def test_a_restart_is_not_taken_in_by_a_worker_that_came_to_serve_before_it(tmp_path: Path) -> None:
    made = Crew(tmp_path)
    running = asyncio.create_task(made.supervisor.run())
    await until(lambda: all(slot._worker is not None for slot in made.supervisor.slots))
    while not all("serving" in made.words(number) for number in range(2)):
        time.sleep(0.005)  # noqa: ASYNC251 - the supervisor has not read yet that they serve
    made.supervisor.roll()
    await until(lambda: all(made.words(number).count("serving") == 2 for number in range(2)))
    assert made.noted(0)[2][2] < made.noted(1)[1][2], "the first serves again, then the second drains"
    made.supervisor.stop()
    assert await running == 0


async def test_a_worker_that_fails_before_any_has_served_ends_the_supervisor(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    made = Crew(tmp_path, 1)
    assert await made.supervisor.run() == 4
    assert made.words(0) == ["broken"] * workers.FIRST_TRIES


async def test_a_worker_that_comes_back_no_more_ends_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "TRIES", 4)
    made = Crew(tmp_path)
    running = asyncio.create_task(made.supervisor.run())
    await until(lambda: all(made.words(number) == ["serving"] for number in range(2)))
    (tmp_path / "broken").touch()
    os.kill(made.noted(0)[0][1], signal.SIGKILL)
    assert await running == 4
    assert made.words(0) == ["serving"] + ["broken"] * 4
    assert made.words(1) == ["serving", "drained"]


@pytest.mark.parametrize("status", [2, HOPELESS])
async def test_a_hopeless_start_is_not_tried_again(tmp_path: Path, status: int) -> None:
    (tmp_path / "hopeless").write_text(str(status))
    made = Crew(tmp_path, 1)
    assert await made.supervisor.run() == status
    assert made.words(0) == ["hopeless"]


async def test_a_start_that_has_become_hopeless_leaves_the_others_serving_until_it_is_mended(tmp_path: Path) -> None:
    async with crew(tmp_path) as made:
        (tmp_path / "hopeless").write_text(str(HOPELESS))
        os.kill(made.noted(0)[0][1], signal.SIGKILL)
        await until(lambda: made.words(0) == ["serving", "hopeless"])
        await asyncio.sleep(0.3)
        assert (made.words(0), made.words(1)) == (["serving", "hopeless"], ["serving"])
        (tmp_path / "hopeless").unlink()
        made.supervisor.roll()
        await until(lambda: made.words(0)[-1] == made.words(1)[-1] == "serving" and "drained" in made.words(1))


async def test_a_rolling_restart_stops_at_the_first_worker_whose_start_is_hopeless(tmp_path: Path) -> None:
    async with crew(tmp_path) as made:
        (tmp_path / "hopeless").write_text("2")
        made.supervisor.roll()
        await until(lambda: made.words(0) == ["serving", "drained", "hopeless"])
        await asyncio.sleep(0.3)
        assert made.words(1) == ["serving"]
        (tmp_path / "hopeless").unlink()
        made.supervisor.roll()
        await until(lambda: made.words(0)[-1] == made.words(1)[-1] == "serving" and "drained" in made.words(1))


async def test_when_nobody_serves_any_more_a_hopeless_start_ends_all(tmp_path: Path) -> None:
    made = Crew(tmp_path)
    running = asyncio.create_task(made.supervisor.run())
    await until(lambda: all(made.words(number) == ["serving"] for number in range(2)))
    (tmp_path / "hopeless").write_text(str(HOPELESS))
    os.kill(made.noted(0)[0][1], signal.SIGKILL)
    await until(lambda: made.words(0) == ["serving", "hopeless"])
    os.kill(made.noted(1)[0][1], signal.SIGKILL)
    assert await running == HOPELESS
    assert made.words(1)[:1] == ["serving"]
    assert set(made.words(1)[1:]) <= {"hopeless"}  # begun again or not: the first may have looked later


async def test_the_status_of_a_worker_that_has_served_says_nothing_of_its_next_start(tmp_path: Path) -> None:
    async with crew(tmp_path, 1) as made:
        (tmp_path / "ends").write_text(str(HOPELESS))
        await until(lambda: made.words(0) == ["serving", "serving"])


async def test_a_worker_that_does_not_drain_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "KILL_AFTER_S", -0.9)
    deaf = "import signal, sys, time; signal.signal(15, lambda *_: None); print('serving', flush=True); time.sleep(60)"
    supervisor = Supervisor(WorkerPlan(1, lambda _: [sys.executable, "-S", "-c", deaf], drain_s=1))
    running = asyncio.create_task(supervisor.run())
    await supervisor.slots[0].serving.wait()
    supervisor.stop()
    await running


def test_workers_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom tests.unit.node.test_workers import Crew\nimport asyncio\n"
        "asyncio.run(Crew(Path(sys.argv[1])).supervisor.run())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) as process:
        made = Crew(tmp_path)
        asyncio.run(until(lambda: all("serving" in made.words(number) for number in range(2))))
        process.kill()
    asyncio.run(until(lambda: all("left" in made.words(number) for number in range(2))))


def test_a_home_is_served_once(tmp_path: Path) -> None:
    with serving_alone(tmp_path), pytest.raises(ServingAlreadyError), serving_alone(tmp_path):
        pass
    with serving_alone(tmp_path) as lock:
        left = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    with left:  # a worker that was left behind holds it, too
        with pytest.raises(ServingAlreadyError), serving_alone(tmp_path):
            pass
        left.communicate(b"\n")
    with serving_alone(tmp_path):
        pass


def test_the_port_is_found_and_kept_from_strangers() -> None:
    with port_kept("127.0.0.1:0") as port:
        assert port
        with pytest.raises(UnavailableError, match="in use"), port_kept(f"127.0.0.1:{port}"):
            pass
        for away, refused in (("192.0.2.1:1", UnavailableError), ("no.such.invalid:1", InvalidFieldError)):
            with pytest.raises(refused, match=f"cannot listen on {away}: "), port_kept(away):
                pass
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                stranger.bind(("127.0.0.1", port))
        with socket.socket() as worker:  # as gRPC does it
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind(("127.0.0.1", port))
            worker.listen()
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass


def test_a_worker_gets_the_options_of_its_supervisor(tmp_path: Path) -> None:
    options = {"listen": "127.0.0.1:0", "logging_level": None, "reflection": False, "drain_s": 3, "workers": 2}
    command = worker_command(tmp_path, options, 4711)(1)
    assert command == isolated_command(
        *("serve", "--home", str(tmp_path), "--listen", "127.0.0.1:0", "--no-reflection"),
        *("--drain-s", "3", "--workers", "2", "--worker", "1", "--worker-port", "4711"),
    )


def test_a_supervisor_has_no_grpc_in_it() -> None:
    """Whoever begins processes holds nothing of gRPC: its threads do not survive a fork."""
    script = "import sys, rgs.cli; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
