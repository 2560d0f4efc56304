"""The power-up self-test passes, and fails when any part of the unit is wrong (more in test_planted_defects)."""

from collections.abc import Callable

import pytest

from rng import selftest
from rng.drbg import HashDrbg
from rng.errors import SelfTestError
from rng.scaling import below
from tests.unit.rng.reference import ReferenceHashDrbg, swap_by_swap


def test_every_part_is_tested_by_name() -> None:
    assert len(selftest.run()) == len(selftest._TESTS) == 6


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
