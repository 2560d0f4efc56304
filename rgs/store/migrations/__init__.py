"""The schemas of the main store, as steps forward: `<database>/0008.sql` makes the first, each further file the next.

The number of a file is the schema after it. Version 0.1.0 began with schema 8; it reads no store of a version before.
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
    return [Migration(int(name[:-4]), folder.joinpath(name).read_text(encoding="ascii")) for name in names]


def verify_version(found: int, kind: str, where: str) -> None:
    """StoreRefusedError unless `found` is the schema that this version knows."""
    first, known = (steps(kind)[at].version for at in (0, -1))
    if found == known:
        return
    if not found:
        what = f"there is no store at {where}, or an empty one: run `rgs init` for a new one elsewhere"
    elif found < first:
        what = (
            f"the store at {where} has schema {found}, of a version before 0.1.0; this version reads stores from schema"
            f" {first} on: use the version that made it, or make a new home with `rgs init`"
        )
    elif found < known:
        what = f"the store has schema {found}, this version needs {known}: stop all nodes and run `rgs migrate`"
    else:
        what = f"the store has schema {found}, this version knows {known} at most: use the version that made it"
    raise StoreRefusedError(what, value=found, limit=known)
