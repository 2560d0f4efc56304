"""Salt and transcript between draw and end: AES-256-GCM under a key of the instance (ARCHITECTURE 2.9; NIST SP
800-38D).

key = HKDF-SHA-256(KEK epoch, info = instance), nonce = draw number in 12 bytes, associated data = SHA-256 of the
deal core. A draw number is used once per instance, so no nonce repeats under a key. The KEK lives outside store and
backup. Refuses to name a key, a salt or a transcript in an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from rgs.core.errors import UnavailableError
from rgs.core.statements import SALT_BYTES

_INFO = b"rgs/seal/v1|"
_CACHE_MAX = 1024


class DeckSealedError(UnavailableError):
    """The sealed deck of a round cannot be opened with the keys at hand."""

    reason = "DECK_UNRECOVERABLE"


@dataclass(frozen=True)
class Kek:
    """Key-encryption keys by epoch, 32 bytes each; new rounds are sealed under `current`."""

    current: int
    keys: Mapping[int, bytes] = field(repr=False)


class Sealer:
    """Seals under the current epoch, unseals under the epoch that the ciphertext names."""

    def __init__(self, kek: Kek) -> None:
        self._kek = kek
        self._ciphers: dict[tuple[int, str], AESGCM] = {}

    def seal(self, instance: str, draw_no: int, deal_core: bytes, salt: bytes, transcript: bytes) -> bytes:
        """One byte of epoch, then the ciphertext of salt[32] || transcript with its tag."""
        epoch = self._kek.current
        cipher = self._cipher(epoch, instance)
        aad = hashlib.sha256(deal_core).digest()
        return bytes([epoch]) + cipher.encrypt(draw_no.to_bytes(12, "big"), salt + transcript, aad)

    def unseal(self, instance: str, draw_no: int, deal_core: bytes, sealed: bytes) -> tuple[bytes, bytes]:
        """(salt, transcript); DeckSealedError if key or data are not the right ones."""
        try:
            cipher = self._cipher(sealed[0], instance)
            aad = hashlib.sha256(deal_core).digest()
            plain = cipher.decrypt(draw_no.to_bytes(12, "big"), sealed[1:], aad)
        except (InvalidTag, KeyError, IndexError):
            raise DeckSealedError("the sealed deck of this round cannot be opened") from None
        return plain[:SALT_BYTES], plain[SALT_BYTES:]

    def _cipher(self, epoch: int, instance: str) -> AESGCM:
        cipher = self._ciphers.get((epoch, instance))
        if cipher is None:
            derived = HKDF(SHA256(), 32, salt=None, info=_INFO + instance.encode("ascii")).derive(self._kek.keys[epoch])
            if len(self._ciphers) >= _CACHE_MAX:
                self._ciphers.clear()
            cipher = self._ciphers[epoch, instance] = AESGCM(derived)
        return cipher
