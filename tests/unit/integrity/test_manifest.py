"""The software manifest lists what is there, and what is listed is what runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rgs.core.statements import format_canonical, parse_canonical
from rgs.integrity.manifest import (
    FORMAT,
    Manifest,
    ManifestEntry,
    ManifestError,
    find_lock,
    make_manifest,
    measure,
    package_folder,
)
from rgs.integrity.manifest_verify import LOCK

ROOT = Path(__file__).resolve().parents[3]


def _tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def test_every_file_is_listed_by_its_logical_path_in_order(tmp_path: Path) -> None:
    folder = _tree(
        tmp_path / "unit",
        {"b.py": b"b", "a.py": b"a", "data/rules.toml": b"r", "stray.pyc": b"p", "__pycache__/a.cpython-311.pyc": b"c"},
    )
    manifest = measure({"rng": folder}, None)
    assert [entry.path for entry in manifest.entries] == [
        "rng/a.py",
        "rng/b.py",
        "rng/data/rules.toml",
        "rng/stray.pyc",
    ]
    assert manifest.entries[0] == ManifestEntry("rng/a.py", hashlib.sha256(b"a").hexdigest(), 1)
    assert not manifest.locked


def test_the_lock_has_one_logical_path_in_a_checkout_and_in_a_wheel(tmp_path: Path) -> None:
    packages = {"rng": _tree(tmp_path / "rng", {"a.py": b"a"})}
    checkout = tmp_path / "checkout" / "rgs"
    wheel = tmp_path / "site" / "rgs"
    for folder, lock in ((checkout, checkout.parent / LOCK), (wheel, wheel / LOCK)):
        lock.parent.mkdir(parents=True)
        lock.write_bytes(b"grpcio==1")
        folder.mkdir(exist_ok=True)
        manifest = measure(packages, find_lock(folder))
        assert manifest.locked
        assert ManifestEntry(LOCK, hashlib.sha256(b"grpcio==1").hexdigest(), 9) in manifest.entries
    assert find_lock(tmp_path / "nowhere") is None


def test_without_a_lock_nothing_may_be_served() -> None:
    Manifest((), locked=True).verify_locked()
    with pytest.raises(ManifestError, match=LOCK):
        Manifest((), locked=False).verify_locked()


def test_the_content_is_canonical_and_its_hash_names_it() -> None:
    manifest = Manifest((ManifestEntry("rng/a.py", "0" * 64, 12),), locked=True)
    document = parse_canonical(manifest.content)
    assert document == {
        "entries": [{"bytes": "12", "path": "rng/a.py", "sha256": "0" * 64}],
        "format": FORMAT,
        "locked": True,
    }
    assert format_canonical(document) == manifest.content
    assert manifest.sha256 == hashlib.sha256(manifest.content).hexdigest()


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    for name in ("link", "folder", "pipe"):
        folder = _tree(tmp_path / name, {"a.py": b"a"})
        if name == "pipe":
            os.mkfifo(folder / "odd.py")
        else:
            (folder / "odd.py").symlink_to(tmp_path / "elsewhere.py" if name == "link" else tmp_path)
        with pytest.raises(ManifestError, match=r"odd\.py is neither a plain file nor a folder"):
            measure({"rng": folder}, None)


def test_a_package_that_is_not_there_is_refused() -> None:
    with pytest.raises(ManifestError, match="no_such_unit"):
        package_folder("no_such_unit")


def test_this_installation_is_covered() -> None:
    manifest = make_manifest()
    listed = {entry.path: entry for entry in manifest.entries}
    for path in ("rng/drbg.py", "rgs/core/errors.py", "rgs/core/jurisdiction_data/demo.toml", LOCK):
        assert listed[path].sha256 == hashlib.sha256((ROOT / path).read_bytes()).hexdigest(), path
    found = {
        path.relative_to(ROOT).as_posix()
        for top in ("rng", "rgs/core")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {entry.path for entry in manifest.entries} == found | {LOCK}


# --- what is listed is what runs: in a process and a copy of its own ------------------------------------------------

SCRIPT = """
import importlib, json, sys
from rgs.integrity import manifest
measured = manifest.make_manifest()
guarded = sys.argv[1] == "guarded"
if guarded:
    manifest.guard_imports(measured)
