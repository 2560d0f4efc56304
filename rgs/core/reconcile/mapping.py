"""A mapping file: how another layout of wallet statement, receipts or regulator becomes ours (docs/reconciliation.md).

It is TOML, and an unknown key is an error. Nothing is guessed: an amount with more decimals than the currency has is
refused, and so is a local time that the clock showed twice or never.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from rgs.core.errors import InvalidFieldError
from rgs.core.reconcile.lines import Record, RowRefusedError

ENCODINGS: Final = ("utf-8", "ascii", "latin-1", "iso-8859-15", "cp1252")
FORMATS: Final = ("csv", "jsonl", "parquet")
EXPONENT_MAX: Final = 4
_SHAPE: Final[dict[str, type]] = {
    "format": str,
    "encoding": str,
    "delimiter": str,
    "columns": dict,
    "constants": dict,
    "values": dict,
    "amounts": dict,
    "time": dict,
}
_AMOUNTS: Final[dict[str, type]] = {"exponent": int, "decimal": str, "thousands": str}
_TIME: Final[dict[str, type]] = {"format": str, "zone": str}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:([Zz])|([+-]\d{2}:\d{2}))", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Mapping:
    """How to read one file. The default is our own layout."""

    format: str = ""
    encoding: str = "utf-8"
    delimiter: str = ","
    columns: Dictionary[str, str] = field(default_factory=dict)
    constants: Dictionary[str, str] = field(default_factory=dict)
    values: Dictionary[str, Dictionary[str, str]] = field(default_factory=dict)
    exponent: int | None = None
    decimal: str = "."
    thousands: str = ""
    time_format: str = ""
    zone: str = ""
    sha256: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the file is in our own layout."""
        return not self.sha256

    def rename(self, record: Record) -> Record:
        """The record with our names: columns renamed, constants added, words of closed vocabularies translated."""
        if self.is_plain:
            return record
        found = {ours: record[theirs] for ours, theirs in self.columns.items() if theirs in record}
        named = {name: value for name, value in record.items() if name not in found} | found | dict(self.constants)
        for name, words in self.values.items():
            if name in named:
                named[name] = words.get(named[name], named[name])
        return named

    def amount(self, name: str, text: str) -> int:
        """Minor units. RowRefusedError for a text that is not a number, or not a whole number >= 0 of minor units."""
        plain = text
        if self.thousands and self.exponent is not None:
            whole, mark, rest = plain.partition(self.decimal)
            groups = whole.split(self.thousands)
            if len(groups) > 1 and (not 1 <= len(groups[0]) <= 3 or any(len(group) != 3 for group in groups[1:])):
                raise RowRefusedError(f"{name} {text[:40]!r}: thousands separators do not stand between thousands")
            plain = "".join(groups) + mark + rest
        if self.exponent is None:
            if not _is_digits(plain) or len(plain) > 18:
                raise RowRefusedError(f"{name} {text[:40]!r} is not a whole number of minor units of at most 18 digits")
            return int(plain)
        whole, mark, decimals = plain.partition(self.decimal)
        if not _is_digits(whole) or (mark and not _is_digits(decimals)) or len(whole) > 14:
            raise RowRefusedError(f"{name} {text[:40]!r} is not a decimal amount")
        kept, over = decimals[: self.exponent], decimals[self.exponent :]
        if over.strip("0"):
            raise RowRefusedError(f"{name} {text[:40]!r} has more than {self.exponent} decimals: not exact")
        return int(whole + kept.ljust(self.exponent, "0"))

    def time_ms(self, text: str, zone: tzinfo | None) -> int:
        """Milliseconds since 1970. Without a format of the mapping: RFC 3339 with `Z` or an offset."""
        if not self.time_format:
            return parse_rfc3339(text)
        try:
            moment = datetime.strptime(text, self.time_format)  # noqa: DTZ007 - the zone is the mapping's
        except ValueError:
            raise RowRefusedError(f"time {text[:40]!r} is not of the form {self.time_format}") from None
        if moment.tzinfo is None:
            early, late = moment.replace(tzinfo=zone or UTC), moment.replace(tzinfo=zone or UTC, fold=1)
            if early.utcoffset() != late.utcoffset():
                raise RowRefusedError(f"time {text[:40]!r} was shown twice or never by the clocks of {self.zone}")
            moment = early
        return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_rfc3339(text: str) -> int:
    """Milliseconds since 1970; RowRefusedError otherwise. Finer digits are cut off."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise RowRefusedError(f"time {text[:40]!r} is not RFC 3339 with Z or an offset")
    date, time, fraction, _, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{time}{offset or '+00:00'}")
    except ValueError:
        raise RowRefusedError(f"time {text[:40]!r} does not exist") from None
    time_ms = (moment - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "0")[:3].ljust(3, "0"))
    if time_ms < 0:
        raise RowRefusedError(f"time {text[:40]!r} is before 1970")
    return time_ms


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def parse_mapping(content: bytes, name: str) -> Mapping:
    """The mapping of a file's bytes; InvalidFieldError naming file and key otherwise."""
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError(f"{name} is not TOML: {str(error)[:100]}", field=name) from None
    _verify_keys(name, "", document, _SHAPE)
    amounts, time = document.get("amounts", {}), document.get("time", {})
    _verify_keys(name, "amounts.", amounts, _AMOUNTS)
    _verify_keys(name, "time.", time, _TIME)
    for key, allowed in (("encoding", ENCODINGS), ("format", FORMATS)):
        if key in document and document[key] not in allowed:
            raise _refusal(name, key, f"one of {', '.join(allowed)}", document[key])
    exponent = amounts.get("exponent")
    if exponent is not None and not 0 <= exponent <= EXPONENT_MAX:
        raise _refusal(name, "amounts.exponent", f"0 to {EXPONENT_MAX}", exponent)
    decimal, thousands = amounts.get("decimal", "."), amounts.get("thousands", "")
    if len(decimal) != 1 or len(thousands) > 1 or decimal == thousands or (decimal + thousands).isalnum():
        raise _refusal(name, "amounts", "one decimal mark and at most one other thousands mark", decimal + thousands)
    if thousands and exponent is None:
        raise _refusal(name, "amounts.exponent", "given where thousands is", "missing")
    delimiter = document.get("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise _refusal(name, "delimiter", "one character, no quote and no line end", delimiter)
    values = document.get("values", {})
    for key, words in values.items():
        if not isinstance(words, dict):
            raise _refusal(name, f"values.{key}", "a table of words", words)
        _verify_texts(name, f"values.{key}.", words)
    for table in ("columns", "constants"):
        _verify_texts(name, f"{table}.", document.get(table, {}))
    return Mapping(
        format=document.get("format", ""),
        encoding=document.get("encoding", "utf-8"),
        delimiter=delimiter,
        columns=document.get("columns", {}),
        constants=document.get("constants", {}),
        values=values,
        exponent=exponent,
        decimal=decimal,
        thousands=thousands,
        time_format=time.get("format", ""),
        zone=time.get("zone", ""),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _verify_keys(name: str, prefix: str, found: Dictionary[str, Any], shape: Dictionary[str, type]) -> None:
    for key, value in found.items():
        if key not in shape:
            raise _refusal(name, prefix + key, f"one of {', '.join(shape)}", key)
        if type(value) is not shape[key]:
            raise _refusal(name, prefix + key, f"of the type {shape[key].__name__}", value)


def _verify_texts(name: str, prefix: str, found: Dictionary[str, Any]) -> None:
    for key, value in found.items():
        if not isinstance(value, str):
            raise _refusal(name, prefix + key, "text", value)


def _refusal(name: str, key: str, limit: str, value: object) -> InvalidFieldError:
    text = str(value)[:80]
    return InvalidFieldError(f"{name}: {key} must be {limit}, not {text!r}", field=key, limit=limit, value=text)
