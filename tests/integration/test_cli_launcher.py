"""The launcher as people start it: measured first, one line for every refusal, and TLS with what `init` made."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import grpc
import pytest
import typer

import rgs
from rgs.core.errors import FormatError, InvalidFieldError, RgsError, VerificationError
from rgs.integrity.isolation import HOPELESS, SurroundingsError, isolated_command
from rgs.integrity.manifest import Manifest, ManifestError, make_manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.files import FileRefusedError
from rgs.node.home import ensure_home
from rgs.node.parts import part
from rgs.node.workers import ServingAlreadyError
from rgs.service.roles import Role
from rgs.store.changes import InstanceLostError, StoreAwayError, StoreError, StoreRefusedError
from rgs.store.sqlite.store import connect
from rgs.tlog.directory import LogRefusedError
from rng.entropy import EntropySource
from rng.errors import EntropyError, SelfTestError
from tests.support.process.commands import MANIFEST, Cli

ROOT = Path(__file__).resolve().parents[2]
NOW_MS = 1_763_764_200_123


def _rgs(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("RGS_HOME", None)
    command = [sys.executable, "-m", "rgs", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path / "rgs", capfd)


def test_the_software_says_what_it_is() -> None:
    measured = make_manifest()
    done = _rgs("--version")
    assert done.stdout == f"rgs {rgs.__version__}, rng 1.0.0, manifest {measured.sha256}\n"
    assert _rgs("manifest").stdout.encode("ascii") == measured.content + b"\n"


def test_nothing_that_is_hashed_runs_before_the_hashing() -> None:
    """The launcher alone, then the whole command line: every measured module came through the guard."""
    script = """
import json, sys
import rgs.__main__
early = sorted(name for name in sys.modules if name.split(".")[0] in {"rng", "rgs"})
rgs.__main__.main(["party", "--help"])
import rgs.integrity.manifest
rgs.integrity.manifest.verify_loaded()
measured = [name for name in sys.modules if name.split(".")[0] == "rng" or name.startswith("rgs.core")]
print(json.dumps([early, len(measured)]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    early, measured = json.loads(done.stdout.splitlines()[-1])
    assert early == [
        *("rgs", "rgs.__main__", "rgs.integrity", "rgs.integrity.isolation", "rgs.integrity.launcher"),
    ]
    assert measured > 20


def test_help_names_every_command() -> None:
    done = _rgs("--help")
    assert done.returncode == 0
    for command in ("init", "party", "keys", "serve", "demo", "play", "export", "manifest"):
        assert f" {command} " in done.stdout
    without = _rgs()
    assert (without.returncode, without.stdout) == (2, done.stdout)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["serfe"], 2, "serfe"),
        (["party"], 2, "Missing command (see `rgs party --help`)"),
        (["party", "add", "--role", "boss", "--party", "x"], 2, "'boss' is not one of 'operator'"),
        (["init", "--hom", "x"], 2, "--hom"),
        (["keys", "show", "--home", "none"], 1, "rgs init --home none"),
    ],
)
def test_a_refusal_is_one_line(cli: Cli, arguments: list[str], status: int, text: str) -> None:
    assert text in cli.refused(*arguments, status=status)


