"""Templates of the pages that stand alone: every value is escaped, and a name that is not given is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def template(module: str, name: str, **filters: Callable[..., str]) -> Template:
    """The template `name` in the folder `templates` beside a module, which is named by its `__file__`."""
    environment = Environment(
        loader=FileSystemLoader(Path(module).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)
