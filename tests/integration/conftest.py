"""What several integration tests begin with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rgs.integrity import manifest_verify
from rgs.store.address import PostgresAddress
from tests.support.process.commands import Cli
from tests.support.process.installed import Installation, checkout
from tests.support.service.places import Place
from tests.support.service.reconciling import Day, play_day
from tests.support.store.databases import fresh_database
from tests.support.store.postgres import Server, one_server


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line over a new home."""
    cli = Cli(tmp_path / "rgs", capfd)
    cli("init", "--home", str(cli.home))
    return cli


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return checkout(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outsider's verifier, far from everything."""
    return Path(shutil.copy(manifest_verify.__file__, tmp_path_factory.mktemp("alone") / "carried_away.py"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A day that reconciles; played once a module."""
    return play_day(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def day(clean: Day, tmp_path: Path) -> Day:
    return clean.copy(tmp_path / "day")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """The one store, then the other."""
    if request.param == "sqlite":
        yield Place(tmp_path, None)
    else:
        with fresh_database() as database:
            yield Place(tmp_path, database)


@pytest.fixture
def database() -> Iterator[PostgresAddress]:
    with fresh_database() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def either_database(request: pytest.FixtureRequest) -> Iterator[PostgresAddress | None]:
    """None for a store file, then a database."""
    if request.param == "sqlite":
        yield None
        return
    with fresh_database() as address:
        yield address


@pytest.fixture
def server() -> Iterator[Server]:
    with one_server() as one:
        yield one
