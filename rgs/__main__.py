"""The launcher: hashes the software first, then hands over to the command line (ARCHITECTURE 2.13).

Imports the standard library and `rgs.manifest` only, so that what is measured has not run yet; from then on the
measured packages are compiled from the measured bytes. A server begins itself again, isolated (`rgs.launch`). Refuses
to go on with software that it cannot measure. Exit 0 is success, 1 a refusal (3 of a server), 2 usage.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rgs.launch import HOPELESS, SurroundingsError, become_isolated, is_isolated
from rgs.manifest import ManifestError, guard_imports, make_manifest

if TYPE_CHECKING:
    from certification.manifest_verify import Surroundings


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `rgs`; the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if argv is None and arguments[:1] == ["serve"] and "--help" not in arguments and not is_isolated():
        try:
            become_isolated(arguments)
        except SurroundingsError as error:
            print(f"rgs: {error}", file=sys.stderr)
            return HOPELESS
    return run_measured(arguments)


def run_measured(arguments: list[str], surroundings: Surroundings | None = None) -> int:
    """Hash, guard, run; the exit status. `surroundings` is what the launcher has measured around this process."""
    try:
        manifest = replace(make_manifest(), surroundings=surroundings)
    except ManifestError as error:
        print(f"rgs: the software cannot be measured: {error}", file=sys.stderr)
        return HOPELESS if arguments[:1] == ["serve"] else 1
    for entry in manifest.entries:
        if surroundings is not None and surroundings.server.get(entry.path) != entry.sha256:
            print(f"rgs: {entry.path} has changed since the launcher hashed it", file=sys.stderr)
            return HOPELESS if arguments[:1] == ["serve"] else 1
    guard_imports(manifest)
    status: int = importlib.import_module("rgs.cli").run(arguments, manifest)
    return status


if __name__ == "__main__":
    sys.exit(main())
