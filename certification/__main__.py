"""`certify COMMAND …`: runs every command that a lab or an auditor uses.

Imports a command's module only when it is called, so the replay needs none of the statistics libraries. Exit 2 for an
unknown command, and for one whose libraries are missing; the message says how to install them. If the reader of the
output stops reading (`certify … | head`), it ends silently with status 141, as after SIGPIPE: that is not a verdict.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "collusion": "what shared cards are worth at boxes, and whether the record shows it (docs/collusion.md)",
    "dispute": "verify and show the file of a complaint",
    "dossier": "run the whole certification and bundle it, signed; or verify such a bundle (docs/dossier.md)",
    "log": "verify a transparency log and all its records (docs/verify.md)",
    "manifest": "hashes of all that is certified; `manifest verify` compares files with them (docs/manifest.md)",
    "monitor": "measured returns of an export or a log against the exact ones (docs/monitoring.md)",
    "omission": "is a signed statement in the log, after the stated delay?",
    "receipt": "verify one statement and its proof, offline",
    "replay": "verify an export of signed statements, from its files alone (docs/verify.md)",
    "rng": "statistics of the shuffle, the raw output, or the transcripts of an export (docs/statistics.md)",
    "rtp": "exact return of a ruleset by complete enumeration (docs/returns.md)",
    "schemas": "write the JSON Schemas of all statements into a directory",
    "simulate": "rounds through the production code against the exact figures",
    "sp800-22": "the fifteen tests of NIST SP 800-22 on the bits of a file (docs/statistics.md)",
    "strategy": "best play of a ruleset: the grid of holes, exact values for given cards",
    "vectors": "settle recorded rounds by a ruleset and compare every field",
}
"""A command is the `main(argv)` of the module of its name, or of its home, below; it returns the exit status."""

HOMES: Final[Mapping[str, str]] = {
    "collusion": "collusion.command",
    "dossier": "dossier.command",
    "rtp": "rtp.command",
    "rng": "statistics.battery.command",
    "sp800-22": "statistics.sp800_22.command",
}


EXTRA: Final = frozenset({"matplotlib", "numba", "numpy", "scipy"})
"""The libraries of the extra `certify` (pyproject.toml), which replay, log and receipts do without."""
_UNREAD: Final = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="certify",
        description="Certification and audit of the remote game server.",
        epilog="\n".join(f"  {name:<10} {what}" for name, what in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=sorted(COMMANDS), metavar="COMMAND", help="one of those below")
    command: str = parser.parse_args(arguments[:1]).command
    try:
        home = importlib.import_module(f"certification.{HOMES.get(command, command)}")
        status: int = home.main(arguments[1:])
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        sys.stderr.write(
            f"certify {command} needs {missing}, which is not installed: run `make setup` in a checkout; of a wheel"
            " of ours install the extra `certify`: `pip install 'WHEEL[certify]'`\n"
        )
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere, at the exit too
        return _UNREAD
    return status


if __name__ == "__main__":
    sys.exit(main())
