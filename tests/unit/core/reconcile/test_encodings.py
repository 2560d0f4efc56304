"""A line that is not in its encoding is refused, and the lines behind it are read."""

from __future__ import annotations

import pytest

from rgs.core.errors import FormatError
from rgs.core.reconcile.lines import RowRefusedError, csv_records


def test_a_broken_line_is_refused_by_its_first_wrong_byte() -> None:
    (number, broken), (_, behind) = csv_records([b"a,b\nx,\xe9\ny,z\n"])
    assert (number, isinstance(broken, RowRefusedError)) == (2, True)
    assert str(broken) == "not utf-8 at byte 2"
    assert behind == {"a": "y", "b": "z"}


def test_a_header_that_is_not_in_the_encoding_is_named() -> None:
    with pytest.raises(FormatError, match="the header cannot be read: not ascii at byte 0"):
        list(csv_records([b"\xe9,b\n"], encoding="ascii"))
