"""The isolated start: what is planted around the server is refused by name, or has no effect."""

from __future__ import annotations

import base64
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.integrity import isolation, manifest_verify
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.node.software_identity import verify_certified
from tests.support.process.installed import ROOT, SITE, Installation, installed, replace

pytestmark = pytest.mark.slow

FOOLED = b"import sys\nsys.stderr.write('FOOLED\\n')\nsys.stderr.flush()\nimport os\nos._exit(66)\n"
OBJECT = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu.so"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installed(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def written(wheel: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of the honest installation."""
    done = wheel.run([wheel.python, "-B", "-m", "certification", "manifest", "--json"], cwd=wheel.root)
    assert done.returncode == 0, done.stderr
    path = tmp_path_factory.mktemp("written") / "manifest.json"
    path.write_text(done.stdout)
    return path


def _verify(alone: Path, written: Path, here: Installation) -> list[str]:
    places = ["--root", str(here.root), "--venv", str(here.venv)]
    return [sys.executable, "-I", "-S", "-B", str(alone), str(written), *places]


@pytest.mark.parametrize("kind", ["wheel", "sources"])
def test_an_honest_installation_is_served(kind: str, request: pytest.FixtureRequest) -> None:
    here: Installation = request.getfixturevalue(kind)
    assert here.refusal() == ""
    done = here.run([here.python, "-m", "rgs", "serve", "--home", "none"], cwd=here.root)
    assert "none is not the home of a node" in done.stderr, "as a person starts it"


# --- refused by name ------------------------------------------------------------------------------------------------


def _write(name: str, content: bytes = FOOLED) -> Callable[[Path], None]:
    def plant(site: Path) -> None:
        assert not (site / name).exists()
        (site / name).write_bytes(content)

    return plant


def _change(name: str) -> Callable[[Path], None]:
    def plant(site: Path) -> None:
        replace(site / name, (site / name).read_bytes() + b"\n")

    return plant


def _claimed(*names: str, by: str = "helper-1.0", content: bytes = FOOLED) -> Callable[[Path], None]:
    """Files that a distribution beside the locked ones has, or says to have."""

    def plant(site: Path) -> None:
        info = site / f"{by}.dist-info"
        info.mkdir(exist_ok=True)
        for name in names:
            assert not (site / name).exists()
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_bytes(content)
        with (info / "RECORD").open("a") as record:
            record.writelines(f"{name},,\n" for name in names)

    return plant


def _forged(library: str, name: str, content: bytes = FOOLED) -> Callable[[Path], None]:
    """A file that the RECORD of a locked distribution lists from now on, with its hash."""

    def plant(site: Path) -> None:
        info = min(site.glob(f"{library}-*.dist-info"))
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content)
        sha256 = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        replace(info / "RECORD", (info / "RECORD").read_bytes() + f"{name},sha256={sha256},{len(content)}\n".encode())

    return plant


def _bytecode(name: str, by: str | None = None) -> Callable[[Path], None]:
    def plant(site: Path) -> None:
        source = site.parent / "fooled.py"
        source.write_bytes(FOOLED)
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        py_compile.compile(str(source), str(site / name), doraise=True)
        if by is not None:
            (site / f"{by}.dist-info").mkdir(exist_ok=True)
            with (site / f"{by}.dist-info" / "RECORD").open("a") as record:
                record.write(f"{name},,\n")

    return plant


def _twice(library: str, version: str, *names: str) -> Callable[[Path], None]:
    """A second distribution of a locked name, which claims what the first has, and more."""

    def plant(site: Path) -> None:
        _claimed(*(name for name in names if not (site / name).exists()), by=f"{library}-{version}")(site)
        with (site / f"{library}-{version}.dist-info" / "RECORD").open("a") as record:
            record.writelines(f"{name},,\n" for name in names if name.endswith(f"{library}/__init__.py"))

    return plant


def _older_structlog(site: Path) -> None:
    (info,) = site.glob("structlog-*.dist-info")
    info.rename(site / "structlog-0.0.1.dist-info")


def _no_record(site: Path) -> None:
    (info,) = site.glob("structlog-*.dist-info")
    (info / "RECORD").unlink()


PLANTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a byte of the generator": (_change("rng/drbg.py"), "changed rng/drbg.py"),
    "a byte of a ruleset": (
        _change("rgs/core/games/rulesets/uth-solo.toml"),
        "changed rgs/core/games/rulesets/uth-solo.toml",
    ),
    "a byte of the server": (_change("rgs/node/server.py"), "changed rgs/node/server.py"),
    "a byte of the devkit": (_change("rgs/devkit/client.py"), "changed rgs/devkit/client.py"),
    "a module in the devkit": (_write("rgs/devkit/late.py"), "unlisted rgs/devkit/late.py"),
    "a byte of the lock": (_change("rgs/requirements/runtime.txt"), "changed rgs/requirements/runtime.txt"),
    "a module of ours": (_write("rng/evil.py"), "unlisted rng/evil.py"),
    "an object before a module": (_write(f"rgs/core/hands.{OBJECT}", b""), f"unlisted rgs/core/hands.{OBJECT}"),
    "bytecode without source": (_write("rgs/core/late.pyc", b""), "unlisted rgs/core/late.pyc"),
    "a byte of a library": (_change("typer/main.py"), "changed typer/main.py"),
    "a byte of a shared object": (_change(f"uvloop/loop.{OBJECT}"), f"changed uvloop/loop.{OBJECT}"),
    "a file of a library gone": (lambda site: (site / "structlog/_base.py").unlink(), "missing structlog/_base.py"),
    "an object before a library's": (_write(f"structlog/_base.{OBJECT}", b""), f"unlisted structlog/_base.{OBJECT}"),
    "a library's shadow": (_write(f"typing_extensions.{OBJECT}", b""), f"unlisted typing_extensions.{OBJECT}"),
    "sitecustomize": (_write("sitecustomize.py"), "unlisted sitecustomize.py"),
    "usercustomize": (_write("usercustomize.py"), "unlisted usercustomize.py"),
    "a path file": (_write("zz.pth", b"import os\n"), "unlisted zz.pth"),
    "a folder of modules": (
        lambda site: (shutil.copytree(site / "rich", site / "richer"), None)[1],
        "unlisted richer",
    ),
    # What another distribution claims, which somebody has made up or added a line to.
    "a package over a library's module": (
        _claimed("structlog/_base/__init__.py"),
        "unlisted structlog/_base/__init__.py",
    ),
    "an object over a library's module": (
        _claimed(f"structlog/_utils.{OBJECT}"),
        f"unlisted structlog/_utils.{OBJECT}",
    ),
    "a module in a library": (_claimed("structlog/late.py"), "unlisted structlog/late.py"),
    "a part of a namespace": (_claimed("google/late/__init__.py"), "unlisted google/late/__init__.py"),
    "a folder without a top in a library": (_claimed("structlog/spaces/late.py"), "unlisted structlog/spaces/late.py"),
    "data in a library": (_claimed("jinja2/late.txt"), "unlisted jinja2/late.txt"),
    "a package over a module at the top": (_claimed("typing_extensions/__init__.py"), "unlisted typing_extensions"),
    "a module under a package at the top": (_claimed("jinja2.py"), "unlisted jinja2.py"),
    "an object under a package at the top": (_claimed(f"mdurl.{OBJECT}"), f"unlisted mdurl.{OBJECT}"),
    "old bytecode at the top": (_claimed("markupsafe.pyc"), "unlisted markupsafe.pyc"),
    "a package over a module of ours": (
        _claimed("rgs/node/clock/__init__.py"),
        "unlisted rgs/node/clock/__init__.py",
    ),
    "a package in ours": (_claimed("rgs/store/rows/__init__.py"), "unlisted rgs/store/rows/__init__.py"),
    "a package over the launcher's tool": (
        _claimed("rgs/integrity/manifest_verify/__init__.py"),
        "unlisted rgs/integrity/manifest_verify/__init__.py",
    ),
    "an object over the launcher's tool": (
        _claimed(f"rgs/integrity/imports.{OBJECT}"),
        f"unlisted rgs/integrity/imports.{OBJECT}",
    ),
    "bytecode for source in a library": (
        _bytecode("structlog/_greenlets.pyc", "helper-1.0"),
        "unlisted structlog/_greenlets.pyc",
    ),
    "a cache without a source": (
        _bytecode(f"structlog/__pycache__/late.{sys.implementation.cache_tag}.pyc", "helper-1.0"),
        "unlisted structlog/__pycache__/late.",
    ),
    "a cache of ours without a source": (
        _bytecode(f"rng/__pycache__/late.{sys.implementation.cache_tag}.pyc"),
        "unlisted rng/__pycache__/late.",
    ),
    "a cache at the top without a source": (
        _bytecode(f"__pycache__/late.{sys.implementation.cache_tag}.pyc"),
        "unlisted __pycache__/late.",
    ),
    "a module in a cache": (_claimed("rng/__pycache__/late.py"), "unlisted rng/__pycache__/late.py"),
    "an archive": (_claimed("late.zip"), "unlisted late.zip"),
    "an egg": (_claimed("late.egg/late.py"), "unlisted late.egg"),
    "an egg that leads elsewhere": (_claimed("late.egg-link"), "unlisted late.egg-link"),
    "a second distribution": (_twice("structlog", "99.1", "structlog/twin.py"), "twice structlog: structlog-99.1"),
    "a second of ours": (_twice("rgs", "99.1", "rgs/__init__.py", "rgs/twin.py"), "twice rgs: rgs-99.1"),
    "a file that two claim": (
        _forged("typer", "structlog/_config.py", (SITE / "structlog/_config.py").read_bytes()),
        "twice structlog/_config.py",
    ),
    # What the RECORD of a locked distribution lists from now on.
    "two files for a library's module, listed": (
        _forged("structlog", "structlog/types/__init__.py"),
        "twice structlog/types.py and structlog/types/__init__.py",
    ),
    "two files for a module of ours, listed": (
        _forged("rgs", "rgs/node/logging/__init__.py"),
        "twice rgs/node/logging.py and rgs/node/logging/__init__.py",
    ),
    "something else in our RECORD": (_forged("rgs", "late.py"), "unlisted late.py"),
    "another version": (_older_structlog, "changed structlog: 0.0.1 is installed"),
    "no record": (_no_record, "has no RECORD that can be read"),
}


