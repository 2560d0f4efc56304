"""Reconciliation at scale: `python -m bench.reconcile [--rows N]`. Our pass over two files against duckdb's bare join.

duckdb makes both sides: an extract of transfers in Parquet, as the verifying pass writes it with `--keep-extract`, and
the operator's wallet statement in our own layout, CSV or Parquet, with a few faults planted. The measurement is from
those files to the last break: loading with every check, joining, totals, participations, the breaks in order. It leaves
out verifying signatures and replaying rounds; `make bench` has their cost.

The yardstick is a full outer join by id of the same two files, read by the same duckdb with the same limits and threads
in the same run. Figures are CPU seconds of a process of its own each; memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from rgs.core.reconcile.balances import match_balances
from rgs.core.reconcile.mapping import Mapping
from rgs.core.reconcile.matching import Terms, match_money
from rgs.core.reconcile.rows import read_wallet
from rgs.service.reconciliation.sources import Outside, RowFiles
from rgs.store.reconciliation import THREADS, BookComparison

ROWS = 200_000
MEMORY_MB = 2048
FAULTS = 6
FOREVER = 1 << 62

MAKE_TRANSFERS = """COPY (SELECT printf('01K%023d', (i * 7919) % $rows) AS transaction_id,
    CASE i % 2 WHEN 0 THEN 'debit' ELSE 'credit' END AS kind, 100 + i % 9973 AS amount_minor, 'EUR' AS currency,
    'op-1' AS operator, printf('player-%d', i % 50000) AS player, 'uth-solo' AS game,
    printf('01S%023d', i // 100) AS session_id, printf('01P%023d', i // 100) AS participation_id,
    participation_id AS reference, i AS purchase_no,
    '' AS regulator_session_id, '' AS regulator_participation_id, 'transfer' AS source,
    1795000000000 + i * 5 AS begun_ms, begun_ms AS time_ms, 'hash' AS statement, true AS is_sound
    FROM range($rows) t(i)) TO '{transfers}' (FORMAT parquet)"""
MAKE_WALLET = """COPY (SELECT transaction_id, kind, player, currency, amount_minor + (CASE WHEN time_ms = 1795000000005
        THEN 1 ELSE 0 END) AS amount_minor,
    strftime(make_timestamp(time_ms * 1000), '%Y-%m-%dT%H:%M:%S.%gZ') AS time, participation_id AS reference,
    'accepted' AS status, CAST(NULL AS BIGINT) AS balance_after_minor, operator, '' AS book
    FROM read_parquet('{transfers}') WHERE time_ms NOT IN (1795000000010, 1795000000015)
    UNION ALL SELECT transaction_id, kind, player, currency, amount_minor,
        strftime(make_timestamp(time_ms * 1000), '%Y-%m-%dT%H:%M:%S.%gZ'), participation_id, 'accepted', NULL,
        operator, ''
    FROM read_parquet('{transfers}') WHERE time_ms = 1795000000020
    UNION ALL SELECT 'stray-' || i, 'debit', 'player-1', 'EUR', 1, '2026-11-18T12:00:00.000Z', '', 'accepted', NULL,
        'op-1', '' FROM range(2) t(i)) TO '{wallet}' (FORMAT parquet)"""
MAKE_CSV = """COPY (SELECT * REPLACE (nullif(reference, '') AS reference, nullif(book, '') AS book)
    FROM read_parquet('{parquet}')) TO '{csv}' (FORMAT csv, HEADER true)"""
BARE_JOIN = """SELECT count(*), count(COLUMNS(l.*)), count(COLUMNS(w.*)) FROM read_parquet('{transfers}') l
    FULL JOIN {wallet} w ON l.transaction_id = w.transaction_id"""


def make(folder: Path, rows: int) -> None:
    """The two sides, the wallet's in both formats."""
    made = {"transfers": folder / "transfers.parquet"}
    with duckdb.connect(config={"memory_limit": "1536MB", "threads": THREADS}) as db:
        db.execute(MAKE_TRANSFERS.format(**made), {"rows": rows})
        db.execute(MAKE_WALLET.format(**made, wallet=folder / "wallet.parquet"))
        db.execute(MAKE_CSV.format(csv=folder / "wallet.csv", parquet=folder / "wallet.parquet"))


def ours(folder: Path, wallet: str) -> dict[str, Any]:
    """Reconcile the two files, to the last break."""
    work = folder / f"work-{wallet}"
    work.mkdir()
    store = BookComparison(work, memory_mb=MEMORY_MB, files=[folder / "transfers.parquet", folder / wallet])
    terms = Terms(FOREVER, 0, FOREVER, True, False, False, FOREVER, FOREVER, FOREVER)
    store.load_transfers(folder / "transfers.parquet")
    rows = RowFiles(work)
    taken = Outside(store, rows).read("wallet", folder / wallet, Mapping(), None, read_wallet)
    rows.load_into(store)
    store.name_nameless(terms)
    store.join(terms)
    found = [reported.kind for key, transfers, theirs, tickets in store.money()
             for reported in match_money(key, transfers, theirs, tickets, terms)]  # fmt: skip
    found += [reported.kind for account in store.accounts() for reported in match_balances(account, terms)]
    totals = store.totals(terms)
    store.write_participations(work / "participations.csv")
    store.close()
    return {"breaks": sorted(found), "rows": taken.rows, "totals": len(totals)}


def bare(folder: Path, wallet: str) -> dict[str, Any]:
    """The yardstick."""
    read = "read_csv" if wallet.endswith(".csv") else "read_parquet"
    config: dict[str, Any] = {"memory_limit": "1536MB", "threads": THREADS, "temp_directory": str(folder / "spill")}
    with duckdb.connect(config=config) as db:
        db.execute("SET preserve_insertion_order = false")
        table = f"{read}('{folder / wallet}')"
        joined = db.execute(BARE_JOIN.format(transfers=folder / "transfers.parquet", wallet=table)).fetchone()
        return {"joined": joined[0] if joined else 0}


def measured(part: str, folder: Path, wallet: str) -> dict[str, Any]:
    """The result of a part that runs in a process of its own."""
    command = [sys.executable, "-m", "bench.reconcile", "--part", part, "--folder", str(folder), "--wallet", wallet]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    reported: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return reported


def run_part(part: str, folder: Path, wallet: str) -> None:
    """Run one measurement, and print it as JSON."""
    began = time.monotonic()
    before = time.process_time()
    reported = (ours if part == "ours" else bare)(folder, wallet)
    reported["cpu_s"] = time.process_time() - before
    reported["wall_s"] = time.monotonic() - began
    reported["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(reported))


def main() -> int:
    """Measure and print; 1 if the planted faults are not exactly the breaks found."""
    parser = argparse.ArgumentParser(prog="python -m bench.reconcile", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="rows a side")
    parser.add_argument("--part", choices=("ours", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where the files go; default: a temporary folder")
    parser.add_argument("--wallet", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        run_part(arguments.part, arguments.folder, arguments.wallet)
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        make(folder, arguments.rows)
        is_right = True
        print(f"{arguments.rows} rows a side, {THREADS} threads, promise {MEMORY_MB} MB, {os.cpu_count()} cores")
        for wallet in ("wallet.parquet", "wallet.csv"):
            yard, reported = measured("bare", folder, wallet), measured("ours", folder, wallet)
            ratio = reported["cpu_s"] / yard["cpu_s"]
            both = 2 * arguments.rows
            print(
                f"{wallet:<15} ours {both / reported['cpu_s']:>12,.0f} rows/CPU s, {reported['cpu_s']:6.1f} CPU s,"
                f" peak {reported['peak_mb']:5.0f} MB; bare join {both / yard['cpu_s']:>12,.0f} rows/CPU s,"
                f" {yard['cpu_s']:6.1f} CPU s, peak {yard['peak_mb']:5.0f} MB; ratio {ratio:.2f} (aim <= 3)"
            )
            is_right &= len(reported["breaks"]) == FAULTS and reported["rows"] == arguments.rows + 1
            print(f"{'':<15} breaks: {', '.join(reported['breaks'])}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
