"""The batteries of others: what their output says, and that what did not run never passed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from certification.statistics import programs
from certification.statistics.battery import command
from certification.statistics.programs import ProgramOutcome, Read

ENT = "0,File-bytes,Entropy,Chi-square,Mean,Monte-Carlo-Pi,Serial-Correlation\n1,1000000,{},{},127.4,3.14,0.0001\n"
RNGTEST = """rngtest: bits received from input: {bits}
rngtest: FIPS 140-2 successes: {good}
rngtest: FIPS 140-2 failures: {bad}
"""
DIEHARDER = """#====#
   rng_name    |rands/second|   Seed   |
stdin_input_raw|  4.37e+07  |3095904021|
#====#
        test_name   |ntup| tsamples |psamples|  p-value |Assessment
#====#
   diehard_birthdays|   0|       100|     100|0.07036223|  PASSED  
  diehard_rank_32x32|   0|     40000|     100|0.37036223|  PASSED  
 diehard_count_1s_str|  0|    256000|     100|0.67036223|  PASSED  
        diehard_runs|   0|    100000|     100|0.27036223|  PASSED  
        diehard_runs|   0|    100000|     100|0.87036223|  PASSED  
         sts_monobit|   1|    100000|     100|{p}|  {word}  
            sts_runs|   2|    100000|     100|0.17036223|  PASSED  
          sts_serial|   1|    100000|     100|0.97036223|  PASSED  
"""  # noqa: W291
PRACTRAND = """rng=RNG_stdin64, seed=unknown
length= 256 megabytes (2^28 bytes), time= 3.1 seconds
  Test Name                         Raw       Processed     Evaluation
  {line}
  ...and 160 test result(s) without anomalies
length= {last} megabytes (2^{exponent} bytes), time= 6.6 seconds
  no anomalies in 169 test result(s)
"""
MB = 1 << 20
TESTU01 = """========= Summary results of SmallCrush =========
 Number of statistics:  15
 The following tests gave p-values outside [0.001, 0.9990]:
 (eps  means a value < 1.0e-300):
       Test                          p-value
 ----------------------------------------------
  1  BirthdaySpacings               {p}
 ----------------------------------------------
 All other tests were passed
"""
STS = """
 C1  C2  C3  C4  C5  C6  C7  C8  C9 C10  P-VALUE  PROPORTION  STATISTICAL TEST
