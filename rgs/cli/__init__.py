"""The command `rgs`: one module for each command. `serve` and `generator` are read without typer, which costs more than
their options.

A known error becomes one line on stderr: what is wrong, then the stable reason with field, limit and value. Only a bug
shows a traceback. Exit status: 0 success, 1 an error, 2 a command, option or setting that is not understood, 130 an
interrupt. For `reconcile` and `conformance` 2 is a verdict, and every error is 1. For these two 1 is an error that may
pass by itself, and 3 one that lasts until somebody changes something.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

from rgs.cli.commands import NotUnderstoodError
from rgs.core.errors import FormatError, InvalidFieldError, RgsError, UnavailableError, UnknownFieldError
from rgs.integrity.isolation import HOPELESS, KEPT, SurroundingsError
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.node.parts import part
from rng.errors import RngError, SelfTestError

_FACTS: Final = ("field", "limit", "value")
_VERDICT_IS_2: Final = (["reconcile"], ["conformance"])
"""Commands whose status 2 is a verdict: open breaks, failed checks."""


def run(argv: list[str], manifest: Manifest) -> int:
    """Run one command line; returns the exit status. Known errors are printed, bugs are raised."""
    try:
        reader, arguments = (argv[0], argv[1:]) if argv[:1] in KEPT else ("app", argv)
        command = part(f"rgs.cli.{reader}", "command line").command
        if not gc.isenabled():  # the launcher has imported without it; what was imported stays
            gc.freeze()
            gc.enable()
        status = command(arguments, manifest)
        sys.stdout.flush()
        return int(status)
    except BrokenPipeError:  # nobody reads our output any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except NotUnderstoodError as error:
        return _fail(str(error), 1 if argv[:1] in _VERDICT_IS_2 else error.status)
    except RgsError as error:
        if _is_usage(error) and argv[:1] not in _VERDICT_IS_2:
            return _fail(_describe(error), 2)
        hopeless = argv[:1] in KEPT and not _may_pass(error)
        return _fail(_describe(error), _refusal(argv, hopeless=hopeless))
    except RngError as error:
        hopeless = isinstance(error, SelfTestError)
        return _fail(f"{error.detail} [{error.reason}]", _refusal(argv, hopeless=hopeless))
    except (ManifestError, SurroundingsError) as error:
        return _fail(str(error), _refusal(argv, hopeless=True))
    except OSError as error:
        return _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except Exception as error:
        # Compared by name: the drivers are imported in rgs.store only.
        if type(error).__module__.partition(".")[0] not in {"sqlite3", "asyncpg"}:
            raise
        return _fail(f"the store cannot be used: {error} [{UnavailableError.reason}]")


def _refusal(argv: list[str], *, hopeless: bool) -> int:
    return HOPELESS if hopeless and argv[:1] in KEPT else 1


def _may_pass(error: RgsError) -> bool:
    """Whether a later start of a server may not meet the error, although nobody changed anything."""
    from rgs.node.workers import ServingAlreadyError  # noqa: PLC0415 - loaded with a server, and by nothing lighter
    from rgs.store.changes import StoreAwayError  # noqa: PLC0415

    return isinstance(error, UnavailableError | StoreAwayError | ServingAlreadyError)


def _is_usage(error: RgsError) -> bool:
    """Whether the error is about an option, an argument or a setting."""
    return isinstance(error, InvalidFieldError | UnknownFieldError | FormatError) and error.field is not None


def _describe(error: RgsError) -> str:
    known = {"field": error.field, **error.metadata}
    facts = [f"{name}={known[name]}" for name in _FACTS if known.get(name) is not None]
    return f"{error.message} [{' '.join([error.reason, *facts])}]"


def _fail(text: str, status: int = 1) -> int:
    print("rgs:", " ".join(text.split()), file=sys.stderr)
    return status
