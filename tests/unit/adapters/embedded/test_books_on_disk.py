"""Both files: what is opened, what can be written into them from outside, and what their checks see when it was."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import RegulatorUnavailableError, VerificationError, WalletUnavailableError
from rgs.store.changes import StoreRefusedError
from rgs.store.regulator import HASH_ZERO, RegulatorEntry, RegulatorStore, entry_hash, verify_chain
from rgs.store.wallet import WalletStore
from tests.support.adapters.books import NOW_MS, Played, give, make_wallet, move

OPEN: list[Callable[[Path], WalletStore | RegulatorStore]] = [WalletStore, RegulatorStore]
both = pytest.mark.parametrize("store", OPEN, ids=["wallet", "regulator"])


def outside(path: Path, *statements: str) -> list[Any]:
    """What somebody with the file and the sqlite3 command line can do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return [db.execute(statement).fetchone() for statement in statements]


# --- opening ----------------------------------------------------------------------------------------------------------


@both
def test_a_book_is_made_once_and_opened_again(tmp_path: Path, store: Callable[[Path], Any]) -> None:
    path = tmp_path / "book.sqlite"
    store(path).close()
    before = path.read_bytes()
    store(path).close()
    assert path.read_bytes() == before


@both
def test_a_book_is_its_owners_alone(tmp_path: Path, store: Callable[[Path], Any]) -> None:
    book = store(tmp_path / "book.sqlite")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    book.close()


@both
def test_commits_are_durable_before_they_are_reported(tmp_path: Path, store: Callable[[Path], Any]) -> None:
    book = store(tmp_path / "book.sqlite")
    db = book._file._db
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert db.execute("PRAGMA trusted_schema").fetchone() == (0,)
    assert db.execute("PRAGMA application_id").fetchone() == (1380406103 if store is WalletStore else 1380406098,)
    book.close()
    book.close()  # a second time does nothing


@both
@pytest.mark.parametrize(
    "planted",
    [
        ("PRAGMA user_version = 3",),
        ("PRAGMA application_id = 7",),
        ("PRAGMA application_id = 0", "PRAGMA user_version = 0"),
    ],
    ids=["newer", "foreign", "unmarked"],
)
def test_another_schema_is_refused_and_left_as_it_is(
    tmp_path: Path, store: Callable[[Path], Any], planted: tuple[str, ...]
) -> None:
    path = tmp_path / "book.sqlite"
    store(path).close()
    outside(path, *planted)
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError):
        store(path)
    assert path.read_bytes() == before


@both
def test_what_is_no_database_is_refused(tmp_path: Path, store: Callable[[Path], Any]) -> None:
    path = tmp_path / "book.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 20)
    with pytest.raises(StoreRefusedError):
        store(path)
    with pytest.raises(StoreRefusedError):
        store(tmp_path / "no" / "folder" / "book.sqlite")


@both
def test_somebody_elses_database_is_left_as_it_is(tmp_path: Path, store: Callable[[Path], Any]) -> None:
    path = tmp_path / "book.sqlite"
    outside(path, "CREATE TABLE notes (text)")
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError):
        store(path)
    assert path.read_bytes() == before


def test_one_book_is_not_the_other(tmp_path: Path) -> None:
    WalletStore(tmp_path / "book.sqlite").close()
    with pytest.raises(StoreRefusedError):
        RegulatorStore(tmp_path / "book.sqlite")


@both
def test_a_place_without_a_write_ahead_log_is_refused(
    tmp_path: Path, store: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda _, **keywords: connect(":memory:", **keywords))
    with pytest.raises(StoreRefusedError, match="cannot keep its journal"):
        store(tmp_path / "book.sqlite")


def test_a_book_that_breaks_while_it_is_read_is_unavailable(tmp_path: Path) -> None:
    wallet, regulator = WalletStore(tmp_path / "w.sqlite"), RegulatorStore(tmp_path / "r.sqlite")
    for path in ("w.sqlite", "r.sqlite"):
        outside(tmp_path / path, f"DROP TABLE {'transactions' if path[0] == 'w' else 'journal'}")
    with pytest.raises(WalletUnavailableError):
        list(wallet.rows())
    with pytest.raises(RegulatorUnavailableError):
        regulator.head()
    wallet.close()
    regulator.close()


# --- reading while it is written --------------------------------------------------------------------------------------


async def test_a_reader_sees_one_moment(played: Played) -> None:
    entries = played.store.entries()
    first = next(entries)
    await played.end()
    assert len([first, *entries]) == 4  # without the end
    assert len(played.state()) == 5


async def test_a_snapshot_stands_still_and_cannot_write(played: Played) -> None:
    count = "SELECT count(*) FROM journal"
    with played.store._file.snapshot() as db:
        before = db.execute(count).fetchone()
        await played.end()
        assert db.execute(count).fetchone() == before
    with pytest.raises(RegulatorUnavailableError), played.store._file.snapshot() as db:
        db.execute("DELETE FROM sessions")


