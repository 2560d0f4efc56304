"""`rgs migrate`: brings a store to the schema of this version, forward only, whole or not at all.

A server does not start on a store of another schema. The command fails if a server holds the store file, or if a lease
in the database is still running; the error names its instance. Two migrations at once run one after the other.
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
