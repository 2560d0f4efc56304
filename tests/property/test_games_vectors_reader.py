"""Whatever stands in a file of vectors, the reader calls it an error or reads it; it never breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from certification.vectors import RowError, check_row, parse_row
from rgs.core.rulesets import load_ruleset

RULESET = load_ruleset("casino-holdem")
FILE = Path(__file__).parents[1] / "vectors" / "games" / "casino_holdem_rounds.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()[:10]]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars | st.sampled_from(["win", "fold", "As", 0.5, 0, 100]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=8,
)


def is_read(line: bytes) -> bool:
    try:
        row = parse_row(line, RULESET)
    except RowError:
        return False
    check_row(RULESET, row)
    return True


@given(line=st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_anything_at_all(line: bytes) -> None:
    assert not is_read(line)


@given(row=st.sampled_from(ROWS), value=values, data=st.data())
def test_a_row_with_one_value_exchanged(row: dict[str, Any], value: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([(key,) for key in row] + [("settlement", bet) for bet in row["settlement"]]))
    changed = json.loads(json.dumps(row))
    table = changed[path[0]] if path[1:] else changed
    table[path[-1]] = value
    is_read(json.dumps(changed).encode())
