"""The schemas of the main store, as steps forward: `<database>/0008.sql` makes the first, each further file the next.

The number of a file is the schema after it. Version 0.1.0 began with schema 8; it reads no store of a version before.
A released file is never edited, because stores were made by it. A store of another schema than this version's is
refused with what to do.

From schema 12 on the first line of a file declares what the step is (docs/upgrades.md). `-- expand:` says that software
of the schema before runs beside it: the step adds, and changes nothing that such software reads or writes. Every other
step is `-- contract:`. The steps before schema 12 count as contract. Behind the line `-- concurrently` stand indexes of
columns that are there before the step: on PostgreSQL they are made without stopping writers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from rgs.store.changes import StoreRefusedError

UNDECLARED_MAX: Final = 11
"""The last schema whose file declares nothing: all nodes were stopped for it."""
_DECLARED: Final = re.compile(r"-- (expand|contract): \S")
_CONCURRENTLY: Final = "-- concurrently\n"
_INDEX: Final = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+) ([^;]+)")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; `version` is the schema after it, `indexes` are texts that make one index each, after the script."""

    version: int
    script: str
    is_expand: bool = False
    indexes: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """The script with its indexes, for a store that nobody uses meanwhile."""
        return self.script + "".join(f"{index};\n" for index in self.indexes)


def parse_step(version: int, text: str) -> Migration:
    """The step of a file. ValueError where the file does not declare what it is, or has something else than indexes
    behind `-- concurrently`.
    """
    declared = _DECLARED.match(text)
    if declared is None and version > UNDECLARED_MAX:
        raise ValueError(f"migration {version}: the first line declares `-- expand: ...` or `-- contract: ...`")
    script, _, rest = text.partition(_CONCURRENTLY)
    indexes = tuple(index.strip() for index in rest.split(";") if index.strip())
    for index in indexes:
        if _INDEX.fullmatch(index) is None:
            raise ValueError(f"migration {version}: only indexes stand behind `-- concurrently`, not {index[:60]!r}")
    return Migration(version, script, declared is not None and declared[1] == "expand", indexes)


def index_name(index: str) -> str:
    """The name of the index that such a text makes."""
    found = _INDEX.fullmatch(index)
    if found is None:
        raise ValueError(f"this text makes no index: {index[:60]!r}")
    return found[1]


def steps(kind: str) -> tuple[Migration, ...]:
    """The steps of a database, `sqlite` or `postgres`, from an empty one on."""
    # Not made a plain path: what the measured server gives compares a file as it is read.
    return _read(resources.files("rgs.store.migrations").joinpath(kind))  # type: ignore[arg-type] # it is hashable


@cache  # dozens of files, asked for at each opening of a store
def _read(folder: Traversable) -> tuple[Migration, ...]:
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(parse_step(int(name[:-4]), folder.joinpath(name).read_text(encoding="ascii")) for name in names)


def verify_version(found: int, kind: str, where: str, expanded: int = 0) -> None:
    """StoreRefusedError unless this version's schema lies between `found`, the oldest whose software may use the store,
    and `expanded`, the newest that the store has been expanded to (0: none beyond `found`).
    """
    first, known = (steps(kind)[at].version for at in (0, -1))
    if found <= known <= max(found, expanded):
        return
    if not found:
        what = f"there is no store at {where}, or an empty one: run `rgs init` for a new one elsewhere"
    elif found < first:
        what = (
            f"the store at {where} has schema {found}, of a version before 0.1.0; this version reads stores from schema"
            f" {first} on: use the version that made it, or make a new home with `rgs init`"
        )
    elif found < known:
        newest = max(found, expanded)
        what = f"the store has schema {newest}, this version needs {known}: run `rgs migrate`, which says what it needs"
    else:
        what = f"the store has schema {found}, this version knows {known} at most: use the version that made it"
    raise StoreRefusedError(what, value=found, limit=known)
