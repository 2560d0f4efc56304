"""The dossier, made with samples so small that it is done at once; what it says, keeps, and does not call passed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from certification.__main__ import main
from certification.dossier import bundle, chance, command, games, software
from certification.dossier.document import document_of
from certification.dossier.plan import DossierPlan, full_plan, quick_plan, steps_of
from certification.dossier.sbom import Locked, make_sbom, read_lock, validate_sbom
from certification.dossier.work import ROOT, Done, DossierStep, Work
from certification.replay import FileError
from certification.rtp.command import DIRECTORY
from certification.statistics import programs
from certification.statistics.battery import planting
from certification.statistics.battery.defects import CAUGHT
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.rulesets import SHIPPED_RULESETS
from rgs.core.times import format_time
from tests.support.clocks import NOW_MS
from tests.support.service.harness import NODE_KEY

pytestmark = pytest.mark.slow

TESTS = (
    "tests/unit/rng/test_scaling.py::test_every_result_has_exactly_as_many_bytes",
    "tests/unit/rng/test_health.py::test_no_block_is_kept",
)


def tiny_plan() -> DossierPlan:
    return replace(
        quick_plan("0a0b"),
        decks=(300,),
        replicates=20,
        replicate_decks=300,
        sequences=1,
        entropy_bytes=1 << 12,
        derived=("casino-holdem",),
        simulated=("casino-holdem",),
        rounds=300,
        tests=TESTS,
        workers=1,
    )


@pytest.fixture
def few_defects(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two that take the fewest decks, instead of all."""
    monkeypatch.setattr(planting, "CAUGHT", CAUGHT[:2])


