"""Hash_DRBG against the second implementation and at its limits (the official answers are in test_kat)."""

import copy
import hashlib
import pickle
from collections.abc import Callable

import pytest

from rng.drbg import MAX_INPUT_BYTES, MAX_REQUEST_BYTES, MAX_RESEED_INTERVAL, HashDrbg
from rng.errors import DrbgError, ReseedRequiredError
from tests.unit.rng.reference import ReferenceHashDrbg

ENTROPY = bytes(range(100, 148))
NONCE = bytes(range(200, 216))
FRESH = bytes(range(32, 64))


def make(reseed_interval: int = 8, hash_name: str = "sha512") -> HashDrbg:
    return HashDrbg(
        hash_name=hash_name,
        entropy_input=ENTROPY,
        nonce=NONCE,
        personalization=b"unit test",
        reseed_interval=reseed_interval,
    )


def reference(hash_name: str = "sha512") -> ReferenceHashDrbg:
    return ReferenceHashDrbg(hash_name, ENTROPY, NONCE, b"unit test")


@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
@pytest.mark.parametrize("n_bytes", [1, 2, 31, 32, 33, 63, 64, 65, 111, 127, 129, 1000, 65_535, 65_536])
def test_odd_and_greatest_lengths_equal_the_second_implementation(hash_name: str, n_bytes: int) -> None:
    ours, theirs = make(hash_name=hash_name), reference(hash_name)
    for additional_input in (b"", b"x"):
        assert ours.generate(n_bytes, additional_input) == theirs.generate(n_bytes, additional_input)


def test_a_shorter_request_is_the_beginning_of_a_longer_one() -> None:
    longest = make().generate(65_536)
    assert all(make().generate(n) == longest[:n] for n in (1, 63, 64, 65, 65_535))


@pytest.mark.parametrize(("hash_name", "size"), [("sha256", 55), ("sha512", 111)])
@pytest.mark.parametrize("last_byte", [0xFE, 0xFF])
def test_sums_wrap_modulo_two_to_the_seedlen(hash_name: str, size: int, last_byte: int) -> None:
    # No published vector has V so near 2^seedlen that Hashgen's counter wraps within a request.
    ours, theirs = make(hash_name=hash_name), reference(hash_name)
    ours._v[:] = theirs.v = b"\xff" * (size - 1) + bytes([last_byte])
    ours._c[:] = theirs.c = b"\xff" * size
    assert ours.generate(200) == theirs.generate(200, b"")
    assert ours.generate(200, b"add") == theirs.generate(200, b"add")
    assert bytes(ours._v) == theirs.v


def test_prediction_resistance_is_a_reseed_with_the_additional_input_and_a_generate_without() -> None:
    one, other = make(), make()
    other.reseed(FRESH, b"additional")
    assert one.generate(70, b"additional", entropy_input=FRESH) == other.generate(70)


def walked_back(drbg: HashDrbg, n_bytes: int) -> bytes:
    """What somebody who has the state after a request gets who undoes all of the update that can be undone: C and the
    counter are in the state, so that only the hash of the old V is missing.
    """
    mask = (1 << 8 * len(drbg._v)) - 1
    v = (int.from_bytes(drbg._v, "big") - int.from_bytes(drbg._c, "big") - (drbg._reseed_counter - 1)) & mask
    return hashlib.sha512(v.to_bytes(len(drbg._v), "big")).digest()[:n_bytes]


def without_the_hash(self: HashDrbg, n_bytes: int, additional_input: bytes) -> bytes:
    """Planted: an update without step 4 of 10.1.1.4."""
    mask = (1 << 8 * len(self._v)) - 1
    v = int.from_bytes(self._v, "big")
    output = hashlib.sha512(bytes(self._v)).digest()[:n_bytes]
    self._v[:] = ((v + int.from_bytes(self._c, "big") + self._reseed_counter) & mask).to_bytes(len(self._v), "big")
    self._reseed_counter += 1
    return output