async def test_two_processes_can_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "wallet.sqlite"
    (one, store), (other, _) = make_wallet(path), make_wallet(path)
    await one.open_account(operator="op", player="anna", currency="EUR", balance_minor=1000)
    calls = [wallet.debit(move(number, 10)) for number in range(1, 101) for wallet in (one, other)]
    receipts = await asyncio.gather(*calls)
    assert sorted(receipt.status.value for receipt in receipts) == ["accepted"] * 100 + ["duplicate"] * 100
    store.verify()
    await one.close()
    await other.close()


# --- writing from outside ---------------------------------------------------------------------------------------------


@pytest.fixture
async def wallet_path(tmp_path: Path) -> Path:
    path = tmp_path / "wallet.sqlite"
    wallet, _ = make_wallet(path)
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1000)
    await wallet.debit(move(1, 300))
    await wallet.rollback(move(1, 300))
    await wallet.rollback(move(3, 77))
    await wallet.credit(give(2, 50))
    await wallet.close()
    return path


@pytest.fixture
async def regulator_path(played: Played, tmp_path: Path) -> Path:
    """A copy of the file, to be spoilt."""
    await played.end()
    await played.close()
    path = tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(tmp_path / "regulator.sqlite")) as db, closing(sqlite3.connect(path)) as copy:
        db.backup(copy)
    return path


AGAIN = (
    "INSERT OR REPLACE INTO transactions SELECT 6, recorded_time, kind, operator, player, currency, transaction_id,"
    " amount_minor, transfer_minor, balance_after_minor, reference, free_bet, played_by FROM transactions"
    " WHERE entry_no = "
)
REPLACED = "INSERT OR REPLACE INTO journal SELECT 7, kind, subject, number, body, entry_hash FROM journal "
APPEND_ONLY = [
    ("wallet", "UPDATE transactions SET reference = 'another'"),
    ("wallet", "DELETE FROM transactions WHERE entry_no = 5"),
    ("wallet", "INSERT OR REPLACE INTO transactions SELECT * FROM transactions WHERE entry_no = 2"),
    ("wallet", AGAIN + "2"),
    ("wallet", AGAIN + "3"),
    ("wallet", AGAIN + "1"),
    ("wallet", "INSERT INTO transactions VALUES (7, '', 'credit', 'op', 'anna', 'EUR', 'x', 1, 1, 1051, 'r', '', '')"),
    ("wallet", "INSERT INTO transactions VALUES (6, '', 'credit', 'op', 'anna', 'EUR', 'x', 1, 2, 1052, 'r', '', '')"),
    ("wallet", "INSERT INTO transactions VALUES (6, '', 'debit', 'op', 'anna', 'EUR', 'x', 1, 1, 1051, 'r', '', '')"),
    ("wallet", "INSERT INTO transactions VALUES (6, '', 'debit', 'op', 'anna', 'EUR', 'x', -1, 1, 1051, 'r', '', '')"),
    ("wallet", "INSERT INTO transactions VALUES (6, '', 'debit', 'op', 'anna', 'EUR', 'x', 1, -1, NULL, 'r', '', '')"),
    ("wallet", "UPDATE accounts SET balance_minor = -1"),
    ("regulator", "UPDATE journal SET body = replace(body, '500', '501')"),
    ("regulator", "DELETE FROM journal WHERE entry_no = 6"),
    ("regulator", "INSERT OR REPLACE INTO journal SELECT * FROM journal WHERE entry_no = 2"),
    ("regulator", REPLACED + "LIMIT 1"),
    ("regulator", "INSERT INTO journal VALUES (8, 'stage', 'N', 1, '{}', zeroblob(32))"),
    ("regulator", "INSERT INTO journal VALUES (7, 'stage', 'N', 1, '{}', zeroblob(31))"),
    ("regulator", "UPDATE calls SET answer = 'M000000000000009'"),
    ("regulator", "DELETE FROM calls"),
    ("regulator", "INSERT OR REPLACE INTO calls SELECT * FROM calls"),
    ("regulator", "UPDATE sessions SET seated = 1"),
    ("regulator", "UPDATE participations SET staked_minor = 501"),
]  # fmt: skip