def test_a_refusal_of_the_real_process_has_its_status(tmp_path: Path) -> None:
    done = _rgs("party", "list", "--home", "none", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rgs: none is not the home of a node")
    assert done.stderr.count("\n") == 1


def test_an_error_of_the_operating_system_is_one_line(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    (cli.home / "rgs.toml").unlink()
    (cli.home / "rgs.toml").symlink_to("rgs.toml")
    assert "rgs init" in cli.refused("party", "list", "--home", str(cli.home))
    blocked = cli.home / "keys" / "root.key" / "below"
    assert cli.refused("init", "--home", str(blocked)) == f"rgs: {blocked.parent}: File exists\n"


def test_an_error_of_the_stores_driver_is_one_line(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    store = connect(cli.home / "store" / "rgs.db")
    store.execute("DROP TABLE certificates")
    store.close()
    line = cli.refused("party", "list", "--home", str(cli.home))
    assert line == "rgs: the store cannot be used: no such table: certificates [UNAVAILABLE]\n"


def test_a_bug_is_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rgs.cli.init.ensure_home", broken)
    with pytest.raises(ZeroDivisionError):
        cli("init", "--home", str(cli.home))


def test_a_wrong_setting_is_one_line_with_its_facts(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    with (cli.home / "rgs.toml").open("a") as file:
        file.write("drain_s = 4000\n")
    line = cli.refused("party", "list", "--home", str(cli.home))
    limit = "a whole number from 0 to 3600"
    assert line == f"rgs: drain_s must be {limit} [INVALID_FIELD field=drain_s limit={limit} value=4000]\n"


def test_the_home_may_come_from_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RGS_HOME", str(cli.home))
    cli("init")
    assert (cli.home / "rgs.toml").exists()
    assert len(cli("party", "list").splitlines()) == len(Role)


def test_a_reader_that_goes_away_is_no_traceback_and_no_success() -> None:
    script = """
import os, sys
from rgs.cli import run
from rgs.integrity.manifest import ManifestEntry, Manifest
os.close(int(sys.argv[1]))
entries = tuple(ManifestEntry(f"rng/{at}.py", "0" * 64, 1) for at in range(2000))
sys.exit(run(["manifest"], Manifest(entries, locked=True)))
"""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-c", script, str(read_end)]
    with os.fdopen(write_end, "wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, pass_fds=[read_end], text=True
        )
        os.close(read_end)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (1, "")


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    script = """
import os, signal, sys
import rgs.node.files as files
from rgs.cli import run
from tests.support.process.commands import MANIFEST
files.sync_tree = lambda folder: os.kill(os.getpid(), signal.SIGINT)
sys.exit(run(["init", "--home", sys.argv[1]], MANIFEST))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "home")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "and what it began is gone"


# --- commands that live elsewhere -----------------------------------------------------------------------------------


def test_what_is_not_installed_is_said_and_what_is_broken_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RgsError, match="this installation has no `rgs nothing`"):
        part("rgs.cli.nothing", "`rgs nothing`")
    (tmp_path / "using_devkit.py").write_text("import rgs.devkit.nothing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RgsError, match=r"`rgs x` needs rgs\.devkit, which this process cannot import; start it with"):
        part("using_devkit", "`rgs x`")
    (tmp_path / "broken_part.py").write_text("import no_such_library\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        part("broken_part", "x")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["call", "conformance", "demo", "play", "simulate", "tables"])
def test_a_command_of_the_devkit_is_refused_in_one_line_by_the_launcher(name: str, tmp_path: Path) -> None:
    """The launcher imports measured software alone, and the devkit is not part of it."""
    done = subprocess.run(isolated_command(name), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith(f"rgs: `rgs {name}` needs rgs.devkit, which this process cannot import;")
    assert done.stderr.count("\n") == 1


def test_demo_and_play_get_their_arguments_untouched(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, str, list[str]]] = []

    def run_app(app: object, name: str, arguments: list[str], _manifest: Manifest) -> int:
        seen.append((app, name, arguments))
        return 3

    monkeypatch.setattr("rgs.cli.app.run_app", run_app)
    apps = {name: typer.Typer() for name in ("demo", "play")}
    for name, app in apps.items():
        module = ModuleType(f"rgs.cli.{name}")
        monkeypatch.setattr(module, "app", app, raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        cli(name, "--help", "--fast", "-x", "3", status=3)
    assert seen == [(app, name, ["--help", "--fast", "-x", "3"]) for name, app in apps.items()]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations with which a server was started."""
    configs: list[Config] = []

    def serve(config: Config, _manifest: Manifest, _stderr: object, **_: object) -> int:
        assert gc.isenabled(), "only while it is imported nobody looks for cycles"
        configs.append(config)
        return 0

    module = ModuleType("rgs.node.server")
    monkeypatch.setattr(module, "serve", serve, raising=False)
    monkeypatch.setitem(sys.modules, "rgs.node.server", module)
    monkeypatch.setattr("rgs.cli.serve.BoundedStderr", contextlib.nullcontext)  # which forks: this process has threads
    return configs


def test_serve_refuses_what_cannot_be_named(cli: Cli, served: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    cli("init", "--home", str(cli.home))
    command = ("serve", "--home", str(cli.home))
    cli(*command, status=HOPELESS, manifest=replace(MANIFEST, locked=False))
    assert "requirements/runtime.txt is not part of this installation" in cli.err
    assert "was not started isolated" in cli.refused(*command, status=HOPELESS), "as this test process was not"
    monkeypatch.setattr("rgs.cli.serve.verify_isolated", lambda: None)
    assert "was loaded before it was hashed" in cli.refused(*command, status=HOPELESS), "as it is in this test process"
    assert served == []
    monkeypatch.setattr("rgs.cli.serve.verify_loaded", lambda: None)
    cli(*command, "--listen", "127.0.0.1:0", "--no-reflection", "--drain-s", "3", "--logging-level", "debug")
    (config,) = served
    result = (config.listen, config.reflection, config.drain_s, config.logging_level)
    assert result == ("127.0.0.1:0", False, 3, "debug")
    assert "field=listen" in cli.refused(*command, "--listen", "nowhere")


def test_serve_makes_the_default_home_and_no_other(
    cli: Cli, served: list[Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.cli.serve.verify_loaded", lambda: None)
    monkeypatch.setattr("rgs.cli.serve.verify_isolated", lambda: None)
    monkeypatch.delenv("RGS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "rgs init" in cli.refused("serve", "--home", "var/other", status=HOPELESS)
    assert not (tmp_path / "var").exists()
    assert "DEVELOPMENT" in cli("serve")
    assert cli("serve") == ""
    assert [config.home for config in served] == [tmp_path / "var" / "rgs"] * 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (LogRefusedError("STORE_BEHIND", "the store was restored"), HOPELESS),
        (FileRefusedError("there is no private key"), HOPELESS),
        (StoreRefusedError("the store has schema 3"), HOPELESS),
        (VerificationError("the key bundle is another house's"), HOPELESS),
        (FormatError("the key bundle is damaged"), HOPELESS),
        (ManifestError("this is not the software of certified.json"), HOPELESS),
        (SurroundingsError("unlisted"), HOPELESS),
        (SelfTestError("KAT_FAILED", "a known answer differs"), HOPELESS),
        (InvalidFieldError("log_policy names nobody", field="log_policy"), 2),
        (StoreAwayError("no database answers"), 1),
        (StoreError("the store could not commit"), 1),
        (ServingAlreadyError("another serves"), 1),
        (InstanceLostError("declared lost"), 1),
        (EntropyError("ENTROPY_UNAVAILABLE", "the system gives none"), 1),
        (OSError(28, "No space left on device"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_serve_says_by_its_status_whether_another_start_can_help(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("rgs.cli.serve._serve", fail)
    cli("init", "--home", str(cli.home))
    result = cli.refused("serve", "--home", str(cli.home), status=status)
    assert str(getattr(error, "detail", None) or getattr(error, "strerror", None) or error) in result
    # To any other command a refusal is a refusal.
    monkeypatch.setattr("rgs.cli.party.open_home", fail)
    assert cli.refused("party", "list", "--home", str(cli.home), status=1 if status == HOPELESS else status)


def test_what_a_command_runs_is_collected_whatever_its_launcher_did(cli: Cli) -> None:
    gc.disable()
    try:
        cli("--version")
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


# --- gRPC with what init made ---------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> Config:
    now_ms = SystemClock().now_ms()
    return ensure_home(tmp_path / "rgs", None, EntropySource().read, now_ms).config


@pytest.fixture
def address(config: Config) -> Iterator[str]:
    """A gRPC server that asks every client for its certificate, and answers with the URIs in it."""

    def echo(_request: bytes, context: grpc.ServicerContext) -> bytes:
        uris = cast("list[bytes]", context.auth_context()["peer_uri"])
        return b" ".join(uris)

    server = grpc.server(futures.ThreadPoolExecutor(1))
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("t.T", {"M": method})])
    key, chain = (config.tls / "server.key").read_bytes(), (config.tls / "server.pem").read_bytes()
    credentials = grpc.ssl_server_credentials([(key, chain)], config.ca.read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def _call(address: str, credentials: grpc.ChannelCredentials) -> bytes:
    with grpc.secure_channel(address, credentials) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/t.T/M")
        return call(b"", timeout=5)


def test_grpc_takes_the_certificates_and_shows_the_one_uri(config: Config, address: str) -> None:
    ca = config.ca.read_bytes()
    for role in ("operator", "admin"):
        stem = config.tls / "clients" / f"demo-{role}"
        key, chain = stem.with_suffix(".key").read_bytes(), stem.with_suffix(".pem").read_bytes()
        credentials = grpc.ssl_channel_credentials(ca, key, chain)
        assert _call(address, credentials) == f"rgs://party/{role}/demo-{role}".encode("ascii")


def test_grpc_refuses_a_client_without_certificate_and_one_of_another_home(
    config: Config, address: str, tmp_path: Path
) -> None:
    now_ms = SystemClock().now_ms()
    other = ensure_home(tmp_path / "other", None, EntropySource().read, now_ms).config
    stem = other.tls / "clients" / "demo-operator"
    key, chain = stem.with_suffix(".key").read_bytes(), stem.with_suffix(".pem").read_bytes()
    ca = config.ca.read_bytes()
    for credentials in (
        grpc.ssl_channel_credentials(ca),
        grpc.ssl_channel_credentials(ca, key, chain),
        grpc.ssl_channel_credentials(other.ca.read_bytes(), key, chain),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            _call(address, credentials)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
