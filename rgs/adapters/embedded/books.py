"""The embedded books in the layouts that `rgs reconcile` reads, line by line (docs/reconciliation.md).

They stand in for the files of an operator's wallet and of a regulator's system. The fields `book` and `test_regulator`
mark them as embedded, so that a reconciliation cannot take them for the files of others.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rgs.core.reconcile.matching import ACCEPTED, REFUSED, TOMBSTONE
from rgs.core.statements import leaf_hash, parse_envelope, parse_statement
from rgs.store.wallet import WalletEntry

WALLET_COLUMNS: Final = (
    *("transaction_id", "kind", "player", "currency", "amount_minor", "time", "reference", "status"),
    *("balance_after_minor", "operator", "book"),
)
EMBEDDED: Final = "embedded"


def wallet_lines(entries: Iterable[WalletEntry]) -> Iterator[bytes]:
    """The header, and one line for each transaction except the openings of accounts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")

    def line(cells: Iterable[object]) -> bytes:
        text.seek(0)
        text.truncate()
        writer.writerow(cells)
        return text.getvalue().encode()

    yield line(WALLET_COLUMNS)
    for entry in entries:
        if entry.kind == "opening":
            continue
        status = ACCEPTED
        if entry.kind == "refused_debit":
            status = REFUSED
        elif entry.kind == "rollback" and not entry.transfer_minor:
            status = TOMBSTONE
        balance = "" if entry.balance_after_minor is None else entry.balance_after_minor
        kind = entry.kind.removeprefix("refused_")
        yield line(
            (entry.transaction_id, kind, entry.player, entry.currency, entry.amount_minor, entry.recorded_time,
             entry.reference, status, balance, entry.operator, EMBEDDED)
        )  # fmt: skip


_KEPT: Final = {"opening": "session", "purchase": "purchase", "stage": "stage", "end": "end", "closing": "close"}
_TIMES: Final = ("open_time", "purchase_time", "end_time", "close_time")
_DROPPED: Final = frozenset({"jurisdiction", "participation_cap_minor", *_TIMES})


def regulator_lines(entries: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """One line for each entry of a session, then one for each day, operator and currency with its totals."""
    sessions: dict[str, tuple[str, str]] = {}
    totals: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for entry in entries:
        if entry["kind"] not in _KEPT:  # alignments and reports of software have no session
            continue
        request: dict[str, str] = entry["request"]
        time = next(request[name] for name in _TIMES if name in request)
        row: dict[str, object] = {name: value for name, value in request.items() if name not in _DROPPED}
        row |= {"kind": _KEPT[entry["kind"]], "test_regulator": True, "time": time}
        match entry["kind"]:
            case "opening":
                row["regulator_session_id"] = entry["subject"]
                sessions[entry["subject"]] = (request["operator"], request["currency"])
            case "purchase":
                row |= {"regulator_participation_id": entry["subject"], "transaction_id": entry["transaction_id"]}
            case _:
                pass
        sums = totals[time[:10], *sessions[str(row["regulator_session_id"])]]
        sums["bought_minor"] += int(request.get("amount_minor", 0))
        sums["rounds"] += entry["kind"] == "stage"
        sums["staked_minor"] += int(request.get("staked_minor", 0))
        sums["returned_minor"] += int(request.get("returned_minor", 0))
        sums["paid_out_minor"] += int(request.get("final_balance_minor", 0))
        yield _json_line(row)
    for (date, operator, currency), sums in sorted(totals.items()):
        reported: dict[str, object] = {"currency": currency, "date": date, "kind": "total", "operator": operator}
        yield _json_line({**reported, **{name: str(value) for name, value in sums.items()}, "test_regulator": True})


def receipt_line(opening: bytes) -> bytes:
    """The line that an operator keeps of an opening: one line of its receipts."""
    kind, body = parse_statement(parse_envelope(opening))
    return _json_line(
        {
            "opening_hash": leaf_hash(opening).hex(),
            "round_id": body["round_id"] if kind.name == "seat_opening" else body["deal"]["round_id"],
            "session_id": body["session_id"],
            "round_no": body["round_no"],
            "time": body["time"],
        }
    )


def _json_line(row: dict[str, object]) -> bytes:
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"
