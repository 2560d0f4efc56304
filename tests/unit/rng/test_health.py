"""The health tests: cut-offs recomputed exactly, each test shown to fail, state running on across calls."""

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from rng import health
from rng.errors import HealthTestError, SelfTestError
from rng.health import AdaptiveProportion, HealthTests, RepetitionCount, SameBlock
from tests.unit.rng.reference import critical_binomial


def check_all(check: Callable[[bytes], None], blocks: Iterable[bytes]) -> None:
    for block in blocks:
        check(block)


def test_the_cut_offs_are_those_of_8_bits_and_a_false_alarm_of_2_to_the_minus_40() -> None:
    assert health.REPETITION_CUTOFF == 1 + -(-40 // 8)
    exact = 1 + critical_binomial(512, Fraction(1, 256), Fraction(1, 2**40))
    assert exact == health.PROPORTION_CUTOFF


def test_a_stuck_source_fails_the_repetition_count_at_six_across_calls() -> None:
    test = RepetitionCount()
    for _ in range(5):
        test.check(b"\x07")
    with pytest.raises(HealthTestError, match="REPETITION_COUNT"):
        test.check(b"\x07")


@pytest.mark.parametrize("byte", [b"\x00", b"\n", b"\\", b"\xff"])
@pytest.mark.parametrize("before", range(7))
def test_a_run_of_six_is_seen_wherever_a_call_cuts_it(byte: bytes, before: int) -> None:
    test = RepetitionCount()
    blocks = (b"ab" + byte * before, byte * (6 - before) + b"cd")
    with pytest.raises(HealthTestError):
        check_all(test.check, blocks)


def test_a_run_of_five_passes_and_an_interrupted_run_begins_anew() -> None:
    test = RepetitionCount()
    test.check(b"\x01" * 5)
    test.check(b"\x02" + b"\x01" * 5)
    test.check(b"")
    test.check(b"\x03")


@pytest.mark.parametrize("byte", range(256))
def test_whatever_comes_first_five_of_it_pass_and_six_do_not(byte: int) -> None:
    test = RepetitionCount()
    test.check(bytes([byte]) * 5)
    with pytest.raises(HealthTestError):
        test.check(bytes([byte]))


def test_a_source_of_two_values_fails_the_adaptive_proportion_only() -> None:
    block = b"\x00\x01" * 32
    RepetitionCount().check(block)
    SameBlock().check(block)
    with pytest.raises(HealthTestError, match="ADAPTIVE_PROPORTION"):
        AdaptiveProportion().check(block)


def test_the_adaptive_proportion_counts_18_and_fails_at_19_across_calls() -> None:
    test = AdaptiveProportion()
    test.check(b"\x05\x06" * 9)
    test.check(b"\x05\x06" * 9)
    with pytest.raises(HealthTestError, match="ADAPTIVE_PROPORTION"):
        test.check(b"\x05")


def test_a_new_window_takes_its_own_first_sample_also_within_a_block() -> None:
    test = AdaptiveProportion()
    test.check(b"\x00" * 18 + b"\x01" * 493)  # 511 samples; 493 of another value are no matter
    test.check(b"\x02" + b"\x00" * 17 + b"\x03" * 100)  # the window's last sample, then a window led by 0
    with pytest.raises(HealthTestError):
        test.check(b"\x00\x00")


def test_a_repeated_block_is_seen_by_the_same_block_test_alone() -> None:
    block = bytes(range(64))
    for blind in (RepetitionCount(), AdaptiveProportion()):
        for _ in range(10):
            blind.check(block)
    test = SameBlock()
    test.check(block)
    test.check(bytes(reversed(block)))
    test.check(block)
    with pytest.raises(HealthTestError, match="SAME_BLOCK"):
        test.check(block)


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ([b"\x00" * 64], "REPETITION_COUNT"),
        ([b"\x00\xff" * 32], "ADAPTIVE_PROPORTION"),
        ([bytes(range(64)), bytes(range(64))], "SAME_BLOCK"),
    ],
)
def test_all_three_tests_run_on_every_block(blocks: list[bytes], reason: str) -> None:
    tests = HealthTests()
    with pytest.raises(HealthTestError) as caught:
        check_all(tests.check, blocks)
    assert caught.value.reason == reason


def test_no_block_is_kept() -> None:
    tests, block = HealthTests(), bytes(range(64))
    tests.check(block)
    kept = [value for test in tests._tests for value in vars(test).values() if isinstance(value, bytes)]
    assert sum(map(len, kept)) == 1 + 1 + 32
    assert all(value not in block for value in kept if len(value) > 1)


def test_the_known_answers_pass_and_each_refusal_is_due_to_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    right = HealthTests.check

    def kept(self: HealthTests, block: bytes) -> None:
        given.append(block)
        right(self, block)

    monkeypatch.setattr(HealthTests, "check", kept)
    health.selftest()
    assert [len(refused) for refused in given[1::2]] == [1, 1, 1, 64]


@pytest.mark.parametrize("blind", [RepetitionCount, AdaptiveProportion, SameBlock])
def test_the_known_answers_fail_when_one_test_is_blind(blind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "check", lambda self, block: None)
    with pytest.raises(SelfTestError, match=r"_\w+ was due, nothing was reported$") as caught:
        health.selftest()
    assert caught.value.reason == "HEALTH_TESTS"


def test_the_known_answers_fail_when_a_test_refuses_good_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health.RepetitionCount, "__init__", _blind_to_good)
    with pytest.raises((SelfTestError, HealthTestError)):
        health.selftest()


def _blind_to_good(test: RepetitionCount) -> None:
    test._find_run = lambda samples: True  # type: ignore[assignment]
    test._run = b""
