"""`certify replay` as people and machines run it: last line, exit status, files that cannot be read."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from certification import __main__ as certify
from certification import replay, schemas
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.rulesets import load_ruleset, parse_ruleset
from rgs.core.statements.lines import LINE_BYTES_MAX
from tests.support.records.factory import RecordFactory, join
from tests.support.records.lying import played
from tests.support.records.planted_ids import erased
from tests.support.records.ready_made import large_factory, small_factory

ROOT = Path(__file__).resolve().parents[2]
RULESETS = ROOT / "rgs" / "core" / "games" / "rulesets"
JURISDICTIONS = ROOT / "rgs" / "core" / "jurisdiction_data"


@pytest.fixture
def small(tmp_path: Path) -> RecordFactory:
    """`small_factory`, its export and keys in the test's folder."""
    factory = small_factory()
    (tmp_path / "export").write_bytes(factory.export())
    (tmp_path / "keys").write_bytes(factory.keys())
    return factory


def run(folder: Path, *more: str, files: tuple[str, ...] = ("export",)) -> int:
    return replay.main([*(str(folder / name) for name in files), "--keys", str(folder / "keys"), *more])


def test_the_last_line_and_the_exit_status(
    small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--root", small.root.keyid) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 rounds verified, 0 failed, ANCHORED"
    assert run(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 rounds verified, 0 failed, UNANCHORED"


def test_another_root_fails_whatever_the_rounds_say(
    small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--root", "0" * 64) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"FAILED 3 key: the root of the key bundle is {small.root.keyid}, not {'0' * 64}")
    assert lines[-1] == "1 rounds verified, 0 failed, UNANCHORED"


def test_no_round_is_no_success(small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "export").write_bytes(b"")
    assert run(tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 rounds verified, 0 failed, UNANCHORED"


def test_a_bad_key_bundle_leaves_nothing_to_verify_with(
    small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keys").write_bytes(b"{}")
    for more, wanted in (((), "0 rounds verified, 0 failed, UNANCHORED"), (("--json",), "UNANCHORED")):
        assert run(tmp_path, *more) == 1
        lines = capsys.readouterr().out.splitlines()
        assert "3 key" in lines[0]
        assert wanted in lines[-1]


def test_a_failure_says_where_it_is(small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(small.lines)
    lines[4] = lines[4][:-1]
    (tmp_path / "export").write_bytes(b"\n".join(lines) + b"\n")
    assert run(tmp_path) == 1
    result = capsys.readouterr().out.splitlines()
    assert result[0].startswith("FAILED 1 line: ")
    assert result[0].endswith(f"({tmp_path / 'export'}:5)")
    answered = f"FAILED 11 opening: no final answers the opening ({tmp_path / 'export'}:6, round_id "
    assert [line for line in result if line.startswith(answered)]
    assert result[-1] == "0 rounds verified, 1 failed, UNANCHORED"


def test_several_files_are_one_export(small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_bytes(b"".join(line + b"\n" for line in small.lines[:4]))
    (tmp_path / "b").write_bytes(b"".join(line + b"\n" for line in small.lines[4:]))
    assert run(tmp_path, files=("a", "b")) == 0
    assert run(tmp_path, files=("b", "a")) == 1
    assert run(tmp_path, files=("a",)) == 1


def test_development_keys_are_told_in_capitals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factory = small_factory(development=True)
    (tmp_path / "export").write_bytes(factory.export())
    (tmp_path / "keys").write_bytes(factory.keys())
    assert run(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[-2] == "DEVELOPMENT KEYS"


def test_the_summary_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factory = large_factory()
    (tmp_path / "export").write_bytes(factory.export())
    (tmp_path / "keys").write_bytes(factory.keys())
    assert run(tmp_path, "--root", factory.root.keyid) == 0
    result = capsys.readouterr().out
    for row in (
        "failures     0\n",
        "statements   72 in 72 lines\n",
        "rounds       casino_holdem 2, ultimate_texas_holdem 7; 0 open at the cut, 2 seats void\n",
        "draws        9 in rounds, 1 discarded, at most 9 unknown\n",
        "private      26 blocks verified, 0 absent\n",
        "EUR          staked 21.80 EUR, returned 28.00 EUR\n",
        f"root         {factory.root.keyid} as brought from outside\n",
        "EXPOSED: 1 void seats whose deck was never shown (DECK_UNRECOVERABLE): what they would have returned",
    ):
        assert row in result


def test_erased_ids_that_a_jurisdiction_requires_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Italy requires them of a session, a purchase and an end; Britain requires none."""
    required = " (3 of them in which ids of the regulator are required)"
    for law, more in (("it-adm", required), ("gb-ukgc", "")):
        factory = played(jurisdiction=law)
        (tmp_path / "export").write_bytes(join([erased(line) for line in factory.lines]))
        (tmp_path / "keys").write_bytes(factory.keys())
        assert run(tmp_path, "--root", factory.root.keyid) == 0
        assert f"private      0 blocks verified, 3 absent{more}\n" in capsys.readouterr().out


def test_json_is_one_object_a_line(small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "export").write_bytes(b"".join(line + b"\n" for line in small.lines[:-1]))
    assert run(tmp_path, "--json", "--root", small.root.keyid) == 1
    *failures, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert [failure["failure"]["check"] for failure in failures] == ["22 scope"]
    assert failures[0]["failure"]["place"] == "end of files"
    assert summary["summary"]["verdict"] == "ANCHORED"
    assert summary["summary"]["rounds_verified"] == 1
    assert summary["summary"]["failures"] == 1
    assert summary["summary"]["statements"]["round_final"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["export"],
        ["export", "--keys", "keys", "--root", "abc"],
        ["export", "--keys", "keys", "--root", "A" * 64],
        ["export", "--keys", "keys", "--what"],
    ],
    ids=["nothing", "no keys", "short root", "root in capitals", "unknown option"],
)
def test_wrong_usage_is_2(
    arguments: list[str], small: RecordFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        replay.main(arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize("name", ["export", "keys", "rules"])
def test_a_file_that_cannot_be_read_is_2(
    name: str, small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules").write_bytes((RULESETS / "uth-solo.toml").read_bytes())
    (tmp_path / name).unlink()
    assert run(tmp_path, "--ruleset", str(tmp_path / "rules")) == 2
    assert capsys.readouterr().err.startswith(f"certify replay: {tmp_path / name}: ")


@pytest.mark.parametrize("content", [b"id = 1", b"{}", b"\xff", b"x" * 300_000], ids=["toml", "json", "bytes", "long"])
def test_a_ruleset_that_is_none_is_2(content: bytes, small: RecordFactory, tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(content)
    assert run(tmp_path, "--ruleset", str(tmp_path / "rules")) == 2
    assert run(tmp_path, "--jurisdiction", str(tmp_path / "rules")) == 2


def test_a_ruleset_of_another_time_can_be_brought(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = (RULESETS / "uth-solo.toml").read_text("utf-8").replace("version = 1\n", "version = 7\n", 1)
    law = (JURISDICTIONS / "demo.toml").read_text("utf-8").replace("version = 3\n", "version = 7\n", 1)
    (tmp_path / "rules.toml").write_text(older, "utf-8")
    (tmp_path / "rules.json").write_bytes(parse_ruleset(older).canonical)
    (tmp_path / "law.toml").write_text(law, "utf-8")
    ruleset, demo = parse_ruleset(older), replay._jurisdiction(tmp_path / "law.toml")
    named = {"id": "uth-solo", "sha256": ruleset.sha256, "version": "7"}

    def lie(kind: str, count: int, body: dict[str, object]) -> None:
        if kind == "session_open":
            body |= {"ruleset": named, "jurisdiction": {"id": "demo", "sha256": demo.sha256, "version": "7"}}

    factory = small_factory(lie)
    (tmp_path / "export").write_bytes(factory.export())
    (tmp_path / "keys").write_bytes(factory.keys())
    assert run(tmp_path) == 1
    assert "ruleset uth-solo version 7" in capsys.readouterr().out
    for rules in ("rules.toml", "rules.json"):
        run(tmp_path, "--ruleset", str(tmp_path / rules), "--jurisdiction", str(tmp_path / "law.toml"))
        # The session_open is right now; the deal still names the ruleset of today.
        assert "the deal names another ruleset than the session" in capsys.readouterr().out.splitlines()[0]


def test_the_shipped_rules_are_known_exactly() -> None:
    book, solo = Rulebook(), load_ruleset("uth-solo")
    named = {"id": "uth-solo", "sha256": solo.sha256, "version": "1"}
    assert book.ruleset(named) == solo
    assert book.ruleset({**named, "version": "01"}) is None
    assert book.ruleset({**named, "id": "uth-online"}) is None
    assert book.ruleset(None) is None
    assert book.jurisdiction(named) is None


def test_lines_are_read_in_bounded_pieces() -> None:
    long = b"x" * (3 * LINE_BYTES_MAX)
    lines = list(replay.read_lines(io.BytesIO(b"a\n" + long + b"\nb\n" + long)))
    assert [line[:1] for line in lines] == [b"a", b"x", b"b", b"x"]
    assert max(map(len, lines)) == LINE_BYTES_MAX + 1
    exact = b"y" * LINE_BYTES_MAX + b"\n"
    assert list(replay.read_lines(io.BytesIO(exact + b"z"))) == [exact, b"z"]


def test_progress_is_told_to_a_terminal_only(
    small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_LINES_BETWEEN_SIGNS", 2)
    assert run(tmp_path) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(tmp_path) == 0
    assert f"{tmp_path / 'export'}: 4 lines" in capsys.readouterr().err


def test_certify_knows_its_commands(
    small: RecordFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert certify.main(["replay", str(tmp_path / "export"), "--keys", str(tmp_path / "keys")]) == 0
    with pytest.raises(SystemExit) as stopped:
        certify.main(["gamble"])
    assert stopped.value.code == 2
    monkeypatch.setattr(sys, "argv", ["certify", "--help"])
    with pytest.raises(SystemExit) as stopped:
        certify.main()
    assert stopped.value.code == 0
    result = capsys.readouterr().out
    assert all(f"  {name} " in result for name in certify.COMMANDS)


def test_certify_ends_without_a_word_when_nobody_reads_on() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    rows = str(ROOT / "tests" / "vectors" / "games" / "casino_holdem_rounds.jsonl")
    command = [sys.executable, "-m", "certification", "vectors", rows, "--ruleset", "casino-holdem"]
    ended = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, check=False, env=os.environ)
    os.close(writes)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_schemas_are_written_into_a_directory_that_exists(tmp_path: Path) -> None:
    assert schemas.main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(schemas.schemas())
    assert schemas.main([str(tmp_path / "missing")]) == 2


def test_the_verifiers_run_by_themselves(small: RecordFactory, tmp_path: Path) -> None:
    files = [str(tmp_path / "export"), "--keys", str(tmp_path / "keys"), "--root", small.root.keyid]
    for command in (
        [sys.executable, "-m", "certification", "replay", *files],
        [sys.executable, "-m", "certification", "replay", *files],
        [sys.executable, str(ROOT / "tests" / "verifier" / "independent_verifier.py"), *files],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "1 rounds verified, 0 failed, ANCHORED"
    script = [sys.executable, "-I", str(ROOT / "tests" / "verifier" / "independent_verifier.py"), *files]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_of_closed_sessions_and_finished_rounds_only_the_ids_stay() -> None:
    factory = RecordFactory("many")
    one = factory.start("rgs-1")
    for _ in range(20):
        player = factory.open(one)
        factory.buy(one, player, 10_000)
        factory.play(one, player, {"ante": 100}, ["play_4x"])
        factory.end_participation(one, player)
        factory.close(one, player)
    procedure = Replay(KeyBook(factory.keys()), Rulebook())
    for line in factory.lines:
        assert procedure.feed(line) == []
        assert len(procedure._chains) <= 1
        assert len(procedure._deals._deals) <= 1
    assert (procedure._chains, procedure._deals._deals) == ({}, {})
    assert sum(len(bucket) for bucket in procedure._deals._ids._buckets.values()) == 16 * 20
