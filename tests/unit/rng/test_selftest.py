"""The power-up self-test passes, and fails when any part of the unit is wrong (more in test_planted_defects)."""

from collections.abc import Callable
from typing import Any

import pytest

from rng import selftest
from rng.drbg import MAX_INPUT_BYTES, MAX_REQUEST_BYTES, HashDrbg
from rng.errors import DrbgError, SelfTestError
from rng.scaling import below
from rng.shuffle import transcript_to_deck
from tests.unit.rng.reference import ReferenceHashDrbg, swap_by_swap


def test_every_part_is_tested_by_name() -> None:
    assert selftest.run() == (
        "hash_drbg instantiate and generate",
        "hash_drbg reseed and prediction resistance",
        "hash_drbg refusals and uninstantiate",
        "health tests on failing sources",
        "scaling",
        "shuffle and transcript",
    )


def test_our_own_known_answers_come_from_the_second_implementation() -> None:
    drbg = ReferenceHashDrbg(
        "sha512", selftest._NO_RESEED_ENTROPY, selftest._NO_RESEED_NONCE, selftest._NO_RESEED_PERSONALIZATION
    )
    returned = [drbg.generate(256, additional_input) for additional_input in selftest._NO_RESEED_ADDITIONAL]
    assert returned[-1] == selftest._NO_RESEED_RETURNED
    assert [drbg.generate(65, b"") for _ in range(6)][-1] == selftest._NO_RESEED_EIGHTH
    accepted, source = [], iter(selftest._TRANSCRIPT)
    for n in range(52, 1, -1):
        byte = next(b for b in source if b < 256 // n * n)
        accepted.append(byte - byte // n * n)
    assert list(source) == []
    assert swap_by_swap(accepted, 52) == list(selftest._DECK)


def _run_fails(reason: str) -> None:
    with pytest.raises(SelfTestError) as caught:
        selftest.run()
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("name", "wrong", "reason"),
    [
        ("_NO_RESEED_RETURNED", bytes(256), "GENERATE_KNOWN_ANSWER"),
        ("_NO_RESEED_EIGHTH", bytes(65), "COUNTER_KNOWN_ANSWER"),
        ("_PR_RETURNED", bytes(256), "RESEED_KNOWN_ANSWER"),
        ("_DECK", bytes(range(52)), "SHUFFLE_KNOWN_ANSWER"),
        ("below", lambda n, next_byte: next_byte() % n, "SCALING_KNOWN_ANSWER"),
        ("transcript_to_deck", lambda transcript: tuple(selftest._DECK), "TRANSCRIPT_ACCEPTED"),
        ("MAX_REQUEST_BYTES", 99, "REQUEST_LENGTH_NOT_REFUSED"),
        ("MAX_INPUT_BYTES", 99, "INPUT_LENGTH_NOT_REFUSED"),
    ],
)
def test_a_wrong_answer_is_a_failure(name: str, wrong: object, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, name, wrong)
    _run_fails(reason)


def test_one_outcome_that_took_a_byte_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(n: int, next_byte: Callable[[], int]) -> int:
        return below(n, next_byte) if n > 1 else 1

    monkeypatch.setattr(selftest, "below", greedy)
    _run_fails("SCALING_KNOWN_ANSWER")


def test_a_refusal_for_another_reason_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HashDrbg, "uninstantiate", lambda self: None)
    _run_fails("NOT_INSTANTIATED_NOT_REFUSED")


def test_an_unforeseen_error_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: HashDrbg, n_bytes: int, additional_input: bytes = b"") -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(HashDrbg, "generate", broken)
    _run_fails("SELF_TEST")


def test_an_error_of_the_unit_in_the_wrong_place_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_TRANSCRIPT", bytes(7))
    with pytest.raises(SelfTestError, match="met TRANSCRIPT_SHORT"):
        selftest.run()


RIGHT_INIT, RIGHT_RESEED, RIGHT_GENERATE = HashDrbg.__init__, HashDrbg.reseed, HashDrbg.generate


