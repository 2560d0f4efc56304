"""The command line, in this process and as a lab runs it."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rng
from rng import selftest
from rng.__main__ import main
from tests.unit.rng.conftest import ScriptedSource

VECTORS = Path(__file__).parents[2] / "vectors" / "drbg" / "hash_drbg_sha256_sha512.json"


def test_kat_ends_with_the_count(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["kat", str(VECTORS)]) == 0
    assert capfd.readouterr() == ("504 passed, 0 failed\n", "")


def test_kat_of_an_unreadable_file_is_one(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["kat", str(tmp_path / "absent")]) == 1
    out, err = capfd.readouterr()
    assert out == "0 passed, 1 failed\n"
    assert err.startswith("rng: ")


def test_selftest_names_what_passed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest"]) == 0
    assert capfd.readouterr().out == "".join(f"passed  {name}\n" for name in selftest.run())


def test_selftest_that_fails_is_one(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_DECK", bytes(52))
    stdout = os.dup(1)
    try:
        assert main(["selftest"]) == 1
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "rng: SHUFFLE_KNOWN_ANSWER: the answer is not the known one\n"


@pytest.mark.parametrize(
    ("arguments", "lines", "size"),
    [
        (["raw", "--count", "100"], None, 100),
        (["raw", "--count", "100", "--format", "text"], 4, None),
        (["draws", "--count", "3"], 3, None),
        (["deals", "--count", "3"], 3, None),
        (["deals", "--count", "3", "--format", "binary"], None, 156),
    ],
)
def test_export_chooses_the_format(
    arguments: list[str], lines: int | None, size: int | None, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", "--what", *arguments]) == 0
    out, err = capfdbinary.readouterr()
    assert size is None or len(out) == size
    assert lines is None or (out.endswith(b"\n") and len(out.splitlines()) == lines)
    assert b" of " in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["kat"],
        ["export", "--what", "raw", "--count", "0"],
        ["export", "--count", "1"],
        ["export", "--what", "raw"],
        ["selftest", "more"],
    ],
)
def test_wrong_usage_is_two(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: rng " in capfd.readouterr().err


def test_the_help_names_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, result in (([], ("{selftest,kat,export}", "--version ")), (["kat"], ("FILE [FILE ...]",))):
        with pytest.raises(SystemExit) as caught:
            main([*arguments, "--help"])
        assert caught.value.code == 0
        out = capfd.readouterr().out
        assert all(words in out for words in result)


def test_a_full_disk_ends_cleanly_and_leaves_no_file_open(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with open("/dev/full", "w") as stdout:  # noqa: PTH123 - stands in for the process's own
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["selftest"]) == 1
    # Closing flushed once more, to nowhere: no second error.
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert "No space left" in capfd.readouterr().err


def test_the_version_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capfd.readouterr().out == f"rng {rng.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["export", "--what", "raw", "--count", "1000000"], 0), (["export", "--what", "deals", "--count", "1"], 0),
     (["kat", str(VECTORS)], 1), (["selftest"], 1)],
)  # fmt: skip
def test_a_closed_pipe_ends_cleanly(arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(arguments) == status
    # Closing flushed once more, to nowhere: no second error.


def test_a_failing_source_is_one(
    source: ScriptedSource, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.block = lambda _: bytes(64)
    with open(os.devnull, "w") as stdout:  # noqa: PTH123 - stands in for the process's own
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["export", "--what", "deals", "--count", "1"]) == 1
    assert capfd.readouterr().err == "rng: REPETITION_COUNT: one byte was repeated up to the cut-off\n"


def test_the_module_runs_as_a_command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rng", "selftest"])
    with pytest.raises(SystemExit) as caught, pytest.warns(RuntimeWarning, match="rng.__main__"):
        runpy.run_module("rng", run_name="__main__")
    assert caught.value.code == 0
    assert capfd.readouterr().out.startswith("passed  ")


def test_a_reader_that_leaves_sees_no_traceback() -> None:
    command = [sys.executable, "-m", "rng", "export", "--what", "deals", "--count", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert sorted(map(int, line.split())) == list(range(52))
    assert err == b""
