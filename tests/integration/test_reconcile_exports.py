"""`rgs export-wallet` and `rgs export-regulator`: what the embedded books hold, in the layouts that are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rgs.cli import run
from rgs.core.ids import format_ulid
from rgs.integrity.manifest import make_manifest
from rgs.node.config import load_config
from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import EnteredTransfer, WalletStore
from tests.support.service.reconciling import play_day

MANIFEST = make_manifest()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert run(["init", "--home", str(tmp_path / "home")], MANIFEST) == 0
    return tmp_path / "home"


def test_what_the_wallet_refused_and_gave_back_is_told_apart(home: Path, tmp_path: Path) -> None:
    store = WalletStore(load_config(home).wallet)
    with store.transaction(1_795_000_000_000) as entries:
        entries.add_account("op-1", "anna", "EUR")
        entries.append("opening", EnteredTransfer("op-1", "anna", "EUR", 900, "", "opening"), 900)
        for kind, transaction_id, moved in (
            ("debit", "A", -100), ("rollback", "A", 100), ("refused_debit", "B", 0), ("rollback", "C", 0),
            ("credit", "D", 100),
        ):  # fmt: skip
            entries.append(kind, EnteredTransfer("op-1", "anna", "EUR", 100, transaction_id, "P"), moved)
    store.close()
    out = tmp_path / "wallet.csv"
    assert run(["export-wallet", "--home", str(home), "--out", str(out)], MANIFEST) == 0
    rows = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert [(row[0], row[1], row[7]) for row in rows] == [
        ("A", "debit", "accepted"),
        ("A", "rollback", "accepted"),
        ("B", "debit", "refused"),
        ("C", "rollback", "tombstone"),
        ("D", "credit", "accepted"),
    ]
    assert {row[10] for row in rows} == {"embedded"}
    assert run(["export-wallet", "--home", str(home), "--out", str(out)], MANIFEST) == 1  # never written over


def test_where_there_is_no_book_none_is_made(home: Path, tmp_path: Path) -> None:
    for command, book in (
        ("export-wallet", load_config(home).wallet),
        ("export-regulator", load_config(home).regulator),
    ):
        book.unlink(missing_ok=True)
        assert run([command, "--home", str(home), "--out", str(tmp_path / "out")], MANIFEST) == 1
        assert not book.exists()
        assert not (tmp_path / "out").exists()


def test_the_regulator_with_the_totals_of_its_day(home: Path, tmp_path: Path) -> None:
    day = play_day(tmp_path / "played")
    regulator = load_config(home).regulator
    regulator.parent.mkdir(parents=True, exist_ok=True)
    regulator.write_bytes((tmp_path / "played" / "home" / "regulator.db").read_bytes())
    store = RegulatorStore(regulator)
    with store.transaction(format_ulid(1_795_000_000_000, bytes(10)), 1_795_000_000_000) as book:  # of no session
        book.append("modules", "node1", 1, {"modules": [], "node": "node1", "report_time": "2026-11-18T00:00:00.000Z"})
        book.append("alignment", "op-1:EUR:2026-11-17", 1, {"day": "2026-11-17", "totals": {}})
    store.close()
    out = tmp_path / "regulator.jsonl"
    assert run(["export-regulator", "--home", str(home), "--out", str(out)], MANIFEST) == 0
    assert out.read_bytes() == day.regulator.read_bytes()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    (total,) = [row for row in rows if row["kind"] == "total"]
    for name in ("staked_minor", "returned_minor"):
        assert int(total[name]) == sum(int(row[name]) for row in rows if row["kind"] == "stage")
    assert all(row["test_regulator"] is True for row in rows)


def test_reconcile_says_what_is_missing(home: Path) -> None:
    assert run(["reconcile", "--out", str(home / "out")], MANIFEST) == 1
