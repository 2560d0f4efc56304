"""Modules that are imported only when they are needed."""

from __future__ import annotations

import importlib
from typing import Any, Final

from rgs.core.errors import UnavailableError

_DEVKIT: Final = "rgs.devkit"


def part(module: str, what: str) -> Any:
    """Import a module of ours now. UnavailableError if this process has not the module, or not the devkit that it uses.

    The devkit is not measured, so a process that `rgs/integrity/launcher.py` has started cannot import it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise UnavailableError(f"this installation has no {what}", part=module) from None
        if error.name is not None and f"{error.name}.".startswith(f"{_DEVKIT}."):
            raise UnavailableError(
                f"{what} needs {_DEVKIT}, which this process cannot import; start it with the command `rgs`, not with"
                " rgs/integrity/launcher.py, where the devkit is installed",
                part=_DEVKIT,
            ) from None
        raise
