"""Modules that are imported when they are called for, and not before.

Refuses in one line where an installation lacks one.
"""

from __future__ import annotations

import importlib
from typing import Any

from rgs.core.errors import UnavailableError


def part(module: str, what: str) -> Any:
    """A module of the house that is imported only when it is called for; UnavailableError where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UnavailableError(f"this installation has no {what}", part=module) from None
