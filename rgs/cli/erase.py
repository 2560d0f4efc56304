"""`rgs erase-player`: forget who a player was, when the law no longer asks for it (docs/keys.md). A store file is
written anew then, so that no free page of it remembers; where the disk has no room for that, it says so.

Refuses inside the retention period, saying until when; refuses a store file that a server holds. What the operator's
wallet, the regulator and backups know is theirs to erase.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note, open_home
from rgs.cli.signing import signing
from rgs.clock import SystemClock
from rgs.config import Config
from rgs.core.ids import check_name
from rgs.manifest import Manifest
from rgs.service.answers import Answers
from rgs.service.erasure import Erasable, Erased, Erasure
from rgs.service.events import Events
from rgs.store.changes import StoreError
from rgs.store.opening import open_reads, overwrite_freed


def command(
    context: typer.Context,
    operator: Annotated[str, typer.Argument(help="The operator.")],
    player: Annotated[str, typer.Argument(help="The player's pseudonym, as the operator gave it.")],
    home: HomeOption = HOME,
) -> int:
    """Erase who a player was: private blocks, salts, pseudonym. Everything that was signed verifies as before."""
    manifest: Manifest = context.obj
    config = open_home(home)
    erased = asyncio.run(_erase(config, manifest, check_name(operator, "operator"), player))
    print(f"erased: {erased.sessions} sessions, {erased.blocks} private blocks")
    try:
        if not overwrite_freed(config.store):
            note("note: the database keeps the bytes of what was deleted until its VACUUM")
    except StoreError as error:
        note(f"note: free pages of the store remember it still, run SQLite's VACUUM: {error.message}")
    note("note: backups and exports that were made before hold them still; so may the operator and the regulator")
    return 0


async def _erase(config: Config, manifest: Manifest, operator: str, player: str) -> Erased:
    reads = await open_reads(config.store)
    try:  # a refusal signs nothing
        looked = Erasable(store=reads, clock=SystemClock(), retention_days=config.retention_days)
        await looked.look(operator, player)
    finally:
        await reads.close()
    async with signing(config, manifest, "PLAYER_ERASED") as (store, _):
        clock = SystemClock()
        events = Events(store=store, clock=clock)
        erasure = Erasure(store=store, clock=clock, events=events, retention_days=config.retention_days)
        erased = await erasure.erase(operator, player)
        answers = Answers(store, clock, config.retry_window_h)
        while await answers.look():  # what was answered to him, as far as nobody may ask for it again
            pass
        return erased
