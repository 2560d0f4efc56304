"""The schemas of the main store, as steps forward: `<database>/0001.sql` makes the first, each further file the next.

A released file is never edited, because stores were made by it. A store of another schema than this version's is
refused with what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from rgs.store.changes import StoreRefusedError


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; `version` is the schema after it."""

    version: int
    script: str


def steps(kind: str) -> list[Migration]:
    """The steps of a database, `sqlite` or `postgres`, from an empty one on."""
    folder = resources.files("rgs.store.migrations").joinpath(kind)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(number, folder.joinpath(name).read_text(encoding="ascii"))
        for number, name in enumerate(names, start=1)
    ]


def verify_version(found: int, kind: str, where: str) -> None:
    """StoreRefusedError unless `found` is the schema that this version knows."""
    known = len(steps(kind))
    if found == known:
        return
    if not found:
        what = f"there is no store at {where}, or an empty one: run `rgs init` for a new one elsewhere"
    elif found < known:
        what = f"the store has schema {found}, this version needs {known}: stop all nodes and run `rgs migrate`"
    else:
        what = f"the store has schema {found}, this version knows {known} at most: use the version that made it"
    raise StoreRefusedError(what, value=found, limit=known)
