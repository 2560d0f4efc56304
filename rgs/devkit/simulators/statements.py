"""The simulators' books as files for reconciliation: `wallet.csv` and `regulator.jsonl`.

docs/reconciliation.md lists the columns and keys, docs/simulators.md their origin. Rows are in the order of the book,
so that the same book gives the same bytes.
"""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any, Final

from rgs.devkit.simulators.wallet import DOUBLED
from rgs.store.regulator import RegulatorEntry, RegulatorStore
from rgs.store.wallet import WalletEntry, WalletStore

WALLET_COLUMNS: Final = (
    *("transaction_id", "kind", "player", "currency", "amount_minor", "time", "reference", "status"),
    *("balance_after_minor", "operator", "book"),
)
SIMULATED: Final = "simulated"
"""Marks the book in the file, so that no reconciliation takes it for an outsider's."""
_CURRENT: Final = "0"
"""First character of every ULID until the year 3084."""


def wallet_statement(store: WalletStore, operator: str = "") -> str:
    """`wallet.csv`: a line for each entry but account openings; of one operator if it is named.

    `status` is accepted (the money moved), refused (a debit) or tombstone (a rollback where there was no debit).
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(WALLET_COLUMNS)
    for entry in store.rows():
        if entry.kind != "opening" and operator in ("", entry.operator):
            writer.writerow(_wallet_row(entry))
    return text.getvalue()


def _wallet_row(entry: WalletEntry) -> tuple[str | int, ...]:
    refused = entry.kind == "refused_debit"
    tombstone = entry.kind == "rollback" and not entry.transfer_minor
    transaction_id = entry.transaction_id or ""
    if transaction_id.startswith(DOUBLED):
        transaction_id = _CURRENT + transaction_id[1:]
    return (
        transaction_id,
        "debit" if refused else entry.kind,
        entry.player,
        entry.currency,
        entry.amount_minor,
        entry.recorded_time,
        entry.reference,
        "refused" if refused else "tombstone" if tombstone else "accepted",
        "" if entry.balance_after_minor is None else entry.balance_after_minor,
        entry.operator,
        SIMULATED,
    )


def regulator_statement(store: RegulatorStore) -> str:
    """`regulator.jsonl`: one flat object on each line; `kind` is session, purchase, stage, end, close or total.

    A day that was aligned more than once has its last alignment. Module reports are left out.
    """
    rows: list[dict[str, Any]] = []
    totals: dict[str, dict[str, Any]] = {}
    for entry in store.entries():
        if entry.kind == "alignment":
            totals[entry.subject] = _row(entry)
        elif entry.kind != "modules":
            rows.append(_row(entry))
    return "".join(json.dumps(row, sort_keys=True) + "\n" for row in (*rows, *totals.values()))


def _row(entry: RegulatorEntry) -> dict[str, Any]:
    body = json.loads(entry.body)
    reported: dict[str, Any] = dict(body["request"])
    if entry.kind == "opening":
        reported |= {"kind": "session", "regulator_session_id": entry.subject, "test_regulator": True}
        reported["time"] = reported.pop("open_time")
    elif entry.kind == "purchase":
        reported |= {"kind": "purchase", "regulator_participation_id": entry.subject}
        reported |= {"time": reported.pop("purchase_time"), "transaction_id": body["transaction_id"]}
    elif entry.kind == "closing":
        reported |= {"kind": "close", "time": reported.pop("close_time")}
    elif entry.kind == "alignment":
        sums = reported.pop("totals")
        reported |= {"kind": "total", "date": reported.pop("day"), "alignment_no": str(entry.number)}
        reported |= {"rounds": sums["stages"], "paid_out_minor": sums["final_balance_minor"]}
        reported |= {
            name: sums[name] for name in ("bought_minor", "staked_minor", "returned_minor", "purchases", "ends")
        }
    else:
        reported |= {"kind": entry.kind, "time": reported.pop("end_time")}
    return reported
