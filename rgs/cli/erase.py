"""`rgs erase-player`: erases who a player was, after the retention period (docs/keys.md).

It fails within the retention period and says until when, while the clock is not trusted, and while a server holds the
store file. A store file is rewritten afterwards, so that no free page keeps the data; a note says if the disk has no
room for that. The operator's wallet, the regulator and backups are not touched.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note
from rgs.core.ids import check_name
from rgs.integrity.manifest import Manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config, open_home
from rgs.node.signing import signing
from rgs.node.stores import reading
from rgs.service.admin.erasure import Erasable, Erased, Erasure
from rgs.service.events import Events
from rgs.service.idempotency import Answers
from rgs.service.timekeeping import Timekeeping
from rgs.store.changes import StoreError
from rgs.store.opening import overwrite_freed
from rgs.store.privates import PRIVATES_FILE, SealedPrivates


def command(
    context: typer.Context,
    operator: Annotated[str, typer.Argument(help="The operator.")],
    player: Annotated[str, typer.Argument(help="The player's pseudonym, as the operator gave it.")],
    home: HomeOption = HOME,
) -> int:
    """Erase who a player was: private blocks, salts, pseudonym. All signed statements still verify."""
    manifest: Manifest = context.obj
    config = open_home(home)
    erased = asyncio.run(_erase(config, manifest, check_name(operator, "operator"), player))
    print(f"erased: {erased.sessions} sessions, {erased.blocks} private blocks")
    try:
        if not overwrite_freed(config.store):
            note("note: the database keeps the deleted bytes until its VACUUM")
    except StoreError as error:
        note(f"note: free pages of the store still hold the data, run SQLite's VACUUM: {error.message}")
    note("note: earlier backups and exports still hold the data, and so may the operator and the regulator")
    return 0


def _erase_beside_the_log(config: Config, session_ids: tuple[str, ...]) -> None:
    """Erase the sealed private blocks. This comes first: if the run stops after it, the next run finds the player."""
    if (config.translog / PRIVATES_FILE).is_file():
        with closing(SealedPrivates(config.translog / PRIVATES_FILE)) as sealed:
            sealed.erase(session_ids)


async def _erase(config: Config, manifest: Manifest, operator: str, player: str) -> Erased:
    clock = SystemClock()
    async with reading(config.store) as reads:  # a refusal signs nothing
        await Timekeeping(store=reads, clock=clock, node=config.node).begin()
        found = await Erasable(store=reads, clock=clock, retention_days=config.retention_days).poll(operator, player)
    _erase_beside_the_log(config, found.session_ids)
    async with signing(config, manifest, "PLAYER_ERASED") as (store, instance):
        events = Events(store=store, clock=clock)
        erasure = Erasure(store=store, clock=clock, events=events, retention_days=config.retention_days)
        erased = await erasure.erase(operator, player)
        answers = Answers(store, clock, config.retry_window_h, instance.name)
        while await answers.poll():  # drops the stored answers that no retry can ask for any more
            pass
        return erased
