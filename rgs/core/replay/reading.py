"""From a line of an export to a statement whose signature, key path and form are verified: checks 1 to 5.

A `Statement` was signed by a key with a path to the root. A line that fails here is no statement, and the procedure
continues as if it were not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from rgs.core.errors import FormatError, VerificationError
from rgs.core.replay.checks import ENVELOPE, KEY, LINE, PRIVATE, SCHEMA, Check
from rgs.core.replay.keys import KeyBook, SigningKey
from rgs.core.replay.revocations import Place
from rgs.core.replay.times import verify_times
from rgs.core.statements import (
    Envelope,
    KeyRole,
    Kind,
    leaf_hash,
    parse_envelope,
    parse_line,
    parse_statement,
    private_hash,
)


@dataclass(slots=True)
class Statement:
    """One verified statement.

    `hash` is the leaf hash of its envelope in hex, `round_id` empty where it belongs to no round.
    """

    kind: Kind
    body: dict[str, Any]
    hash: str
    key: SigningKey
    keyid: str
    private: dict[str, Any] | None
    round_id: str
    path: tuple[bytes, ...] = ()
    """The audit path that stands beside a `seat_opening`; empty in a log."""
    payload: bytes = b""
    """The canonical bytes of `body`, as they were signed."""

    def failure(self, check: Check, message: str) -> VerificationError:
        """The error that names this statement, its numbers and its round."""
        named = {"kind": self.kind.name, "statement": self.hash}
        for field in ("instance", "statement_no", "session_id"):
            if field in self.body:
                named[field] = self.body[field]
        if self.round_id:
            named["round_id"] = self.round_id
        return check.failure(message, **named)


class HashedEntry(NamedTuple):
    """An entry of a log that has passed checks 1 and 2.

    `is_signed`: the signature verifies under a public key whose fingerprint is the envelope's keyid. Whose key it is,
    and whether it may sign this, is not checked yet. `is_formed`: the payload has the form that check 4 demands. Where
    either was not asked before, it is False and asked then. `place` is the place in the log, None outside of one.
    """

    hash: bytes
    envelope: Envelope
    place: Place | None
    is_signed: bool
    is_formed: bool = False


def read_statement(line: bytes, keys: KeyBook) -> Statement:
    """Return the statement of a line (without its line feed), its private block verified if there is one.

    Raises VerificationError of check 1 to 5, naming the statement's hash if it has one.
    """
    statement = read_authentic(line, keys)
    verify_private(statement)
    return statement


def read_authentic(line: bytes, keys: KeyBook) -> Statement:
    """Return the statement of a line, its private block unchecked: checks 1 to 4."""
    # (1) The line.
    try:
        export_line = parse_line(line)
    except FormatError as error:
        raise LINE.failure(error.message) from None
    data = export_line.envelope
    hash_ = leaf_hash(data)
    # (2) The envelope.
    try:
        envelope = parse_envelope(data)
    except FormatError as error:
        raise ENVELOPE.failure(error.message, statement=hash_.hex()) from None
    entry = HashedEntry(hash_, envelope, None, is_signed=_is_surely_signed(envelope, keys))
    statement = _read(entry, keys, export_line.private)
    if export_line.path and statement.kind.name != "seat_opening":
        raise statement.failure(LINE, f"{statement.kind.name} has no audit path beside it")
    statement.path = export_line.path
    return statement


def _is_surely_signed(envelope: Envelope, keys: KeyBook) -> bool:
    """Whether libsodium, which takes half of the time, accepts the signature under the key that keyid names.

    It accepts nothing that `verify_signature` refuses (tested). What it does not accept, `verify_signature` judges.
    """
    key = keys.known.get(envelope.keyid)
    return key is not None and bool(_bulk().is_signed_by(envelope, key.public_key))


@cache
def _bulk() -> ModuleType:
    from rgs.core.statements import bulk  # noqa: PLC0415 - who loads this module often reads no export

    return bulk


def read_entry(entry: HashedEntry, keys: KeyBook) -> Statement:
    """Return the statement of a log's entry: checks 3 and 4."""
    return _read(entry, keys, None)


def _read(entry: HashedEntry, keys: KeyBook, private: dict[str, Any] | None) -> Statement:
    envelope, statement_hash = entry.envelope, entry.hash.hex()
    # (3) The key and its signature, before the payload is parsed.
    try:
        key = keys.verify_envelope(envelope, entry.hash, entry.place, is_signed=entry.is_signed)
    except VerificationError as error:
        raise KEY.failure(error.message, statement=statement_hash) from None
    # (4) The payload.
    try:
        kind, body = parse_statement(envelope, formed=entry.is_formed)
        verify_times(kind.name, body)
    except FormatError as error:
        raise SCHEMA.failure(error.message, statement=statement_hash) from None
    statement = Statement(kind, body, statement_hash, key, envelope.keyid, private, _round_id(kind.name, body))
    statement.payload = envelope.payload
    # (3) The part that needs the payload: the key is that instance's or node's, and was in force.
    _verify_signer(statement, keys)
    return statement


_OF_A_ROUND: Final = frozenset({
    "round_final", "seat_final", "seat_opening", "table_deal", "table_final", "table_round", "table_seats",
})  # fmt: skip


def _round_id(kind: str, body: dict[str, Any]) -> str:
    if kind == "round_opening":
        return str(body["deal"]["round_id"])
    return str(body["round_id"]) if kind in _OF_A_ROUND else ""


def _verify_signer(statement: Statement, keys: KeyBook) -> None:
    body, key = statement.body, statement.key
    if key.role is KeyRole.ROOT:
        return  # of the key bundle, and verified with it
    if key.role is KeyRole.INSTANCE and body["instance"] != key.name:
        raise statement.failure(KEY, f"the key is that of instance {key.name}, not {body['instance']}")
    if statement.kind.name == "instance_start" and body["node"] != key.name:
        raise statement.failure(KEY, f"the key is that of node {key.name}, not {body['node']}")
    try:
        keys.verify_in_force(statement.keyid, body)
    except VerificationError as error:
        raise statement.failure(KEY, error.message) from None


def verify_private(statement: Statement) -> None:
    """Check 5, if there is a private block. The statement itself stays valid if it fails."""
    private = statement.private
    if private is None:
        return
    if not statement.kind.private:
        raise statement.failure(PRIVATE, f"{statement.kind.name} has no private block")
    if private_hash(bytes.fromhex(private["salt"]), private["block"]).hex() != statement.body["private"]:
        raise statement.failure(PRIVATE, "block and salt do not hash to what the statement holds")
