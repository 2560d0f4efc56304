"""The store's tests run on both databases: a file, and a database of its own on a server that the run shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.store.databases import fresh_database
from tests.support.store.shelf import DATABASES


@pytest.fixture(params=["sqlite", "postgres"])
def either_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """`tmp_path` stands for a new store of the one kind, then of the other."""
    kind: str = request.param
    if kind == "sqlite":
        yield kind
        return
    with fresh_database() as DATABASES[tmp_path]:
        yield kind
    del DATABASES[tmp_path]


@pytest.fixture
def postgres_store(tmp_path: Path) -> Iterator[None]:
    """`tmp_path` stands for a new store in a database."""
    with fresh_database() as DATABASES[tmp_path]:
        yield
    del DATABASES[tmp_path]