------------------------------------------------------------------------------
"""
STS_ROW = " 11   9  12   8  10  10   9  11  10  10  0.991468     {passed}/{count}     Frequency\n"
STS_LAST = "  0   1   1   0   0   0   1   1   0   2     ----       1/1       RandomExcursions\n"


def sts_report(row: str, count: int = 100) -> str:
    """A report of 188 rows, one of them this."""
    return STS + 186 * STS_ROW.format(passed=count - count // 100, count=count) + row + "\n" + STS_LAST


def practrand(line: str = "", last: int = 512, exponent: str = "29") -> str:
    return PRACTRAND.format(line=line, last=last, exponent=exponent)


def rngtest(good: int, bad: int) -> str:
    return RNGTEST.format(bits=1, good=good, bad=bad)


EVEN = "10 10 10 10 10 10 10 10 10 10 "
CUT = DIEHARDER.format(p="0.5", word="PASSED").partition("            sts_runs")[0]
FED: dict[Callable[[str, int], Read], int] = {
    programs.read_ent: 1_000_000,
    programs.read_rngtest: 104_857_600,
    programs.read_dieharder: 0,
    programs.read_practrand: 512 * MB,
    programs.read_testu01: 0,
    programs.read_sts: 12_500_000,
}


@pytest.mark.parametrize(
    ("read", "text", "word", "said"),
    [
        (programs.read_ent, ENT.format("7.9998", "255.3"), "passed", "chi-square 255.3 of 1000000 bytes"),
        (programs.read_ent, ENT.format("7.9998", "400.0"), "failed", "p 3."),
        (programs.read_ent, ENT.format("8.0000", "120.0"), "failed", "chi-square 120.0"),  # too even
        (programs.read_ent, "1,0,0.000000,-nan,-nan,-nan,-100000.000000", "void", "looked at 0 of 1000000 bytes"),
        (programs.read_ent, ENT.format("0.0000", "-nan"), "void", "no p-value"),
        (programs.read_ent, ENT.format("7.9998", "good"), "void", "no p-value"),
        (programs.read_ent, ENT.format("7.9998", "255,3"), "void", "no line"),  # another locale
        (programs.read_ent, "Usage: ent", "void", "no line"),
        (programs.read_rngtest, rngtest(41_916, 27), "passed", "27 of 41943 blocks"),
        (programs.read_rngtest, rngtest(41_842, 100), "failed", "100 of 41942"),
        (programs.read_rngtest, rngtest(12, 0), "void", "looked at 12 of 41943 blocks"),
        (programs.read_rngtest, rngtest(0, 0), "void", "no counts"),
        (programs.read_dieharder, DIEHARDER.format(p="0.83782058", word="PASSED"), "passed", "8 of 8 passed"),
        (programs.read_dieharder, DIEHARDER.format(p="0.00180000", word=" WEAK "), "passed", "monobit 1 p 0.0018"),
        (programs.read_dieharder, DIEHARDER.format(p="0.00000000", word="FAILED"), "failed", "7 of 8 passed"),
        (programs.read_dieharder, DIEHARDER.format(p="       nan", word="PASSED"), "void", "1 rows of the table"),
        (programs.read_dieharder, DIEHARDER.format(p="0.50000000", word="POOR"), "void", "1 rows of the table"),
        (programs.read_dieharder, CUT, "void", "rows of 5 tests of 7"),
        (programs.read_dieharder, "# The file file_input_raw was rewound 3 times", "void", "rewound"),
        (programs.read_dieharder, "", "void", "0 tests of 7"),
        (programs.read_practrand, practrand("BCFN(2+0) R= +9.0 p = 3.2e-4 unusual"), "passed", "169"),
        (programs.read_practrand, practrand(exponent="28.99"), "passed", "169 results"),
        (programs.read_practrand, practrand(exponent="28"), "void", "ended at 2^28 of 536870912 bytes"),
        (programs.read_practrand, practrand().partition("  no anom")[0], "void", "no count"),
        (programs.read_practrand, practrand("BRank(12) R= +99 p = 1e-70 FAIL !!!!"), "failed", "BRank(12)"),
        (programs.read_practrand, "error reading standard input", "void", "no count"),
        (programs.read_practrand, "no anomalies in 12 test result(s)", "void", "no count"),
        (programs.read_testu01, "All tests were passed", "passed", "all tests"),
        (programs.read_testu01, TESTU01.format(p="5.2e-5"), "passed", "BirthdaySpacings 5.2e-5"),
        (programs.read_testu01, TESTU01.format(p="5.2e-15"), "failed", "BirthdaySpacings 5.2e-15"),
        (programs.read_testu01, TESTU01.format(p="1 - 5.2e-15"), "failed", "BirthdaySpacings"),
        (programs.read_testu01, TESTU01.format(p="0.9995"), "passed", "0.9995"),
        (programs.read_testu01, TESTU01.format(p="eps"), "failed", "BirthdaySpacings eps"),
        (programs.read_testu01, TESTU01.format(p="nan"), "void", "no p-value"),
        (programs.read_testu01, TESTU01.format(p="*****"), "void", "no p-value"),
        (programs.read_testu01, TESTU01.format(p="0.9995").partition(" All other")[0], "void", "no summary"),
        (programs.read_testu01, "  1  BirthdaySpacings   0.5\n", "void", "no summary"),
        (programs.read_testu01, "", "void", "no summary"),
        (
            programs.read_sts,
            sts_report("10  9  12   8  10  10   9  11  10  11  0.000182 *   95/100  *  Runs"),
            "passed",  # one family in a hundred or so of a good generator's 188 looks like this
            "188 rows",
        ),
        (programs.read_sts, sts_report("90 1 1 1 1 1 1 1 1 2 0.000000 * 97/100 Rank"), "failed", "Rank 97/100"),
        (programs.read_sts, sts_report(f"{EVEN} 0.9 80/100 * FFT"), "failed", "FFT 80/100"),
        (programs.read_sts, sts_report(f"{EVEN} 0.9 50/50 FFT", 50), "void", "looked at 50 of 100 sequences"),
        (programs.read_sts, sts_report(f"{EVEN} nan 99/100 FFT"), "void", "187 rows of 188"),
        (programs.read_sts, "", "void", "0 rows"),
    ],
)
def test_what_the_output_says(read: Callable[[str, int], Read], text: str, word: str, said: str) -> None:
    found = read(text, FED[read])
    assert (found.word, said in found.detail) == (word, True), found


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """PATH holds these shell scripts and what they need, no battery."""
    for name in ("cat", "head", "sleep", "wc", "sh"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_what_is_not_on_path_is_not_run_and_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_on_path(tmp_path, monkeypatch)
    assert {outcome.word for outcome in programs.run_all(1)} == {"not run"}
    assert command.main(["--programs"]) == 2
    out = capsys.readouterr().out
    assert "PractRand   not run  RNG_test is not on PATH" in out
    assert out.endswith("\nnot run: 0 passed, 0 failed, 0 void, 6 not run\n")
    assert programs.verdict_of([ProgramOutcome("a", "not run", ""), ProgramOutcome("b", "void", "")]) == "not run"
    assert programs.verdict_of([ProgramOutcome("a", "passed", ""), ProgramOutcome("b", "void", "")]) == "not run"
    assert programs.verdict_of([ProgramOutcome("a", "passed", ""), ProgramOutcome("b", "not run", "")]) == "passed"
    assert programs.verdict_of([ProgramOutcome("a", "passed", ""), ProgramOutcome("b", "failed", "")]) == "failed"


def test_programs_are_fed_with_the_raw_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_on_path(
        tmp_path,
        monkeypatch,
        # says how many bytes came; ends before the input does; says nothing
        ent='echo "0,File-bytes"; echo "1,$(wc -c),7.99,250.0,127,3.14,0.0"',
        RNG_test="""test "$3" = 1MB || exit 1
