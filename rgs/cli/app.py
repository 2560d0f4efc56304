"""The commands of `rgs` as one application of typer, for its help and for every command but `serve`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from rgs import __version__
from rgs.cli.commands import COMMANDS, PROVING, Command, NotUnderstoodError
from rgs.cli.options import new_app, run_app
from rgs.integrity.manifest import Manifest
from rgs.node.parts import part
from rng import __version__ as rng_version

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
    for one in COMMANDS:
        listed = app.command(one.name, help=one.text, rich_help_panel=one.panel, context_settings=_PASSED_ON)
        listed(_later(one))
    app.command("manifest", rich_help_panel=PROVING)(_show_manifest)
    return app


def command(argv: list[str], manifest: Manifest) -> int:
    """Run one command line; returns the exit status. NotUnderstoodError for what is not understood."""
    commands = typer.main.get_command(build_app())
    try:
        status = commands.main(args=argv, prog_name="rgs", standalone_mode=False, obj=manifest)
    except typer.Abort:
        raise NotUnderstoodError("aborted", status=1) from None
    except typer.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "rgs")
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        raise NotUnderstoodError(f"{what} (see `{where} --help`)", status=error.exit_code) from None
    return status if isinstance(status, int) else 0


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


def _later(one: Command) -> Callable[[typer.Context], int]:
    """The command as it is listed: imports the real one, which parses the arguments, when it is called."""

    def listed(context: typer.Context) -> int:
        module, _, attribute = one.place.partition(":")
        found = getattr(part(f"rgs.cli.{module}", f"`rgs {one.name}`"), attribute)
        if one.own:
            status: int = found(context.args, context.obj)
            return status
        app = found
        if not isinstance(found, typer.Typer):
            app = new_app()
            app.command()(found)
        return run_app(app, one.name, context.args, context.obj)

    return listed