STOPS = ("another version", "no record")
"""Of which the others of the same library are not looked at any more."""
TOGETHER = [name for name in PLANTED if name not in STOPS]


@pytest.mark.skipif(sys.platform != "linux", reason="names of shared objects of Linux")
@pytest.mark.parametrize(
    "names",
    [
        # A start looks at everything, and tells the first twelve that it finds; each alone is for `make exhaustive`.
        *(pytest.param(TOGETHER[start::8], id=f"every eighth from {start}") for start in range(8)),
        *(pytest.param([name], id=name) for name in STOPS),
        *(pytest.param([name], id=name, marks=pytest.mark.slow_exhaustive) for name in TOGETHER),
    ],
)
def test_what_is_planted_is_refused_by_name(
    names: list[str], wheel: Installation, alone: Path, written: Path, tmp_path: Path
) -> None:
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    for name in names:
        plant, _ = PLANTED[name]
        plant(here.site)
    refusal = here.refusal()
    assert "FOOLED" not in refusal
    assert [name for name in names if PLANTED[name][1] not in refusal] == [], refusal
    # The verifier, carried away, names all of them.
    done = here.run(_verify(alone, written, here))
    reported = " ".join((done.stdout + done.stderr).split())
    assert done.returncode in (1, 2), done
    assert [name for name in names if PLANTED[name][1] not in reported] == [], reported


def test_what_shadows_a_library_in_a_checkout_is_refused(sources: Installation) -> None:
    for name in ("structlog.py", "zz.pth", f"rgs/core/hands.{OBJECT}"):
        (sources.root / name).write_bytes(FOOLED)
        try:
            assert sources.refusal().endswith(f"unlisted {name}")
        finally:
            (sources.root / name).unlink()
    for name in ("structlog", "google/protobuf"):
        (sources.root / name).mkdir(parents=True)
        (sources.root / name / "__init__.py").write_bytes(FOOLED)
        try:
            assert sources.refusal() == f"unlisted {name.partition('/')[0]}"
        finally:
            shutil.rmtree(sources.root / name.partition("/")[0])
    (sources.site / "zz.pth").write_bytes(b"import os\n")
    try:
        assert sources.refusal() == "unlisted zz.pth"
    finally:
        (sources.site / "zz.pth").unlink()


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "OPENSSL_MODULES", "GCONV_PATH"]
)
def test_variables_that_load_code_are_refused(name: str, sources: Installation, tmp_path: Path) -> None:
    reported = f"rgs: {name} would load code that nobody has certified: unset it"
    for command in (sources.command("serve"), [sources.python, "-m", "rgs", "serve"]):  # before it begins itself again
        done = sources.run(command, cwd=sources.root, **{name: str(tmp_path)})
        assert done.returncode == isolation.HOPELESS
        assert done.stderr.splitlines()[-1] == reported  # the linker may have said something, too


def test_a_tool_of_the_launcher_that_cannot_be_read_is_a_refusal_in_one_line(sources: Installation) -> None:
    for name in ("isolation", "manifest_machine", "imports"):
        tool = sources.root / f"rgs/integrity/{name}.py"
        content = tool.read_bytes()
        tool.unlink()
        try:
            assert sources.refusal() == f"{tool} cannot be read: No such file or directory"
        finally:
            tool.write_bytes(content)


