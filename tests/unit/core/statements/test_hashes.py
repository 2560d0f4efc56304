"""The hashes that tie a round together, against their definition in docs/formats.md."""

from __future__ import annotations

import hashlib

import pytest

from rgs.core.errors import FormatError
from rgs.core.statements import (
    commitment_of,
    first_actions_hash,
    format_canonical,
    next_actions_hash,
    private_hash,
    request_digest,
)
from rgs.core.statements.hashes import TRANSCRIPT_BYTES_MAX

CORE, SALT, TRANSCRIPT = b'{"deal":"core"}', bytes(range(32)), bytes(range(70))


def test_the_commitment_byte_by_byte() -> None:
    preimage = b"rgs/commitment/v1\x00" + hashlib.sha256(CORE).digest() + SALT + b"\x00\x46" + TRANSCRIPT
    assert commitment_of(CORE, SALT, TRANSCRIPT) == hashlib.sha256(preimage).digest()


def test_every_part_of_the_commitment_counts() -> None:
    same = commitment_of(CORE, SALT, TRANSCRIPT)
    others = {
        commitment_of(CORE + b" ", SALT, TRANSCRIPT),
        commitment_of(CORE, SALT[::-1], TRANSCRIPT),
        commitment_of(CORE, SALT, TRANSCRIPT[:-1]),
        commitment_of(CORE, SALT, TRANSCRIPT + b"\x00"),
    }
    assert len(others) == 4
    assert same not in others


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_salt_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match="32 bytes"):
        commitment_of(CORE, bytes(length), TRANSCRIPT)
    with pytest.raises(FormatError, match="32 bytes"):
        private_hash(bytes(length), {})


@pytest.mark.parametrize("length", [0, TRANSCRIPT_BYTES_MAX + 1])
def test_a_transcript_of_no_or_too_many_bytes_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match="transcript"):
        commitment_of(CORE, SALT, bytes(length))
    assert len(commitment_of(CORE, SALT, bytes(TRANSCRIPT_BYTES_MAX))) == 32


def test_the_running_hash_chains_actions() -> None:
    commitment, action = bytes(32), {"action": "check"}
    first = first_actions_hash(commitment)
    assert first == hashlib.sha256(b"rgs/actions/v1\x00" + commitment).digest()
    after = next_actions_hash(first, action)
    assert after == hashlib.sha256(b"rgs/actions/v1\x00" + first + format_canonical(action)).digest()
    assert next_actions_hash(after, action) != after


def test_private_block_and_request_have_domains_of_their_own() -> None:
    block = {"player": "p"}
    assert private_hash(SALT, block) == hashlib.sha256(b"rgs/private/v1\x00" + SALT + format_canonical(block)).digest()
    assert request_digest(block) == hashlib.sha256(b"rgs/request/v1\x00" + format_canonical(block)).digest()
