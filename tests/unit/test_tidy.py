"""The project's rules hold in every file, and each rule is shown to fail on a planted violation."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tools.tidy import OUTSIDE, PROJECT, ROOMS, Room, check, climbs, module_of

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".py", ".sql", ".proto"}


def project_files() -> list[str]:
    paths = (path for top in sorted(PROJECT | {"protos"}) for path in (ROOT / top).rglob("*"))
    return [path.relative_to(ROOT).as_posix() for path in paths if path.suffix in SUFFIXES]


@pytest.mark.parametrize("path", project_files())
def test_the_project_is_tidy(path: str) -> None:
    assert [str(finding) for finding in check(path, (ROOT / path).read_text("utf-8"))] == []


def test_the_walk_finds_the_rooms() -> None:
    tops = {path.split("/")[0] for path in project_files()}
    assert tops >= {"rng", "rgs", "tests", "tools"}


PLANTED = [
    # the import table
    ("import", "rng/drbg.py", "import numpy"),
    ("import", "rng/drbg.py", "from rgs.core import cards"),
    ("import", "rgs/core/cards.py", "from cryptography.hazmat.primitives import hashes"),
    ("import", "rgs/core/cards.py", "import rng.shuffle"),
    ("import", "rgs/core/replay/finals.py", "import rng"),
    ("import", "rgs/core/replay/finals.py", "from rng.generator import Generator"),
    ("import", "rgs/core/rounds.py", "from rgs import service"),
    ("import", "rgs/core/rounds.py", "from ..store.sqlite import store"),
    ("import", "rgs/core/rounds.py", "import rgs"),
    ("import", "rgs/core/rounds.py", "def late() -> None:\n    import rgs.service"),
    ("import", "rgs/core/tlog/note.py", "from rgs.core.errors import FormatError"),
    ("import", "rgs/ports/wallet.py", "import structlog"),
    ("import", "rgs/ports/wallet.py", "from rgs.store.wallet import WalletStore"),
    ("import", "rgs/store/sqlite/store.py", "import grpc"),
    ("import", "rgs/store/sqlite/store.py", "from rgs.service.play.play import Play"),
    ("import", "rgs/store/sqlite/store.py", "from rgs.node.clock import SystemClock"),
    ("import", "rgs/adapters/grpc/wallet.py", "from rng.generator import Generator"),
    ("import", "rgs/adapters/grpc/wallet.py", "from rgs.store.wallet import WalletStore"),
    ("import", "rgs/adapters/embedded/wallet.py", "import grpc"),
    ("import", "rgs/adapters/embedded/wallet.py", "from rgs.service.play.play import Play"),
    ("import", "rgs/tlog/sequencer.py", "import rgs.adapters.grpc.wallet"),
    ("import", "rgs/tlog/sequencer.py", "from rgs.tlog.witness.witness import Witness"),
    ("import", "rgs/tlog/witness/serving.py", "from rgs.tlog.directory import LogDirectory"),
    ("import", "rgs/service/play/play.py", "import grpc"),
    ("import", "rgs/service/play/play.py", "from rgs.api.errors import status_of"),
    ("import", "rgs/service/play/play.py", "from rgs.node.clock import SystemClock"),
    ("import", "rgs/service/play/play.py", "from rgs.adapters.grpc.wallet import GrpcWallet"),
    ("import", "rgs/service/play/play.py", "from rgs.service.admin.admin import Admin"),
    ("import", "rgs/service/money/transfers.py", "from rgs.service.play.operations import Operations"),
    ("import", "rgs/service/game_catalog.py", "from rgs.service.play.play import Play"),
    ("import", "rgs/service/events.py", "import cryptography"),
    ("import", "rgs/api/play.py", "from rgs.store.sqlite.store import SqliteStore"),
    ("import", "rgs/api/play.py", "from rng.generator import Generator"),
    ("import", "rgs/integrity/manifest.py", "import structlog"),
    ("import", "rgs/integrity/manifest.py", "from rgs.core import ids"),
    ("import", "rgs/integrity/manifest.py", "from certification import manifest"),
    ("import", "rgs/integrity/isolation.py", "from rgs import cli"),
    ("import", "rgs/node/workers.py", "from rgs.integrity.launcher import main"),
    ("import", "rgs/cli/serve.py", "from rgs.integrity import launcher"),
    ("import", "certification/manifest.py", "import rgs.integrity.launcher"),
    ("import", "rgs/cli/dispute.py", "from rgs.node.parts import part\nx = part('certification.replay', 'replay')"),
    ("import", "rgs/cli/dispute.py", "from rgs.node import parts\nx = parts.part(module='certification.replay')"),
    ("import", "certification/log.py", "from importlib import import_module\nx = import_module('rgs.node')"),
    ("import", "certification/log.py", "import runpy as r\nx = r.run_module('rgs.node', run_name='x')"),
    ("import", "certification/log.py", "x = __import__('rgs.node')"),
    ("import", "rgs/node/server.py", "import numpy"),
    ("import", "rgs/node/server.py", "from rgs.cli import serve"),
    ("import", "rgs/node/server.py", "from rgs.devkit.client import Client"),
    ("import", "rgs/node/server.py", "from certification import replay"),
    ("import", "rgs/devkit/client.py", "from rgs.cli.call import find"),
    ("import", "rgs/devkit/client.py", "from rgs.service.play.play import Play"),
    ("import", "rgs/cli/serve.py", "from certification import replay"),
    ("import", "rgs/__main__.py", "from rgs import cli"),
    ("import", "certification/replay.py", "from rgs.store.sqlite.store import SqliteStore"),
    ("import", "certification/replay.py", "import grpc"),
    ("import", "examples/client.py", "from rgs.core import cards"),
    ("no room", "rgs/cache.py", ""),
    ("no room", "rgs/extra/thing.py", ""),
    ("no room", "plugins/thing.py", ""),
    ("generated code", "rgs/core/rounds.py", "from rgs.v1 import play_pb2"),
    ("generated code", "rgs/service/play/play.py", "from rgs.v1.play_pb2 import View"),
    ("generated code", "rgs/service/play/play.py", "import rgs.wallet.v1.wallet_pb2"),
    ("generated code", "certification/replay.py", "from rgs.v1 import play_pb2"),
    # the core computes
    ("core", "rgs/core/rounds.py", "import asyncio"),
    ("core", "rgs/core/rounds.py", "from os import environ"),
    ("core", "rgs/core/rounds.py", "def f() -> str:\n    return open('x').read()"),
    # entropy, time, database
    ("not entitled", "rng/entropy.py", "import random"),
    ("not entitled", "rgs/service/play/play.py", "from random import shuffle"),
    ("not entitled", "rgs/service/play/play.py", "import secrets"),
    ("not entitled", "rng/generator.py", "import os\nx = os.urandom(3)"),
    ("not entitled", "rng/generator.py", "import os as system\nread = system.urandom"),
    ("not entitled", "rng/generator.py", "from os import getrandom"),
    ("not entitled", "rng/generator.py", "x = '/dev/urandom'"),
    ("not entitled", "rgs/service/play/play.py", "import uuid\nx = uuid.uuid4()"),
    ("not entitled", "rng/generator.py", "import time"),
    ("not entitled", "rgs/service/play/play.py", "from time import monotonic"),
    ("not entitled", "rgs/node/server.py", "import time"),
    ("not entitled", "rgs/core/times.py", "import datetime as dt\nx = dt.datetime.now(dt.UTC)"),
    ("not entitled", "rgs/core/times.py", "from datetime import datetime\nx = datetime.utcnow()"),
    ("not entitled", "rgs/core/times.py", "from datetime import date\nx = date.today()"),
    ("not entitled", "rgs/cli/demo.py", "from datetime import datetime\nx = datetime.now()"),
    ("not entitled", "rgs/service/play/play.py", "import sqlite3"),
    ("not entitled", "rgs/service/play/play.py", "import importlib\nx = importlib.import_module('rgs.core')"),
    ("not entitled", "rgs/core/games/__init__.py", "x = __import__('rgs.core')"),
    # SQL
    ("SQL outside the store", "rgs/service/play/play.py", "x = 'SELECT 1'"),
    ("SQL outside the store", "rgs/service/play/play.py", "x = '''\n  insert into rounds values (?)'''"),
    ("SQL outside the store", "rgs/service/play/play.py", "x = f'UPDATE {table} SET a = 1'"),
    ("SQL outside the store", "rgs/tlog/sequencer.py", "x = 'BEGIN IMMEDIATE'"),
    ("SQL outside the store", "rgs/tlog/sequencer.py", "x = 'DELETE FROM leaf'"),
    ("SQL outside the store", "rgs/node/server.py", "x = 'PRAGMA journal_mode = WAL'"),
    ("SQL outside the store", "certification/log.py", "x = 'create table leaf (n)'"),
    ("SQL outside the store", "rgs/service/schema.sql", "CREATE TABLE leaf (n);"),
    ("f-string in SQL", "rgs/store/sqlite/store.py", "x = f'SELECT a FROM {table}'"),
    ("f-string in SQL", "rgs/store/sqlite/store.py", "x = f'{head} WHERE id = {round_id}'"),
    ("f-string in SQL", "rgs/store/sqlite/store.py", "x = 'SELECT a FROM %s' % table"),
    ("f-string in SQL", "rgs/store/sqlite/store.py", "x = 'SELECT a FROM {}'.format(table)"),
    # size and names
    ("file length", "rgs/service/play/play.py", "\n" * 501),
    ("file length", "protos/rgs/v1/play.proto", "\n" * 501),
    ("empty name", "rgs/service/utils.py", ""),
    ("empty name", "rgs/core/card_helpers.py", ""),
    ("empty name", "rgs/service/handlers/play.py", ""),
    ("empty name", "rgs/service/play/play.py", "class RoundManager: ..."),
    ("empty name", "rgs/api/play.py", "class RPCHandler: ..."),
    ("error name", "rgs/core/errors.py", "class Refused(RgsError): ..."),
    ("error name", "rgs/core/errors.py", "class BadException(Exception): ..."),
    ("error name", "rgs/core/errors.py", "class Refused(errors.RgsError): ..."),
]

ALLOWED = [
    ("rng/entropy.py", "import os\nx = os.urandom(3)"),
    ("rng/entropy.py", "import secrets"),
    ("rgs/node/clock.py", "import time\nfrom datetime import datetime\nx = datetime.now()"),
    ("rgs/cli/demo.py", "import time"),
    (
        "rgs/service/play/play.py",
        "from rgs.core.clock import Clock\ndef f(clock: Clock) -> int:\n    return clock.now()",
    ),
    (
        "rgs/service/play/play.py",
        "from rng.generator import Generator\nfrom rgs.store.sqlite import store as sqlite\nimport rgs.core.ids",
    ),
    ("rgs/core/times.py", "from datetime import UTC, datetime\nx = datetime.fromtimestamp(0, UTC)"),
    ("rgs/core/ids.py", "import uuid\nx = uuid.UUID(int=0)"),
    ("rgs/core/rounds.py", "from .games import dealing\nfrom . import cards"),
    ("rgs/core/replay/finals.py", "from rng.shuffle import transcript_to_deck"),
    ("rgs/core/statements/envelope.py", "from cryptography.exceptions import InvalidSignature"),
    ("rgs/store/sqlite/store.py", "import sqlite3\nx = 'SELECT a FROM leaf'\ny = f'no leaf {x}'\nz = '%d rows' % 3"),
    ("rgs/store/schema.sql", "CREATE TABLE leaf (n);"),
    (
        "rgs/service/play/play.py",
        '"""Select a seat from the table, update it and begin."""\nx = "rollback"\ny = "Create a session"',
    ),
    ("rgs/api/play.py", "import grpc\nfrom rgs.v1 import play_pb2"),
    ("rgs/cli/call.py", "from rgs.node.clock import SystemClock\nfrom rgs.v1 import play_pb2\nimport typer"),
    ("rgs/integrity/manifest.py", "import hashlib\nfrom rgs.integrity import imports"),
    ("rgs/integrity/launcher.py", "from rgs.integrity import isolation\ndef f():\n    from rgs.cli import run"),
    ("rgs/__main__.py", "from rgs.integrity import launcher"),
    ("rgs/cli/dispute.py", "from rgs.node.parts import part\nx = part('certification.dispute', 'dispute')"),
    ("certification/log.py", "import importlib\nx = importlib.import_module(name)"),
    ("rgs/v1/play_pb2.py", "\n" * 501 + "import random"),
    ("certification/rtp/exact.py", "import time\nimport numpy\nfrom rng import shuffle\nfrom rgs.core import hands"),
    ("examples/client.py", "import grpc\nfrom rgs.v1 import play_pb2"),
    ("tests/unit/test_x.py", "import random, time, sqlite3\nx = 'SELECT 1'"),
    ("rgs/core/hands.py", "class Handful: ..."),
    ("rgs/core/errors.py", "class RefusedError(Exception): ..."),
]


@pytest.mark.parametrize(("rule", "path", "source"), PLANTED)
def test_a_planted_violation_is_found(rule: str, path: str, source: str) -> None:
    assert {finding.rule for finding in check(path, source)} == {rule}


@pytest.mark.parametrize(("path", "source"), ALLOWED)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert check(path, source) == []


# --- the lock, the range of Pythons, the changelog ---------------------------------------------------------------


def locked(name: str) -> dict[str, set[str]]:
    """Each `package==version` of a lock file with its hashes; every other line must be a comment."""
    packages: dict[str, set[str]] = {}
    hashes: set[str] = set()
    for line in (ROOT / "requirements" / name).read_text("utf-8").splitlines():
        if pin := re.fullmatch(r"([a-z0-9-]+)(\[[a-z0-9,-]+\])?(==[\w.]+)( ; [\w .<>=!'()]+)? \\", line):
            packages[pin[1] + pin[3]] = hashes = set()
        elif digest := re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line):
            hashes.add(digest[1])
        else:
            assert re.fullmatch(r"\s*#[^/:]*(requirements/\w+\.(in|txt))?", line), line  # no address of anything
    return packages


def wanted(name: str) -> set[str]:
    lines = (ROOT / "requirements" / name).read_text("utf-8").splitlines()
    return {re.split(r"[;\[ ]", line)[0] for line in lines if line and not line.startswith(("#", "-r"))}


@pytest.mark.parametrize("stem", ["runtime", "dev", "ray"])
def test_the_lock_holds_what_is_wanted_by_hash(stem: str) -> None:
    packages = locked(f"{stem}.txt")
    assert wanted(f"{stem}.in") <= {pin.split("==")[0] for pin in packages}
    assert min(len(hashes) for hashes in packages.values()) >= 1


def test_the_locks_agree_and_cover_the_platforms() -> None:
    runtime, dev, ray = (locked(f"{stem}.txt") for stem in ("runtime", "dev", "ray"))
    assert {pin: dev.get(pin) for pin in runtime} == runtime
    shared = {pin.split("==")[0] for pin in ray} & {pin.split("==")[0] for pin in dev}
    assert {pin: dev.get(pin) for pin in ray if pin.split("==")[0] in shared} == {
        pin: hashes for pin, hashes in ray.items() if pin.split("==")[0] in shared
    }
    compiled = {
        pin: hashes for pin, hashes in runtime.items() if pin.startswith(("grpcio==", "cryptography==", "pynacl=="))
    }
    assert len(compiled) == 3
    assert min(len(hashes) for hashes in compiled.values()) >= 20  # one file would mean one platform


def test_the_project_wants_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {re.split(r"[; ]", name)[0] for name in project["dependencies"]} == wanted("runtime.in")


def test_one_range_of_pythons() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    script = (ROOT / "tools/set_up.sh").read_text("utf-8")
    first, last = (re.search(rf"^{name}=3\.(\d+)$", script, re.MULTILINE) for name in ("first", "last"))
    assert first is not None
    assert last is not None
    assert project["requires-python"] == f">=3.{first[1]},<3.{int(last[1]) + 1}"


def test_every_change_has_its_certification_class() -> None:
    _, *releases = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")
    entries = [entry for release in releases for entry in re.split(r"^- ", release, flags=re.MULTILINE)[1:]]
    assert entries
    for entry in entries:
        text = entry.split("\n\n")[0].split("\n#")[0].rstrip()
        assert re.search(r" \[(rng|game|math|none)\]$", text), text


def test_the_table_does_not_climb() -> None:
    assert climbs() == []
    assert climbs((Room("rgs/a/", ("rgs.a", "rgs.b")), Room("rgs/b/", ("rgs.b",)))) == [
        "rgs/a/ may import rgs.b, which stands further out"
    ]


def test_the_table_says_nothing_that_does_not_exist() -> None:
    paths = project_files()
    for room in ROOMS:
        assert any(path.startswith(room.prefix) for path in paths), room.prefix
    names = {module_of(path) for path in paths if path.endswith(".py")}
    named = {name for room in ROOMS if not room.prefix.startswith(OUTSIDE) for name in room.ours}
    for module, _, name in (one.rpartition(".") for one in named - names):
        assert hasattr(import_module(module), name), f"{module}.{name}"
