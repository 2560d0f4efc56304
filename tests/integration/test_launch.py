"""The isolated start: what is planted around the server is refused by name, or has no effect."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs import launch
from tests.installed import ROOT, Installation, checkout, installed, replace

FOOLED = b"import sys\nsys.stderr.write('FOOLED\\n')\nsys.stderr.flush()\nimport os\nos._exit(66)\n"
OBJECT = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu.so"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installed(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return checkout(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("kind", ["wheel", "sources"])
def test_an_honest_installation_is_served(kind: str, request: pytest.FixtureRequest) -> None:
    here: Installation = request.getfixturevalue(kind)
    assert here.refusal() == ""
    done = here.run([here.python, "-m", "rgs", "serve", "--home", "none"], cwd=here.root)
    assert "none is no home of a node" in done.stderr, "as a person starts it"


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
    "a byte of the server": (_change("rgs/server.py"), "changed rgs/server.py"),
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
        # Each start looks at everything, and tells of all that it finds; each one alone is left to `make exhaustive`.
        pytest.param(TOGETHER[::2], id="every other"),
        pytest.param(TOGETHER[1::2], id="the others"),
        *(pytest.param([name], id=name) for name in STOPS),
        *(pytest.param([name], id=name, marks=pytest.mark.slow_exhaustive) for name in TOGETHER),
    ],
)
def test_what_is_planted_is_refused_by_name(names: list[str], wheel: Installation, tmp_path: Path) -> None:
    here = Installation(tmp_path / "venv" / wheel.site.relative_to(wheel.venv), tmp_path / "venv")
    shutil.copytree(wheel.venv, here.venv, symlinks=True)
    for name in names:
        plant, _ = PLANTED[name]
        plant(here.site)
    refusal = here.refusal()
    assert [name for name in names if PLANTED[name][1] not in refusal] == [], refusal
    assert "FOOLED" not in refusal


def test_what_shadows_a_library_in_a_checkout_is_refused(sources: Installation) -> None:
    for name in ("structlog.py", "zz.pth", f"rgs/core/hands.{OBJECT}"):
        (sources.root / name).write_bytes(FOOLED)
        try:
            assert sources.refusal() == f"unlisted {name}"
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
    told = f"rgs: {name} would load code that nobody has certified: unset it"
    for command in (sources.command("serve"), [sources.python, "-m", "rgs", "serve"]):  # before it begins itself again
        done = sources.run(command, cwd=sources.root, **{name: str(tmp_path)})
        assert (done.returncode, done.stderr.splitlines()[-1]) == (1, told)  # the linker may have said something, too


def test_an_empty_variable_loads_nothing() -> None:
    launch.verify_environment({"LD_PRELOAD": "", "PATH": "/bin"})


# --- without effect --------------------------------------------------------------------------------------------------


def test_rigged_bytecode_is_not_what_runs(wheel: Installation) -> None:
    """Bytecode that Python would run without a look at the source, for a file of ours and for one of a library."""
    source = wheel.venv / "fooled.py"
    source.write_bytes(FOOLED)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    planted = []
    try:
        for name in ("typer/main.py", "rgs/config.py", "rgs/__init__.py"):  # each is read before the one before it
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


def test_what_is_said_to_python_is_not_heard(sources: Installation, tmp_path: Path) -> None:
    for name in ("structlog.py", "sitecustomize.py", "hashlib.py", "rgs.py"):
        (tmp_path / name).write_bytes(FOOLED)
    loud = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "structlog.py")}
    assert sources.refusal(**loud, PYTHONOPTIMIZE="2", PYTHONPYCACHEPREFIX=str(tmp_path)) == ""
    assert launch.unheard({**loud, "HOME": "/", "PYTHONX": ""}) == {"HOME": "/"}, "nor handed on"
    (sources.venv / "structlog.py").write_bytes(FOOLED)
    try:
        assert sources.refusal() == "", "nor is the folder that it is started in"
    finally:
        (sources.venv / "structlog.py").unlink()


def test_a_process_is_isolated_by_all_of_it_or_not_at_all() -> None:
    code = f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\nfrom rgs import launch\nprint(launch.is_isolated())"

    def told(flags: list[str]) -> str:
        done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    flags = list(launch.FLAGS)
    assert told(flags) == "True"
    for without in ("-I", "-S", "-B"):
        assert told([flag for flag in flags if flag != without]) == "False", without
    assert told(flags[:3]) == "False"
    assert launch.isolated_command("serve") == [sys.executable, *flags, str(ROOT / "rgs" / "launch.py"), "serve"]


def test_a_python_without_a_program_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(launch.SurroundingsError, match="does not know its own program"):
        launch.isolated_command("serve")


def test_an_archive_before_the_standard_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = tmp_path / "python311.zip"
    archive.write_bytes(b"")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    with pytest.raises(launch.SurroundingsError, match=r"unlisted  .*python311\.zip"):
        launch.search_path()


def test_the_path_is_standard_library_and_packages_and_what_lies_beside_ours_is_not_found(
    sources: Installation,
) -> None:
    code = f"import sys\nsys.path[:0] = [{str(sources.root)!r}]\nfrom rgs import launch\ndel sys.path[0]\n"
    done = sources.run([sources.python, *launch.FLAGS, "-c", f"{code}print(*launch.search_path(), sep='\\n')"])
    path = done.stdout.splitlines()
    assert path[-1] == str(sources.site)
    assert str(sources.root) not in path
    assert path[0] == str(Path(os.__file__).parent)
    # Somebody's own script and folder do not keep a server from starting; and no optional import comes to them.
    (sources.root / "no_library").mkdir()
    planted = [sources.root / "no_library" / "__init__.py", sources.root / "scratch.py"]
    try:
        for file in planted:
            file.write_bytes(FOOLED)
        assert sources.refusal() == ""
        code += "sys.path[:] = launch.search_path()\nsys.meta_path.insert(0, launch.OwnPackages)\n"
        code += "from importlib.util import find_spec\n"
        names = ("no_library", "scratch", "tests", "rng", "rgs", "certification", "structlog")
        code += f"print(*[name for name in {names} if find_spec(name)])"
        done = sources.run([sources.python, *launch.FLAGS, "-c", code])
        assert done.stdout == "rng rgs certification structlog\n", done.stderr
    finally:
        shutil.rmtree(sources.root / "no_library")
        (sources.root / "scratch.py").unlink()
