"""What the commands share: their common option, the process's clock and entropy, and how they speak to people.

Refuses to make randomness or to read the time: both come from their one place.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rgs.cli.files import FileRefusedError
from rgs.clock import SystemClock
from rgs.config import CONFIG_FILE, DEFAULT_HOME, Config, load_config
from rgs.core.errors import UnavailableError
from rng.entropy import EntropySource

HomeOption = Annotated[
    Path, typer.Option("--home", envvar="RGS_HOME", help="The node's home directory.", file_okay=False)
]
HOME = DEFAULT_HOME


def open_home(home: Path, options: dict[str, object] | None = None) -> Config:
    """The settings of an existing home; FileRefusedError if `rgs init` has not made one."""
    if not (home / CONFIG_FILE).is_file():
        raise FileRefusedError(f"{home} is no home of a node: make one with `rgs init --home {home}`", path=home)
    return load_config(home, options)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return SystemClock().now_ms()


def entropy() -> EntropySource:
    """The tested source of this process, started afresh. Raises EntropyError."""
    return EntropySource()


def part(module: str, what: str) -> Any:
    """A module of the house that is imported only when it is called for; UnavailableError where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UnavailableError(f"this installation has no {what}", part=module) from None


def note(text: str) -> None:
    """A remark for people: on stderr, so that output can be piped."""
    print(text, file=sys.stderr)
