"""`certify manifest`: what it lists is what lies here; the verifier, carried away alone, names every difference."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from certification import manifest
from certification.__main__ import main
from certification.manifest import class_of, format_manifest, make_manifest
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.integrity import manifest_verify
from rgs.integrity.manifest import make_manifest as measure
from rgs.integrity.manifest_verify import LOCK, UnverifiableError, parse_lock
from rgs.node.software_identity import modules_of
from tests.support.process.installed import ROOT, Installation, checkout, replace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return make_manifest(ROOT)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    found = checkout(tmp_path_factory.mktemp("here"))
    shutil.copytree(ROOT / "protos", found.root / "protos")
    return found


@pytest.fixture(scope="module")
def written(here: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `certify manifest --json` writes of the installation."""
    done = here.run([here.python, "-B", "-m", "certification", "manifest", "--json"], cwd=here.root)
    assert done.returncode == 0, done.stderr
    path = tmp_path_factory.mktemp("written") / "manifest.json"
    path.write_text(done.stdout)
    return path


def _verify(alone: Path, written: Path, *arguments: str | Path) -> tuple[int, list[str]]:
    command = [sys.executable, "-I", "-S", "-B", alone, written, *arguments]
    done = subprocess.run(
        [str(part) for part in command], cwd=alone.parent, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


# --- what is listed -------------------------------------------------------------------------------------------------


def test_every_file_has_both_hashes_and_its_class(made: dict[str, Any]) -> None:
    files = {entry["path"]: entry for entry in made["files"]}
    for path in ("rng/drbg.py", "rgs/node/server.py", "certification/replay.py", "protos/rgs/v1/play.proto", LOCK):
        content = (ROOT / path).read_bytes()
        assert files[path]["sha256"] == hashlib.sha256(content).hexdigest()
        assert files[path]["sha1"] == hashlib.sha1(content, usedforsecurity=False).hexdigest()
        assert files[path]["bytes"] == str(len(content))
    certified = {entry.path: entry.sha256 for entry in measure().entries}
    assert certified.items() <= {path: entry["sha256"] for path, entry in files.items()}.items()
    classes = {entry["class"] for entry in made["files"]}
    assert classes == {"rng", "math", "game", "devkit", "none"}
    assert not any("__pycache__" in path for path in files)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("rng/drbg.py", "rng"),
        ("rgs/core/games/rulesets/uth-solo.toml", "math"),
        ("rgs/core/certificate_data/x.json", "math"),
        ("rgs/core/games/uth.py", "game"),
        ("rgs/core/cards.py", "game"),
        ("rgs/core/jurisdiction_data/it-adm.toml", "game"),
        ("rgs/core/tlog/merkle.py", "none"),
        ("rgs/node/server.py", "none"),
        ("rgs/devkit/client.py", "devkit"),
        ("rng_other.py", "none"),
    ],
)
def test_the_class_of_a_file(path: str, expected: str) -> None:
    assert class_of(path) == expected


def test_the_devkit_is_hashed_apart(made: dict[str, Any], here: Installation, tmp_path: Path) -> None:
    """A change of a simulator changes the hash of the devkit, and no other hash of the manifest."""
    shutil.copytree(here.root, tmp_path / "root", ignore=shutil.ignore_patterns("__pycache__"))
    root = tmp_path / "root"
    before = make_manifest(root)
    assert (before["server"], before["devkit"]) == (made["server"], made["devkit"])
    replace(root / "rgs/devkit/simulators/wallet.py", b"")
    after = make_manifest(root)
    assert {part for part in before if before[part] != after[part]} == {"devkit", "files"}
    listed = [{entry["path"]: entry["sha256"] for entry in one["files"]} for one in (before, after)]
    assert {path for path in listed[0] if listed[0][path] != listed[1][path]} == {"rgs/devkit/simulators/wallet.py"}
    replace(root / "rgs/node/server.py", b"")
    assert make_manifest(root)["server"] != before["server"]


def test_every_place_of_a_class_is_there() -> None:
    for places in manifest.CLASSES.values():
        for place in places:
            assert (ROOT / place).exists(), place


