"""Hash_DRBG of NIST SP 800-90A Rev. 1, section 10.1.1: instantiate, reseed, generate, uninstantiate.

Pure over its own state: it reads no clock, no entropy source and no lock; its caller brings the entropy input and
serializes the calls. Limits are those of Table 2, or narrower.

It refuses: inputs and requests beyond the limits, output after the reseed interval, any use after `uninstantiate` or
after an error amid an update, and being copied or pickled (two instances never give the same stream).

Zeroizing, honestly: the lasting state V and C lives in two bytearrays that are overwritten in place at every update
and at the end. The integers and byte strings of the arithmetic between are immutable in CPython: they are dropped,
and their memory is freed, but nothing can promise that it is wiped.
"""

import hashlib
from typing import Final, Never

from rng.errors import DrbgError, ReseedRequiredError

SECURITY_STRENGTH_BYTES: Final = 32
"""256 bits, the highest strength of SHA-256 and SHA-512 (SP 800-57 Part 1), the only one offered."""

MIN_ENTROPY_INPUT_BYTES: Final = SECURITY_STRENGTH_BYTES  # SP 800-90A Table 2: min_length = security strength
MIN_NONCE_BYTES: Final = SECURITY_STRENGTH_BYTES // 2  # SP 800-90A 8.6.7: half the security strength
MAX_INPUT_BYTES: Final = 1 << 16  # Table 2 allows 2^35 bits; nothing here needs more than this
MAX_REQUEST_BYTES: Final = 1 << 16  # Table 2: 2^19 bits
MAX_RESEED_INTERVAL: Final = 1 << 16  # Table 2 allows 2^48 requests

_MECHANISMS: Final = {"sha256": (hashlib.sha256, 55), "sha512": (hashlib.sha512, 111)}  # Table 2: seedlen 440, 888 bits