def test_who_gets_the_state_cannot_walk_back_to_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backtracking resistance (SP 800-90A 8.8), as far as a test goes: the one way back that needs no preimage leads
    back in a generator whose update has no hash, and in ours it does not. That SHA-512 has no preimages is not tested.
    """
    drbg = make()
    for _ in range(50):
        before = bytes(drbg._v)
        result = drbg.generate(64)
        assert result == hashlib.sha512(before).digest(), "what the old state gives"
        assert walked_back(drbg, 64) != result
        assert before not in (bytes(drbg._v), bytes(drbg._c)), "and the old state is overwritten"
        drbg.reseed(bytes(range(64)))
    monkeypatch.setattr(HashDrbg, "_generate", without_the_hash)
    result = drbg.generate(64)
    assert walked_back(drbg, 64) == result


@pytest.mark.parametrize("n_bytes", [-1, 0, MAX_REQUEST_BYTES + 1])
def test_a_request_outside_the_limits_is_refused_and_leaves_the_state(n_bytes: int) -> None:
    drbg = make()
    with pytest.raises(DrbgError, match="REQUEST_LENGTH"):
        drbg.generate(n_bytes)
    assert drbg.generate(64) == make().generate(64)


def test_inputs_outside_the_limits_are_refused_and_leave_the_state() -> None:
    too_long = bytes(MAX_INPUT_BYTES + 1)
    for entropy_input in (b"", bytes(31), too_long):
        with pytest.raises(DrbgError, match="INPUT_LENGTH: entropy_input"):
            HashDrbg(entropy_input=entropy_input, nonce=NONCE)
    for nonce in (b"", bytes(15), too_long):
        with pytest.raises(DrbgError, match="INPUT_LENGTH: nonce"):
            HashDrbg(entropy_input=ENTROPY, nonce=nonce)
    with pytest.raises(DrbgError, match="INPUT_LENGTH: personalization"):
        HashDrbg(entropy_input=ENTROPY, nonce=NONCE, personalization=too_long)
    drbg = make()
    for refused in (
        lambda: drbg.reseed(bytes(31)),
        lambda: drbg.reseed(too_long),
        lambda: drbg.reseed(FRESH, too_long),
        lambda: drbg.generate(1, too_long),
        lambda: drbg.generate(1, entropy_input=b""),
        lambda: drbg.generate(1, entropy_input=bytes(31)),
    ):
        with pytest.raises(DrbgError, match="INPUT_LENGTH"):
            refused()
    assert drbg.generate(64) == make().generate(64)


def test_a_refused_length_names_the_input_its_size_and_its_limits() -> None:
    long, drbg = bytes(MAX_INPUT_BYTES + 1), make()
    for refused, result in (
        (lambda: HashDrbg(entropy_input=bytes(31), nonce=NONCE), "entropy_input has 31 bytes, 32..65536 allowed"),
        (lambda: HashDrbg(entropy_input=ENTROPY, nonce=bytes(15)), "nonce has 15 bytes, 16..65536 allowed"),
        (
            lambda: HashDrbg(entropy_input=ENTROPY, nonce=NONCE, personalization=long),
            "personalization has 65537 bytes, 0..65536 allowed",
        ),
        (lambda: drbg.reseed(bytes(31)), "entropy_input has 31 bytes, 32..65536 allowed"),
        (lambda: drbg.reseed(FRESH, long), "additional_input has 65537 bytes, 0..65536 allowed"),
        (lambda: drbg.generate(1, long), "additional_input has 65537 bytes, 0..65536 allowed"),
    ):
        with pytest.raises(DrbgError) as caught:
            refused()
        assert (caught.value.reason, caught.value.detail) == ("INPUT_LENGTH", result)


def test_the_shortest_and_longest_inputs_are_taken() -> None:
    longest = bytes(MAX_INPUT_BYTES)
    for entropy_input, nonce in ((bytes(32), bytes(16)), (longest, longest)):
        drbg = HashDrbg(entropy_input=entropy_input, nonce=nonce, personalization=longest)
        theirs = ReferenceHashDrbg("sha512", entropy_input, nonce, longest)
        drbg.reseed(longest, longest)
        theirs.reseed(longest, longest)
        assert drbg.generate(64, longest) == theirs.generate(64, longest)


def test_the_reseed_interval_is_enforced_and_a_reseed_begins_a_new_one() -> None:
    drbg, theirs = make(reseed_interval=3), reference()
    for _ in range(2):
        for _ in range(3):
            assert drbg.generate(16) == theirs.generate(16, b"")
        for _ in range(2):
            with pytest.raises(ReseedRequiredError, match="RESEED_REQUIRED"):
                drbg.generate(16)
        drbg.reseed(FRESH)
        theirs.reseed(FRESH, b"")


def test_prediction_resistance_serves_after_the_interval() -> None:
    drbg, theirs = make(reseed_interval=1), reference()
    drbg.generate(16)
    theirs.generate(16, b"")
    theirs.reseed(FRESH, b"")
    assert drbg.generate(16, entropy_input=FRESH) == theirs.generate(16, b"")


@pytest.mark.parametrize("reseed_interval", [-1, 0, MAX_RESEED_INTERVAL + 1, 1 << 48])
def test_an_interval_beyond_ours_is_refused(reseed_interval: int) -> None:
    with pytest.raises(ValueError, match="reseed_interval"):
        make(reseed_interval=reseed_interval)


def test_the_limits_are_those_documented() -> None:
    assert (MAX_INPUT_BYTES, MAX_REQUEST_BYTES, MAX_RESEED_INTERVAL) == (65_536, 65_536, 65_536)
    assert make(reseed_interval=65_536).generate(64) == make(reseed_interval=1).generate(64)


def test_without_a_personalization_there_is_none() -> None:
    theirs = ReferenceHashDrbg("sha512", ENTROPY, NONCE, b"")
    assert HashDrbg(entropy_input=ENTROPY, nonce=NONCE).generate(64) == theirs.generate(64, b"")


def test_another_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="hash_name"):
        make(hash_name="sha1")


def test_uninstantiate_zeroizes_in_place_and_is_final() -> None:
    drbg = make()
    v, c = drbg._v, drbg._c
    assert any(v)
    assert any(c)
    drbg.uninstantiate()
    drbg.uninstantiate()
    assert not any(v)
    assert not any(c)
    assert drbg._v is v
    assert drbg._c is c
    assert drbg._reseed_counter == 0  # nor does it tell how many requests there were
    for refused in (
        lambda: drbg.generate(1),
        lambda: drbg.reseed(FRESH),
        lambda: drbg.generate(1, entropy_input=FRESH),
    ):
        with pytest.raises(DrbgError, match="NOT_INSTANTIATED"):
            refused()


def test_the_state_is_overwritten_in_place_by_every_update() -> None:
    drbg = make()
    v, before = drbg._v, bytes(drbg._v)
    drbg.generate(1)
    assert drbg._v is v
    assert bytes(v) != before
    drbg.reseed(FRESH)
    assert drbg._v is v


@pytest.mark.parametrize(
    "update",
    [
        lambda drbg: drbg.generate(1),
        lambda drbg: drbg.reseed(FRESH),
        lambda drbg: drbg.generate(1, entropy_input=FRESH),
    ],
    ids=["generate", "reseed", "prediction resistance"],
)
def test_an_error_amid_an_update_is_the_error_state(update: Callable[[HashDrbg], object]) -> None:
    drbg = make()

    def failing_hash(data: bytes) -> None:
        raise MemoryError

    drbg._hash = failing_hash  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        update(drbg)
    assert not any(drbg._v)
    with pytest.raises(DrbgError, match="NOT_INSTANTIATED"):
        drbg.generate(1)


def test_a_state_cannot_be_copied_or_pickled() -> None:
    drbg = make()
    for doubling in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            doubling(drbg)


def test_repr_shows_the_mechanism_and_nothing_of_the_state() -> None:
    drbg = make()
    assert repr(drbg) == "<HashDrbg sha512 working>"
    drbg.uninstantiate()
    assert repr(drbg) == "<HashDrbg sha512 uninstantiated>"
