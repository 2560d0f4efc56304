"""`rgs recover`: brings a store that was restored from a backup up to the log (docs/keys.md).

It prints what the store lacks, and changes nothing without --yes. It fails if a server holds the store, if the store
was used since it was restored, and if the log lacks what a witness has seen. It also fails where seats of a settled
round had decided and nothing says what, unless --void-undecided is given.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note, verify_together
from rgs.core.amounts import format_money
from rgs.core.replay.keys import KeyBook
from rgs.core.rounds import DECK_UNRECOVERABLE, Round
from rgs.core.sessions import Session, SessionStatus
from rgs.core.tlog.checkpoints import Checkpoint
from rgs.core.tlog.note import parse_note
from rgs.core.tlog.policies import parse_policy, verify_checkpoint
from rgs.integrity.manifest import Manifest
from rgs.node.clock import SystemClock
from rgs.node.config import Config, open_home
from rgs.node.files import read_whole
from rgs.node.keyring import load_bundle, load_kek
from rgs.node.signing import signing
from rgs.node.stores import reading
from rgs.service.admin.recovery import (
    REASON,
    Recovered,
    plan_import,
    sign_recovery,
    verify_decided,
    with_privates,
)
from rgs.service.sealing import Sealer
from rgs.store.interface import RECOVERING
from rgs.store.opening import import_gap
from rgs.store.privates import PRIVATES_FILE, SealedPrivates
from rgs.store.recovery import Import
from rgs.tlog.gap import Missing, find_gap


def command(
    context: typer.Context,
    log: Annotated[
        Path | None, typer.Option(help="The log's folder, instead of the home's log.", exists=True, file_okay=False)
    ] = None,
    witnessed: Annotated[
        Path | None, typer.Option(help="The newest checkpoint that a witness has cosigned.", dir_okay=False)
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The policy that says whose cosignatures count.", dir_okay=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Change the store; otherwise only print what it lacks.")] = False,
    void_undecided: Annotated[
        bool, typer.Option("--void-undecided", help="Return the stakes of seats whose decisions are lost.")
    ] = False,
    home: HomeOption = HOME,
) -> int:
    """Bring a restored store up to its log: import what it lacks, pause what is open, sign a new store epoch."""
    manifest: Manifest = context.obj
    config = open_home(home)
    verify_together("policy", witnessed=witnessed, policy=policy)
    seen = None if witnessed is None or policy is None else _read_witnessed(witnessed, policy)
    log = log or config.translog
    return asyncio.run(_recover(config, manifest, log, seen, yes=yes, void_undecided=void_undecided))


def _read_witnessed(path: Path, policy: Path) -> Checkpoint:
    trusted = parse_policy(read_whole(policy, "policy"))
    return verify_checkpoint(parse_note(read_whole(path, "cosigned checkpoint")), trusted).checkpoint


async def _recover(
    config: Config, manifest: Manifest, log: Path, seen: Checkpoint | None, *, yes: bool, void_undecided: bool
) -> int:
    async with reading(config.store, config.archive) as reads:
        gap = await find_gap(reads, log, KeyBook(load_bundle(config)), seen)
        is_begun = bool(await reads.meta(RECOVERING))
        planned = await plan_import(reads, with_kept_privates(config, log, gap))
    _print_gap(planned)
    if seen is None:
        note("note: no --witnessed checkpoint: it is not checked whether the log itself was rolled back")
    if not (planned.statements or is_begun):
        print("the store holds everything that the log holds: nothing to do")
        return 0
    verify_decided(planned.undecided, void_undecided=void_undecided)
    if not yes:
        print("nothing was changed; give --yes to do it")
        return 1
    if planned.statements:
        await import_gap(config.store, planned)
    async with signing(config, manifest, REASON, recovers=True) as (open_store, instance):
        recovered = await sign_recovery(open_store, instance, SystemClock(), void_undecided=void_undecided)
    _print_recovered(recovered, planned)
    return 0


def with_kept_privates(config: Config, log: Path, gap: list[Missing]) -> list[Missing]:
    """The gap, with those of its private blocks that are kept beside the log."""
    if not (log / PRIVATES_FILE).is_file():
        return gap
    with closing(SealedPrivates(log / PRIVATES_FILE)) as sealed:
        return with_privates(gap, sealed, Sealer(load_kek(config)))


def _print_gap(planned: Import) -> None:
    kinds = Counter(str(row[2]) for row in planned.statements)
    print(f"the store lacks {len(planned.statements)} statements")
    for kind in sorted(kinds):
        print(f"  {kind}\t{kinds[kind]}")
    if planned.privates or planned.lost_privates:
        print(f"  private blocks\t{len(planned.privates)} are here, {planned.lost_privates} are lost")
    for seat in planned.silent:
        print(f"{_seat(seat)} counts as silent: no decision of it is known; compare with the operator's record")


def _print_recovered(recovered: Recovered, planned: Import) -> None:
    print(f"store epoch {recovered.after} follows {recovered.before}")
    for round_ in recovered.paused:
        reason = REASON if round_.sealed else DECK_UNRECOVERABLE
        print(f"two admins must void round {round_.round_id} of session {round_.session_id}, reason {reason}")
    for table in recovered.tables:
        print(f"two admins must void round {table.round_id} of table {table.table_id}, reason {table.reason}")
        if table.fault:
            print(f"  replay will report this round: {table.fault}")
    for seat in recovered.undecided:
        print(f"{_seat(seat)} is void, because its decisions are lost: replay will report it")
    for session in planned.new_sessions.values():
        if not session.player:
            _print_nameless(session)
    print("next: start the server, void these rounds, and run `rgs reconcile` with the wallet and the regulator")


def _seat(seat: Round) -> str:
    return f"seat {seat.seat_no} of round {seat.round_id} at table {seat.table_id}, session {seat.session_id}"


def _print_nameless(session: Session) -> None:
    """Print what to do about a session of the gap whose private blocks are lost."""
    what = f"session {session.session_id} of {session.operator} was opened in the gap, and its player's name is lost"
    if session.status is SessionStatus.CLOSED or session.participation.ended:
        print(f"{what}: it has ended, nothing is owed")
    else:
        print(f"{what}: pay the balance of {format_money(session.balance_minor, session.currency)} by hand")
