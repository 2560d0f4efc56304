"""`rgs migrate`: brings a store to the schema of this version, forward only (docs/upgrades.md).

A server does not start on a store of another schema. On PostgreSQL a step that only expands the store is made beside
running nodes of the version before; then both versions may run, until a further run finds no node of the older one and
shuts it out. Every other step fails if the lease of an instance still runs; the error names it. A store file is never
migrated under a server. Two migrations at once run one after the other.
"""

from __future__ import annotations

import asyncio

from rgs.cli.options import HOME, HomeOption, note
from rgs.node.config import open_home
from rgs.store.opening import migrate_store, older_instances


def command(home: HomeOption = HOME) -> int:
    """Bring the store to the schema of this version, beside running nodes where it can be. Keep a backup."""
    config = open_home(home)
    before, after = asyncio.run(migrate_store(config.store))
    if before == after:
        print(f"the store has schema {after}: nothing to do")
    else:
        print(f"the store had schema {before} and has {after}")
    older = asyncio.run(older_instances(config.store))
    if older:
        note(
            f"it still takes the software before, which {', '.join(older[:5])}{' and more' * (len(older) > 5)} run:"
            " exchange these nodes, then run `rgs migrate` again"
        )
    return 0
