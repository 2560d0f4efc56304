"""`tools/set_up.sh`: serving installs what it needs, tests add the rest, nothing is done twice.

The script runs whole, in a folder of its own; the Python that it finds there is a program that writes down what it is
asked for and installs nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("runtime", "build", "dev")
SERVING = ["requirements/runtime.txt", "requirements/build.txt"]
BY_HASH = ["--require-hashes", "--only-binary", ":all:"]
SERVES = ("demo", "run", "sandbox", "play")
FAKE = """#!/bin/sh
# A Python that is new enough. Environments that it makes have it for their Python; pip is written down.
case "$*" in
    "-m venv "*)
        mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "venv $0" >>requested ;;
    "-m pip install "*)
        echo "$*" >>requested
        if [ -e refused ] && case "$*" in *dev.txt*) true ;; *) false ;; esac; then exit 1; fi ;;
    "tools/protos.py "*) echo "$*" >>requested ;;
    -VV) echo "Python 3.13.0 (of a test)" ;;
    -V) echo "Python 3.13.0" ;;
esac
"""


class Place:
    """A folder with all that the script reads."""

    def __init__(self, root: Path) -> None:
        self.python = root / "python"
        self.python.write_text(FAKE, "utf-8")
        self.python.chmod(0o755)
        self.root = root = root / "a place"
        for name in ("tools/set_up.sh", "pyproject.toml", *(f"requirements/{lock}.txt" for lock in LOCKS)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)

    def set_up(self, *arguments: str) -> tuple[int, list[list[str]], str]:
        """One run: exit status, what Python was asked for, what people were told."""
        requested = self.root / "requested"
        requested.unlink(missing_ok=True)
        environment = {**os.environ, "PYTHON": str(self.python)}
        command = ["sh", "tools/set_up.sh", *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        lines = requested.read_text("utf-8").splitlines() if requested.exists() else []
        return done.returncode, [line.split() for line in lines], done.stderr

    def change(self, name: str) -> None:
        with (self.root / name).open("a", encoding="utf-8") as file:
            file.write("# moved\n")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def locks(requested: list[list[str]]) -> list[list[str]]:
    """For each installation from locks, which they were."""
    found = [[after for word, after in pairwise(line) if word == "-r"] for line in requested]
    return [names for names in found if names]


def editable(requested: list[list[str]]) -> int:
    return sum("-e" in line for line in requested)


def test_serving_installs_its_own_lock_by_hash_and_nothing_else(place: Place) -> None:
    status, requested, result = place.set_up("runtime")
    assert status == 0, result
    assert locks(requested) == [SERVING]
    for line in requested:
        if "-r" in line:
            assert [word for word in line if word in BY_HASH] == BY_HASH
    assert editable(requested) == 1
    assert not any("tools/protos.py" in line for line in requested)  # its imports are of dev.txt
    assert re.search(r"^set-up: done in \d+ s$", result, re.MULTILINE), result


def test_a_second_run_does_nothing_and_says_nothing(place: Place) -> None:
    for set_ in ("runtime", "dev"):
        place.set_up(set_)
        assert place.set_up(set_) == (0, [], "")


def test_tests_add_to_what_serving_installed(place: Place) -> None:
    place.set_up("runtime")
    status, requested, result = place.set_up("dev")
    assert status == 0, result
    assert "venv" not in [line[0] for line in requested]
    assert locks(requested) == [["requirements/dev.txt"]]
    assert editable(requested) == 0  # it is there
    assert ["tools/protos.py", "third-party", ".venv/protos"] in requested
    assert place.set_up("runtime") == (0, [], "")


def test_serving_changes_nothing_where_everything_is_installed(place: Place) -> None:
    _, requested, _ = place.set_up()  # without a word: everything
    assert locks(requested) == [["requirements/dev.txt"]]
    assert editable(requested) == 1
    assert place.set_up("runtime") == (0, [], "")
    assert place.set_up("dev") == (0, [], "")


def test_a_lock_that_moved_is_installed_by_those_who_need_it(place: Place) -> None:
    place.set_up("dev")
    place.change("requirements/dev.txt")
    assert place.set_up("runtime") == (0, [], "")
    assert locks(place.set_up("dev")[1]) == [["requirements/dev.txt"]]
    for name in ("requirements/runtime.txt", "pyproject.toml"):
        place.change(name)
        _, requested, _ = place.set_up("runtime")
        assert (locks(requested), editable(requested)) == ([SERVING], 1), name
        assert locks(place.set_up("dev")[1]) == [["requirements/dev.txt"]], name


def test_everything_is_stale_when_serving_moved_and_moved_back(place: Place) -> None:
    """The packages of serving were other ones in between: nobody may take the stamp of before for true."""
    place.set_up("dev")
    before = (place.root / "requirements/runtime.txt").read_bytes()
    place.change("requirements/runtime.txt")
    place.set_up("runtime")
    (place.root / "requirements/runtime.txt").write_bytes(before)
    assert locks(place.set_up("dev")[1]) == [["requirements/dev.txt"]]


def test_a_failure_to_add_is_told_and_leaves_serving_set_up(place: Place) -> None:
    place.set_up("runtime")
    (place.root / "refused").touch()
    status, _, result = place.set_up("dev")
    assert status == 1
    assert "the locked packages could not be installed" in result
    assert "requirements/dev.txt" in result
    assert place.set_up("runtime") == (0, [], "")
    (place.root / "refused").unlink()
    assert locks(place.set_up("dev")[1]) == [["requirements/dev.txt"]]


def test_a_folder_that_was_moved_gets_an_environment_anew(place: Place) -> None:
    place.set_up("runtime")
    place.root = place.root.rename(place.root.with_name("another place"))
    _, requested, _ = place.set_up("dev")
    assert (requested[0][0], locks(requested), editable(requested)) == ("venv", [["requirements/dev.txt"]], 1)


def test_another_word_is_refused_with_those_that_there_are(place: Place) -> None:
    status, requested, result = place.set_up("laboratory")
    assert (status, requested) == (2, [])
    assert "'laboratory'" in result
    assert "runtime or dev" in result


@pytest.mark.parametrize("target", [*SERVES, "setup", "test", "check", "bench", "certify", "mutants", "wheel"])
def test_each_target_sets_up_what_it_needs(target: str) -> None:
    done = subprocess.run(
        ["/usr/bin/env", "make", "-n", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    needed = re.findall(r"sh tools/set_up\.sh (\w+)", done.stdout)
    assert set(needed) == {"runtime" if target in SERVES else "dev"}


def names(file: str) -> set[str]:
    """Each `package==version` that a lock file pins, without extras."""
    text = (ROOT / "requirements" / file).read_text("utf-8")
    return {name + pin for name, pin in re.findall(r"^([a-z0-9-]+)(?:\[[a-z0-9,-]+\])?(==[\w.]+)", text, re.MULTILINE)}


def test_what_is_installed_first_is_a_part_of_everything() -> None:
    """What tests add never takes away, or changes, what serving has."""
    assert names("runtime.txt") | names("build.txt") <= names("dev.txt")
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert set(backend) <= {pin.partition("==")[0] for pin in names("build.txt")}


EVERY_MODULE = """
import importlib, importlib.util, pkgutil, sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
import rgs, rng
for package in (rgs, rng):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print(len(sys.modules))
"""


def test_no_module_of_the_server_needs_what_tests_add() -> None:
    serving = {pin.partition("==")[0] for pin in names("runtime.txt")} | {"rgs"}
    modules = {
        module
        for module, distributions in metadata.packages_distributions().items()
        if module.isidentifier() and not {re.sub(r"[-_.]+", "-", name).lower() for name in distributions} & serving
    }
    assert {"numpy", "numba", "scipy", "matplotlib", "pytest", "hypothesis", "jsonschema"} <= modules
    assert not modules & {"rgs", "rng", "grpc", "google", "certification"}
    command = [sys.executable, "-c", EVERY_MODULE, ",".join(sorted(modules))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200
