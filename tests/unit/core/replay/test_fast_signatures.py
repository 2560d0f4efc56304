"""Replay asks libsodium first and OpenSSL where libsodium refuses: the verdict is OpenSSL's."""

from __future__ import annotations

import pytest

from rgs.core.errors import VerificationError
from rgs.core.statements import Envelope, bulk, verify_signature
from tests.support.records.ready_made import large_factory
from tests.support.records.replaying import replay_lines

SMALL = "0100000000000000000000000000000000000000000000000000000000000000"
KEY = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
"""Of the seed of 32 zero bytes."""
MIXED = "6a04fa7acf0934cb8ab34fbcb40c7f58b109fbee389d186d8e22f705e87de8be"
"""KEY with a point of order 8 added to it."""
PLAIN = "b862409fb5c4c4123df2abf7462b88f041ad36dd6864ce872fd5472be363c5b1"
"""The point 7 * B."""
WITH_TORSION = "e9b2fe981587efae6478f48ba1fa60cec6126d0e26dde72a0a24f640dcd783e5"
"""The same with a point of order 8 added to it."""
MULTIPLE = "c0f1225584444ec730446e231390781ffdd2f256e9fcbeb2f40dddc2c2233d7f"
"""A point for which the hash is a multiple of 8, so that the point of order 8 in MIXED falls out."""
FIVE = f"edc876d6831fd2105d0b4389ca2e283166469289146e2ce06faefe98b22548df05{'00' * 31}"
EDGES = (
    # key, signature over `{}` of type a/b, whether it is accepted by libsodium and by OpenSSL
    (KEY, f"{PLAIN}ab3bf5b40b302d90fab01866dd4fba8ed0b9247693f41553edbd2f43e5b11f0d", True, True),
    (
        KEY,
        f"{PLAIN}980feb1126933fe8d04d1009bc4999a3d0b9247693f41553edbd2f43e5b11f1d",
        False,
        False,
    ),  # S above the order
    (KEY, f"{WITH_TORSION}58bffb24e1a1d41472a4bc3963253d5b8d61588fb5e7e73cf5c9e7424bf5f10d", False, False),
    (MIXED, f"{PLAIN}b4ac5d1e2074cc7f4e5965b9190ab3b76db335f45820c370e7099b400612b201", False, False),
    (MIXED, f"{MULTIPLE}68a3bdd2e07f516f18d204fdded0f7d590e25b57a1b961285486a309da72340e", True, True),
    (KEY, f"{SMALL}645ef633217e38c7754f41374b0e5c2098d82faae17c39ba966f6b150978f40f", False, True),
    (SMALL, FIVE, False, True),
    (f"ee{'ff' * 30}7f", FIVE, False, True),  # not the one form of its point
)


def openssl_accepts(envelope: Envelope, key: bytes) -> bool:
    try:
        verify_signature(envelope, key)
    except VerificationError:
        return False
    return True


@pytest.mark.parametrize(("key", "signature", "fast", "judged"), EDGES)
def test_libsodium_accepts_nothing_that_openssl_refuses(key: str, signature: str, fast: bool, judged: bool) -> None:
    """The cofactor is where implementations differ: a library that multiplies by it would accept the third and the
    fourth.
    """
    envelope = Envelope("a/b", b"{}", "", bytes.fromhex(signature))
    assert bulk.is_signed_by(envelope, bytes.fromhex(key)) is fast
    assert openssl_accepts(envelope, bytes.fromhex(key)) is judged
    assert judged or not fast


def test_what_libsodium_refuses_is_judged_by_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = large_factory()
    requested: list[str] = []

    def refuse(envelope: Envelope, _key: bytes) -> bool:
        requested.append(envelope.keyid)
        return False

    usual = replay_lines(factory)
    monkeypatch.setattr(bulk, "is_signed_by", refuse)
    verdict = replay_lines(factory)
    assert requested
    assert (verdict.failures, verdict.summary) == (usual.failures, usual.summary)
