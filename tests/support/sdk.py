"""Packages of `sdk/typescript` as `make sdk` has built them, and Node, which runs their tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "sdk" / "typescript"
NODE_FIRST = 18
RUN_S = 120


def missing(package: str, built: str) -> str:
    """Why the package cannot be run here; empty if it can. `built` is a file that its build writes."""
    node = shutil.which("node")
    if node is None:
        return f"skipped, there is no Node here (from version {NODE_FIRST} on)"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=RUN_S).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) < NODE_FIRST:
        return f"skipped, Node is {version.strip()}, and version {NODE_FIRST} is needed"
    if not (PACKAGES / package / built).is_file():
        return "skipped, sdk/typescript is not built (make sdk)"
    return ""


def run_node(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Node in a folder, and return what it wrote."""
    return subprocess.run(
        [shutil.which("node") or "node", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_S,
    )
