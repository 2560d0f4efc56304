"""The key path of replay: root -> node key -> instance key, from a key bundle and the instance_start statements
(check 3, ARCHITECTURE 2.13).

A key bundle is verified as a whole: with one bad statement there are no keys. A root fingerprint from outside anchors
it; without one, replay only shows that the files agree with the bundle.

Nothing counts that is dated before its key was named. Nothing counts that a revoked key signed, whatever its date,
unless the reader knows the statement's place in a log (`rgs.core.replay.revocations`). Key statements in an export that
the bundle lacks are refused: get the newer bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rgs.core.errors import FormatError, VerificationError
from rgs.core.replay.checks import KEY
from rgs.core.replay.revocations import Place, Revocations, Witnessed
from rgs.core.replay.times import verify_times
from rgs.core.statements import (
    Envelope,
    KeyRole,
    key_fingerprint,
    leaf_hash,
    parse_envelope,
    parse_statement,
    verify_signature,
)
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from rgs.core.statements.lines import parse_key_bundle


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of the path.

    `name` is that of the node or instance, empty for a root. `parent` is the keyid that signed it, empty for the first
    root. Nothing that it signs is dated before `since`, empty if that is unknown.
    """

    role: KeyRole
    public_key: bytes
    name: str
    parent: str
    development: bool
    since: str


@dataclass(frozen=True, slots=True)
class KeyEnd:
    """The orderly end of a key. It signs nothing after `time`, and nothing of `instance`, the last one under it, has a
    number above `last_statement_no`. For an instance key that names its instance only the number counts.
    """

    time: str
    instance: str | None
    last_statement_no: int


