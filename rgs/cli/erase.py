"""`rgs erase-player`: forget who a player was, when the law no longer asks for it (docs/keys.md). A store file is
written anew then, so that no free page of it remembers; where the disk has no room for that, it says so.

Refuses inside the retention period, saying until when, and while the clock is not trusted; refuses a store file that a
server holds. What the operator's wallet, the regulator and backups know is theirs to erase.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note
from rgs.core.ids import check_name
from rgs.integrity.manifest import Manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.home import open_home
from rgs.node.signing import signing
from rgs.service.admin.erasure import Erasable, Erased, Erasure
from rgs.service.events import Events
from rgs.service.idempotency import Answers
from rgs.service.timekeeping import Timekeeping
from rgs.store.changes import StoreError
from rgs.store.opening import open_reads, overwrite_freed
from rgs.store.privates import PRIVATES_FILE, SealedPrivates


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


def _erase_beside_the_log(config: Config, session_ids: tuple[str, ...]) -> None:
    """The sealed private blocks first: cut short behind this, the player is still found, and erased, the next time."""
    if (config.translog / PRIVATES_FILE).is_file():
        sealed = SealedPrivates(config.translog / PRIVATES_FILE)
        try:
            sealed.erase(session_ids)
        finally:
            sealed.close()


async def _erase(config: Config, manifest: Manifest, operator: str, player: str) -> Erased:
    reads = await open_reads(config.store)
    try:  # a refusal signs nothing
        clock = SystemClock()
        await Timekeeping(store=reads, clock=clock, node=config.node).begin()
        looking = Erasable(store=reads, clock=clock, retention_days=config.retention_days)
        looked = await looking.look(operator, player)
    finally:
        await reads.close()
    _erase_beside_the_log(config, looked.session_ids)
    async with signing(config, manifest, "PLAYER_ERASED") as (store, instance):
        events = Events(store=store, clock=clock)
        erasure = Erasure(store=store, clock=clock, events=events, retention_days=config.retention_days)
        erased = await erasure.erase(operator, player)
        answers = Answers(store, clock, config.retry_window_h, instance.name)
        while await answers.look():  # what was answered to him, as far as nobody may ask for it again
            pass
        return erased
