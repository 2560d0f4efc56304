"""Envelopes: the one form, the one signature, the bytes that are signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
from itertools import chain, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, VerificationError
from rgs.core.statements import (
    PAYLOAD_BYTES_MAX,
    Ed25519Signer,
    Envelope,
    format_envelope,
    key_fingerprint,
    leaf_hash,
    parse_envelope,
    seal_envelope,
    verify_signature,
)
from rgs.core.statements.envelope import ENVELOPE_BYTES_MAX, pre_authentication_encoding

SIGNER = Ed25519Signer.from_seed(bytes(range(32)))
TYPE = "application/vnd.rgs.event.v1+json"


@given(
    st.builds(
        Envelope,
        st.from_regex(r"[a-z0-9./+_-]{1,100}", fullmatch=True),
        st.binary(min_size=1, max_size=80),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
        st.binary(min_size=64, max_size=64),
    )
)
def test_format_and_parse_are_inverse(envelope: Envelope) -> None:
    data = format_envelope(envelope)
    assert parse_envelope(data) == envelope
    assert format_envelope(parse_envelope(data)) == data


def test_the_signed_bytes_are_those_of_dsse() -> None:
    # The example of protocol.md, DSSE v1.0.2.
    assert (
        pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_sealed_envelope_verifies_under_its_key_only() -> None:
    envelope = parse_envelope(seal_envelope(TYPE, b"payload", SIGNER))
    verify_signature(envelope, SIGNER.public_key)
    for key in (Ed25519Signer.from_seed(bytes(32)).public_key, b"short", b""):
        with pytest.raises(VerificationError) as refused:
            verify_signature(envelope, key)
        assert refused.value.metadata == {"keyid": SIGNER.keyid}


def test_signed_are_payload_and_its_type() -> None:
    envelope = parse_envelope(seal_envelope(TYPE, b"payload", SIGNER))
    for other in (
        envelope._replace(payload_type=TYPE.replace("event", "avent")),
        envelope._replace(payload=b"Payload"),
    ):
        with pytest.raises(VerificationError):
            verify_signature(other, SIGNER.public_key)


SEALED = seal_envelope(TYPE, b"payloads", SIGNER)
PAYLOAD64 = base64.b64encode(b"payloads")


@pytest.mark.parametrize(
    "data",
    [
        SEALED + b" ",
        SEALED.replace(b":", b": ", 1),
        SEALED.replace(b'"payload":"', b'"payload":""'),
        SEALED.replace(PAYLOAD64, b""),
        SEALED.replace(b'"sig"', b'"Sig"'),
        SEALED.replace(SIGNER.keyid.encode(), SIGNER.keyid.upper().encode()),
        SEALED.replace(b"]}", b',{"keyid":"' + b"0" * 64 + b'","sig":"' + b"A" * 86 + b'=="}]}'),
        SEALED.replace(b"application/", b"Application/"),
        SEALED.replace(b"}]}", b'}],"more":""}'),
        b"",
    ],
)
def test_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="one form"):
        parse_envelope(data)


@pytest.mark.parametrize(
    "text", [PAYLOAD64[:-1], PAYLOAD64[:-1] + b"==", b"AAAAA", b"AAAA=", b"AAAA====", b"A\nAAA", b"===="]
)
def test_malformed_base64_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match="base64"):
        parse_envelope(SEALED.replace(PAYLOAD64, text))


def test_stray_bits_behind_the_last_base64_digit_are_refused() -> None:
    stray = PAYLOAD64[:-2] + bytes([PAYLOAD64[-2] + 1]) + b"="
    assert base64.b64decode(stray) == b"payloads"
    with pytest.raises(FormatError, match="canonical"):
        parse_envelope(SEALED.replace(PAYLOAD64, stray))


def test_base64_is_read_exactly_where_encoding_again_gives_the_same_text() -> None:
    """All short texts of four characters: padding everywhere, and bits behind the last byte."""
    read = 0
    for text in map(bytes, chain.from_iterable(product(b"AQ/=", repeat=length) for length in range(1, 7))):
        try:
            is_canonical = base64.b64encode(binascii.a2b_base64(text, strict_mode=True)) == text
        except binascii.Error:
            is_canonical = False
        try:
            parse_envelope(SEALED.replace(PAYLOAD64, text))
        except FormatError:
            assert not is_canonical, text
        else:
            assert is_canonical, text
            read += 1
    assert read == 81 + 18 + 6  # no padding; one and two, without stray bits


def test_lengths_are_limited() -> None:
    largest = seal_envelope(TYPE, b"x" * PAYLOAD_BYTES_MAX, SIGNER)
    assert len(largest) <= ENVELOPE_BYTES_MAX
    assert len(parse_envelope(largest).payload) == PAYLOAD_BYTES_MAX
    with pytest.raises(FormatError, match="longer"):
        seal_envelope(TYPE, b"x" * (PAYLOAD_BYTES_MAX + 1), SIGNER)
    with pytest.raises(FormatError, match="longer"):
        parse_envelope(b"x" * (ENVELOPE_BYTES_MAX + 1))


def test_the_hash_of_a_statement_is_the_leaf_hash_of_rfc_6962() -> None:
    assert leaf_hash(SEALED) == hashlib.sha256(b"\x00" + SEALED).digest()


def test_a_signer_shows_its_keyid_and_nothing_more() -> None:
    assert SIGNER.keyid == key_fingerprint(SIGNER.public_key) == hashlib.sha256(SIGNER.public_key).hexdigest()
    assert repr(SIGNER) == f"Ed25519Signer(keyid={SIGNER.keyid})"
