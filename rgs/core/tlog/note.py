"""Signed notes and the keys that sign them (C2SP signed-note v1.0.0), and cosignatures of checkpoints
(C2SP tlog-cosignature, Ed25519).

A note is a text and one signature line for each signer. Two kinds of keys are known here: ED25519 signs the text,
COSIGNATURE signs the text with a time. Lines of other kinds and of unknown keys are kept and ignored. If a line of a
known key does not verify, the whole note is rejected. Parsing is strict: what was parsed formats to identical bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from rgs.core.tlog.errors import FormatError, VerificationError

ED25519: Final = 0x01
COSIGNATURE: Final = 0x04
NOTE_BYTES_MAX: Final = 65_536
SIGNATURES_MAX: Final = 64
"""The standard asks for 16 at least."""
TIME_S_MAX: Final = 2**63 - 1

_DASH: Final = "\u2014"
_KEY_ID_BYTES: Final = 4
_PUBLIC_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_TIME_BYTES: Final = 8
_CONTROLS: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_HEX_ID: Final = re.compile(r"[0-9a-f]{8}")


class NoteSigner(Protocol):
    """One private key of Ed25519. `public_key` is 32 raw bytes."""

    @property
    def public_key(self) -> bytes: ...

    def sign(self, message: bytes) -> bytes:
        """64 bytes of signature over `message`."""
        ...


@dataclass(frozen=True, slots=True)
class NoteKey:
    """A public key as notes name it: `kind` is ED25519 or COSIGNATURE, `public_key` 32 raw bytes."""

    name: str
    kind: int
    public_key: bytes

    @property
    def key_id(self) -> bytes:
        """The first four bytes of SHA-256(name || LF || kind || public key)."""
        named = self.name.encode() + b"\n" + bytes([self.kind]) + self.public_key
        return hashlib.sha256(named).digest()[:_KEY_ID_BYTES]


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: `signature` as it stands behind the key id, with its time in front where it is a
    cosignature.
    """

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """`text` ends with a line feed; signatures in the order of their lines."""

    text: str
    signatures: tuple[NoteSignature, ...]


@dataclass(frozen=True, slots=True)
class VerifiedLine:
    """A line that verified. `time_s` is the POSIX time of a cosignature, 0 for a plain signature."""

    key: NoteKey
    time_s: int


# --- keys -------------------------------------------------------------------------------------------------------------


def check_key_name(name: str) -> str:
    """A name without spaces and `+`; FormatError otherwise."""
    is_text = name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)  # no stray bytes
    if not name or not is_text or re.search(r"[\s+]", name) or _CONTROLS.search(name):
        result = ascii(name[:60])
        raise FormatError("a key name is UTF-8, not empty, and has no spaces and no '+'", field="name", value=result)
    return name


def format_vkey(key: NoteKey) -> str:
    """The verifier key, `name+hex(key id)+base64(kind || public key)`. Inverse of `parse_vkey`."""
    encoded = base64.b64encode(bytes([key.kind]) + key.public_key).decode("ascii")
    return f"{key.name}+{key.key_id.hex()}+{encoded}"


def parse_vkey(text: str) -> NoteKey:
    """The key of a verifier key; FormatError for another kind, and for an id that is not the key's."""
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    check_key_name(name)
    if _HEX_ID.fullmatch(key_id) is None:
        raise FormatError("a verifier key is name+8 hex digits+base64", field="vkey", value=text[:80])
    raw = decode_base64(encoded, "vkey")
    if len(raw) != 1 + _PUBLIC_KEY_BYTES or raw[0] not in (ED25519, COSIGNATURE):
        kind = raw[0] if raw else 0
        raise FormatError(f"a key of kind {kind} with {len(raw)} bytes is not supported", field="vkey", value=text[:80])
    key = NoteKey(name, raw[0], raw[1:])
    if key.key_id.hex() != key_id:
        raise FormatError(f"the key id is {key.key_id.hex()}, not {key_id}", field="vkey", value=text[:80])
    return key


# --- notes ------------------------------------------------------------------------------------------------------------


def format_note(note: Note) -> bytes:
    """The note's one byte form. Inverse of `parse_note`."""
    return (note.text + "\n" + "".join(map(format_signature, note.signatures))).encode()


def format_signature(signature: NoteSignature) -> str:
    """One signature line, its line feed included."""
    encoded = base64.b64encode(signature.key_id + signature.signature).decode("ascii")
    return f"{_DASH} {signature.name} {encoded}\n"


def parse_note(data: bytes) -> Note:
    """The note in `data`; FormatError names the first fault."""
    if len(data) > NOTE_BYTES_MAX:
        raise FormatError(f"a note of {len(data)} bytes is longer than {NOTE_BYTES_MAX}", limit=NOTE_BYTES_MAX)
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        raise FormatError("a note is UTF-8", field="note") from None
    if _CONTROLS.search(whole):
        raise FormatError("a note has no control characters but line feeds", field="note")
    text, gap, lines = whole.rpartition("\n\n")
    if not gap or not lines.endswith("\n"):
        raise FormatError("a note is a text, an empty line and signature lines", field="note")
    return Note(text + "\n", parse_signatures(lines))


