"""The command line on measured software: hashed first, then run from the hashed bytes (ARCHITECTURE 2.13).

The last step of both ways in, `rgs` (`rgs.__main__`) and the isolated start of a server (`rgs.integrity.launcher`), and
therefore a file of its own that imports neither. Imports the standard library and `rgs.integrity.manifest` only, so
that what is measured has not run yet; from then on the measured packages are compiled from the measured bytes. Refuses
to go on with software that it cannot measure.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from rgs.integrity.manifest import ManifestError, guard_imports, make_manifest

if TYPE_CHECKING:
    from rgs.integrity.manifest_verify import Surroundings


def run_measured(arguments: list[str], refused: int, surroundings: Surroundings | None = None) -> int:
    """Hash, guard, run; the exit status, `refused` where the software cannot be measured. `surroundings` is what the
    launcher has measured around this process.
    """
    try:
        manifest = replace(make_manifest(), surroundings=surroundings)
    except ManifestError as error:
        sys.stderr.write(f"rgs: the software cannot be measured: {error}\n")
        return refused
    for entry in manifest.entries:
        if surroundings is not None and surroundings.server.get(entry.path) != entry.sha256:
            sys.stderr.write(f"rgs: {entry.path} has changed since the launcher hashed it\n")
            return refused
    guard_imports(manifest)
    status: int = importlib.import_module("rgs.cli").run(arguments, manifest)
    return status
