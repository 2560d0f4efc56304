"""What the commands share: common options, groups of options, and how a command writes to people."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from rgs.core.errors import InvalidFieldError
from rgs.integrity.manifest import Manifest
from rgs.node.config import DEFAULT_HOME
from rng.entropy import EntropySource

HomeOption = Annotated[
    Path, typer.Option("--home", envvar="RGS_HOME", help="The node's home directory.", file_okay=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the server check the order, and change nothing.")]
HOME = DEFAULT_HOME


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """Let a command take dataclasses: each field of such a parameter becomes an option of its own.

    A field is declared as a parameter would be: `name: Annotated[type, typer.Option(...)] = default`.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        groups[name] = hints[name]
        kinds = get_type_hints(hints[name], include_extras=True)
        for field in fields(hints[name]):
            default = Parameter.empty if field.default is MISSING else field.default
            options.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kinds[field.name]))

    @functools.wraps(command)
    def call(**given: Any) -> int:
        values = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **given)

    call.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return call


def new_app(**settings: Any) -> typer.Typer:
    """The application of a command that is imported only when it is called (`rgs.cli`)."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, **settings)


def run_app(app: typer.Typer, name: str, arguments: Sequence[str], manifest: Manifest | None = None) -> int:
    """Run such a command; returns its exit status. `manifest` is the `obj` of its context, for those that ask for it.

    Raises TyperException for options that are not understood.
    """
    command = typer.main.get_command(app)
    status = command.main(args=list(arguments), prog_name=f"rgs {name}", standalone_mode=False, obj=manifest)
    return status if isinstance(status, int) else 0


def verify_together(field: str, **given: object) -> None:
    """InvalidFieldError unless both of two options are given, or neither."""
    if len({value is None for value in given.values()}) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InvalidFieldError(f"give {names} together, or neither", field=field)


def entropy() -> EntropySource:
    """A new, tested source of entropy for this process. Raises EntropyError."""
    return EntropySource()


def note(text: str) -> None:
    """Write a remark to stderr, so that stdout can be piped."""
    print(text, file=sys.stderr)
