"""`rgs migrate`: bring a store to the schema of this version. Forward only, whole or not at all.

A server refuses a store of any other schema. Refuses a file that a server holds and a database in which a lease still
runs, naming whose; two migrations at once wait for one another.
"""

from __future__ import annotations

import asyncio

from rgs.cli.options import HOME, HomeOption
from rgs.node.home import open_home
from rgs.store.opening import migrate_store


def command(home: HomeOption = HOME) -> int:
    """Bring the store to the schema of this version. Stop all nodes first; keep a backup."""
    config = open_home(home)
    before, after = asyncio.run(migrate_store(config.store))
    if before == after:
        print(f"the store has schema {after}: nothing to do")
    else:
        print(f"the store had schema {before} and has {after}")
    return 0
