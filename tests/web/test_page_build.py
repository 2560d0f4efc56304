"""`tools/build_page.sh` builds the page where the machine has no Node, or no npm: Node comes as a wheel then."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = Path("examples/operator/page")
BUILT: Final = ("node_modules", "dist", "build")
OF_NODE: Final = ("node", "nodejs", "npm", "npx", "corepack")
UNREACHABLE: Final = ("page: the locked packages could not be installed", "npm error code ENOTFOUND", "EAI_AGAIN")
WRONG_HASH: Final = ("DO NOT MATCH THE HASHES", "EINTEGRITY")
BUILD_S: Final = 380


def path_without_node(folder: Path) -> Path:
    """A folder with every program of this machine, Node and what belongs to it left out."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if program.name not in OF_NODE and not link.is_symlink():
                link.symlink_to(program)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the build reads, in a folder with a space in its name, and the environment of `make setup-runtime`."""
    root = tmp_path / "a tree"
    shutil.copytree(ROOT / PAGE, root / PAGE, ignore=shutil.ignore_patterns(*BUILT))
    shutil.copytree(ROOT / "sdk/typescript/verifier/src", root / "sdk/typescript/verifier/src")
    (root / "tools").mkdir()
    shutil.copy(ROOT / "tools/build_page.sh", root / "tools")
    (root / ".venv").symlink_to(ROOT / ".venv")
    return root


@pytest.mark.parametrize("has_node", [False, True], ids=["without Node", "with a Node that has no npm"])
def test_the_page_is_built_with_node_of_the_wheel(has_node: bool, tree: Path, tmp_path: Path) -> None:
    programs = path_without_node(tmp_path / "programs")
    assert shutil.which("npm", path=str(programs)) is None
    if has_node:
        node = programs / "node"
        node.write_text("#!/bin/sh\nexit 0\n", "ascii")  # to whoever asks for its version, new enough
        node.chmod(0o755)
    command = ["sh", "tools/build_page.sh"]
    environment = {**os.environ, "PATH": str(programs)}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=BUILD_S
    )
    said = done.stdout + done.stderr
    if any(one in said for one in UNREACHABLE) and not any(one in said for one in WRONG_HASH):
        pytest.skip("Node: no registry is reachable from here, so nothing can be built without this machine's Node")
    assert done.returncode == 0, said
    assert (tree / PAGE / "dist/index.html").is_file()
    assert "Verify a round" in (tree / PAGE / "dist/verify.html").read_text("utf-8")
    again = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert again.stdout + again.stderr == "", "what is up to date is not built again"
