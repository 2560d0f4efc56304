"""A server whose time is behind its node key signs nothing: whatever clock that time is from."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import VerificationError
from rgs.store.sqlite.store import SqliteStore, connect
from tests.support.api.harness import ApiHarness

DAY_MS = 86_400_000


def signed(harness: ApiHarness) -> int:
    with closing(connect(harness.config.store, read_only=True)) as connection:  # type: ignore[arg-type]
        return int(connection.execute("SELECT count(*) FROM statements").fetchone()[0])


@pytest.mark.parametrize("is_wall", [True, False], ids=["the machine's clock", "the database's clock"])
async def test_a_start_behind_the_node_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_wall: bool
) -> None:
    harness = ApiHarness(tmp_path / "home")
    with monkeypatch.context() as behind:
        if is_wall:
            harness.clock.jumped_ms -= 10 * DAY_MS
            harness.clock.accept()
            harness.clock.let_go()
        else:

            async def reported_ms(_: SqliteStore) -> int:
                return harness.clock.wall_ms() - 10 * DAY_MS

            behind.setattr(SqliteStore, "clock_ms", reported_ms)
        with pytest.raises(VerificationError, match=r"is dated .*, but the server's time is .*: set") as caught:
            await harness.start()
        assert (caught.value.field, caught.value.metadata["value"]) == ("node", harness.config.node)
    assert signed(harness) == 0
