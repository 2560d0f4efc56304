"""DSSE v1 envelopes with exactly one Ed25519 signature (github.com/secure-systems-lab/dsse, protocol.md and
envelope.md, v1.0.2; RFC 8032).

The envelope bytes are made once; those very bytes are stored, logged, served and verified. `keyid` is only a hint: by
it a reader finds the key in a key path that was verified from the root.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rgs.core.errors import FormatError, VerificationError
from rgs.core.statements.canonical import PAYLOAD_BYTES_MAX, verify_length

ENVELOPE_BYTES_MAX = 65_535
"""An entry of the transparency log is at most this long (C2SP tlog-tiles, entry bundles)."""

_HEAD = b'{"payload":"'
_REST = re.compile(
    rb'","payloadType":"([a-z0-9./+_-]{1,100})",'
    rb'"signatures":\[\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}\]\}'
)
"""What follows the payload. The payload is long: only the decoder reads its base64 digits."""


class Envelope(NamedTuple):
    """What an envelope holds: `payload` bytes as signed, `keyid` 64 hex digits, `signature` 64 bytes."""

    payload_type: str
    payload: bytes
    keyid: str
    signature: bytes


class Signer(Protocol):
    """One private key. `public_key` is 32 raw bytes; `keyid` the hex SHA-256 of it."""

    @property
    def public_key(self) -> bytes: ...

    @property
    def keyid(self) -> str: ...

    def sign(self, message: bytes) -> bytes:
        """64 bytes of Ed25519 signature over `message`."""
        ...


def key_fingerprint(public_key: bytes) -> str:
    """Hex SHA-256 of the 32 raw bytes of an Ed25519 public key: the `keyid` of statements, a root's fingerprint."""
    return hashlib.sha256(public_key).hexdigest()


class Ed25519Signer:
    """A signer over a private key in memory. Its repr shows the keyid only."""

    def __init__(self, private_key: Ed25519PrivateKey) -> None:
        self._sign = private_key.sign
        self.public_key = private_key.public_key().public_bytes_raw()
        self.keyid = key_fingerprint(self.public_key)

    @classmethod
    def from_seed(cls, seed: bytes) -> Ed25519Signer:
        """The key of a 32-byte secret seed (RFC 8032 section 5.1.5)."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def sign(self, message: bytes) -> bytes:
        return self._sign(message)

    def __repr__(self) -> str:
        return f"Ed25519Signer(keyid={self.keyid})"


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The exact bytes that are signed: DSSE v1 PAE."""
    kind = payload_type.encode("ascii")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def seal_envelope(payload_type: str, payload: bytes, signer: Signer) -> bytes:
    """Sign `payload` (at most 32 KiB) and return the envelope bytes."""
    verify_length("payload", payload, PAYLOAD_BYTES_MAX)
    signature = signer.sign(pre_authentication_encoding(payload_type, payload))
    return format_envelope(Envelope(payload_type, payload, signer.keyid, signature))


def format_envelope(envelope: Envelope) -> bytes:
    """The envelope's one byte form. Inverse of `parse_envelope`."""
    return b'{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}' % (
        base64.b64encode(envelope.payload),
        envelope.payload_type.encode("ascii"),
        envelope.keyid.encode("ascii"),
        base64.b64encode(envelope.signature),
    )


def parse_envelope(data: bytes) -> Envelope:
    """Strict: one signature, canonical base64, no other key, no white space; FormatError otherwise."""
    verify_length("envelope", data, ENVELOPE_BYTES_MAX)
    end = data.find(b'"', len(_HEAD))
    match = _REST.fullmatch(data, end) if end > len(_HEAD) and data.startswith(_HEAD) else None
    if match is None:
        raise FormatError("not a DSSE envelope of one signature in its one form")
    payload_type, keyid, signature64 = match.groups()
    return Envelope(
        payload_type.decode("ascii"),
        _decode(data[len(_HEAD) : end], "payload"),
        keyid.decode("ascii"),
        _decode(signature64, "signature"),
    )


def _decode(text: bytes, what: str) -> bytes:
    """Strict base64: only its digits, correct padding, and no unused bits in the last digit."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        raise FormatError(f"base64 of the {what} is malformed") from None
    # What the decoder lets pass stands in the last four digits: padding that is too long, bits behind the last byte.
    if binascii.b2a_base64(data[-(len(data) % 3 or 3) :], newline=False) != text[-4:]:
        raise FormatError(f"base64 of the {what} is not canonical")
    return data


def verify_signature(envelope: Envelope, public_key: bytes) -> None:
    """VerificationError unless the signature is that key's over these bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            envelope.signature, pre_authentication_encoding(envelope.payload_type, envelope.payload)
        )
    except (InvalidSignature, ValueError):
        raise VerificationError(
            "the signature does not verify under the key that keyid names", keyid=envelope.keyid
        ) from None


def leaf_hash(envelope: bytes) -> bytes:
    """The hash of a statement: RFC 6962 section 2.1 leaf hash of the envelope bytes, 32 bytes."""
    return hashlib.sha256(b"\x00" + envelope).digest()
