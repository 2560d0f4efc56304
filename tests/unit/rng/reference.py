"""Slow second implementations, written from the text of the standards only, to check the unit against.

Deliberately of another make than `rng`: the DRBG keeps a dict of integers and adds byte by byte in the text's own
steps; the health tests look at one sample at a time.
"""

import hashlib
from collections.abc import Iterable
from fractions import Fraction


def hash_df(hash_name: str, material: bytes, n_bits: int) -> bytes:
    """SP 800-90A 10.3.1, general form."""
    output = b""
    counter = 1
    while len(output) * 8 < n_bits:
        output += hashlib.new(hash_name, bytes([counter]) + n_bits.to_bytes(4, "big") + material).digest()
        counter += 1
    return output[: n_bits // 8]


def add(seedlen: int, *terms: bytes) -> bytes:
    """Sum of big-endian byte strings modulo 2^seedlen, byte by byte with a carry."""
    size = seedlen // 8
    rows = [t.rjust(size, b"\x00") for t in terms]
    result = bytearray(size)
    carry = 0
    for i in reversed(range(size)):
        total = carry + sum(row[i] for row in rows)
        result[i] = total % 256
        carry = total // 256
    return bytes(result)


class ReferenceHashDrbg:
    """SP 800-90A 10.1.1, step by step."""

    def __init__(self, hash_name: str, entropy_input: bytes, nonce: bytes, personalization: bytes) -> None:
        self.hash_name = hash_name
        self.seedlen = {"sha256": 440, "sha512": 888}[hash_name]
        self.v = hash_df(hash_name, entropy_input + nonce + personalization, self.seedlen)
        self.c = hash_df(hash_name, b"\x00" + self.v, self.seedlen)
        self.reseed_counter = 1

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def reseed(self, entropy_input: bytes, additional_input: bytes) -> None:
        self.v = hash_df(self.hash_name, b"\x01" + self.v + entropy_input + additional_input, self.seedlen)
        self.c = hash_df(self.hash_name, b"\x00" + self.v, self.seedlen)
        self.reseed_counter = 1

    def generate(self, n_bytes: int, additional_input: bytes) -> bytes:
        if additional_input:
            self.v = add(self.seedlen, self.v, self.digest(b"\x02" + self.v + additional_input))
        output = b""
        data = self.v
        while len(output) < n_bytes:
            output += self.digest(data)
            data = add(self.seedlen, data, b"\x01")
        h = self.digest(b"\x03" + self.v)
        self.v = add(self.seedlen, self.v, h, self.c, self.reseed_counter.to_bytes(8, "big"))
        self.reseed_counter += 1
        return output[:n_bytes]


def repetition_count_fails(samples: Iterable[int], cutoff: int) -> bool:
    """SP 800-90B 4.4.1, one sample at a time."""
    last, count = None, 0
    for x in samples:
        count = count + 1 if x == last else 1
        last = x
        if count >= cutoff:
            return True
    return False


def adaptive_proportion_fails(samples: Iterable[int], window: int, cutoff: int) -> bool:
    """SP 800-90B 4.4.2, one sample at a time."""
    first, count, position = None, 0, 0
    for x in samples:
        if position == 0:
            first, count = x, 1
        elif x == first:
            count += 1
        if count >= cutoff:
            return True
        position = (position + 1) % window
    return False


def critical_binomial(trials: int, p: Fraction, tail: Fraction) -> int:
    """The smallest k with P(Binomial(trials, p) <= k) >= 1 - tail, in exact fractions."""
    term = (1 - p) ** trials
    cumulative = term
    k = 0
    while cumulative < 1 - tail:
        term = term * (trials - k) * p / ((k + 1) * (1 - p))
        k += 1
        cumulative += term
    return k


def swap_by_swap(accepted: list[int], n: int) -> list[int]:
    """Fisher-Yates as products of transpositions on a dict of places, for the numbers drawn j_(n-1), ..., j_1."""
    place = {k: k for k in range(n)}
    for i, j in zip(range(n - 1, 0, -1), accepted, strict=True):
        at_i, at_j = place[i], place[j]
        place[i] = at_j
        place[j] = at_i
    return [place[k] for k in range(n)]
