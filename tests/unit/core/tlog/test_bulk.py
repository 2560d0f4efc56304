"""rgs.core.statements.bulk, and which witnesses a policy calls the operator's own."""

from __future__ import annotations

import pytest

from rgs.core.errors import FormatError
from rgs.core.statements import Ed25519Signer, Envelope, parse_envelope, seal_envelope
from rgs.core.statements.bulk import is_signed_by
from rgs.core.tlog.policies import self_witnesses
from tests.support.records.audited import POLICY, POLICY_OWN

SIGNER = Ed25519Signer.from_seed(bytes(32))


def test_both_verifications_agree_on_the_good_and_on_every_changed_bit() -> None:
    envelope = parse_envelope(seal_envelope("a/b", b"{}", SIGNER))
    assert is_signed_by(envelope, SIGNER.public_key)
    for bit in range(512):
        signature = bytearray(envelope.signature)
        signature[bit // 8] ^= 1 << bit % 8
        assert not is_signed_by(Envelope("a/b", b"{}", envelope.keyid, bytes(signature)), SIGNER.public_key)
    assert not is_signed_by(envelope, SIGNER.public_key[:-1])


@pytest.mark.parametrize("key", [bytes(32), b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"])
def test_keys_of_small_order_sign_nothing_here(key: bytes) -> None:
    assert not is_signed_by(Envelope("a/b", b"{}", "", bytes(64)), key)


def test_self_witnesses_stand_in_comments() -> None:
    assert self_witnesses(POLICY_OWN.encode()) == {"own"}
    assert self_witnesses(POLICY.encode()) == frozenset()
    assert self_witnesses(POLICY_OWN.replace("# self-witness own", " \t#self-witness\town ").encode()) == {"own"}
    with pytest.raises(FormatError, match="no witness of the policy"):
        self_witnesses(POLICY_OWN.replace("self-witness own", "self-witness nobody").encode())