@pytest.fixture(params=["from the committed certificate", pytest.param("derived", marks=pytest.mark.slow_exhaustive)])
def one_derivation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ordinary run derives one certificate, and not for the dossier (test_rtp_certificate.py)."""
    if request.param != "derived":
        casino = request.getfixturevalue("casino")
        monkeypatch.setattr(games, "_enumerated", lambda _ruleset: casino)
        path = DIRECTORY / f"{casino.payments.ruleset.sha256}.json"
        monkeypatch.setattr(games, "certificate", lambda *_: json.loads(path.read_text("ascii")))


@pytest.mark.usefixtures("few_defects", "one_derivation")
def test_a_dossier_is_made_signed_and_made_again_byte_for_byte(tmp_path: Path) -> None:
    out = tmp_path / "dossier"
    document = command.make_dossier(tiny_plan(), out, None, NODE_KEY, NOW_MS)
    words = {row["name"]: row["verdict"] for row in document["steps"]}
    missing = {f"returns-{name}" for name in SHIPPED_RULESETS if name != "casino-holdem"} | {"programs"}
    missing |= {"battery-300"}  # too few decks for every test
    assert {name for name, word in words.items() if word == "not run"} - {"mutants"} == missing
    assert {word for name, word in words.items() if name not in {*missing, "mutants"}} == {"passed"}
    assert document["verdict"] == "incomplete"
    assert document["counts"]["clauses"]["failed"] == 0
    shown = [row for chapter in document["clauses"] for row in chapter["clauses"] if row["result"] == "not run"]
    assert shown  # most of their tests were not among the two that ran
    assert "SHA-256" in next(iter(bundle.verify(out, keyid=NODE_KEY.keyid)))

    reported = {row["name"]: row["reported"] for row in document["steps"]}
    assert reported["battery-300"].endswith("12 of 33 tests not applicable, 0 rejected")
    generator = {row["clause"]: row["result"] for row in document["clauses"][0]["clauses"]}
    assert generator["3.2.2"] == "not run"  # which names the coupon collector, among others

    page = (out / "index.html").read_text("utf-8")
    for due in ("Nothing failed, but not everything ran.", "quick plan", "0a0b", "3.2.2", "97.8424 %", "not run"):
        assert due in page
    assert page.count("<figure>") == len(list((out / "figures").iterdir())) == 7
    assert "://" not in page  # nothing is loaded from elsewhere

    again = tmp_path / "again"
    second = command.make_dossier(tiny_plan(), again, out.with_name("dossier.work"), NODE_KEY, NOW_MS, resume=True)
    assert second == document
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    differ = {str(path) for path in files if (out / path).read_bytes() != (again / path).read_bytes()}
    assert differ <= {
        "times.json",
        "SHA256SUMS",
        "dossier.jsonl",
    }  # tried again what did not run
    later = command.make_dossier(
        tiny_plan(), again, out.with_name("dossier.work"), NODE_KEY, NOW_MS + 1000, resume=True
    )
    tried_again = {row["name"] for row in later["steps"] if row["made"] == later["made"]}
    assert tried_again == {row["name"] for row in document["steps"] if row["verdict"] == "not run"} != set()
    assert {row["made"] for row in later["steps"]} == {document["made"], later["made"]}
    for row in (*document["steps"], *later["steps"]):
        row.pop("made")
    assert {key for key in document if later[key] != document[key]} == {"made"}
    page, kept = (again / "index.html").read_text("utf-8"), len(later["steps"]) - len(tried_again)
    assert f"{kept} of {len(later['steps'])} results are kept from earlier runs, the oldest of" in page
    assert "kept from earlier runs" not in (out / "index.html").read_text("utf-8")
    names = {str(path) for path in files if (out / path).read_bytes() != (again / path).read_bytes()}
    assert names == {"index.html", "dossier.json", "times.json", "SHA256SUMS", "dossier.jsonl"}


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match="not a dossier"):
        command.make_dossier(tiny_plan(), tmp_path, None, None, NOW_MS)
    assert main(["dossier", "--quick", "--out", str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(("verdict", "status"), [("passed", 0), ("failed", 1), ("incomplete", 3)])
def test_the_status_says_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verdict: str, status: int
) -> None:
    """What did not run whole is not told as what passed, nor as what failed."""
    document = {"verdict": verdict, "steps": [], "counts": {"clauses": {}}}
    monkeypatch.setattr(command, "make_dossier", lambda *_, **__: document)
    assert main(["dossier", "--quick", "--out", str(tmp_path / "out")]) == status
    assert verdict in capsys.readouterr().out.lower()


def test_sizes_that_no_step_works_with_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidFieldError):
        full_plan(decks=259)
    with pytest.raises(InvalidFieldError):
        quick_plan(seed="0AB")
    assert main(["dossier", "--decks", "100"]) == 2
    assert "260" in capsys.readouterr().err
    assert [step.name for step in steps_of(full_plan(decks=1000))].count("battery-1000") == 1


# --- the work folder ---


def silent(_what: str, _done: int, _total: int) -> None:
    pass


def test_a_result_is_kept_as_long_as_its_inputs_are_the_same(tmp_path: Path) -> None:
    runs: list[int] = []

    def run(parameters: Mapping[str, Any], _reported: object) -> dict[str, Any]:
        runs.append(parameters["size"])
        return {"verdict": "passed", "reported": "", "size": parameters["size"]}

    step = DossierStep("probe", "Probe", run, {"size": 1}, ("rng/scaling.py",))
    assert not Work(tmp_path, NOW_MS, resume=True).do(step, silent).is_kept
    assert Work(tmp_path, NOW_MS, resume=True).do(step, silent).is_kept
    assert not Work(tmp_path, NOW_MS, resume=False).do(step, silent).is_kept
    assert not Work(tmp_path, NOW_MS, resume=True).do(replace(step, parameters={"size": 2}), silent).is_kept
    assert not Work(tmp_path, NOW_MS, resume=True).do(replace(step, reads=("rng",)), silent).is_kept
    for damage in ("", "{", "[]", json.dumps({"format": "other"})):
        (tmp_path / "probe.json").write_text(damage)
        assert not Work(tmp_path, NOW_MS, resume=True).do(step, silent).is_kept
    assert len(runs) == 8


@pytest.mark.parametrize(("verdict", "is_kept"), [("failed", True), ("not applicable", True), ("not run", False)])
def test_what_did_not_run_is_tried_again_and_a_failure_is_kept(tmp_path: Path, verdict: str, is_kept: bool) -> None:
    step = DossierStep("probe", "Probe", lambda _parameters, _reported: {"verdict": verdict, "reported": ""}, {})
    first = Work(tmp_path, NOW_MS, resume=True).do(step, silent)
    second = Work(tmp_path, NOW_MS + 1000, resume=True).do(step, silent)
    assert (first.is_kept, second.is_kept) == (False, is_kept)
    assert second.made == (first.made if is_kept else format_time(NOW_MS + 1000))


def test_an_input_is_every_byte_of_what_a_step_reads(tmp_path: Path) -> None:
    (tmp_path / "rng").mkdir()
    step = DossierStep("probe", "Probe", lambda _parameters, _reported: {}, {}, ("rng",))
    seen = set()
    for number, text in enumerate(("", "a", "b")):
        root = tmp_path / str(number)
        (root / "rng").mkdir(parents=True)
        (root / "rng" / "a.py").write_text(text)
        seen.add(step.inputs(root))
    assert len(seen) == 3


# --- steps that fail, and what is not run ---


def done(name: str, **result: Any) -> Done:
    step = DossierStep(name, name, lambda _parameters, _reported: {}, {})
    return Done(step, {"reported": "", **result}, "0" * 64, 0.0, format_time(NOW_MS), is_kept=False)


def test_the_verdict_is_no_better_than_its_worst_step() -> None:
    def verdict(*words: str) -> str:
        steps = [done("tests", verdict="passed", tests={})]
        steps += [done(f"step{place}", verdict=word) for place, word in enumerate(words)]
        return str(document_of(quick_plan(), steps, NOW_MS)["verdict"])

    assert verdict("passed", "failed") == "failed"
    assert verdict("passed", "not run") == "incomplete"
    assert verdict("passed") == "incomplete"  # no test of the clauses ran


def test_a_failed_case_fails_its_test_and_a_skipped_one_is_not_run() -> None:
    report = (
        b'<testsuites><testsuite>'
        b'<testcase file="tests/a.py" name="test_x[1]"/>'
        b'<testcase file="tests/a.py" name="test_x[2]"><failure/></testcase>'
        b'<testcase file="tests/a.py" name="test_y"/><testcase file="tests/a.py" name="test_z"><skipped/></testcase>'
        b'<testcase file="tests/a.py" name="test_e"><error/></testcase>'
        b'</testsuite></testsuites>'
    )  # fmt: skip
    nodes = [f"tests/a.py::test_{name}" for name in "xyzeq"]
    found = software.outcomes(nodes, software.read_junit(report))
    assert [found[node]["word"] for node in nodes] == ["failed", "passed", "not run", "failed", "not run"]


@pytest.mark.parametrize("workers", [1, 2])  # pytest alone says 4, its workers 5: nothing was collected
def test_a_test_that_is_not_there_is_not_run_and_the_step_fails(workers: int) -> None:
    result = software.run_tests({"tests": ["tests/unit/rng/test_health.py::test_nothing"], "workers": workers}, silent)
    assert result["verdict"] == "failed"
    assert result["tests"]["tests/unit/rng/test_health.py::test_nothing"] == {"word": "not run", "cases": 0}
    assert result["said"]


def test_a_blind_health_test_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind:
        def check(self, _block: bytes) -> None:
            pass

    monkeypatch.setattr(chance, "HealthTests", Blind)
    assert chance.run_health({"bytes": 1024}, silent)["verdict"] == "failed"


def test_a_certificate_that_says_something_else_fails_or_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(games, "DIRECTORY", tmp_path)
    result = games.run_returns({"ruleset": "uth-solo", "derive": False, "grid": False}, silent)
    assert result["verdict"] == "failed"
    assert result["certificate"] == {}


def test_recorded_rounds_that_settle_otherwise_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (games.VECTORS / "uth_rounds.jsonl").read_text("utf-8").splitlines()[0]
    (tmp_path / "uth_rounds.jsonl").write_text(text.replace('"total_staked": ', '"total_staked": 1') + "\n", "utf-8")
    monkeypatch.setattr(games, "VECTORS", tmp_path)
    assert games.run_vectors({"rulesets": ["uth-solo"]}, silent)["verdict"] == "failed"
    assert games.run_vectors({"rulesets": ["casino-holdem"]}, silent)["verdict"] == "not run"


def test_mutants_are_told_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(software, "ROOT", tmp_path)
    assert software.run_mutants({}, silent)["verdict"] == "not run"
    (tmp_path / "certification").mkdir()
    source = tmp_path / "a.py"
    source.write_bytes(b"pass\n")
    head: dict[str, Any] = {
        "tool": "t",
        "version": "1",
        "python": "3.11",
        "commit": "0" * 40,
        "sample": None,
        "not_run": [],
        "tests": [],
    }
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    target = {"path": "a.py", "sha256": sha256, "mutants": 3, "killed": 1, "timeout": 1}
    survivor = {"line": 7, "function": "f", "before": "<", "after": "<="}

    def reported(why: str, **other: Any) -> tuple[str, str]:
        targets = [{**target, "survived": [{**survivor, "why": why}]}]
        document = {**head, "targets": targets, **other}
        (tmp_path / "certification" / "mutants.json").write_text(json.dumps(document))
        result = software.run_mutants({}, silent)
        return result["verdict"], result["reported"]

    assert reported("the same for every n") == ("passed", "2 of 3 mutants noticed, 1 survived, 0 unexplained")
    assert reported("") == ("failed", "2 of 3 mutants noticed, 1 survived, 1 unexplained")
    assert reported("same", not_run=["b.py"])[0] == "not run"
    assert reported("same", sample={"mutants": 3, "seed": 1})[0] == "not run"
    assert reported("same", targets=[])[0] == "not run"
    source.write_bytes(b"pass \n")
    assert reported("same")[0] == "not run"


# --- the bill of materials ---


def test_the_bill_names_every_locked_package_once_with_its_hashes() -> None:
    document = make_sbom(ROOT)
    assert validate_sbom(document) == []
    names = [part["name"] for part in document["components"]]
    locked = {
        (row.name, row.version): row
        for name in ("dev", "runtime")
        for row in read_lock((ROOT / "requirements" / f"{name}.txt").read_text("utf-8"))
    }
    assert sorted(names) == sorted(name for name, _ in locked)
    assert names.count("numpy") == 2  # one for each of two ranges of Pythons
    for part in document["components"]:
        hashes = [row["value"] for row in part["properties"] if row["name"] == "rgs:accepted-file-sha256"]
        assert tuple(hashes) == locked[part["name"], part["version"]].hashes != ()
    jinja2 = next(part["bom-ref"] for part in document["components"] if part["name"] == "jinja2")
    edges = {row["ref"]: row["dependsOn"] for row in document["dependencies"]}
    assert any(ref.startswith("pkg:pypi/markupsafe@") for ref in edges[jinja2])
    assert any(ref.startswith("pkg:pypi/grpcio@") for ref in edges["rgs"])


def test_a_lock_is_read_whole_or_not_at_all() -> None:
    text = "# head\nabc==1.0 ; os_name != 'x' \\\n"
    text += f"    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{'1' * 64}\n    # via\n"
    text += "    #   -c requirements/runtime.txt\n    #   -r requirements/dev.in\n    #   other\n"
    assert list(read_lock(text)) == [Locked("abc", "1.0", "os_name != 'x'", ("0" * 64, "1" * 64), ("", "other"))]
    for line in ("abc>=1.0", "    --hash=md5:00", "-e ."):
        with pytest.raises(FormatError):
            list(read_lock(text + line + "\n"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bomFormat", "SPDX"),
        ("specVersion", "1"),
        ("serialNumber", "7"),
        ("version", 0),
        ("components", [{"type": "library", "bom-ref": "a", "name": "", "purl": "pkg:pypi/a@1"}]),
        ("components", [{"type": "library", "bom-ref": "rgs", "name": "a", "purl": "pkg:pypi/a@1"}]),
        ("components", [{"type": "thing", "bom-ref": "a", "name": "a", "purl": "pkg:pypi/a@1"}]),
        ("components", [{"type": "library", "bom-ref": "a", "name": "a", "purl": "a"}]),
        (
            "components",
            [{"type": "library", "bom-ref": "a", "name": "a", "purl": "pkg:a", "licenses": [{"license": {}}]}],
        ),
        (
            "components",
            [
                {
                    "type": "library",
                    "bom-ref": "a",
                    "name": "a",
                    "purl": "pkg:a",
                    "licenses": [{"expression": "see file"}],
                }
            ],
        ),
        ("dependencies", [{"ref": "rgs", "dependsOn": ["nobody"]}]),
    ],
)
def test_what_the_standard_demands_is_missed(key: str, value: object) -> None:
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:6f1f3f0e-6d3c-5f5a-9a55-3a1f0c1d7b42",
        "version": 1,
        "components": [],
    }
    assert validate_sbom(document) == []
    assert validate_sbom({**document, key: value}) != []


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (("passed", "passed"), "passed"),
        (("passed", "not run"), "not run"),
        (("not run", "not run"), "not run"),
        (("failed", "not run"), "failed"),
    ],
)
def test_batteries_of_others_have_passed_when_all_of_them_have(
    words: tuple[str, ...], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [programs.ProgramOutcome(f"program {number}", word, "") for number, word in enumerate(words)]
    monkeypatch.setattr(programs, "run_all", lambda *_, **__: outcomes)
    found = chance.run_programs({"megabytes": 1}, lambda *_: None)
    assert found["verdict"] == verdict
    assert f"{words.count('passed')} passed" in found["reported"]


def test_a_sequence_of_too_few_cycles_is_not_called_passed() -> None:
    words = []
    for seed in ("00", "02"):
        found = chance.run_sp800_22({"seed": seed, "sequences": 1, "alpha": 0.01}, lambda *_: None)
        words.append((found["verdict"], "162 of 188 tests applicable" in found["reported"]))
    assert words == [("passed", False), ("not run", True)]
