"""The command `rgs`: hashes the software first, then runs the command line (ARCHITECTURE 2.13: the statement of a start
names that hash).

Imports the standard library and `rgs.integrity` only, so that nothing that is measured has run before. `rgs serve` and
`rgs generator` begin themselves again, isolated (`rgs.integrity.launcher`). Exit 0 is success, 1 a refusal (3 of these
two), 2 usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rgs.integrity.isolation import HOPELESS, KEPT, SurroundingsError, become_isolated, is_isolated
from rgs.integrity.launcher import run_measured


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `rgs`; the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if argv is None and arguments[:1] in KEPT and "--help" not in arguments and not is_isolated():
        try:
            become_isolated(arguments)
        except SurroundingsError as error:
            print(f"rgs: {error}", file=sys.stderr)
            return HOPELESS
    return run_measured(arguments, HOPELESS if arguments[:1] in KEPT else 1)


if __name__ == "__main__":
    sys.exit(main())