def _init(name: str, length: int) -> Callable[..., None]:
    """Instantiate that takes one input of one wrong length, as if it were one byte longer or shorter."""

    def lax(self: HashDrbg, **given: Any) -> None:
        if len(given.get(name, b"")) == length:
            given[name] = given[name][:-1] if length > MAX_INPUT_BYTES else given[name] + b"\x00"
        RIGHT_INIT(self, **given)

    return lax


def _short_reseed(self: HashDrbg, entropy_input: bytes, additional_input: bytes = b"") -> None:
    RIGHT_RESEED(self, entropy_input + b"\x00" if len(entropy_input) == 31 else entropy_input, additional_input)


def _reseed_after_the_end(self: HashDrbg, entropy_input: bytes, additional_input: bytes = b"") -> None:
    if self._working:
        RIGHT_RESEED(self, entropy_input, additional_input)


def _long_additional_input(self: HashDrbg, n_bytes: int, additional_input: bytes = b"", **fresh: Any) -> bytes:
    taken = additional_input[:-1] if len(additional_input) == MAX_INPUT_BYTES + 1 else additional_input
    return RIGHT_GENERATE(self, n_bytes, taken, **fresh)


def _long_request(self: HashDrbg, n_bytes: int, additional_input: bytes = b"", **fresh: Any) -> bytes:
    taken = MAX_REQUEST_BYTES if n_bytes == MAX_REQUEST_BYTES + 1 else n_bytes
    return RIGHT_GENERATE(self, taken, additional_input, **fresh)


def _unless(reason: str) -> Callable[..., bytes]:
    """Generate that gives bytes where it should refuse for this reason."""

    def lax(self: HashDrbg, n_bytes: int, additional_input: bytes = b"", **fresh: Any) -> bytes:
        try:
            return RIGHT_GENERATE(self, n_bytes, additional_input, **fresh)
        except DrbgError as error:
            if error.reason == reason:
                return bytes(n_bytes)
            raise

    return lax


@pytest.mark.parametrize(
    ("method", "lax", "reason"),
    [
        pytest.param("__init__", _init("entropy_input", 31), "INPUT_LENGTH", id="entropy of 31 bytes"),
        pytest.param("__init__", _init("nonce", 15), "INPUT_LENGTH", id="nonce of 15 bytes"),
        pytest.param("__init__", _init("personalization", 65_537), "INPUT_LENGTH", id="long personalization"),
        pytest.param("reseed", _short_reseed, "INPUT_LENGTH", id="reseed with 31 bytes"),
        pytest.param("generate", _long_additional_input, "INPUT_LENGTH", id="long additional input"),
        pytest.param("generate", _long_request, "REQUEST_LENGTH", id="long request"),
        pytest.param("generate", _unless("RESEED_REQUIRED"), "RESEED_REQUIRED", id="beyond the interval"),
        pytest.param("generate", _unless("NOT_INSTANTIATED"), "NOT_INSTANTIATED", id="generate after the end"),
        pytest.param("reseed", _reseed_after_the_end, "NOT_INSTANTIATED", id="reseed after the end"),
    ],
)
def test_each_refusal_that_is_missing_is_a_failure(
    method: str, lax: Callable[..., object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HashDrbg, method, lax)
    _run_fails(f"{reason}_NOT_REFUSED")


def test_a_refusal_with_the_wrong_reason_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def confused(self: HashDrbg, entropy_input: bytes, additional_input: bytes = b"") -> None:
        if len(entropy_input) == 31:
            raise DrbgError("REQUEST_LENGTH", "another reason than the one that is due")
        RIGHT_RESEED(self, entropy_input, additional_input)

    monkeypatch.setattr(HashDrbg, "reseed", confused)
    _run_fails("INPUT_LENGTH_NOT_REFUSED")


@pytest.mark.parametrize("surplus", [-1, 1])
def test_a_transcript_of_one_byte_too_few_or_too_many_that_is_taken_is_a_failure(
    surplus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(selftest._TRANSCRIPT)

    def lax(transcript: bytes) -> tuple[int, ...]:
        return transcript_to_deck(selftest._TRANSCRIPT if len(transcript) == size + surplus else transcript)

    monkeypatch.setattr(selftest, "transcript_to_deck", lax)
    _run_fails("TRANSCRIPT_ACCEPTED")
