"""The command `rgs`: one module for each command.

A known error becomes one line on stderr: what is wrong, then the stable reason with field, limit and value. Only a bug
shows a traceback. Exit status: 0 success, 1 an error, 2 a command, option or setting that is not understood, 130 an
interrupt. For `reconcile` and `conformance` 2 is a verdict, and every error is 1. For `serve` 1 is an error that may
pass by itself, and 3 one that lasts until somebody changes something.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from rgs import __version__
from rgs.cli import dispute, erase, export, export_books, init, keys, log, migrate, party, receipt, recover, serve
from rgs.cli.options import run_app
from rgs.core.errors import FormatError, InvalidFieldError, RgsError, UnavailableError, UnknownFieldError
from rgs.integrity.isolation import HOPELESS, SurroundingsError
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.node.parts import part
from rgs.node.workers import ServingAlreadyError
from rgs.store.changes import StoreAwayError
from rng import __version__ as rng_version
from rng.errors import RngError, SelfTestError

_FACTS: Final = ("field", "limit", "value")
_LATER: Final = {
    "demo": "Play between misbehaving peers; replay, reconcile and audit it; show what is proved.",
    "play": "Play by hand against a running server, and see every round verified.",
    "call": "Call one method of the server, JSON in and out.",
    "tables": "Configure, open, pause and watch over tables that players share.",
    "simulate": "Run a wallet or a regulator's system that makes the faults of a plan.",
    "witness": "Watch transparency logs and cosign their checkpoints.",
    "conformance": "Check a wallet or a regulator's gateway against the contract.",
}
_RECONCILE: Final = "Compare the record with the operator's wallet and the regulator's book."
_VERDICT_IS_2: Final = (["reconcile"], ["conformance"])
"""Commands whose status 2 is a verdict: open breaks, failed checks."""
_MAY_PASS: Final = (UnavailableError, StoreAwayError, ServingAlreadyError)
"""Errors of `serve` that a later start may not meet, although nobody changed anything."""
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def build_app() -> typer.Typer:
    """The application with all commands. The `obj` of a command's context is the software manifest."""
    app = typer.Typer(
        name="rgs",
        help="A remote game server for casino card games: certifiable chance, signed rounds, offline replay.",
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_top)
    app.command("init", rich_help_panel="Setting up")(init.command)
    app.add_typer(party.app, name="party", rich_help_panel="Setting up")
    app.add_typer(keys.app, name="keys", rich_help_panel="Setting up")
    app.command("migrate", rich_help_panel="Setting up")(migrate.command)
    app.command("erase-player", rich_help_panel="Setting up")(erase.command)
    app.command("recover", rich_help_panel="Setting up")(recover.command)
    app.command("serve", rich_help_panel="Running")(serve.command)
    for name, text in _LATER.items():
        app.command(name, help=text, rich_help_panel="Running", context_settings=_PASSED_ON)(_later(name))
    app.command("export", rich_help_panel="Proving")(export.command)
    app.command("export-wallet", rich_help_panel="Proving")(export_books.wallet_command)
    app.command("export-regulator", rich_help_panel="Proving")(export_books.regulator_command)
    app.command("dispute-export", rich_help_panel="Proving")(dispute.command)
    app.command("receipt", rich_help_panel="Proving")(receipt.command)
    app.command("reconcile", help=_RECONCILE, rich_help_panel="Proving", context_settings=_PASSED_ON)(
        _later("reconcile")
    )
    app.add_typer(log.app, name="log", rich_help_panel="Proving")
    app.command("manifest", rich_help_panel="Proving")(_show_manifest)
    return app


def run(argv: list[str], manifest: Manifest) -> int:
    """Run one command line; returns the exit status. Known errors are printed, bugs are raised."""
    command = typer.main.get_command(build_app())
    try:
        status = command.main(args=argv, prog_name="rgs", standalone_mode=False, obj=manifest)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:  # nobody reads our output any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except typer.Abort:
        return _fail("aborted")
    except typer.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "rgs")
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        return _fail(f"{what} (see `{where} --help`)", 1 if argv[:1] in _VERDICT_IS_2 else error.exit_code)
    except RgsError as error:
        if _is_usage(error) and argv[:1] not in _VERDICT_IS_2:
            return _fail(_describe(error), 2)
        return _fail(_describe(error), _refusal(argv, hopeless=not isinstance(error, _MAY_PASS)))
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
    return HOPELESS if hopeless and argv[:1] == ["serve"] else 1


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


def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version of the software.", is_eager=True)
    ] = False,
) -> int:
    manifest: Manifest = context.obj
    if version:
        print(f"rgs {__version__}, rng {rng_version}, manifest {manifest.sha256}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
    return 0


def _show_manifest(context: typer.Context) -> int:
    """Write the software manifest, whose SHA-256 stands in every `instance_start`."""
    manifest: Manifest = context.obj
    sys.stdout.buffer.write(manifest.content + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _later(name: str) -> Callable[[typer.Context], int]:
    """A command whose module is imported only when it is called; the module's `app` parses the arguments."""

    def command(context: typer.Context) -> int:
        return run_app(part(f"rgs.cli.{name}", f"`rgs {name}`").app, name, context.args)

    return command