def test_an_empty_variable_loads_nothing() -> None:
    isolation.verify_environment({"LD_PRELOAD": "", "PATH": "/bin"})


# --- without effect --------------------------------------------------------------------------------------------------


def test_rigged_bytecode_is_not_what_runs(wheel: Installation) -> None:
    """Bytecode that Python would run without a look at the source, for a file of ours and for one of a library."""
    source = wheel.venv / "fooled.py"
    source.write_bytes(FOOLED)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    planted = []
    try:
        for name in ("typer/main.py", "rgs/node/config.py", "rgs/__init__.py"):  # each is read before the one before it
            honest = wheel.site / name
            cached = honest.parent / "__pycache__" / f"{honest.stem}.{sys.implementation.cache_tag}.pyc"
            py_compile.compile(str(source), str(cached), invalidation_mode=unchecked, doraise=True)
            planted.append(cached)
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            plain = wheel.run([wheel.python, "-c", f"import {module}"])
            assert (plain.returncode, plain.stderr) == (66, "FOOLED\n"), "what any other start runs"
        assert wheel.refusal() == ""
    finally:
        for cached in planted:
            cached.unlink()


def test_what_numba_left_beside_our_files_keeps_no_checkout_from_starting(sources: Installation) -> None:
    """No server loads numba, or any of it; versions before kept their cache there."""
    cache = sources.root / "certification" / "rtp" / "__pycache__"
    cache.mkdir(exist_ok=True)
    planted = [cache / f"boards.entry_of-108.py311.{suffix}" for suffix in ("nbi", "1.nbc")]
    try:
        for path in planted:
            path.write_bytes(FOOLED)
        assert sources.refusal() == ""
    finally:
        for path in planted:
            path.unlink()


def test_what_is_said_to_python_is_not_heard(sources: Installation, tmp_path: Path) -> None:
    for name in ("structlog.py", "sitecustomize.py", "hashlib.py", "rgs.py"):
        (tmp_path / name).write_bytes(FOOLED)
    loud = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "structlog.py")}
    assert sources.refusal(**loud, PYTHONOPTIMIZE="2", PYTHONPYCACHEPREFIX=str(tmp_path)) == ""
    assert isolation.unheard({**loud, "HOME": "/", "PYTHONX": ""}) == {"HOME": "/"}, "nor handed on"
    (sources.venv / "structlog.py").write_bytes(FOOLED)
    try:
        assert sources.refusal() == "", "nor is the folder that it is started in"
    finally:
        (sources.venv / "structlog.py").unlink()


def test_a_process_is_isolated_by_all_of_it_or_not_at_all() -> None:
    requested = "from rgs.integrity.isolation import is_isolated\nprint(is_isolated())"
    code = f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\n{requested}"

    def reported(flags: list[str]) -> str:
        done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    flags = list(isolation.FLAGS)
    assert reported(flags) == "True"
    for without in ("-I", "-S", "-B"):
        assert reported([flag for flag in flags if flag != without]) == "False", without
    assert reported(flags[:3]) == "False"
    place = str(ROOT / "rgs/integrity/launcher.py")
    assert isolation.isolated_command("serve") == [sys.executable, *flags, place, "serve"]


def test_a_python_without_a_program_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(isolation.SurroundingsError, match="does not know its own program"):
        isolation.isolated_command("serve")


def test_an_archive_before_the_standard_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = tmp_path / "python311.zip"
    archive.write_bytes(b"")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    with pytest.raises(isolation.SurroundingsError, match=r"unlisted  .*python311\.zip"):
        isolation.standard_library()


def test_a_manifest_is_compared_before_any_library_runs(
    wheel: Installation, alone: Path, written: Path, tmp_path: Path
) -> None:
    """The library's RECORD was changed with the library: without a manifest nothing on the machine knows better."""
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    (info,) = here.site.glob("structlog-*.dist-info")
    lines = [line for line in (info / "RECORD").read_text().splitlines() if not line.startswith("structlog/_base.py")]
    replace(info / "RECORD", "\n".join([*lines, "structlog/_base.py,,", ""]).encode())
    replace(here.site / "structlog/_base.py", FOOLED)
    home = tmp_path / "home"
    home.mkdir()
    done = here.launch("serve", "--home", str(home))
    assert (done.returncode, done.stderr) == (66, "FOOLED\n"), "what a RECORD is worth by itself"
    shutil.copy(written, home / "certified.json")
    named = info.name.removesuffix(".dist-info").replace("-", "==")
    reported = (
        f"rgs: this is not the software of {home}/certified.json, 1 differences: changed {named}: structlog/_base.py\n"
    )
    serve, job = ["serve", "--home", str(home)], ["reconcile", "job", "x", "--home", str(home)]
    for command, status in ((serve, isolation.HOPELESS), (job, 1)):
        done = here.launch(*command)
        assert (done.returncode, done.stderr) == (status, reported)
    verify = _verify(alone, written, here)
    assert here.run(verify).stdout.startswith(f"changed   {named}: structlog/_base.py\n")


