"""The command line of the house: `rgs init | party | keys | migrate | erase-player | recover | serve | demo | play |
call | simulate | conformance | witness | reconcile | export | receipt | dispute-export | log | manifest`.

Every error that the house knows ends in one line on stderr: what is wrong, then the stable reason with field, limit and
value. Exit 0 is success, 1 a refusal, 2 a command, option or setting that is not understood, 130 an interrupt; for
`reconcile` and `conformance` 2 is a verdict, and 1 all else. `serve` has 1 for what may pass and 3 for what will not
until a person changes something. Refuses to show a traceback for what is not a bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from rgs import __version__
from rgs.cli import dispute, erase, export, export_books, init, keys, log, migrate, party, receipt, recover, serve
from rgs.core.errors import FormatError, InvalidFieldError, RgsError, UnavailableError, UnknownFieldError
from rgs.integrity.isolation import HOPELESS, SurroundingsError
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.node.parts import part
from rgs.node.workers import ServingAlreadyError
from rgs.store.changes import StoreAwayError
from rng import __version__ as rng_version
from rng.errors import RngError, SelfTestError

_TOLD: Final = ("field", "limit", "value")
_LATER: Final = {
    "demo": "Play between misbehaving peers; replay, reconcile and audit it; show what is proved.",
    "play": "Play by hand against a running server, and see every round verified.",
    "call": "Call one method of the server, JSON in and out.",
    "simulate": "A wallet or central system that misbehaves as it is told.",
    "witness": "Watch a transparency log and cosign its checkpoints: for those who do not trust it.",
    "conformance": "Check a wallet or a regulator's gateway against the contract.",
}
_VERDICT_IS_2: Final = (["reconcile"], ["conformance"])
"""Where 2 says what was found: open breaks, failed checks."""
_MAY_PASS: Final = (UnavailableError, StoreAwayError, ServingAlreadyError)
"""What may be otherwise at the next start of a server, without anybody's doing."""
_RECONCILE: Final = "Compare the record with the operator's wallet and the regulator's register."
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def build_app() -> typer.Typer:
    """The commands. Their context's `obj` is the software manifest."""
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
    app.command("export-register", rich_help_panel="Proving")(export_books.register_command)
    app.command("dispute-export", rich_help_panel="Proving")(dispute.command)
    app.command("receipt", rich_help_panel="Proving")(receipt.command)
    app.command("reconcile", help=_RECONCILE, rich_help_panel="Proving", context_settings=_PASSED_ON)(
        _later("reconcile")
    )
    app.add_typer(log.app, name="log", rich_help_panel="Proving")
    app.command("manifest", rich_help_panel="Proving")(_show_manifest)
    return app


def run(argv: list[str], manifest: Manifest) -> int:
    """Run one command line; the exit status. Known errors are told, bugs are raised."""
    command = typer.main.get_command(build_app())
    try:
        status = command.main(args=argv, prog_name="rgs", standalone_mode=False, obj=manifest)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except typer.Abort:
        return _fail("aborted")
    except typer.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "rgs")
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        return _fail(f"{what} (see `{where} --help`)", error.exit_code)
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
        # The store's driver is not imported here: all SQL is the store's, and so are the names of its errors.
        if type(error).__module__.partition(".")[0] not in {"sqlite3", "asyncpg"}:
            raise
        return _fail(f"the store cannot be used: {error} [{UnavailableError.reason}]")


def _refusal(argv: list[str], *, hopeless: bool) -> int:
    return HOPELESS if hopeless and argv[:1] == ["serve"] else 1


def _is_usage(error: RgsError) -> bool:
    """Whether it is an option, an argument or a setting that is not understood."""
    return isinstance(error, InvalidFieldError | UnknownFieldError | FormatError) and error.field is not None


def _describe(error: RgsError) -> str:
    told = {"field": error.field, **error.metadata}
    facts = [f"{name}={told[name]}" for name in _TOLD if told.get(name) is not None]
    return f"{error.message} [{' '.join([error.reason, *facts])}]"


def _fail(text: str, status: int = 1) -> int:
    print("rgs:", " ".join(text.split()), file=sys.stderr)
    return status


def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which software this is.", is_eager=True)] = False,
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
    """Write the software manifest: what `instance_start` names by its SHA-256."""
    manifest: Manifest = context.obj
    sys.stdout.buffer.write(manifest.content + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _later(name: str) -> Callable[[typer.Context], int]:
    """A command in a module of its own, imported when called: `rgs.cli.<name>.main(arguments, manifest) -> int`."""

    def command(context: typer.Context) -> int:
        status: int = part(f"rgs.cli.{name}", f"`rgs {name}`").main(list(context.args), context.obj)
        return status

    return command
