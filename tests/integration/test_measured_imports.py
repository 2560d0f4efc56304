"""What an isolated process imports is what the launcher measured: nothing unlisted, nothing changed since."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from rgs.integrity.isolation import FLAGS
from tests.support.process.installed import Installation

FOOLED = b"import os\nos._exit(66)\n"
OBJECT = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu.so"


IMPORTS = """
import sys
sys.path[:0] = [{root!r}]
from rgs.integrity import isolation, launcher
del sys.path[0]
for name in [name for name in sys.modules if name.split(".")[0] in ("rgs", "certification", "rng")]:
    del sys.modules[name]
sys.path[:] = isolation.standard_library()
for name in launcher.TOOLS:
    launcher.run_tool(name)
found = isolation.measure_surroundings()
launcher.verify_tools(found)
{between}
isolation.import_measured(found)
import importlib
for name in {names}:
    try:
        print(name, getattr(importlib.import_module(name), "__file__", "no file"))
    except ImportError as error:
        print(name, "is not imported:", error)
"""


def _imported(here: Installation, names: list[str], between: str = "") -> dict[str, str]:
    """Where modules come from after the launcher has measured; `between` is done between measuring and importing."""
    code = IMPORTS.format(root=str(here.root), names=names, between=between)
    done = here.run([here.python, *FLAGS, "-c", code])
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
def test_what_is_in_no_listing_is_not_imported_wherever_it_lies(sources: Installation) -> None:
    """A developer's tools and own files keep no server from starting, and none of them can be imported by it."""
    planted = [sources.root / "no_library/__init__.py", sources.root / "scratch.py", sources.site / "tool/__init__.py"]
    info = sources.site / "tool-1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("tool/__init__.py,,\n")
    (info / "entry_points.txt").write_text("[pydantic]\ntool = tool\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
    try:
        for file in planted:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(FOOLED)
        assert sources.refusal() == ""
        names = [
            "no_library",
            "scratch",
            "tool",
            "tests",
            "rng",
            "rgs.core",
            "certification",
            "structlog",
            "google.rpc",
        ]
        describe = (
            "from importlib import metadata; print('described', *sorted(d.name for d in metadata.distributions()))"
        )
        result = _imported(
            sources, [*names, "json", "_json"], f"import atexit; atexit.register(lambda: exec({describe!r}))"
        )
    finally:
        for path in (sources.root / "no_library", sources.site / "tool", info):
            shutil.rmtree(path)
        (sources.root / "scratch.py").unlink()
    for name in ("no_library", "scratch", "tool", "tests"):
        assert result[name] == f"is not imported: No module named '{name}'"
    assert result["rng"] == str(sources.root / "rng/__init__.py")
    assert result["certification"] == str(sources.root / "certification/__init__.py")
    assert result["structlog"] == str(sources.site / "structlog/__init__.py")
    assert result["google.rpc"] == "None"
    assert result["json"] == str(Path(os.__file__).parent / "json/__init__.py")
    assert "structlog" in result["described"]
    assert "tool" not in result["described"].split()


@pytest.mark.skipif(sys.platform != "linux", reason="sealed copies in memory")
def test_what_changes_between_hashing_and_importing_is_not_run(sources: Installation) -> None:
    """Source, data and shared objects, ours and of libraries."""
    names = {
        "rng.drbg": "rng/drbg.py",
        "rgs.node.clock": "rgs/node/clock.py",
        "structlog._base": "structlog/_base.py",
        "_cffi_backend": f"_cffi_backend.{OBJECT}",
    }
    files = {name: sources.root / path if name.startswith("r") else sources.site / path for name, path in names.items()}
    data = sources.root / "rgs/core/jurisdiction_data/demo.toml"
    saved = {path: (path.is_symlink(), os.path.realpath(path), path.read_bytes()) for path in (*files.values(), data)}
    change = "\n".join(
        f"import os; content = open({str(path)!r}, 'rb').read(); os.unlink({str(path)!r})\n"
        f"open({str(path)!r}, 'wb').write(content + b'\\n')"
        for path in saved
    )
    late = sources.root / "rgs/core/jurisdiction_data/late.toml"
    change += f"\nopen({str(late)!r}, 'wb').write(b'')"
    reads = """
import atexit
def read():
    from importlib import resources
    for name in ("demo.toml", "late.toml", "it-adm.toml"):
        try:
            print(name, len((resources.files("rgs.core") / "jurisdiction_data" / name).read_text(encoding="utf-8")))
        except OSError as error:
            print(name, error.strerror)
atexit.register(read)
"""
    try:
        result = _imported(sources, [*names, "rng.scaling", "uvloop.loop"], change + reads)
    finally:
        late.unlink()
        for path, (is_link, target, content) in saved.items():
            path.unlink()
            path.symlink_to(target) if is_link else path.write_bytes(content)
    for name in names:
        assert result[name] == f"is not imported: {name}: has changed since it was hashed"
    assert result["rng.scaling"] == str(sources.root / "rng/scaling.py")
    assert result["uvloop.loop"] == str(sources.site / f"uvloop/loop.{OBJECT}")
    assert result["demo.toml"] == "has changed since it was hashed"
    assert result["late.toml"] == "is not listed"
    assert int(result["it-adm.toml"]) > 100


def test_time_zones_are_compared_as_they_are_read(sources: Installation) -> None:
    zone = sources.site / "tzdata/zoneinfo/Europe/Rome"
    saved = (zone.is_symlink(), os.path.realpath(zone), zone.read_bytes())
    change = f"""
import atexit, os
os.unlink({str(zone)!r})
open({str(zone)!r}, "wb").write({saved[2]!r} + b"x")
def look():
    from rgs.core.tables.hours import load_zone
    for name in ("Europe/Rome", "Europe/Zurich"):
        try:
            print(name, load_zone(name).key)
        except OSError as error:
            print(name, error.strerror)
atexit.register(look)
"""
    try:
        result = _imported(sources, ["zoneinfo", "rgs.core.tables.hours"], change)
    finally:
        zone.unlink()
        zone.symlink_to(saved[1]) if saved[0] else zone.write_bytes(saved[2])
    assert result["rgs.core.tables.hours"] == str(sources.root / "rgs/core/tables/hours.py")
    assert result["Europe/Rome"] == "has changed since it was hashed"
    assert result["Europe/Zurich"] == "Europe/Zurich"


@pytest.mark.skipif(sys.platform != "linux", reason="sealed copies in memory")
def test_a_library_in_memory_is_not_changed_by_its_file(sources: Installation) -> None:
    """What is mapped is a copy that the kernel lets nobody write to, under no path of the disk."""
    code = """
import fcntl, os
def look():
    maps = open("/proc/self/maps").read()
    print("mapped", "/memfd:uvloop.loop" in maps, "site-packages" in maps)
    from rgs.integrity import imports
    refused = 0
    for copy in imports._COPIES:
        try:
            os.pwrite(copy, b"x", 0)
        except PermissionError:
            refused += 1
    print("copies", refused == len(imports._COPIES) > 0)
import atexit
atexit.register(look)
"""
    result = _imported(sources, ["uvloop.loop"], code)
    assert result["mapped"] == "True False"
    assert result["copies"] == "True"