@pytest.mark.parametrize(("book", "statement"), APPEND_ONLY, ids=range(len(APPEND_ONLY)))
def test_the_tables_refuse_what_is_no_append(
    wallet_path: Path, regulator_path: Path, book: str, statement: str
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        outside(wallet_path if book == "wallet" else regulator_path, statement)


def without_triggers(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")


WALLET_TAMPERS = [
    "UPDATE accounts SET balance_minor = 1051",
    "DELETE FROM accounts",
    "INSERT INTO accounts VALUES ('op', 'bert', 'EUR', 5)",
    "UPDATE transactions SET amount_minor = 51, transfer_minor = 51 WHERE entry_no = 5",
    "DELETE FROM transactions WHERE entry_no = 3",
    "DELETE FROM transactions WHERE entry_no = 4",
    "DELETE FROM transactions WHERE entry_no = 5",
    "UPDATE transactions SET player = 'bert' WHERE entry_no = 5",
    "UPDATE transactions SET balance_after_minor = 1051 WHERE entry_no = 5",
]


@pytest.mark.parametrize("statement", WALLET_TAMPERS)
def test_the_wallets_check_sees_what_was_done_behind_its_back(wallet_path: Path, statement: str) -> None:
    without_triggers(wallet_path)
    store = WalletStore(wallet_path)
    store.verify()
    outside(wallet_path, statement)
    with pytest.raises(VerificationError) as differing:
        store.verify()
    only_the_sum_differs = "accounts" in statement or statement == "DELETE FROM transactions WHERE entry_no = 5"
    assert differing.value.metadata["check"] == ("wallet_balances" if only_the_sum_differs else "wallet_entries")
    store.close()


REGULATOR_TAMPERS = [
    "UPDATE journal SET body = replace(body, '\"470\"', '\"471\"') WHERE entry_no = 4",
    "UPDATE journal SET body = body || ' ' WHERE entry_no = 4",
    "UPDATE journal SET body = 'é' WHERE entry_no = 4",
    "UPDATE journal SET body = '[]' WHERE entry_no = 4",
    "UPDATE journal SET number = 3 WHERE entry_no = 4",
    "UPDATE journal SET subject = 'N' WHERE entry_no = 4",
    "UPDATE journal SET kind = 'end' WHERE entry_no = 4",
    "UPDATE journal SET entry_hash = zeroblob(32) WHERE entry_no = 6",
    "DELETE FROM journal WHERE entry_no = 1",
    "DELETE FROM journal WHERE entry_no = 3",
    "UPDATE journal SET entry_no = entry_no + 1 WHERE entry_no = 6",
    "UPDATE sessions SET closed = 0",
    "UPDATE sessions SET participation_cap_minor = 2000",
    "UPDATE participations SET bought_minor = 501",
    "UPDATE participations SET player = 'bert'",
    "UPDATE participations SET counted_minor = 499",
    "DELETE FROM participations",
]


@pytest.mark.parametrize("statement", REGULATOR_TAMPERS)
def test_the_regulators_check_sees_what_was_done_behind_its_back(regulator_path: Path, statement: str) -> None:
    without_triggers(regulator_path)
    store = RegulatorStore(regulator_path)
    store.verify()
    outside(regulator_path, statement)
    with pytest.raises(VerificationError) as differing:
        store.verify()
    assert differing.value.metadata["check"] == ("regulator_chain" if "journal" in statement else "regulator_state")
    store.close()


def rewritten(entries: Iterator[RegulatorEntry] | list[RegulatorEntry], **reported: str) -> list[RegulatorEntry]:
    """A forger's work: the stages say something else, and every hash is made anew."""
    forged: list[RegulatorEntry] = []
    running = HASH_ZERO
    for entry in entries:
        body = json.loads(entry.body)
        if entry.kind == "stage":
            body["request"].update(reported)
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        running = entry_hash(running, text.encode())
        forged.append(replace(entry, body=text, entry_hash=running))
    return forged


async def test_an_export_can_be_checked_alone_and_against_a_kept_hash(played: Played) -> None:
    exported = played.state()
    kept = played.store.head()
    assert verify_chain(exported) == kept
    for wrong in (exported[1:], exported[:2] + exported[3:], [*exported[:2], exported[3], exported[2]], exported * 2):
        with pytest.raises(VerificationError):
            verify_chain(wrong)
    # What a chain alone cannot show, and the kept hash does: a tail cut off, and a whole chain made anew.
    assert verify_chain(exported[:-1]) != kept
    assert verify_chain(rewritten(exported)) == kept
    assert verify_chain(rewritten(exported, returned_minor="7")) != kept


async def test_the_hashes_are_those_of_the_document(played: Played) -> None:
    """docs/embedded-books.md, step by step, with nothing of the server."""
    running = bytes(32)
    for entry in played.store.entries():
        running = hashlib.sha256(b"rgs/test-regulator/entry/v1\x00" + running + entry.body.encode("ascii")).digest()
        assert entry.entry_hash == running
    assert played.store.head() == (4, running)


@pytest.mark.parametrize("body", ["[]", '"text"', "é", "{}", ""])
def test_a_well_hashed_entry_must_still_be_one(body: str) -> None:
    entry = RegulatorEntry(1, "opening", "M" * 16, 0, body, entry_hash(HASH_ZERO, body.encode()))
    with pytest.raises(VerificationError):
        verify_chain([entry])


def test_an_empty_regulator_has_a_head(tmp_path: Path) -> None:
    store = RegulatorStore(tmp_path / "regulator.sqlite")
    assert store.head() == store.verify() == (0, HASH_ZERO)
    store.close()


def test_a_journal_of_the_impossible_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "regulator.sqlite"
    store = RegulatorStore(path)
    with store.transaction("0" * 26, NOW_MS) as book:
        book.append("closing", "M" * 16, 0, {"regulator_session_id": "M" * 16})
    with pytest.raises(VerificationError) as refused:
        store.verify()
    assert refused.value.metadata == {"check": "regulator_state", "entry_no": "1"}
    store.close()
