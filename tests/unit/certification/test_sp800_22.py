"""Our SP 800-22 against NIST's C program, the publication's examples and planted faults; lengths, files, verdicts."""

from __future__ import annotations

import hashlib
import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certification.rtp.compiled import Bytes
from certification.statistics.families import holm, uniformity
from certification.statistics.sp800_22 import command, counts, levels, patterns, reading, structure, suite, walk
from certification.statistics.sp800_22.suite import CORRECTED, NIST_2_1_2, PValue, Variant

EXPECTED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "sp800-22" / "expected.json").read_text("ascii")
)
N = 1_000_000
LONG = {"pi", "sqrt3"}
NAMES = [
    # Half of the sequences are left to `make exhaustive`.
    pytest.param(name, marks=[pytest.mark.slow_exhaustive] if name in LONG else [])
    for name in sorted(EXPECTED["sequences"])
]
# The vectors have six decimals; the C program's series of the gamma function are good to about 1e-6 besides.
NEAR = 2e-6


def bits_of(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8) - ord("0")


def whole(number: int) -> Bytes:
    return np.unpackbits(np.frombuffer(number.to_bytes(N // 8, "big"), np.uint8))


def inverse_factorials(low: int, high: int) -> tuple[int, int]:
    """Sum over low < k <= high of low! / k!, as a fraction, by halves."""
    if high - low == 1:
        return 1, high
    middle = (low + high) // 2
    p, q = inverse_factorials(low, middle)
    r, s = inverse_factorials(middle, high)
    return p * s + r, q * s


def chudnovsky(low: int, high: int) -> tuple[int, int, int]:
    if high - low == 1:
        p = (6 * low - 5) * (2 * low - 1) * (6 * low - 1) if low else 1
        q = low**3 * 640320**3 // 24 if low else 1
        return p, q, (p if low % 2 == 0 else -p) * (13591409 + 545140134 * low)
    middle = (low + high) // 2
    p, q, t = chudnovsky(low, middle)
    r, s, u = chudnovsky(middle, high)
    return p * r, q * s, t * s + p * u


@cache
def sequence(name: str) -> Bytes:
    """The first million bits, the integer part included."""
    if name.startswith("sqrt"):
        return whole(math.isqrt(int(name[4:]) << 2 * (N - 1)))
    guard = 64
    if name == "e":
        p, q = inverse_factorials(0, 74_000)
        return whole(((1 << (N - 2)) * (p + q)) // q)
    _, q, t = chudnovsky(0, 21_300)
    root = math.isqrt(10005 << 2 * (N + guard))
    return whole((q * 426880 * root // t) >> (guard + 2))


@cache
def found(name: str, variant: Variant) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for value in suite.run(sequence(name), variant):
        assert value.p is not None
        values.setdefault(value.test, []).append(value.p)
    return values


@pytest.mark.parametrize("name", NAMES)
def test_the_sequences_are_those_of_the_vectors(name: str) -> None:
    text = (sequence(name) + ord("0")).tobytes()
    assert hashlib.sha256(text).hexdigest() == EXPECTED["sequences"][name]["sha256_of_ascii_bits"]
    assert walk.cycles(walk.steps_of(sequence(name))) == EXPECTED["sequences"][name]["excursion_cycles_J"]


@pytest.mark.parametrize("name", NAMES)
def test_all_188_p_values_are_those_of_nists_program(name: str) -> None:
    expected = dict(EXPECTED["sequences"][name]["nist_sts_2.1.2"])
    values = dict(found(name, NIST_2_1_2))
    assert sum(map(len, values.values())) == suite.P_VALUES == 188
    assert values.pop("cusum") == pytest.approx(
        [expected.pop("cusum_forward"), expected.pop("cusum_reverse")], abs=NEAR
    )
    assert values.pop("serial") == pytest.approx([expected.pop("serial_p1"), expected.pop("serial_p2")], abs=NEAR)
    for test in ("random_excursions", "random_excursions_variant"):
        by_state = expected.pop(test)
        parts = next(row.parts for row in suite.TESTS if row.name == test)
        assert values.pop(test) == pytest.approx([by_state[str(int(state))] for state in parts], abs=NEAR)
    assert values.pop("nonoverlapping") == pytest.approx(expected.pop("nonoverlapping"), abs=NEAR)
    assert set(values) == set(expected)
    for test, p in expected.items():
        assert values[test] == pytest.approx([p], abs=NEAR), test


@pytest.mark.parametrize("name", NAMES)
def test_the_corrected_constants_give_the_corrected_values(name: str) -> None:
    corrected = EXPECTED["sequences"][name]["corrected"]
    values = found(name, CORRECTED)
    assert values["overlapping"] == pytest.approx([corrected["overlapping"]], abs=NEAR)
    assert values["linear_complexity"] == pytest.approx([corrected["linear_complexity"]], abs=NEAR)
    assert structure.dft(sequence(name), 3.8) == pytest.approx(corrected["dft_divisor_3.8"], abs=NEAR)
    assert {test for test in values if values[test] != found(name, NIST_2_1_2)[test]} == {
        "overlapping",
        "linear_complexity",
    }


def test_the_templates_are_the_148_of_the_program() -> None:
    assert list(patterns.aperiodic_templates()) == EXPECTED["templates_m9"]


def example(test: str, bits: Bytes, given: dict[str, Any]) -> list[float]:
    """One worked example of the publication."""
    state = given.get("x", 1)
    return {
        "frequency": lambda: [counts.frequency(bits)],
        "block_frequency": lambda: [counts.block_frequency(bits, given["M"])],
        "runs": lambda: [counts.runs(bits)],
        "longest_run": lambda: [counts.longest_run(bits)],
        "rank": lambda: [structure.rank(bits, given["M"])],
        "dft": lambda: [structure.dft(bits)],
        "nonoverlapping": lambda: patterns.nonoverlapping(bits, (given["template"],), given["N"]),
        "overlapping": lambda: [patterns.overlapping(bits, tuple(given["pi"]), given["m"], given["M"])],
        "universal": lambda: [patterns.universal(bits, given["L"], given["Q"], with_factor=False)],
        "linear_complexity": lambda: [
            structure.linear_complexity(bits, structure.COMPLEXITY_MISPRINT, given["M"]),
            structure.linear_complexity(bits, structure.COMPLEXITY_CORRECTED, given["M"]),
        ],
        "serial": lambda: list(patterns.serial(bits, given["m"])),
        "approximate_entropy": lambda: [patterns.approximate_entropy(bits, given["m"])],
        "cusum": lambda: list(walk.cumulative_sums(walk.steps_of(bits))),
        "random_excursions": lambda: [walk.excursions(walk.steps_of(bits))[walk.EXCURSION_STATES.index(state)]],
        "random_excursions_variant": lambda: [
            walk.excursions_variant(walk.steps_of(bits))[walk.VARIANT_STATES.index(state)]
        ],
    }[test]()


@pytest.mark.parametrize(
    "row", [row for row in EXPECTED["worked_examples"] if row["reproducible"]], ids=lambda row: row["section"]
)
def test_the_publications_small_examples(row: dict[str, Any]) -> None:
    assert example(row["test"], bits_of(row["bits"]), row["params"]) == pytest.approx(row["p"], abs=NEAR)


# Where the publication slips, the value that the note of the vectors derives.
SLIPS = {"2.5.4": 0.820962, "2.6.4": 0.468160, "2.6.8": 0.646355, "2.8.4": 0.409633}


@pytest.mark.parametrize(
    "row", [row for row in EXPECTED["worked_examples"] if not row["reproducible"]], ids=lambda row: row["section"]
)
def test_the_publications_slips_are_not_copied(row: dict[str, Any]) -> None:
    assert example(row["test"], bits_of(row["bits"]), row["params"]) == pytest.approx([SLIPS[row["section"]]], abs=NEAR)


def test_the_publications_examples_on_e() -> None:
    for row in EXPECTED["worked_examples_on_e"]:
        bits = sequence("e")[: 100_000 if "100000 " in row["bits"] else N]
        p = [*row["p"], 0.844721] if row["test"] == "linear_complexity" else row["p"]
        assert example(row["test"], bits, row["params"]) == pytest.approx(p, abs=NEAR)


def regulator_length(bits: list[int]) -> int:
    """Berlekamp and Massey once more, plainly, on lists."""
    now, last, length, since = [1] + [0] * len(bits), [1] + [0] * len(bits), 0, -1
    for place, bit in enumerate(bits):
        wrong = (bit + sum(now[back] & bits[place - back] for back in range(1, length + 1))) % 2
        if wrong:
            kept = list(now)
            for tap in range(len(bits) + 1 - (place - since)):
                now[tap + place - since] ^= last[tap]
            if 2 * length <= place:
                length, since, last = place + 1 - length, place, kept
    return length


def test_linear_complexity_of_short_and_of_long_sequences() -> None:
    row = EXPECTED["berlekamp_massey"]
    assert structure.complexity(bits_of(row["bits"])) == row["L"]
    source = np.random.default_rng(1)
    for length in (1, 2, 3, 63, 64, 65, 127, 128, 129, 190, 256):
        for share in (0.05, 0.5):
            bits = (source.random(length) < share).astype(np.uint8)
            assert structure.complexity(bits) == regulator_length(bits.tolist())
    state = [1] + [0] * 88
    for _ in range(5000):  # a regulator of 89 places, x^89 + x^38 + 1
        state.append(state[-89] ^ state[-51])
    assert structure.complexity(np.array(state, np.uint8)) == 89


def windings(order: int, tap: int) -> Bytes:
    """A ring of 2^order bits in which every window of so many bits stands once (de Bruijn), from a regulator."""
    state = [1] + [0] * (order - 1)
    for place in range((1 << order) - 1 - order):
        state.append(state[place] ^ state[place + tap])
    text = "".join(map(str, state))
    zeros = (text + text).index("0" * (order - 1)) % len(text)
    return bits_of(text[:zeros] + "0" + text[zeros:])


def patterned(name: str, n: int) -> Bytes:
    places = np.arange(n)
    return np.asarray(
        {
            "zeros": places < 0,
            "ones": places >= 0,
            "alternating": places % 2,
            "pairs": places // 2 % 2,
            "first half": places < n // 2,
        }[name],
        np.uint8,
    )


@pytest.mark.parametrize("name", ["zeros", "ones", "alternating", "pairs", "first half"])
@pytest.mark.parametrize("n", [100, 127, 128, 1000, 38_912, 524_288, N])
def test_every_pattern_has_p_values_and_fails(name: str, n: int) -> None:
    values = suite.run(patterned(name, n))
    assert all(value.p is None or 0 <= value.p <= 1 for value in values)
    # of 100 bits, pairs have the right number of ones and of runs: too few to be seen
    assert levels.judge([values], 0.01).word == ("passed" if (name, n // 128) == ("pairs", 0) else "failed")


def test_windows_that_come_equally_often_have_p_values() -> None:
    for bits in (windings(17, 3), np.tile(windings(17, 3), 9), np.tile(windings(15, 1), 3)):
        values = {(value.test, value.part): value.p for value in suite.run(bits)}
        assert all(p is None or 0 <= p <= 1 for p in values.values())
        assert values["approximate_entropy", ""] == 1.0
    ring = windings(7, 1)
    assert sorted(patterns.windows(np.concatenate((ring, ring[:6])), 7)) == list(range(128))


def test_too_short_is_not_applicable_and_never_passes() -> None:
    values = suite.run(np.zeros(99, np.uint8))
    assert len(values) == 188
    assert {value.p for value in values} == {None}
    assert all(value.reason for value in values)
    verdict = levels.judge([values], 0.01)
    assert verdict.word == "not applicable"
    assert verdict.cautions[-1] == "188 of 188 p-values are not applicable: no verdict on these"
    for test in suite.TESTS:
        bits = sequence("e")[: test.least]
        assert not test.missing(bits)
        assert all(0 <= p <= 1 for p in test.run(bits, CORRECTED))
        assert f"needs {test.least:,} bits" in test.missing(bits[:-1])


def test_a_walk_of_few_cycles_has_no_excursions() -> None:
    bits = sequence("sqrt2").copy()
    bits[1000:6000] = 1  # far away, and back late if ever
    values = {value.test: value for value in suite.run(bits)}
    assert values["random_excursions"].p is None
    assert values["random_excursions_variant"].reason.startswith("needs 500 cycles, there are ")
    assert values["frequency"].p is not None


@pytest.mark.parametrize("bits", [np.zeros(0, np.uint8), np.full(200, 2, np.uint8), np.zeros(200, np.int64)])
def test_no_sequence_of_bits_is_refused(bits: Bytes) -> None:
    with pytest.raises(ValueError, match="flat array of uint8"):
        suite.run(bits)


def spoilt(name: str) -> Bytes:
    """e, with one fault planted."""
    bits = sequence("e").copy()
    if name == "more ones":
        bits[np.random.default_rng(2).random(N) < 0.004] = 1
    elif name == "a block again":
        bits[500_000:] = bits[:500_000]
    elif name == "a stuck bit":
        bits[::64] = 0
    elif name == "a weak wave":
        bits[::10] = np.arange(N // 10) % 2
    elif name == "short regulators":
        rows = np.tile(bits[:400].reshape(8, 50), (1, 20))
        bits[:] = np.resize(rows, N)
    return bits


@pytest.mark.parametrize(
    ("fault", "seen_by"),
    [
        ("more ones", "frequency"),
        ("a block again", "serial p2"),
        ("a stuck bit", "frequency"),
        ("a weak wave", "dft"),
        ("short regulators", "linear_complexity"),
    ],
)
def test_planted_faults_fail(fault: str, seen_by: str) -> None:
    verdict = levels.judge([suite.run(spoilt(fault))], 0.01)
    assert verdict.word == "failed"
    assert seen_by in verdict.rejected


def values_of(p_values: list[float]) -> list[list[PValue]]:
    return [[PValue("frequency", "", p), PValue("rank", "", None, "too short")] for p in p_values]


def test_the_two_levels() -> None:
    even = [(place + 0.5) / 100 for place in range(100)]
    verdict = levels.judge(values_of(even), 0.01)
    frequency, rank = verdict.families
    assert (verdict.word, frequency.applicable, frequency.passed, frequency.floor) == ("passed", 100, 99, 96)
    assert frequency.proportion_p == pytest.approx(1 - 0.99**100)
    assert frequency.uniformity_p == pytest.approx(1.0)
    assert frequency.miss_chance == pytest.approx(0.0034, abs=1e-4)
    assert (rank.applicable, rank.proportion_p, rank.uniformity_p, rank.is_within) == (0, None, None, True)
    # eight failures of a hundred: below the floor, and rejected
    verdict = levels.judge(values_of([0.001] * 8 + even[8:]), 0.01)
    assert (verdict.word, verdict.below_floor, verdict.rejected) == ("failed", 1, ("frequency: proportion",))
    # all pass, all alike: not uniform
    verdict = levels.judge(values_of([0.5] * 100), 0.01)
    assert (verdict.word, verdict.below_uniformity, verdict.rejected) == ("failed", 1, ("frequency: uniformity",))
    # fewer than 55: proportion alone
    verdict = levels.judge(values_of([0.5] * 54), 0.01)
    assert (verdict.word, verdict.families[0].uniformity_p) == ("passed", None)
    assert verdict.cautions[0] == levels.CAUTIONS["few"]
    assert levels.judge(values_of([0.3, 0.5] * 501), 0.01).cautions[0] == levels.CAUTIONS["many"]


def test_holm_steps_down_and_refuses_what_is_no_p_value() -> None:
    assert holm({"a": 0.004, "b": 0.9, "c": 0.0049, "d": 0.0049}, 0.01) == []
    assert holm({"a": 0.002, "b": 0.003, "c": 0.0049, "d": 0.5}, 0.01) == ["a", "b", "c"]
    assert holm({"a": 0.0026, "b": 0.003}, 0.005) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm({"a": 0.5}, 1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        holm({"a": math.nan}, 0.01)
    assert uniformity([0.05 + 0.1 * place for place in range(10)] * 6) == 1.0


def test_files_of_bytes_and_of_characters_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bits = sequence("e")[:80_000]
    (tmp_path / "raw").write_bytes(np.packbits(bits).tobytes())
    text = "".join(map(str, bits.tolist()))
    (tmp_path / "text").write_text("\n".join(text[start : start + 61] for start in range(0, 80_000, 61)))
    result = []
    for name in ("raw", "text"):
        assert command.main([str(tmp_path / name), "--length", "8000", "--workers", "1", "--json"]) == 0
        result.append(json.loads(capsys.readouterr().out))
    assert (result[0]["format"], result[1]["format"]) == ("raw", "ascii")
    assert result[0]["sequences"] == 10
    assert result[0]["p_values"] == result[1]["p_values"]
    by_test = {row["test"]: row for row in result[0]["p_values"]}
    assert by_test["frequency"]["p"][3] == pytest.approx(counts.frequency(bits[24_000:32_000]))
    assert by_test["rank"] == {
        "test": "rank",
        "part": "",
        "p": [None] * 10,
        "reason": "needs 38,912 bits, there are 8,000",
    }
    # bytes that happen to be digits, taken as bytes because it is said
    assert reading.bits_in(tmp_path / "text", "raw") > 8 * 80_000


def test_the_command_tells_one_sequence_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bits"
    path.write_bytes(np.packbits(sequence("e")).tobytes())
    assert command.main([str(path), "--variant", "nist-2.1.2", "--dft-divisor", "3.8"]) == 0
    out = capsys.readouterr().out
    assert "constants: nist-2.1.2; divisor of the spectral test 3.8" in out
    assert "0.851010" in out
    assert "0.110434" in out
    assert out.count("nonoverlapping") == 148
    assert "passed at a family level of 0.01 (Holm)" in out
    path.write_bytes(np.packbits(spoilt("a stuck bit")).tobytes())
    assert command.main([str(path)]) == 1
    assert "rejected: frequency\n" in capsys.readouterr().out


def test_files_that_will_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bits"
    path.write_bytes(b"0101 0102")
    assert command.main([str(path), "--format", "ascii"]) == 2
    assert "byte 8 is neither 0 nor 1 nor white space" in capsys.readouterr().err
    path.write_bytes(bytes(100))
    assert command.main([str(path), "--length", "300", "--sequences", "3", "--workers", "1"]) == 2
    assert "300 bits are not" in capsys.readouterr().err
    assert command.main([str(path), "--length", "304", "--sequences", "3", "--workers", "1"]) == 2
    assert "bits holds 2 of the 3 sequences of 304 bits" in capsys.readouterr().err
    path.write_bytes(b"")
    assert command.main([str(path)]) == 2
    assert command.main([str(tmp_path / "none")]) == 2
    path.write_bytes(bytes(3))
    assert command.main([str(path)]) == 2  # nothing applicable is no pass
    assert "not applicable at a family level" in capsys.readouterr().out
    for text in (b"0,1,0,1", b"0110a3ff", b"\xef\xbb\xbf0101"):  # neither bits nor bytes of any use
        path.write_bytes(text)
        assert command.main([str(path)]) == 2
        assert "begins with text that is more than 0 and 1" in capsys.readouterr().err
        assert command.main([str(path), "--format", "raw"]) == 2  # not applicable, for it is short
        capsys.readouterr()
    assert command.main([str(tmp_path)]) == 2
    os.mkfifo(tmp_path / "pipe")
    for no_file in (tmp_path / "pipe", Path(os.devnull)):
        assert command.main([str(no_file)]) == 2
        assert "is not a regular file" in capsys.readouterr().err
    for wrong in (
        ["--alpha", "1"],
        ["--alpha", "x"],
        ["--length", "0"],
        ["--length", "100000001"],
        ["--dft-divisor", "3.9"],
    ):
        with pytest.raises(SystemExit):
            command.main([str(path), *wrong])


def test_processes_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bits"
    path.write_bytes(np.packbits(sequence("e")[:32_000]).tobytes())
    result = []
    for workers in ("1", "2"):
        assert command.main([str(path), "--length", "16000", "--workers", workers, "--json"]) == 0
        result.append(json.loads(capsys.readouterr().out)["p_values"])
    assert result[0] == result[1]
