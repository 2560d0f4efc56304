"""Measures the cost of a replay: all checks of `rgs.core.replay` over an export, against bare Ed25519 verification of
the same envelopes by the `cryptography` library (OpenSSL). Both run on one core; CPU time of this process counts.

The yardstick has keys, messages and signatures ready: it parses, hashes and deals nothing. Reading the file, and
spreading the work over processes, is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench.figures import BenchError, Figure, ratio
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import Envelope, key_fingerprint, parse_envelope, parse_line, parse_statement
from rgs.core.statements.envelope import pre_authentication_encoding
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from rgs.core.statements.lines import parse_key_bundle

NAMING_KEYS: Final = ("root_key", "node_key", "instance_start")
Signed = tuple[Ed25519PublicKey, bytes, bytes]
"""(key, signature, message)."""


def measure(lines: Sequence[bytes], bundle: bytes, root: str, repeats: int) -> list[Figure]:
    """Both over all lines, in turns; the first run of each is not counted. BenchError if the replay finds a fault."""
    rulebook = Rulebook()
    signed = _signed(lines, bundle)
    _replay_s(lines, bundle, root, rulebook)
    _verify_s(signed)
    ours: list[float] = []
    yardstick: list[float] = []
    for repeat in range(repeats):
        if repeat % 2 == 0:
            ours.append(_replay_s(lines, bundle, root, rulebook))
            yardstick.append(_verify_s(signed))
        else:
            yardstick.append(_verify_s(signed))
            ours.append(_replay_s(lines, bundle, root, rulebook))
    return [
        ratio("replay_ratio", ours, yardstick),
        Figure("replay_us_per_statement", tuple(seconds / len(lines) * 1e6 for seconds in ours), "us"),
    ]


def _replay_s(lines: Sequence[bytes], bundle: bytes, root: str, rulebook: Rulebook) -> float:
    begin = process_time()
    replay = Replay(KeyBook(bundle, root=root), rulebook)
    failures = [failure for line in lines for failure in replay.feed(line)]
    failures += replay.finish()
    seconds = process_time() - begin
    if failures or not replay.summary.rounds_verified:
        raise BenchError(f"the replay of our own export fails: {failures[:3]}")
    return seconds


def _verify_s(signed: Sequence[Signed]) -> float:
    begin = process_time()
    for key, signature, message in signed:
        key.verify(signature, message)
    return process_time() - begin


def _signed(lines: Sequence[bytes], bundle: bytes) -> list[Signed]:
    """The envelopes of the lines, ready for verification, with the keys that the statements name."""
    envelopes = [parse_envelope(parse_line(line).envelope) for line in lines]
    keys: dict[str, Ed25519PublicKey] = {}
    for envelope in (*map(parse_envelope, parse_key_bundle(bundle)), *envelopes):
        if KIND_OF_PAYLOAD_TYPE[envelope.payload_type].name in NAMING_KEYS:
            keys |= _key_in(envelope)
    return [
        (
            keys[envelope.keyid],
            envelope.signature,
            pre_authentication_encoding(envelope.payload_type, envelope.payload),
        )
        for envelope in envelopes
    ]


def _key_in(envelope: Envelope) -> dict[str, Ed25519PublicKey]:
    _, body = parse_statement(envelope)
    raw = bytes.fromhex(body["public_key"])
    return {key_fingerprint(raw): Ed25519PublicKey.from_public_bytes(raw)}
