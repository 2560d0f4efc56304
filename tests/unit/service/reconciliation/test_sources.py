"""Which wallet statement is read the fast way, which one needs the strict reader, and what a Parquet row says."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from rgs.core.reconcile.lines import RowRefusedError
from rgs.service.reconciliation.sources import CHUNK, PLAIN_HEADER, Outside, RowFiles, _is_doubtful, _texts
from rgs.store.reconciliation import BookComparison

ROW = b"T%d,debit,anna,EUR,100,2026-11-18T11:06:40.000Z,P,accepted,900,op,book\n"
WINDOW = b"x" * 32_768


@pytest.mark.parametrize(
    ("seen", "is_doubtful"),
    [
        (b"", False),
        (b"a,b\n", False),
        (b"a,\xc3\xa4\n", True),
        (b'a,"b"\n', True),
        (b"a,b\r\n", True),
        (b"a,\x00\n", True),
        (b"a,b\n\nc,d\n", True),
        (b"a,\\N\n", True),
        (WINDOW, False),
        (WINDOW + b"x", True),
        (b"\n" + WINDOW, False),
        (WINDOW[1:] + b"\nx", False),
        (WINDOW + b"\n", True),
        (WINDOW[1:] + b"\n" + WINDOW, False),
        (WINDOW[1:] + b"\n" + WINDOW + b"x", True),
    ],
    ids=[
        *("empty", "plain", "not ASCII", "quote", "carriage return", "zero", "blank line", "null", "a window"),
        *(
            "more than a window",
            "line feed first",
            "line feed last",
            "line feed behind",
            "two windows",
            "second window",
        ),
    ],
)
def test_what_the_fast_way_leaves_to_the_strict_reader(seen: bytes, is_doubtful: bool) -> None:
    assert _is_doubtful(seen) is is_doubtful


def rows(count: int, before: int = 0) -> bytes:
    return b"".join(ROW % number for number in range(before, before + count))


MANY = CHUNK // len(ROW) + 10


@pytest.mark.parametrize(
    ("content", "taken"),
    [
        (PLAIN_HEADER, 0),
        (PLAIN_HEADER + rows(3), 3),
        (PLAIN_HEADER + rows(MANY), MANY),
        (PLAIN_HEADER + rows(MANY) + PLAIN_HEADER.replace(b"kind", b"deed"), None),
        (rows(3), None),
        (b"player," + PLAIN_HEADER + rows(3), None),
        (PLAIN_HEADER + rows(3)[:-1], None),
        (PLAIN_HEADER + rows(2) + b"\n" + rows(2, 2), None),
        (PLAIN_HEADER + rows(MANY) + b"\n" + rows(2, MANY), None),
        (PLAIN_HEADER + rows(2) + rows(1, 2).replace(b",op,", b',"op",'), None),
    ],
    ids=[
        *("no row", "rows", "more than a chunk", "a row in words", "no header", "another header", "cut off"),
        *("blank line", "blank line in the second chunk", "quoted"),
    ],
)
def test_a_plain_wallet_statement_is_taken_as_it_is(tmp_path: Path, content: bytes, taken: int | None) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "wallet.csv"
    file.write_bytes(content)
    store = BookComparison(tmp_path / "work", memory_mb=256, files=[file])
    try:
        found = Outside(store, RowFiles(tmp_path / "work"))._plain(file, "csv")
    finally:
        store.close()
    assert (None if found is None else found.rows) == taken
    if found is not None:
        assert (found.source, found.name, found.rejected, found.mapping_sha256) == ("wallet", "wallet.csv", 0, "")


def test_the_values_of_a_parquet_row_as_texts() -> None:
    assert _texts(
        {
            "absent": None,
            "yes": True,
            "no": False,
            "text": "x",
            "whole": -5,
            "decimal": Decimal("1E+2"),
            "time": datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC),
        }
    ) == {
        "yes": "true", "no": "false", "text": "x", "whole": "-5", "decimal": "100", "time": "2026-11-18T11:06:40+00:00",
    }  # fmt: skip
    refused = _texts({"x" * 41: 0.5})
    assert isinstance(refused, RowRefusedError)
    assert refused.message == f"{'x' * 40} is a float: text, integer, decimal or time expected"
