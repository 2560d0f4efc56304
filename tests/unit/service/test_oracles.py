"""The oracles of `tests.support.service` are shown to fail: each kind of damage to a server that lived well is seen."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import VerificationError
from rgs.core.statements import format_canonical, parse_envelope, seal_envelope
from tests.support.service.harness import NODE_KEY, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player


async def live(folder: Path) -> None:
    async with open_harness(folder) as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.buy(500)
        await anna.play()
        await anna.play()
        await anna.leave()


@pytest.fixture(scope="module")
def lived_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a server has left in order."""
    folder = tmp_path_factory.mktemp("lived")
    asyncio.run(live(folder))
    return folder


@pytest.fixture
def lived(lived_once: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    for path in lived_once.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


DAMAGE = {
    "money in a session": (
        "rgs.db", "UPDATE sessions SET bought_minor = bought_minor + 2, paid_out_minor = paid_out_minor + 2",
    ),
    "a round uncounted": ("rgs.db", "UPDATE sessions SET rounds = rounds - 1"),
    "a round counted twice": ("rgs.db", "UPDATE totals SET rounds = rounds + 1"),
    "a total of another day": ("rgs.db", "UPDATE totals SET day = '2001-01-01'"),
    "a total forgotten": ("rgs.db", "DELETE FROM totals"),
    "an end forgotten": ("rgs.db", "UPDATE sessions SET ended = 0"),
    "an operation left over": ("rgs.db", "UPDATE operations SET status = 'pending' WHERE kind = 'close'"),
    "the last link cut off": ("rgs.db", "DELETE FROM statements WHERE kind = 'session_close'"),
    "a purchase missing": ("rgs.db", "DELETE FROM statements WHERE kind = 'purchase' AND link_no = 3"),
    "a final missing": ("rgs.db", "DELETE FROM statements WHERE kind = 'round_final' AND link_no = 5"),
    "the tail of the instance cut off": ("rgs.db", "DELETE FROM statements WHERE kind = 'instance_end'"),
    "a private block changed": (
        "rgs.db", "UPDATE privates SET private = CAST(replace(private, 'anna', 'bert') AS BLOB)",
    ),
    "a debit of another amount": ("wallet.db", "UPDATE accounts SET balance_minor = balance_minor + 1"),
    "a stage untold": ("regulator.db", "UPDATE participations SET stages = stages - 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_seen(lived: Path, name: str) -> None:
    verify_books(lived)
    file, damage = DAMAGE[name]
    with closing(sqlite3.connect(lived / file, isolation_level=None)) as connection:
        assert connection.execute(damage).rowcount > 0
    with pytest.raises((AssertionError, VerificationError)):
        verify_books(lived)


@pytest.mark.parametrize("kind", ["instance_start", "session_open", "purchase", "round_opening", "round_final"])
def test_a_changed_byte_is_seen(lived: Path, kind: str) -> None:
    row = next(row for row in stored_statements(lived) if row.kind == kind)
    place = len(row.envelope) // 3
    changed = row.envelope[:place] + bytes([row.envelope[place] ^ 1]) + row.envelope[place + 1 :]
    with closing(sqlite3.connect(lived / "rgs.db", isolation_level=None)) as connection:
        connection.execute("UPDATE statements SET envelope = ? WHERE id = ?", (changed, row.id))
    with pytest.raises(AssertionError):
        replay(lived)


def test_a_statement_signed_by_another_key_is_seen(lived: Path) -> None:
    row = next(row for row in stored_statements(lived) if row.kind == "round_final")
    envelope = parse_envelope(row.envelope)
    assert format_canonical(read_statement(row.envelope)) == envelope.payload
    forged = seal_envelope(envelope.payload_type, envelope.payload, NODE_KEY)
    with closing(sqlite3.connect(lived / "rgs.db", isolation_level=None)) as connection:
        connection.execute("UPDATE statements SET envelope = ? WHERE id = ?", (forged, row.id))
    with pytest.raises(AssertionError):
        replay(lived)


def test_numbers_counted_by_hand_see_gaps_repetitions_and_lost_draws(lived: Path) -> None:
    rows = stored_statements(lived)
    verify_numbers(rows)
    for place, row in enumerate(rows[:-1]):
        with pytest.raises(AssertionError):
            verify_numbers([*rows[:place], *rows[place + 1 :]])
        with pytest.raises(AssertionError):
            verify_numbers([*rows[:place], row, *rows[place:]])
        with pytest.raises(AssertionError):
            verify_numbers([*rows[:place], rows[place + 1], row, *rows[place + 2 :]])