class HashDrbg:
    """One instantiation of Hash_DRBG (SP 800-90A 10.1.1). Not thread-safe: the owner holds the lock."""

    __slots__ = (
        "_c",
        "_df_headers",
        "_digest_bytes",
        "_hash",
        "_hash_name",
        "_mask",
        "_reseed_counter",
        "_reseed_interval",
        "_seed_bytes",
        "_v",
        "_working",
    )

    def __init__(
        self,
        *,
        hash_name: str = "sha512",
        entropy_input: bytes,
        nonce: bytes,
        personalization: bytes = b"",
        reseed_interval: int = MAX_RESEED_INTERVAL,
    ) -> None:
        """Instantiate (SP 800-90A 9.1, 10.1.1.2).

        `entropy_input` >= 32 bytes, `nonce` >= 16 bytes, `personalization` any; each <= 65,536 bytes.
        `reseed_interval`: generate calls allowed between reseeds, 1..65,536. Raises DrbgError, or ValueError for an
        unknown hash or interval.
        """
        if hash_name not in _MECHANISMS:
            raise ValueError("hash_name is sha256 or sha512")
        if not 1 <= reseed_interval <= MAX_RESEED_INTERVAL:
            raise ValueError(f"reseed_interval is 1..{MAX_RESEED_INTERVAL}")
        _require_length("entropy_input", entropy_input, MIN_ENTROPY_INPUT_BYTES)
        _require_length("nonce", nonce, MIN_NONCE_BYTES)
        _require_length("personalization", personalization, 0)
        self._hash_name = hash_name
        self._hash, self._seed_bytes = _MECHANISMS[hash_name]
        self._digest_bytes = self._hash().digest_size
        self._mask = (1 << 8 * self._seed_bytes) - 1
        bits = (8 * self._seed_bytes).to_bytes(4, "big")
        self._df_headers = (b"\x01" + bits, b"\x02" + bits)  # 10.3.1 step 4.1; both hashes need two blocks
        self._reseed_interval = reseed_interval
        self._v = bytearray(self._seed_bytes)
        self._c = bytearray(self._seed_bytes)
        self._working = True
        self._set_seed(entropy_input + nonce + personalization)

    def reseed(self, entropy_input: bytes, additional_input: bytes = b"") -> None:
        """Reseed (SP 800-90A 9.2, 10.1.1.3) with fresh entropy: >= 32 bytes; additional input <= 65,536 bytes.

        Raises DrbgError; a refused length leaves the state as it was.
        """
        self._require_working()
        _require_length("entropy_input", entropy_input, MIN_ENTROPY_INPUT_BYTES)
        _require_length("additional_input", additional_input, 0)
        try:
            self._set_seed(b"\x01" + self._v + entropy_input + additional_input)
        except BaseException:
            self.uninstantiate()  # a half-made update leaves no usable state
            raise

    def generate(self, n_bytes: int, additional_input: bytes = b"", *, entropy_input: bytes | None = None) -> bytes:
        """Generate 1..65,536 bytes (SP 800-90A 9.3, 10.1.1.4).

        `entropy_input` given = prediction resistance requested (9.3.1 step 7): reseed with it and the additional
        input first, then generate with none. Raises DrbgError, or ReseedRequiredError when the interval is used up;
        both leave the state as it was.
        """
        self._require_working()
        if not 1 <= n_bytes <= MAX_REQUEST_BYTES:
            raise DrbgError("REQUEST_LENGTH", f"{n_bytes} bytes asked, 1..{MAX_REQUEST_BYTES} allowed")
        _require_length("additional_input", additional_input, 0)
        if entropy_input is not None:
            self.reseed(entropy_input, additional_input)
            additional_input = b""
        if self._reseed_counter > self._reseed_interval:
            raise ReseedRequiredError("RESEED_REQUIRED", f"{self._reseed_interval} requests since the last seed")
        try:
            return self._generate(n_bytes, additional_input)
        except BaseException:
            self.uninstantiate()
            raise

    def uninstantiate(self) -> None:
        """Zeroize (SP 800-90A 9.4) as far as CPython allows; every later call raises DrbgError. May be repeated."""
        self._working = False
        self._v[:] = bytes(self._seed_bytes)
        self._c[:] = bytes(self._seed_bytes)
        self._reseed_counter = 0

    def __repr__(self) -> str:
        return f"<HashDrbg {self._hash_name} {'working' if self._working else 'uninstantiated'}>"

    def __reduce__(self) -> Never:
        raise TypeError("a DRBG state is never copied or pickled")

    def _require_working(self) -> None:
        if not self._working:
            raise DrbgError("NOT_INSTANTIATED", "this DRBG was uninstantiated, or met an error amid an update")

    def _set_seed(self, seed_material: bytes) -> None:
        seed = self._hash_df(seed_material)
        self._c[:] = self._hash_df(b"\x00" + seed)
        self._v[:] = seed
        self._reseed_counter = 1

    def _hash_df(self, material: bytes) -> bytes:
        """Hash derivation function (SP 800-90A 10.3.1) to seedlen bits."""
        first, second = self._df_headers
        return (self._hash(first + material).digest() + self._hash(second + material).digest())[: self._seed_bytes]

    def _generate(self, n_bytes: int, additional_input: bytes) -> bytes:
        hash_, seed_bytes, mask = self._hash, self._seed_bytes, self._mask
        v = int.from_bytes(self._v, "big")
        if additional_input:  # 10.1.1.4 step 2
            w = hash_(b"\x02" + self._v + additional_input).digest()
            v = (v + int.from_bytes(w, "big")) & mask
        # Hashgen, 10.1.1.4 "Hashgen Process": hash V, V+1, V+2, ... modulo 2^seedlen
        blocks = range(-(-n_bytes // self._digest_bytes))
        output = b"".join([hash_(((v + i) & mask).to_bytes(seed_bytes, "big")).digest() for i in blocks])[:n_bytes]
        h = hash_(b"\x03" + v.to_bytes(seed_bytes, "big")).digest()  # step 4
        # Step 5: V = (V + H + C + reseed_counter) mod 2^seedlen
        v = (v + int.from_bytes(h, "big") + int.from_bytes(self._c, "big") + self._reseed_counter) & mask
        self._v[:] = v.to_bytes(seed_bytes, "big")
        self._reseed_counter += 1
        return output


def _require_length(name: str, value: bytes, minimum_bytes: int) -> None:
    if not minimum_bytes <= len(value) <= MAX_INPUT_BYTES:
        raise DrbgError("INPUT_LENGTH", f"{name} has {len(value)} bytes, {minimum_bytes}..{MAX_INPUT_BYTES} allowed")
