"""No bit of an export can be flipped unseen: each position, by the whole replay.

The fast run takes every 61st bit, from a place that follows from the run's seed; the whole space is `slow_exhaustive`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook
from tests.support.records.ready_made import small_factory
from tests.support.records.replaying import replay_file
from tests.support.seeded import turn

pytestmark = pytest.mark.slow

FACTORY = small_factory()
EXPORT, KEYS = FACTORY.export(), FACTORY.keys()
STRIDE = 61  # with no factor of 8: each bit of the byte is visited


def flipped(data: bytes, bit: int) -> bytes:
    place, shift = divmod(bit, 8)
    return data[:place] + bytes([data[place] ^ (1 << shift)]) + data[place + 1 :]


def unseen(bits: Iterable[int]) -> list[int]:
    """The bits whose flip leaves no failed check."""
    return [bit for bit in bits if not replay_file(flipped(EXPORT, bit), KEYS).failures]


def test_the_export_itself_passes() -> None:
    verdict = replay_file(EXPORT, KEYS)
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 0))


def test_a_flipped_bit_is_seen(pytestconfig: pytest.Config) -> None:
    assert unseen(range(turn(pytestconfig, STRIDE), 8 * len(EXPORT), STRIDE)) == []


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("shift", range(8))
def test_every_flipped_bit_is_seen(shift: int) -> None:
    assert unseen(range(shift, 8 * len(EXPORT), 8)) == []


def test_every_flipped_bit_of_the_keys_is_seen() -> None:
    for bit in range(8 * len(KEYS)):
        with pytest.raises(VerificationError):
            KeyBook(flipped(KEYS, bit), root=FACTORY.root.keyid)


@pytest.mark.parametrize("shift", range(8))
def test_a_byte_more_or_less_is_seen(shift: int) -> None:
    for place in range(shift, len(EXPORT), 97):
        assert replay_file(EXPORT[:place] + EXPORT[place + 1 :], KEYS).failures
        assert replay_file(EXPORT[:place] + bytes([EXPORT[place]]) + EXPORT[place:], KEYS).failures
