"""A refusal has one form: the same refusal is the same bytes, in whatever order its metadata were named."""

from __future__ import annotations

from itertools import permutations

from rgs.api.errors import status_of
from rgs.core.errors import RoundOpenError

METADATA = {
    "round_id": "01K4ZQ7M2J8T5V9X3B6C1D0EFG",
    "limit": "1",
    "value": "2",
    "rule": "U-1",
    "session_id": "01K4ZQ6A0B1C2D3E4F5G6H7J81",
}


def test_the_same_refusal_is_the_same_bytes() -> None:
    seen = {
        status_of(
            RoundOpenError("no", **dict(order)), method="StartRound", request_id="r", now_ms=1
        ).SerializeToString()
        for order in permutations(METADATA.items())
    }
    assert len(seen) == 1
