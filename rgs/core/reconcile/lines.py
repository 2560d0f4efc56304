"""Lines and records of text files from outside: bounded, one record a line, each refusal with its line number.

Chunks of bytes come in, decoded records go out. These are refused: a line above 64 KiB, NUL bytes, bytes that are not
of the encoding, a quoted field that runs over the line, JSON that repeats a key. Reading continues with the next line.
A header that names a column twice ends the reading.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rgs.core.errors import FormatError

LINE_BYTES_MAX: Final = 64 * 1024
COLUMNS_MAX: Final = 256
_BOM: Final = b"\xef\xbb\xbf"
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")


class RowRefusedError(Exception):
    """A row that cannot be used; `message` is its reason in the rejects. Only reconciliation raises and catches it."""

    @property
    def message(self) -> str:
        return str(self)


def bounded_lines(chunks: Iterable[bytes], limit: int = LINE_BYTES_MAX) -> Iterator[tuple[int, bytes | None]]:
    """(number from 1, line without its ending) of each line; None for one longer than `limit`. Holds one line."""
    number, kept, is_long = 0, b"", False
    for chunk in chunks:
        parts = chunk.split(b"\n")
        for part in parts[:-1]:
            number += 1
            line = kept + part if kept else part
            yield number, None if is_long or len(line) > limit else line.removesuffix(b"\r")
            kept, is_long = b"", False
        kept += parts[-1]
        if len(kept) > limit:
            kept, is_long = kept[:1], True
    if kept or is_long:
        yield number + 1, None if is_long else kept.removesuffix(b"\r")


def _decode(line: bytes | None, number: int, encoding: str) -> str:
    if line is None:
        raise RowRefusedError(f"longer than {LINE_BYTES_MAX} bytes")
    if number == 1:
        if line.startswith(_WIDE):
            raise RowRefusedError("UTF-16: convert the file to UTF-8")
        line = line.removeprefix(_BOM)
    if b"\x00" in line:
        raise RowRefusedError("holds a NUL byte")
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise RowRefusedError(f"not {encoding} at byte {error.start}") from None


Record = dict[str, str]
Read = tuple[int, Record | RowRefusedError]


def csv_records(chunks: Iterable[bytes], *, encoding: str = "utf-8", delimiter: str = ",") -> Iterator[Read]:
    """(line number, record or refusal) of each row below the header. FormatError for a bad header."""
    lines = bounded_lines(chunks)
    first = next((line for _, line in lines), b"")
    try:
        header = [name.strip() for name in split_csv(_decode(first, 1, encoding), delimiter)]
    except RowRefusedError as error:
        raise FormatError(f"the header cannot be read: {error.message}") from None
    if not any(header):
        raise FormatError("the file is empty: there is no header")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise FormatError(f"the header names {', '.join(twice)} more than once", value=", ".join(twice))
    for number, line in lines:
        if not line and line is not None:
            continue
        try:
            cells = split_csv(_decode(line, number, encoding), delimiter)
            if len(cells) != len(header):
                raise RowRefusedError(f"{len(cells)} fields, the header names {len(header)}")
            yield number, dict(zip(header, cells, strict=True))
        except RowRefusedError as error:
            yield number, error


def split_csv(text: str, delimiter: str) -> list[str]:
    """The fields of one line. RowRefusedError for wrong quotes or more than COLUMNS_MAX fields."""
    if '"' not in text:
        cells = text.split(delimiter)
    else:
        try:
            (cells,) = list(csv.reader([text], delimiter=delimiter, strict=True))
        except (csv.Error, ValueError):
            raise RowRefusedError("a quoted field does not end in its line, or its quotes are not doubled") from None
    if len(cells) > COLUMNS_MAX:
        raise RowRefusedError(f"{len(cells)} fields, at most {COLUMNS_MAX}")
    return cells


def json_records(chunks: Iterable[bytes], *, encoding: str = "utf-8") -> Iterator[Read]:
    """(line number, record or refusal) of each line that is not blank."""
    for number, line in bounded_lines(chunks):
        if line is not None and not line.strip():
            continue
        try:
            yield number, parse_object(_decode(line, number, encoding))
        except RowRefusedError as error:
            yield number, error


def parse_object(text: str) -> Record:
    """A flat JSON object as texts: integers as decimals, true and false as such, null left out."""
    try:
        pairs = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise RowRefusedError("not JSON") from None
    if not isinstance(pairs, dict):
        raise RowRefusedError("not a JSON object")
    return {key: _plain(key, value) for key, value in pairs.items() if value is not None}


def _plain(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise RowRefusedError(f"{key[:40]} is neither text nor an integer")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RowRefusedError("a key is repeated")
    return found


def _no_float(text: str) -> Any:
    raise RowRefusedError(f"{text[:32]} is not an integer: amounts are minor units, or text with a mapping")


def _int(text: str) -> int:
    if len(text.removeprefix("-")) > 18:
        raise RowRefusedError("an integer of more than 18 digits")
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_no_float, parse_constant=_no_float, parse_int=_int
)


def escape_cell(text: str) -> str:
    """A cell of a CSV file that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
