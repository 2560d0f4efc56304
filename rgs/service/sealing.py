"""Seals decks between draw and end, tokens of sessions, and private blocks beside the log, with AES-256-GCM
(ARCHITECTURE 2.9: a deck is sealed until it is revealed; NIST SP 800-38D).

Each text is sealed under a key of its own, HKDF-SHA-256(KEK epoch, info), and sealing it again gives the same bytes.
`info` names the SHA-256 of the deal core for a deck's salt and transcript, the session's id for a token, the
statement's hash for a private block with its request (docs/keys.md 5). A deal core holds the id of its round, which is
drawn: no other life of the store has it, one that was put back without its log either. The key-encryption key (KEK) is
kept outside store and backup. No error names a key, a salt, a transcript or a token.

Software of schema 13 sealed decks otherwise: info = instance, nonce = draw number in 12 bytes, associated data =
SHA-256 of the deal core. Such decks are opened still, and made where a node of that software may go on with the round.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rgs.core.errors import UnavailableError, WalletUnavailableError
from rgs.core.statements import SALT_BYTES

_INFO_DECK = b"rgs/seal-deck/v1|"
_INFO_OLDER = b"rgs/seal/v1|"
_INFO_TOKEN = b"rgs/token/v1|"
_INFO_PRIVATE = b"rgs/seal-private/v1|"
_NONCE_ONCE = bytes(12)
"""The nonce under a key that seals one text."""


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
    """Seals under the current epoch, unseals under the epoch that the ciphertext names. `beside_older`: software of the
    schema before may have to open the decks.
    """

    def __init__(self, kek: Kek, *, beside_older: bool = False) -> None:
        self._current = kek.current
        self._extracted = {epoch: hmac.digest(bytes(32), key, "sha256") for epoch, key in kek.keys.items()}
        """HKDF's first step, without a salt (RFC 5869, 2.2)."""
        self._beside_older = beside_older

    def seal(self, instance: str, draw_no: int, deal_core: bytes, salt: bytes, transcript: bytes) -> bytes:
        """One byte of epoch, then the ciphertext of salt[32] || transcript with its tag."""
        plain, digest = salt + transcript, hashlib.sha256(deal_core).digest()
        if not self._beside_older:
            return self._seal_once(_INFO_DECK + digest, plain)
        epoch = self._current
        return bytes([epoch]) + self._older(epoch, instance).encrypt(draw_no.to_bytes(12, "big"), plain, digest)

    def unseal(self, instance: str, draw_no: int, deal_core: bytes, sealed: bytes) -> tuple[bytes, bytes]:
        """(salt, transcript). DeckSealedError if the key is missing or the data were changed."""
        digest = hashlib.sha256(deal_core).digest()
        plain = self._unseal_once(_INFO_DECK + digest, sealed)
        if plain is None:
            try:
                plain = self._older(sealed[0], instance).decrypt(draw_no.to_bytes(12, "big"), sealed[1:], digest)
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
        epoch = self._current
        return bytes([epoch]) + AESGCM(self._derived(epoch, info)).encrypt(_NONCE_ONCE, plain, None)

    def _unseal_once(self, info: bytes, sealed: bytes) -> bytes | None:
        try:
            return AESGCM(self._derived(sealed[0], info)).decrypt(_NONCE_ONCE, sealed[1:], None)
        except (InvalidTag, KeyError, IndexError):
            return None

    def _older(self, epoch: int, instance: str) -> AESGCM:
        return AESGCM(self._derived(epoch, _INFO_OLDER + instance.encode("ascii")))

    def _derived(self, epoch: int, info: bytes) -> bytes:
        """The first block of HKDF's second step (RFC 5869, 2.3); an object of a library for it takes 15 us a deck."""
        return hmac.digest(self._extracted[epoch], info + b"\x01", "sha256")
