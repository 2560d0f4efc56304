"""The submissions of a reconciliation over gRPC as one file."""

from __future__ import annotations

from pathlib import Path

from rgs.cli.reconcile_job import _joined
from rgs.service.reconciliation.files import ROWS


def test_a_book_without_a_last_line_feed_keeps_its_last_line(tmp_path: Path) -> None:
    books = {"one": b'{"kind":"a"}\n{"kind":"b"}', "none": b"", "two": b'{"kind":"c"}\n', "three": b'{"kind":"d"}'}
    for name, rows in books.items():
        folder = tmp_path / "submissions" / name
        folder.mkdir(parents=True)
        (folder / ROWS).write_bytes(rows)
    out = _joined(tmp_path, list(books), tmp_path / "all.jsonl")
    assert out is not None
    assert out.read_bytes().splitlines() == [b'{"kind":"%c"}' % kind for kind in b"abcd"]
    assert _joined(tmp_path, [], tmp_path / "nothing.jsonl") is None
