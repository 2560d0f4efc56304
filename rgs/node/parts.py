"""Modules that are imported only when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from rgs.core.errors import UnavailableError


def part(module: str, what: str) -> Any:
    """Import a module of ours now. UnavailableError if the installation lacks it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UnavailableError(f"this installation has no {what}", part=module) from None