class KeyBook:
    """The keys of one replay.

    `root` is the fingerprint of the bundle's first root, `anchored` whether the auditor's is the same.
    """

    def __init__(self, bundle: bytes, *, root: str | None = None, witnessed: Iterable[Witnessed] = ()) -> None:
        """Read a key bundle; raise VerificationError (check 3) on its first fault.

        `root` is the fingerprint that the auditor brought from outside, 64 hex digits; `witnessed` are checkpoints of
        the log, for statements under a revoked key that are read with their place.
        """
        self._keys: dict[str, SigningKey] = {}
        self._ends: dict[str, list[KeyEnd]] = {}
        """Each of several ends of a key applies."""
        self._revoked = Revocations(witnessed)
        self._statements: dict[bytes, int] = {}
        self._newest_root = ""
        try:
            for envelope in parse_key_bundle(bundle):
                self._add(envelope)
        except (FormatError, VerificationError) as error:
            raise KEY.failure(f"key bundle, statement {len(self._statements) + 1}: {error.message}") from None
        self.anchored = root == self.root

    # --- the bundle ---

    def _add(self, data: bytes) -> None:
        envelope = parse_envelope(data)
        if self._newest_root:
            if envelope.keyid != self._newest_root:
                raise KEY.failure("is not signed by the newest root before it")
            public_key = self._keys[self._newest_root].public_key
        else:
            # The first root signs itself; only a fingerprint from outside shows whose it is.
            public_key = self._first_root(envelope)
        verify_signature(envelope, public_key)
        kind, body = parse_statement(envelope)
        verify_times(kind.name, body)
        if self._newest_root:
            self.verify_in_force(envelope.keyid, body)
        if kind.name == "root_key":
            self._add_root(body)
        elif kind.name == "node_key":
            self._add_key(body, KeyRole.NODE, body["node"], development=body["development"])
        elif kind.name == "key_end":
            self._ends.setdefault(body["key"], []).append(_key_end(body))
        elif kind.name == "revocation":
            self._revoked.add(body)
        else:
            raise KEY.failure(f"{kind.name} does not belong into a key bundle")
        self._statements[leaf_hash(data)] = len(self._statements) + 1

    def _first_root(self, envelope: Envelope) -> bytes:
        kind, body = parse_statement(envelope)
        if kind.name != "root_key" or "previous" in body:
            raise KEY.failure("a key bundle begins with a root_key that names no previous one")
        public_key = bytes.fromhex(body["public_key"])
        if envelope.keyid != key_fingerprint(public_key):
            raise KEY.failure("the first root is not signed by itself")
        self.root = envelope.keyid
        return public_key

    def _add_root(self, body: dict[str, Any]) -> None:
        if body.get("previous", "") != self._newest_root:
            raise KEY.failure("previous is not the keyid of the root before")
        self._newest_root = self._add_key(body, KeyRole.ROOT, "")

    def _add_key(self, body: dict[str, Any], role: KeyRole, name: str, *, development: bool = False) -> str:
        public_key = bytes.fromhex(body["public_key"])
        keyid = key_fingerprint(public_key)
        if keyid in self._keys:
            raise KEY.failure(f"key {keyid} is named twice")
        self._keys[keyid] = SigningKey(role, public_key, name, self._newest_root, development, body["time"])
        return keyid

    @property
    def known(self) -> Mapping[str, SigningKey]:
        """All keys by keyid, with those of the instances read so far."""
        return self._keys

    @property
    def statements(self) -> Mapping[bytes, int]:
        """The statements of the bundle: hash -> place in it, from 1."""
        return self._statements

    def state_of(self, keyid: str) -> str:
        """The state of a key in words."""
        states = [
            f"revoked {body['time']}, "
            + (f"counts below entry {body['size']} of {body['origin']}" if "origin" in body else "counts for nothing")
            for body in self._revoked.of(keyid)
        ]
        states += [f"ended {end.time}" for end in self._ends.get(keyid, ())]
        return "; ".join(states) or "in force"

    # --- the path ---

    def add_instance(self, start: Mapping[str, str], node_keyid: str, since: str = "") -> None:
        """Add the instance key in the body of an instance_start under `node_keyid`; `since` as in SigningKey.

        VerificationError if the key is known already, in any role.
        """
        instance, public_key = start["instance"], bytes.fromhex(start["public_key"])
        keyid = key_fingerprint(public_key)
        if keyid in self._keys:
            raise KEY.failure(f"the key {keyid} of instance {instance} is known already")
        development = self._keys[node_keyid].development
        self._keys[keyid] = SigningKey(KeyRole.INSTANCE, public_key, instance, node_keyid, development, since)

    def note_time_jump(self, keyid: str) -> None:
        """The instance of the key has logged that its clock was set: it may now sign times before its own start."""
        self._keys[keyid] = replace(self._keys[keyid], since="")

    def verify_envelope(
        self, envelope: Envelope, hash_: bytes, place: Place | None = None, *, is_signed: bool = False
    ) -> SigningKey:
        """The part of check 3 without the payload: known key of the kind's role, unrevoked path, signature.

        `hash_` is the statement's; `place` is its place in the log, None outside of one. `is_signed`: the signature
        was verified before, under a public key whose fingerprint is keyid.
        """
        kind = KIND_OF_PAYLOAD_TYPE.get(envelope.payload_type)
        if kind is None:
            raise KEY.failure(f"payload type {envelope.payload_type} is not known")
        key = self._keys.get(envelope.keyid)
        if key is None:
            raise KEY.failure(f"key {envelope.keyid} has no path to the root")
        if key.role not in kind.roles:
            raise KEY.failure(f"{kind.name} may not be signed by a key of role {key.role}")
        if hash_ in self._statements:
            return key  # verified with the bundle; it counts even if the key was revoked later
        if self._revoked:
            self.verify_unrevoked(envelope.keyid, place)
        if not is_signed:
            try:
                verify_signature(envelope, key.public_key)
            except VerificationError as error:
                raise KEY.failure(error.message) from None
        if key.role is KeyRole.ROOT:
            raise KEY.failure(f"this {kind.name} is not in the key bundle")
        return key

    def verify_unrevoked(self, keyid: str, place: Place | None) -> None:
        """VerificationError if the key, or one above it, was revoked for what it signs at that place."""
        while keyid:
            self._revoked.verify(keyid, place)
            keyid = self._keys[keyid].parent

    def verify_in_force(self, keyid: str, body: dict[str, Any]) -> None:
        """The part of check 3 with the payload: the statement is not dated before its key, and not after the orderly
        end of the key or of the node key above it.
        """
        key = self._keys[keyid]
        if body["time"] < key.since:
            raise KEY.failure(f"dated {body['time']}, before its key {keyid} of {key.since}")
        if not self._ends:
            return
        is_of_instance = key.role is KeyRole.INSTANCE
        for end in self._ends.get(keyid, ()):
            if is_of_instance and end.instance is not None:
                if body["instance"] != end.instance:
                    raise KEY.failure(f"key {keyid} ended as that of {end.instance}")
            elif body["time"] > end.time:
                raise KEY.failure(f"key {keyid} ended at {end.time}")
        for above in (keyid, key.parent) if is_of_instance else (keyid,):
            for end in self._ends.get(above, ()):
                if "statement_no" in body and body["instance"] == end.instance:
                    _verify_number(above, end, body)


def _verify_number(keyid: str, end: KeyEnd, body: dict[str, Any]) -> None:
    if int(body["statement_no"]) > end.last_statement_no:
        raise KEY.failure(f"key {keyid} ended with statement {end.last_statement_no} of {end.instance}")


def _key_end(body: dict[str, Any]) -> KeyEnd:
    if ("instance" in body) != ("last_statement_no" in body):
        raise KEY.failure("key_end names instance and last_statement_no together or not at all")
    return KeyEnd(body["time"], body.get("instance"), int(body.get("last_statement_no", "0")))
