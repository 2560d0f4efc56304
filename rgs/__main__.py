"""The launcher: hashes the software first, then hands over to the command line (ARCHITECTURE 2.13).

Imports the standard library and `rgs.manifest` only, so that what is measured has not run yet; from then on the
measured packages are compiled from the measured bytes. Refuses to go on with software that it cannot measure. Exit 0 is
success, 1 a refusal, 2 usage.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from rgs.manifest import ManifestError, guard_imports, make_manifest


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `rgs`; the exit status."""
    try:
        manifest = make_manifest()
    except ManifestError as error:
        print(f"rgs: the software cannot be measured: {error}", file=sys.stderr)
        return 1
    guard_imports(manifest)
    status: int = importlib.import_module("rgs.cli").run(sys.argv[1:] if argv is None else list(argv), manifest)
    return status


if __name__ == "__main__":
    sys.exit(main())
