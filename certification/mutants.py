"""Reads the committed result of mutation testing (`make mutants`) and finds out whether it is about this code.

The result holds the hash of every target and of every file that the tests read. `stale` names each file that has
changed or is missing, and each target that was not run.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

RESULT: Final = "certification/mutants.json"


def read(root: Path) -> dict[str, Any]:
    """Return the result committed below a checkout's root."""
    result: dict[str, Any] = json.loads((root / RESULT).read_text("utf-8"))
    return result


def stale(result: dict[str, Any], root: Path) -> list[str]:
    """Return the files that are not as they were in the run, and targets not run; empty if the result holds here."""
    named = {entry["path"]: entry["sha256"] for entry in (*result["targets"], *result["tests"])}
    changed = [path for path, sha256 in named.items() if not (root / path).is_file() or _sha256(root / path) != sha256]
    return sorted({*changed, *result["not_run"]})


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
