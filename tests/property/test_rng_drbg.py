"""Any life of a Hash_DRBG equals that of the second implementation; none gives a secret away in its repr."""

from hypothesis import given
from hypothesis import strategies as st

from rng.drbg import HashDrbg
from tests.unit.rng.reference import ReferenceHashDrbg

inputs = st.binary(max_size=200)
seeds = st.binary(min_size=32, max_size=200)
steps = st.tuples(st.sampled_from(["generate", "reseed", "resistant"]), st.integers(1, 400), inputs, seeds)


@given(
    st.sampled_from(["sha256", "sha512"]),
    seeds,
    st.binary(min_size=16, max_size=80),
    inputs,
    st.lists(steps, min_size=1, max_size=8),
)
def test_every_life_equals_the_second_implementation(
    hash_name: str,
    entropy_input: bytes,
    nonce: bytes,
    personalization: bytes,
    life: list[tuple[str, int, bytes, bytes]],
) -> None:
    ours = HashDrbg(hash_name=hash_name, entropy_input=entropy_input, nonce=nonce, personalization=personalization)
    theirs = ReferenceHashDrbg(hash_name, entropy_input, nonce, personalization)
    for op, n_bytes, additional_input, fresh in life:
        if op == "generate":
            assert ours.generate(n_bytes, additional_input) == theirs.generate(n_bytes, additional_input)
            continue
        theirs.reseed(fresh, additional_input)
        if op == "reseed":
            ours.reseed(fresh, additional_input)
        else:
            output = ours.generate(n_bytes, additional_input, entropy_input=fresh)
            assert output == theirs.generate(n_bytes, b"")
        assert (bytes(ours._v), bytes(ours._c)) == (theirs.v, theirs.c)
    assert theirs.v.hex() not in repr(ours)