def test_the_rest_of_what_is_certified(made: dict[str, Any]) -> None:
    assert made["rulesets"] == {name: load_ruleset(name).sha256 for name in SHIPPED_RULESETS}
    assert made["jurisdictions"]["it-adm"] == load_jurisdiction("it-adm").sha256
    assert made["configuration"] is None
    names = {name.partition("==")[0]: name for name in made["surroundings"]["dependencies"]}
    for name in ("grpcio", "cryptography", "structlog"):
        version = metadata.version(name)
        assert names[name] == f"{name}=={version}"
        assert made["locked"][name]["version"] == version
        assert made["locked"][name]["archives"], "hashes of the archives, from the lock"
    listed = made["surroundings"]["dependencies"][names["structlog"]]
    path = next(
        Path(str(metadata.distribution("structlog").locate_file(name))) for name in listed if "_base.py" in name
    )
    assert listed["structlog/_base.py"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert made["surroundings"]["stdlib"]["os.py"]
    assert str(Path(sys.executable).resolve()) in made["surroundings"]["objects"]
    reported = {module.name: {"sha1": module.sha1, "sha256": module.sha256} for module in modules_of(measure())}
    assert made["modules"] == {name: reported[name] for name in ("rgs.core", "rng")}, "as the regulator is told"


def test_of_the_settings_the_hash_alone(tmp_path: Path) -> None:
    (tmp_path / "rgs.toml").write_text('store = "postgresql://secret@host/name"\n')
    text = format_manifest(make_manifest(ROOT, tmp_path))
    expected = hashlib.sha256((tmp_path / "rgs.toml").read_bytes()).hexdigest()
    assert json.loads(text)["configuration"] == {"peers.toml": None, "rgs.toml": expected}
    assert "secret@" not in text


def test_the_command_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["manifest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sha256, sha1 = (hashlib.new(name, (ROOT / "rng/drbg.py").read_bytes()).hexdigest() for name in ("sha256", "sha1"))
    assert f"{sha256}  {sha1}  rng   rng/drbg.py" in lines
    assert f"{load_ruleset('uth-solo').sha256}  ruleset uth-solo" in lines
    assert main(["manifest", "--home", str(tmp_path)]) == 0
    assert "none  configuration rgs.toml" in capsys.readouterr().out
    assert main(["manifest", "--home", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err == f"certify manifest: {tmp_path / 'nowhere'} is not a folder\n"


def test_an_installation_that_contradicts_itself_is_not_certified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def contradicts(path: str, _text: str) -> manifest_verify.Surroundings:
        return manifest_verify.Surroundings("3", findings=[manifest_verify.Finding("changed", "grpc/x.py")])

    monkeypatch.setattr(manifest, "surroundings_here", contradicts)
    assert main(["manifest"]) == 1
    assert capsys.readouterr().err == "certify manifest: this is nothing to certify: changed   grpc/x.py\n"


# --- the verifier alone ---------------------------------------------------------------------------------------------


def test_what_is_listed_is_found(alone: Path, written: Path, here: Installation, made: dict[str, Any]) -> None:
    status, lines = _verify(alone, written, "--root", here.root)
    name = hashlib.sha256(written.read_bytes()).hexdigest()
    assert (status, lines[-1]) == (0, f"{len(made['files'])} files are as listed in manifest {name}")
    assert lines[:-1] == ["not compared: dependencies, interpreter and standard library (--venv)"]
    assert _verify(alone, written, "--root", here.root, "--venv", here.venv) == (0, lines[-1:])


def _append(path: Path) -> None:
    replace(path, path.read_bytes() + b"\n")


CHANGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: _append(root / "rng/drbg.py"), "changed   rng/drbg.py"),
    (
        lambda root: _append(root / "rgs/core/games/rulesets/uth-solo.toml"),
        "changed   rgs/core/games/rulesets/uth-solo",
    ),
    (lambda root: _append(root / "protos/rgs/v1/play.proto"), "changed   protos/rgs/v1/play.proto"),
    (lambda root: _append(root / LOCK), f"changed   {LOCK}"),
    (lambda root: (root / "rng/scaling.py").unlink(), "missing   rng/scaling.py"),
    (lambda root: (root / LOCK).unlink(), f"missing   {LOCK}"),
    (lambda root: shutil.rmtree(root / "certification/rtp"), "missing   certification/rtp/returns.py"),
    (lambda root: shutil.rmtree(root / "rng"), "missing   rng/drbg.py"),
    (lambda root: (root / "rng/late.py").write_bytes(b""), "unlisted  rng/late.py"),
    (lambda root: (root / "rgs/core/notes.txt").write_bytes(b""), "unlisted  rgs/core/notes.txt"),
    (lambda root: (root / "structlog.py").write_bytes(b""), "unlisted  structlog.py"),
    (lambda root: _package(root / "structlog"), "unlisted  structlog"),
    (lambda root: _package(root / "google/protobuf"), "unlisted  google"),  # a part of a library without a top
    (lambda root: (root / "rng/a\nb\x1b[2K").write_bytes(b""), r"unlisted  rng/a\nb\x1b[2K"),
    (lambda root: (root / os.fsdecode(b"rng/\xff")).write_bytes(b""), r"unlisted  rng/\udcff"),
    (lambda root: (root / "rng/link.py").symlink_to(root / "rng/drbg.py"), "odd       rng/link.py"),
    (lambda root: (root / "rng").symlink_to((root / "rng").rename(root / "var")), "odd       rng"),
]


def _package(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_bytes(b"")


@pytest.mark.parametrize(("change", "reported"), CHANGES, ids=[reported for _, reported in CHANGES])
def test_every_difference_is_named(
    change: Callable[[Path], object], reported: str, alone: Path, written: Path, here: Installation, tmp_path: Path
) -> None:
    shutil.copytree(here.root, tmp_path / "root", ignore=shutil.ignore_patterns("__pycache__"))
    change(tmp_path / "root")
    status, lines = _verify(alone, written, "--root", tmp_path / "root")
    assert status == 1
    assert any(line.startswith(reported) for line in lines)
    assert "DIFFERENCES from manifest" in lines[-1]


def test_what_the_server_runs_on_is_compared_file_by_file(
    alone: Path, written: Path, here: Installation, tmp_path: Path
) -> None:
    """Even where the RECORD was changed with the file."""
    venv = tmp_path / "venv"
    shutil.copytree(here.venv, venv, symlinks=True)
    site = Installation(venv, venv).site
    (info,) = site.glob("structlog-*.dist-info")
    honest = (site / "structlog/_base.py").read_bytes()
    _append(site / "structlog/_base.py")
    record = (info / "RECORD").read_text().splitlines()
    forged = [line if not line.startswith("structlog/_base.py") else "structlog/_base.py,," for line in record]
    replace(info / "RECORD", "\n".join(forged).encode())
    (site / "evil.pth").write_bytes(b"import os")
    status, lines = _verify(alone, written, "--root", here.root, "--venv", venv, "--json")
    reported = json.loads("\n".join(lines))
    (name,) = (name for name in json.loads(written.read_text())["locked"] if name == "structlog")
    version = info.name.removeprefix("structlog-").removesuffix(".dist-info")
    assert status == 1
    assert reported["findings"] == [
        {"path": f"{name}=={version}: structlog/_base.py", "what": "changed"},
        {"path": "evil.pth", "what": "unlisted"},
    ]
    (site / "structlog/_base.py").write_bytes(honest)
    (site / "evil.pth").unlink()
    assert _verify(alone, written, "--root", here.root, "--venv", venv)[0] == 0


def test_another_interpreter_is_another_software(
    alone: Path, written: Path, here: Installation, tmp_path: Path
) -> None:
    document = json.loads(written.read_text())
    around = document["surroundings"]
    executable = str(Path(here.python).resolve())
    around["objects"][executable] = "0" * 64
    around["stdlib"]["os.py"] = "0" * 64
    around["stdlib"]["evil.py"] = "0" * 64
    del around["dependencies"][next(name for name in around["dependencies"] if name.startswith("rich=="))]
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    status, lines = _verify(alone, path, "--root", here.root, "--venv", here.venv)
    assert status == 1
    for reported in (
        f"changed   {executable}",
        "changed   standard library: os.py",
        "missing   standard library: evil.py",
    ):
        assert reported in lines
    assert any(line.startswith("unlisted  rich==") for line in lines)


def test_bytecode_is_not_read_and_said_so(alone: Path, written: Path, here: Installation, tmp_path: Path) -> None:
    shutil.copytree(here.root, tmp_path / "root", ignore=shutil.ignore_patterns("__pycache__", "protos"))
    (tmp_path / "root/rng/__pycache__").mkdir()
    (tmp_path / "root/rng/__pycache__/drbg.cpython-311.pyc").write_bytes(b"")
    (tmp_path / "root/rng/__pycache__/drbg.f-1.py311.nbi").write_bytes(b"")  # numba's, of versions before
    status, lines = _verify(alone, written, "--root", tmp_path / "root")
    assert status == 0
    assert "not compared: protos (not here)" in lines
    assert any(line.startswith("not compared: 1 files of bytecode") for line in lines)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"", "is no manifest"),
        (b"[]", "is no manifest"),
        (b'{"format": "x"}', "has the format x, not rgs/certified/v1"),
        (b'{"format": "rgs/certified/v1", "files": [{}]}', "is no manifest"),
        (b'{"format": "rgs/certified/v1", "files": [], "surroundings": {}}', "lists no files"),  # and shows nothing
    ],
)
def test_what_is_no_manifest_is_said(content: bytes, reported: str, alone: Path, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    assert _verify(alone, path, "--root", ROOT) == (2, [f"certify manifest verify: {path} {reported}"])


def test_what_cannot_be_compared_is_said(alone: Path, written: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone.json"
    assert _verify(alone, gone, "--root", ROOT)[1][0].endswith("gone.json cannot be read: No such file or directory")
    reported = f"certify manifest verify: {tmp_path} is not a virtual environment with one Python"
    assert _verify(alone, written, "--root", ROOT, "--venv", tmp_path) == (2, [reported])
    assert _verify(alone, written, "--root", gone) == (2, [f"certify manifest verify: {gone} is no folder"])
    assert _verify(alone, written)[0] == 2
    assert main(["manifest", "verify", str(gone), "--root", str(ROOT)]) == 2


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    for text in ("x.py\n", "x.py,md5=1,2\n", "x.py,sha256=1,2,3\n"):
        (info / "RECORD").write_text(text)
        with pytest.raises(UnverifiableError, match="has a malformed line"):
            manifest_verify.read_record(info)
    (info / "RECORD").write_bytes(b"\xff")
    with pytest.raises(UnverifiableError, match="no RECORD that can be read"):
        manifest_verify.read_record(info)


def test_the_lock_is_read_as_pip_reads_it() -> None:
    text = (
        "# a note\nA_b.C==1.0 ; x == 'y' \\\n    --hash=sha256:"
        + "0" * 64
        + " \\\n    --hash=sha256:"
        + "1" * 64
        + "\n"
    )
    assert parse_lock(text) == {"a-b-c": ("1.0", ["0" * 64, "1" * 64])}
