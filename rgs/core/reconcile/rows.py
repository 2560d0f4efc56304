"""Records of the outside parties, checked field by field and put into the form that the store loads.

Columns are those of docs/reconciliation.md. An unknown column is ignored. A missing or malformed one refuses the row
and is named in the rejects; the run is incomplete then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.reconcile.lines import Record, RowRefusedError
from rgs.core.reconcile.mapping import Mapping
from rgs.core.reconcile.matching import ACCEPTED, KINDS, STATUSES
from rgs.core.statements import leaf_hash
from rgs.core.times import TIME_MS_MAX, parse_date

TEXT_MAX: Final = 256
Row = tuple[str, ...]
"""Fields as texts in the order of the table; an absent value is empty."""

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
NULL: Final = "\\N"
"""An absent number, for the store."""
WALLET: Final = "wallet"
RECEIPTS: Final = "receipts"


@dataclass(frozen=True, slots=True)
class FieldReader:
    """The fields of a record, read by the rules of one mapping. `zone` is the mapping's time zone."""

    mapping: Mapping
    zone: tzinfo | None = None

    def text(self, record: Record, name: str, default: str | None = None) -> str:
        """A printable text of at most TEXT_MAX characters."""
        value = record.get(name, "").strip()
        if not value:
            if default is None:
                raise RowRefusedError(f"{name} is missing")
            return default
        if len(value) > TEXT_MAX or not value.isprintable() or value == NULL:
            raise RowRefusedError(f"{name} is longer than {TEXT_MAX} characters or not printable")
        return value

    def one_of(self, record: Record, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """A word of a closed vocabulary."""
        value = self.text(record, name, default)
        if value not in allowed:
            raise RowRefusedError(f"{name} {value[:40]!r} is not one of {', '.join(allowed)}")
        return value

    def amount(self, record: Record, name: str, default: str | None = None) -> str:
        """Minor units as a decimal."""
        value = self.text(record, name, default)
        return str(self.mapping.amount(name, value)) if value else ""

    def number(self, record: Record, name: str) -> str:
        """A count of at most nine digits."""
        value = self.text(record, name)
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            raise RowRefusedError(f"{name} {value[:40]!r} is not a number")
        return str(int(value))

    def hash(self, record: Record, name: str) -> str:
        """32 bytes in lowercase hex."""
        value = self.text(record, name)
        if _HASH.fullmatch(value) is None:
            raise RowRefusedError(f"{name} is not 64 lowercase hex digits")
        return value

    def currency(self, record: Record) -> str:
        """An ISO 4217 code."""
        value = self.text(record, "currency")
        if _CURRENCY.fullmatch(value) is None:
            raise RowRefusedError(f"currency {value[:40]!r} is not three capital letters")
        return value

    def time(self, record: Record, name: str = "time", default: str | None = None) -> str:
        """Milliseconds since 1970 as a decimal."""
        value = self.text(record, name, default)
        if not value:
            return "0"
        time_ms = self.mapping.time_ms(value, self.zone)
        if not 0 <= time_ms <= TIME_MS_MAX:
            raise RowRefusedError(f"{name} {value[:40]!r} is outside 1970..9999")
        return str(time_ms)

    def date(self, record: Record) -> str:
        """A date of the form 2026-11-21."""
        value = self.text(record, "date")
        try:
            parse_date(value)
        except FormatError as error:
            raise RowRefusedError(error.message) from None
        return value


def read_wallet(record: Record, read: FieldReader) -> tuple[str, Row]:
    """A row of the wallet's statement."""
    return WALLET, (
        read.text(record, "transaction_id"),
        read.one_of(record, "kind", KINDS),
        read.text(record, "player", ""),
        read.currency(record),
        read.amount(record, "amount_minor"),
        read.time(record),
        read.text(record, "reference", ""),
        read.one_of(record, "status", STATUSES, ACCEPTED),
        read.amount(record, "balance_after_minor", "") or NULL,
        read.text(record, "operator", ""),
        read.text(record, "book", ""),
    )


def read_receipt(record: Record, read: FieldReader) -> tuple[str, Row]:
    """An opening as the operator stored it. If the envelope is there, it must have the claimed hash."""
    opening = read.hash(record, "opening_hash")
    if (envelope := record.get("envelope", "")) and leaf_hash(envelope.encode()).hex() != opening:
        raise RowRefusedError("envelope does not hash to opening_hash")
    return RECEIPTS, (
        read.text(record, "session_id"),
        read.number(record, "round_no"),
        opening,
        read.time(record, default=""),
    )


_REGULATOR: Final[Dictionary[str, tuple[str, Callable[[Record, FieldReader], Row]]]] = {
    "session": (
        "r_sessions",
        lambda record, read: (
            read.text(record, "regulator_session_id"),
            read.text(record, "reference", ""),
            read.text(record, "operator", ""),
            read.currency(record),
            read.time(record),
            read.text(record, "ruleset", ""),
            read.one_of(record, "test_regulator", ("true", "false"), "false"),
        ),
    ),
    "purchase": (
        "r_purchases",
        lambda record, read: (
            read.text(record, "regulator_session_id"),
            read.text(record, "regulator_participation_id"),
            read.number(record, "purchase_no"),
            read.text(record, "player", ""),
            read.amount(record, "amount_minor"),
            read.text(record, "transaction_id", ""),
            read.time(record),
        ),
    ),
    "stage": (
        "r_stages",
        lambda record, read: (
            read.text(record, "regulator_session_id"),
            read.text(record, "regulator_participation_id"),
            read.number(record, "stage_no"),
            read.amount(record, "available_minor"),
            read.amount(record, "staked_minor"),
            read.amount(record, "returned_minor"),
            read.hash(record, "opening_hash"),
            read.hash(record, "final_hash"),
            read.time(record),
        ),
    ),
    "end": (
        "r_ends",
        lambda record, read: (
            read.text(record, "regulator_session_id"),
            read.text(record, "regulator_participation_id"),
            read.number(record, "rounds"),
            read.amount(record, "final_balance_minor"),
            read.time(record),
        ),
    ),
    "close": ("r_closes", lambda record, read: (read.text(record, "regulator_session_id"), read.time(record))),
    "total": (
        "r_totals",
        lambda record, read: (
            read.date(record),
            read.text(record, "operator", ""),
            read.currency(record),
            read.number(record, "rounds"),
            read.amount(record, "bought_minor"),
            read.amount(record, "staked_minor"),
            read.amount(record, "returned_minor"),
            read.amount(record, "paid_out_minor"),
        ),
    ),
}
"""The kinds of the regulator's rows: table and fields."""


def read_regulator(record: Record, read: FieldReader) -> tuple[str, Row]:
    """A row of the regulator's records: its table and its fields."""
    table, fields = _REGULATOR[read.one_of(record, "kind", tuple(_REGULATOR))]
    return table, fields(record, read)