def parse_signatures(lines: str) -> tuple[NoteSignature, ...]:
    """Signature lines, one or more, each with its line feed."""
    signatures = tuple(_parse_signature(line) for line in lines.split("\n")[:-1])
    if not 1 <= len(signatures) <= SIGNATURES_MAX or not lines.endswith("\n"):
        raise FormatError(f"1 to {SIGNATURES_MAX} signature lines, not {len(signatures)}", limit=SIGNATURES_MAX)
    return signatures


def _parse_signature(line: str) -> NoteSignature:
    parts = line.split(" ")
    if len(parts) != 3 or parts[0] != _DASH:
        raise FormatError("a signature line is a dash, a name and base64", field="signature", value=line[:80])
    name = check_key_name(parts[1])
    raw = decode_base64(parts[2], "signature")
    if len(raw) <= _KEY_ID_BYTES:
        raise FormatError("a signature has more than its key id", field="signature", value=line[:80])
    return NoteSignature(name, raw[:_KEY_ID_BYTES], raw[_KEY_ID_BYTES:])


# --- signing and verifying --------------------------------------------------------------------------------------------


def note_key(name: str, kind: int, signer: NoteSigner) -> NoteKey:
    """The public key of a signer under a name."""
    return NoteKey(check_key_name(name), kind, signer.public_key)


def sign_text(text: str, name: str, signer: NoteSigner) -> NoteSignature:
    """A plain Ed25519 signature over a text that ends with a line feed."""
    return NoteSignature(name, note_key(name, ED25519, signer).key_id, signer.sign(_text_bytes(text)))


def cosign(text: str, name: str, signer: NoteSigner, time_s: int) -> NoteSignature:
    """A cosignature: what the cosigner saw at `time_s` (POSIX seconds, 1 to 2**63 - 1)."""
    if not 1 <= time_s <= TIME_S_MAX:
        raise FormatError(f"time {time_s} is outside 1..{TIME_S_MAX}", field="time_s", value=time_s, limit=TIME_S_MAX)
    signature = time_s.to_bytes(_TIME_BYTES, "big") + signer.sign(_cosigned(text, time_s))
    return NoteSignature(name, note_key(name, COSIGNATURE, signer).key_id, signature)


def cosigned_s(line: NoteSignature) -> int:
    """The time that stands in a cosignature, POSIX seconds, unverified."""
    return int.from_bytes(line.signature[:_TIME_BYTES], "big")


def add_signatures(note: Note, signatures: Iterable[NoteSignature]) -> Note:
    """The note with further lines; a line of the same key takes the place of the earlier one."""
    lines = {(one.name, one.key_id): one for one in (*note.signatures, *signatures)}
    return replace(note, signatures=tuple(lines.values()))


def verify_note(note: Note, keys: Sequence[NoteKey]) -> tuple[VerifiedLine, ...]:
    """The lines of known keys, all of which verify, in the order of the note; VerificationError if one does not, or
    there is none.
    """
    known = {(key.name, key.key_id): key for key in keys}
    verified = []
    for line in note.signatures:
        key = known.get((line.name, line.key_id))
        if key is not None:
            verified.append(VerifiedLine(key, _verify(note.text, line, key)))
    if not verified:
        raise VerificationError("no signature of a known key stands under the note", field="signature")
    return tuple(verified)


def _verify(text: str, line: NoteSignature, key: NoteKey) -> int:
    signature, message, time_s = line.signature, _text_bytes(text), 0
    if key.kind == COSIGNATURE:
        time_s = cosigned_s(line)
        signature, message = signature[_TIME_BYTES:], _cosigned(text, time_s)
    try:
        if len(signature) != _SIGNATURE_BYTES or time_s > TIME_S_MAX:
            raise InvalidSignature
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise VerificationError(f"the signature of {key.name} does not verify", field="signature") from None
    return time_s


def _cosigned(text: str, time_s: int) -> bytes:
    return b"cosignature/v1\ntime %d\n" % time_s + _text_bytes(text)


def _text_bytes(text: str) -> bytes:
    if not text.endswith("\n") or _CONTROLS.search(text):
        raise FormatError("the text of a note ends with a line feed and has no other control characters", field="text")
    return text.encode()


def decode_base64(text: str, field: str) -> bytes:
    """The bytes of base64 in its one form; FormatError naming `field`."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError("base64 is malformed", field=field, value=text[:80]) from None
    if base64.b64encode(raw).decode("ascii") != text:
        raise FormatError("base64 is not in its one form", field=field, value=text[:80])
    return raw