told = {}
for name, action in json.loads(sys.argv[2]):
    if action:
        exec(action)
    try:
        told[name] = importlib.import_module(name).WORD
    except ImportError as error:
        told[name] = str(error)
try:
    manifest.verify_loaded()
    told["loaded"] = "as hashed"
except manifest.ManifestError as error:
    told["loaded"] = str(error)
print(json.dumps(told))
"""


def _run(folder: Path, steps: list[tuple[str, str]], *, guarded: bool) -> dict[str, str]:
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{SCRIPT}"]
    command += ["guarded" if guarded else "unguarded", json.dumps(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reported: dict[str, str] = json.loads(done.stdout)
    return reported


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    files = {
        "rgs/__init__.py": b"",
        "rgs/integrity/__init__.py": b"",
        "rgs/integrity/manifest.py": (ROOT / "rgs/integrity/manifest.py").read_bytes(),
        "rgs/integrity/imports.py": (ROOT / "rgs/integrity/imports.py").read_bytes(),
        "rgs/integrity/manifest_verify.py": (ROOT / "rgs/integrity/manifest_verify.py").read_bytes(),
        "rgs/core/__init__.py": b"",
        "rng/__init__.py": b"",
        "rng/deck.py": b'WORD = "honest"\n',
    }
    return _tree(tmp_path / "copy", files)


def _plant_bytecode(folder: Path) -> None:
    """Bytecode of other source under the honest file's time and length, as the import system checks them."""
    honest = folder / "rng" / "deck.py"
    text, status = honest.read_text(), honest.stat()
    honest.write_text('WORD = "fooled"\n')
    os.utime(honest, ns=(status.st_atime_ns, status.st_mtime_ns))
    code = "import py_compile, sys; py_compile.compile(sys.argv[1], doraise=True)"
    subprocess.run([sys.executable, "-c", code, str(honest)], check=True)
    honest.write_text(text)
    os.utime(honest, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_planted_bytecode_cache_runs_without_the_guard_and_not_with_it(installation: Path) -> None:
    _plant_bytecode(installation)
    assert _run(installation, [("rng.deck", "")], guarded=False)["rng.deck"] == "fooled"
    reported = _run(installation, [("rng.deck", "")], guarded=True)
    assert reported == {"rng.deck": "honest", "loaded": "as hashed"}


def test_what_changed_after_the_manifest_is_not_imported(installation: Path) -> None:
    path = installation / "rng" / "deck.py"
    reported = _run(installation, [("rng.deck", f"open({str(path)!r}, 'a').write('# later')")], guarded=True)
    assert reported["rng.deck"] == "rng.deck: has changed since it was hashed"


def test_what_is_no_measured_source_is_not_imported(installation: Path) -> None:
    code = "import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], doraise=True)"
    alone = installation / "rng" / "alone.pyc"
    subprocess.run([sys.executable, "-c", code, str(installation / "rng" / "deck.py"), str(alone)], check=True)
    steps = [("rng.alone", ""), ("rng.late", f"open({str(installation / 'rng' / 'late.py')!r}, 'w').write('WORD = 1')")]
    assert _run(installation, [steps[0]], guarded=False)["rng.alone"] == "honest"
    reported = _run(installation, steps, guarded=True)
    assert reported["rng.alone"] == "rng.alone is no source file of the software manifest"
    assert reported["rng.late"] == "rng.late is no source file of the software manifest"
    assert reported["loaded"] == "as hashed"


def test_a_module_that_came_in_early_is_seen(installation: Path) -> None:
    reported = _run(installation, [("rng.deck", "")], guarded=False)
    assert reported["loaded"] == "rng was loaded before it was hashed: start the server with `rgs serve`"