def test_a_changed_devkit_is_no_change_of_the_server(
    wheel: Installation, alone: Path, written: Path, tmp_path: Path
) -> None:
    """Another devkit, with a RECORD of its own: the server starts and cannot import it; the verifier names it."""
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    (info,) = here.site.glob("rgs-*.dist-info")
    name = "rgs/devkit/client.py"
    lines = [line for line in (info / "RECORD").read_text().splitlines() if not line.startswith(name)]
    replace(info / "RECORD", "\n".join([*lines, f"{name},,", ""]).encode())
    replace(here.site / name, FOOLED)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(written, home / "certified.json")
    assert here.launch("serve", "--home", str(home)).stderr.startswith(f"rgs: {home} is not the home of a node")
    called = here.launch("call", "x", "--home", str(home))
    assert (called.returncode, "needs rgs.devkit, which this process cannot import" in called.stderr) == (1, True), (
        called
    )
    reported = here.run(_verify(alone, written, here)).stdout.splitlines()
    assert (reported[0], reported[-1].startswith("1 DIFFERENCES")) == (f"changed   {name}", True), reported


def test_a_manifest_that_the_launcher_did_not_find_is_no_way_around_it(tmp_path: Path) -> None:
    surroundings = manifest_verify.Surroundings("3")
    path = tmp_path / "certified.json"
    verify_certified(path, Manifest((), locked=True, surroundings=surroundings))
    path.write_text("{}")
    for found in (None, surroundings):
        with pytest.raises(ManifestError, match=r"certified\.json exists, but the launcher compared with nothing"):
            verify_certified(path, Manifest((), locked=True, surroundings=found))
    surroundings.certified = str(path)
    verify_certified(path, Manifest((), locked=True, surroundings=surroundings))


def test_another_standard_library_is_refused(wheel: Installation, alone: Path, written: Path, tmp_path: Path) -> None:
    """What lies around the interpreter and leads it there, whatever `-I -S` say."""
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    stdlib = Path(os.__file__).parent
    other = tmp_path / "other" / "lib" / stdlib.name
    other.parent.mkdir(parents=True)
    other.symlink_to(stdlib)
    (tmp_path / "other/bin").mkdir()
    settings, leads = here.venv / "pyvenv.cfg", here.venv / "bin/python._pth"
    honest = settings.read_text()
    verify = _verify(alone, written, here)
    assert here.run(verify).returncode == 0
    settings.write_text(f"home = {tmp_path}/other/bin\n")
    reported = f"{settings}: {tmp_path}/other/bin"
    assert f"odd {reported}" in here.refusal()
    assert f"odd       {reported}" in here.run(verify).stdout
    settings.write_text(honest)
    leads.write_text(f"{other}\n{other}/lib-dynload\n")
    assert f"unlisted  {other}: a folder on the path that is not of the standard library" in here.refusal()
    assert f"unlisted  {leads}" in here.run(verify).stdout


def test_a_path_file_is_named_to_who_brings_a_manifest(
    wheel: Installation, alone: Path, written: Path, tmp_path: Path
) -> None:
    """The server does not run it, but every other Python of the environment does. A tool is named as not compared."""
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    _claimed("tool/__init__.py", "zz.pth", "_virtualenv.py", content=b"import os\n")(here.site)
    assert here.refusal() == ""
    verify = _verify(alone, written, here)
    done = here.run(verify)
    assert (done.returncode, done.stdout.splitlines()[:2]) == (1, ["unlisted  _virtualenv.py", "unlisted  zz.pth"])
    assert "not compared: helper==1.0: not locked, and not importable for a server started isolated" in done.stdout
    (tmp_path / "certified.json").write_text(written.read_text())
    done = here.launch("serve", "--home", str(tmp_path))
    assert done.stderr.endswith("2 differences: unlisted _virtualenv.py; unlisted zz.pth\n")
