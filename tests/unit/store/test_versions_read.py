"""What is read of many sessions at once, and how the steps of a schema are numbered and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.store.migrations import index_name, steps
from tests.support.store.shelf import open_shelf, opened, session, started, ulid


async def test_the_versions_of_sessions_that_exist(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3):
            await store.commit(opened(session(number)))
        await store.commit(started(await store.session(ulid(2)), 1))
        assert await store.session_versions([ulid(1), ulid(2), ulid(9)]) == {ulid(1): 1, ulid(2): 2}
        assert await store.session_versions([]) == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_steps_are_numbered_without_a_gap(kind: str) -> None:
    numbers = [step.version for step in steps(kind)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) > 5


def test_an_index_is_named_by_its_text() -> None:
    assert index_name("CREATE INDEX some_name ON sessions (id)") == "some_name"
    with pytest.raises(ValueError, match="makes no index"):
        index_name("SELECT 1")
