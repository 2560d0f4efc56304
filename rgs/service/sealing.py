"""Seals decks between draw and end, tokens of sessions, and private blocks beside the log, with AES-256-GCM
(ARCHITECTURE 2.9: a deck is sealed until it is revealed; NIST SP 800-38D).

A deck's salt and transcript: key = HKDF-SHA-256(KEK epoch, info = instance), nonce = draw number in 12 bytes,
associated data = SHA-256 of the deal core. A draw number is used once in an instance, so that no nonce repeats under a
key. The key-encryption key (KEK) is kept outside store and backup.

A session's token, and a private block with its request (docs/keys.md 5), are sealed under keys of their own:
HKDF-SHA-256(KEK epoch, info = the session's id, or the statement's hash). There is one text for each such key, and
sealing it again gives the same bytes. No error names a key, a salt, a transcript or a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from rgs.core.errors import UnavailableError, WalletUnavailableError
from rgs.core.statements import SALT_BYTES

_INFO = b"rgs/seal/v1|"
_INFO_TOKEN = b"rgs/token/v1|"
_INFO_PRIVATE = b"rgs/seal-private/v1|"
_NONCE_ONCE = bytes(12)
"""The nonce under a key that seals one text."""
_CACHE_MAX = 1024


class DeckSealedError(UnavailableError, reason="DECK_UNRECOVERABLE"):
    """The sealed deck of a round cannot be opened with the keys at hand."""


class TokenSealedError(WalletUnavailableError):
    """The sealed token of a session cannot be opened with the keys at hand. No debit is sent without it."""


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
        """(salt, transcript). DeckSealedError if the key is missing or the data were changed."""
        try:
            cipher = self._cipher(sealed[0], instance)
            aad = hashlib.sha256(deal_core).digest()
            plain = cipher.decrypt(draw_no.to_bytes(12, "big"), sealed[1:], aad)
        except (InvalidTag, KeyError, IndexError):
            raise DeckSealedError("the sealed deck of this round cannot be opened") from None
        return plain[:SALT_BYTES], plain[SALT_BYTES:]

    def seal_token(self, session_id: str, token: str) -> bytes:
        """One byte of epoch, then the ciphertext of the token with its tag."""
        return self._seal_once(_INFO_TOKEN + session_id.encode("ascii"), token.encode("utf-8"))

    def unseal_token(self, session_id: str, sealed: bytes) -> str:
        """The token. TokenSealedError if the key is missing or the data were changed."""
        token = self._unseal_once(_INFO_TOKEN + session_id.encode("ascii"), sealed)
        if token is None:
            raise TokenSealedError("the sealed token of this session cannot be opened")
        return token.decode("utf-8")

    def seal_private(self, statement_hash: bytes, private: bytes) -> bytes:
        """One byte of epoch, then the ciphertext of the private block and its salt, with its tag."""
        return self._seal_once(_INFO_PRIVATE + statement_hash, private)

    def unseal_private(self, statement_hash: bytes, sealed: bytes) -> bytes | None:
        """The private block and its salt; None if the key is missing or the data were changed."""
        return self._unseal_once(_INFO_PRIVATE + statement_hash, sealed)

    def _seal_once(self, info: bytes, plain: bytes) -> bytes:
        epoch = self._kek.current
        return bytes([epoch]) + AESGCM(self._derived(epoch, info)).encrypt(_NONCE_ONCE, plain, None)

    def _unseal_once(self, info: bytes, sealed: bytes) -> bytes | None:
        try:
            return AESGCM(self._derived(sealed[0], info)).decrypt(_NONCE_ONCE, sealed[1:], None)
        except (InvalidTag, KeyError, IndexError):
            return None

    def _cipher(self, epoch: int, instance: str) -> AESGCM:
        cipher = self._ciphers.get((epoch, instance))
        if cipher is None:
            derived = self._derived(epoch, _INFO + instance.encode("ascii"))
            if len(self._ciphers) >= _CACHE_MAX:
                self._ciphers.clear()
            cipher = self._ciphers[epoch, instance] = AESGCM(derived)
        return cipher

    def _derived(self, epoch: int, info: bytes) -> bytes:
        return HKDF(SHA256(), 32, salt=None, info=info).derive(self._kek.keys[epoch])
