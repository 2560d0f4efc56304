"""`rgs recover`: after a backup of the store was restored, bring it up to the log (docs/keys.md).

Says first what the store lacks, and changes nothing without --yes. Refuses a store that a server holds, one that has
gone on since it was restored, and a log that does not hold what a witness has seen.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note
from rgs.core.amounts import format_money
from rgs.core.errors import InvalidFieldError
from rgs.core.replay.keys import KeyBook
from rgs.core.rounds import DECK_UNRECOVERABLE
from rgs.core.sessions import Session, SessionStatus
from rgs.core.tlog.checkpoints import Checkpoint
from rgs.core.tlog.note import parse_note
from rgs.core.tlog.policies import parse_policy, verify_checkpoint
from rgs.integrity.manifest import Manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config
from rgs.node.files import read_whole
from rgs.node.home import open_home
from rgs.node.keyring import load_bundle, load_kek
from rgs.node.signing import signing
from rgs.service.admin.recovery import REASON, Recovered, plan_import, sign_recovery, with_privates
from rgs.service.sealing import Sealer
from rgs.store.interface import RECOVERING
from rgs.store.opening import import_gap, open_reads
from rgs.store.privates import PRIVATES_FILE, SealedPrivates
from rgs.store.recovery import Import
from rgs.tlog.gap import Missing, find_gap


def command(
    context: typer.Context,
    log: Annotated[
        Path | None, typer.Option(help="The folder of the log, if not the home's.", exists=True, file_okay=False)
    ] = None,
    witnessed: Annotated[
        Path | None, typer.Option(help="The newest checkpoint that a witness has cosigned.", dir_okay=False)
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="Whose cosignatures count.", dir_okay=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only told.")] = False,
    home: HomeOption = HOME,
) -> int:
    """Bring a restored store up to its log: import what it lacks, pause what is open, sign a new store epoch."""
    manifest: Manifest = context.obj
    config = open_home(home)
    if (witnessed is None) != (policy is None):
        raise InvalidFieldError("give --witnessed and --policy together, or neither", field="policy")
    seen = None if witnessed is None or policy is None else _read_witnessed(witnessed, policy)
    return asyncio.run(_recover(config, manifest, log or config.translog, seen, yes=yes))


def _read_witnessed(path: Path, policy: Path) -> Checkpoint:
    trusted = parse_policy(read_whole(policy, "policy"))
    return verify_checkpoint(parse_note(read_whole(path, "cosigned checkpoint")), trusted).checkpoint


async def _recover(config: Config, manifest: Manifest, log: Path, seen: Checkpoint | None, *, yes: bool) -> int:
    reads = await open_reads(config.store)
    try:
        gap = await find_gap(reads, log, KeyBook(load_bundle(config)), seen)
        is_begun = bool(await reads.meta(RECOVERING))
        planned = await plan_import(reads, _with_privates(config, log, gap))
    finally:
        await reads.close()
    _tell_gap(planned)
    if seen is None:
        note("note: no --witnessed checkpoint: whether the log itself was rolled back is not looked at")
    if not (planned.statements or is_begun):
        print("the store has everything that the log has: nothing to do")
        return 0
    if not yes:
        print("nothing was changed; give --yes to do it")
        return 1
    if planned.statements:
        await import_gap(config.store, planned)
    async with signing(config, manifest, REASON, recovers=True) as (open_store, instance):
        recovered = await sign_recovery(open_store, instance, SystemClock())
    _tell_recovered(recovered, planned)
    return 0


def _with_privates(config: Config, log: Path, gap: list[Missing]) -> list[Missing]:
    """The gap with what is kept of its private blocks beside the log."""
    if not (log / PRIVATES_FILE).is_file():
        return gap
    sealed = SealedPrivates(log / PRIVATES_FILE)
    try:
        return with_privates(gap, sealed, Sealer(load_kek(config)))
    finally:
        sealed.close()


def _tell_gap(planned: Import) -> None:
    kinds = Counter(str(row[2]) for row in planned.statements)
    print(f"the store lacks {len(planned.statements)} statements")
    for kind in sorted(kinds):
        print(f"  {kind}\t{kinds[kind]}")
    if planned.privates or planned.lost_privates:
        print(f"  private blocks\t{len(planned.privates)} are here, {planned.lost_privates} are lost")


def _tell_recovered(recovered: Recovered, planned: Import) -> None:
    print(f"store epoch {recovered.after} follows {recovered.before}")
    for round_ in recovered.paused:
        reason = REASON if round_.sealed else DECK_UNRECOVERABLE
        print(f"to be voided by two admins: round {round_.round_id} of session {round_.session_id}, reason {reason}")
    for session in planned.new_sessions.values():
        if not session.player:
            _tell_nameless(session)
    print("next: start the server, void these rounds, and `rgs reconcile` with the wallet and the register")


def _tell_nameless(session: Session) -> None:
    """A session of the gap whose private blocks are lost: what is to be done about it, if anything."""
    said = f"session {session.session_id} of {session.operator} was opened in the gap, and who played it is lost"
    if session.status is SessionStatus.CLOSED or session.participation.ended:
        print(f"{said}: it has ended, nothing is owed")
    else:
        print(f"{said}: balance {format_money(session.balance_minor, session.currency)}, to be paid by hand")
