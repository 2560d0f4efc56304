"""`rng selftest | kat | export`: what a test lab runs on the certified unit. Exit 0 is success, 1 failure, 2 usage."""

import argparse
import os
import sys
from collections.abc import Sequence

from rng import __version__, selftest
from rng.errors import RngError
from rng.export import export
from rng.kat import run_files


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _discard_stdout()
        # The reader of an export took what it wanted; a verdict that nobody read is no success.
        return 0 if arguments.command == "export" else 1
    except (RngError, OSError) as error:
        print(f"rng: {error}", file=sys.stderr)
        _discard_stdout()
        return 1


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "kat":
        return run_files(arguments.files, sys.stdout, sys.stderr)
    if arguments.command == "selftest":
        for name in selftest.run():
            print(f"passed  {name}")
        return 0
    text = arguments.format == "text" or (arguments.format is None and arguments.what != "raw")
    export(arguments.what, arguments.count, text=text, out=sys.stdout.buffer, progress=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rng", description="The certified random number generator.")
    parser.add_argument("--version", action="version", version=f"rng {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest", help="run the power-up self-test")
    kat = commands.add_parser("kat", help="run files of Hash_DRBG known answers")
    kat.add_argument("files", nargs="+", metavar="FILE")
    collect = commands.add_parser("export", help="write output for a test lab to stdout")
    collect.add_argument("--what", required=True, choices=("raw", "draws", "deals"))
    collect.add_argument("--count", required=True, type=_count, help="bytes (raw), draws or deals")
    collect.add_argument("--format", choices=("binary", "text"), help="default: binary for raw, else text")
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return count


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's flush at exit cannot fail a second time."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