head -c 1000 > /dev/null
echo "length= 1 megabyte (2^20 bytes), time= 1 s"
echo "no anomalies in 12 test result(s)" """,
        rngtest="cat > /dev/null; echo gone wrong",
    )
    assert command.main(["--programs", "--megabytes", "2", "--json"]) == 2  # one is void
    document = json.loads(capsys.readouterr().out)
    result = {row["program"]: (row["word"], row["detail"]) for row in document["programs"]}
    assert result["ent"] == ("passed", "p 0.847, chi-square 250.0 of 2000000 bytes, 7.99 bits a byte")
    assert result["PractRand"] == ("passed", "12 results at the last length")
    assert result["rngtest"] == ("void", "no counts of blocks")
    assert [result[name][0] for name in ("dieharder", "NIST STS", "TestU01")] == ["not run"] * 3


def test_programs_that_misbehave_are_void_and_stop_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(
        tmp_path,
        monkeypatch,
        ent="cat > /dev/null; echo 1,1000000,7.99,250.0,127,3.14,0.0; kill -9 $$",  # as expected, and crashes
        rngtest="printf '\\377\\376 not text'",
        dieharder="exec sleep 60",
        assess="exec sleep 60",
        RNG_test="",
    )
    (tmp_path / "RNG_test").write_bytes(b"\x7fELF and no more")
    monkeypatch.setattr(programs, "LIMIT_S", 4.0)
    result = {outcome.program: (outcome.word, outcome.detail) for outcome in programs.run_all(1)}
    assert result["ent"] == ("void", "ended by signal 9")
    assert result["rngtest"] == ("void", "no counts of blocks")
    assert result["dieharder"] == result["NIST STS"] == ("void", "no end after 4 s")
    assert result["PractRand"][0] == "void"
    assert "Exec format error" in result["PractRand"][1]
    assert result["TestU01"][0] == "not run"
    (tmp_path / "assess").write_text("#!/bin/sh\nkill -11 $$\n")
    assert programs.run(programs.PROGRAMS[3], 125_000) == ProgramOutcome("NIST STS", "void", "ended by signal 11")


def test_nists_program_finds_its_folders_templates_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = sts_report("10 10 10 10 10 10 10 10 10 10  0.9 2/2 FFT", 2)
    put_on_path(
        tmp_path,
        monkeypatch,
        assess=f"""
test "$1" = 1000000 && test -d experiments/AlgorithmTesting/LinearComplexity || exit 1
test "$(wc -l < templates/template9)" -eq 148 || exit 1
test "$(wc -c < bits)" -eq 250000 || exit 1
test "$(cat)" = "0
bits
1
0
2
1" || exit 1
cat > experiments/AlgorithmTesting/finalAnalysisReport.txt <<'END'
{report}
END""",
    )
    (sts,) = [program for program in programs.PROGRAMS if program.executable == "assess"]
    assert programs.run(sts, 250_000) == ProgramOutcome("NIST STS", "passed", "188 rows")
    (tmp_path / "assess").write_text("#!/bin/sh\nexit 1\n")
    assert programs.run(sts, 250_000).word == "void"


def test_dieharder_is_fed_a_stream_and_never_a_file_that_rewinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generator 200 reads standard input, which is a pipe without an end; each test gets bytes of its own."""
    put_on_path(
        tmp_path,
        monkeypatch,
        dieharder=f"""
test "$1 $2 $3" = "-g 200 -d" && test -p /dev/stdin || exit 1
head -c 4 >> {tmp_path}/seen
head -c 3000000 | wc -c >> {tmp_path}/bytes
echo "   test_$4|   0|    100000|     100|0.50000000|  PASSED  " """,
    )
    (dieharder,) = [program for program in programs.PROGRAMS if program.executable == "dieharder"]
    outcome = programs.run(dieharder, 1_000_000)
    assert outcome == ProgramOutcome("dieharder", "passed", "7 of 7 passed")
    assert (tmp_path / "bytes").read_text().split() == ["3000000"] * 7, "more than was asked for: there is no end"
    seen = (tmp_path / "seen").read_bytes()
    assert len({seen[at : at + 4] for at in range(0, 28, 4)}) == 7


def test_dieharder_if_it_is_here_passes_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of its tests that needs the fewest bytes; a dossier runs seven."""
    if shutil.which("dieharder") is None:
        pytest.skip("dieharder is not on PATH")
    monkeypatch.setattr(programs, "_DIEHARDER", (100,))
    (dieharder,) = [program for program in programs.PROGRAMS if program.executable == "dieharder"]
    outcome = programs.run(dieharder, 1_000_000)
    if outcome.word == "failed":  # one right generator in a million is judged so
        outcome = programs.run(dieharder, 1_000_000)
    assert outcome.word == "passed", outcome


@pytest.mark.parametrize("program", programs.PROGRAMS[:2], ids=lambda program: program.name)
def test_programs_that_are_here_pass_the_generator(program: programs.Program) -> None:
    if shutil.which(program.executable) is None:
        pytest.skip(f"{program.executable} is not on PATH")
    outcome = programs.run(program, 2_000_000)
    assert outcome.word == "passed", outcome
