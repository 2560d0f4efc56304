"""`rgs backup make | list | drill`: copies of the store, and the monthly proof that one works (docs/backup.md).

`make` works beside a server. `drill` restores into a scratch folder, brings the copy up to the log as `rgs recover`
does, replays every round, and removes the folder. It signs nothing in the name of the node but the scope of the
replayed export: two instances under one key would contradict each other. The restored copy stays marked, so that no
server serves it.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.export import export_to
from rgs.cli.options import HOME, HomeOption, new_app
from rgs.cli.recover import with_kept_privates
from rgs.core.replay.keys import KeyBook
from rgs.node.backups.making import Backup, BackupError, drop_old, list_backups, make_backup, read_backup, verify_backup
from rgs.node.backups.scratch import restored
from rgs.node.clock import monotonic_ms, now_ms
from rgs.node.config import Config, open_home
from rgs.node.keyring import ROOT_FINGERPRINT, load_bundle, load_kek
from rgs.node.stores import reading
from rgs.service.admin.recovery import plan_import
from rgs.service.sealing import Sealer
from rgs.store.address import StoreAddress
from rgs.store.changes import StoreRefusedError
from rgs.store.interface import StoreReads
from rgs.store.opening import import_gap
from rgs.store.recovery import Import
from rgs.tlog.gap import find_gap

app = new_app(help="Copies of the store, and the drill that restores one.", no_args_is_help=True)

LEASES_S: Final = 90
"""So long the leases in a copy of a running database may still last."""

ROUNDS_MAX: Final = 1_000_000
"""Rounds in play whose decks the drill opens."""

ProgramsOption = Annotated[
    Path | None, typer.Option("--pg-bin", help="PostgreSQL's folder of programs; default: the PATH.", file_okay=False)
]


@app.command()
def make(
    to: Annotated[Path, typer.Option(help="The folder of the backups; on another disk.", file_okay=False)],
    home: HomeOption = HOME,
    pg_bin: ProgramsOption = None,
    keep: Annotated[int | None, typer.Option(help="Remove all but the newest so many.", min=1)] = None,
) -> int:
    """Copy store and settings into a new folder, named by the time. Works while the server runs."""
    backup = asyncio.run(make_backup(open_home(home), to, pg_bin, now_ms()))
    least = sum(backup.statements.values())
    print(f"{backup.folder}: {backup.kind}, schema {backup.schema}, {least} statements or more")
    for path in drop_old(to, keep) if keep else []:
        print(f"removed {path}")
    return 0


@app.command(name="list")
def list_(
    folder: Annotated[Path, typer.Option("--from", help="The folder of the backups.", file_okay=False)],
) -> int:
    """List the backups, oldest first, with columns separated by tabs."""
    for path in list_backups(folder):
        one = read_backup(path)
        print("\t".join((str(path), one.time, one.kind, one.store_epoch, str(sum(one.statements.values())))))
    return 0


@app.command()
def drill(
    folder: Annotated[Path, typer.Option("--from", help="The folder of the backups, or one backup.", file_okay=False)],
    home: HomeOption = HOME,
    pg_bin: ProgramsOption = None,
    archive: Annotated[
        Path | None, typer.Option(help="PostgreSQL's archive of WAL: restore up to its newest change.", file_okay=False)
    ] = None,
    scratch: Annotated[
        Path | None, typer.Option(help="Where the scratch folder is made; default: the folder for temporary files.")
    ] = None,
) -> int:
    """Restore the newest backup into a scratch folder, recover it from the log, replay it, and report."""
    config = open_home(home)
    found = [folder] if (folder / "backup.json").is_file() else list_backups(folder)
    if not found:
        raise BackupError(f"there is no backup in {folder}: make one with `rgs backup make`", path=folder)
    backup, began_ms = read_backup(found[-1]), monotonic_ms()
    _say("backup", f"{backup.folder.name}, {backup.kind}, of {backup.time}")
    verify_backup(backup, pg_bin)
    _say("verified", "every file is as it was written")
    place = Path(tempfile.mkdtemp(prefix="rgs-drill-", dir=scratch))
    try:
        with restored(backup, place, config.store, pg_bin, archive) as address:
            _say("restored", f"into {place}" + (" with the archive" if archive is not None else ""))
            asyncio.run(_recover(config, backup, address))
            _replay(config, address, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _say("drill", f"passed in {(monotonic_ms() - began_ms) / 1000:.1f} s; the scratch folder is removed")
    return 0


async def _recover(config: Config, backup: Backup, address: StoreAddress) -> None:
    """Bring the copy up to the log, and unseal every deck of a round in play. BackupError."""
    async with reading(address, config.archive) as reads:
        if (epoch := await reads.meta("store_epoch")) != backup.store_epoch:
            raise BackupError(f"the restored store has epoch {epoch}, the backup {backup.store_epoch}", value=epoch)
        counters = {row.instance: row.statement_no for row in await reads.instances(alive_only=False)}
        for name, number in backup.statements.items():
            if counters.get(name, 0) < number:
                why = f"the restored store has {counters.get(name, 0)} statements of {name}, the backup {number}"
                raise BackupError(why, value=name)
        is_new = not (counters or backup.statements or config.translog.is_dir())  # no server has ever signed here
        gap = [] if is_new else await find_gap(reads, config.translog, KeyBook(load_bundle(config)))
        planned = await plan_import(reads, with_kept_privates(config, config.translog, gap))
        opened = await _unseal(config, reads)
    kinds = Counter(str(row[2]) for row in planned.statements)
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    _say("gap", f"the log has {len(planned.statements)} statements that the backup lacks: {said}")
    if planned.statements:
        await _import(address, planned)
    _say("recovered", f"the store holds all that the log holds; {opened} decks of open rounds can be unsealed")


async def _import(address: StoreAddress, planned: Import) -> None:
    """Import the gap; wait for leases that were running when the backup was made."""
    deadline_ms = monotonic_ms() + LEASES_S * 1000
    while True:
        try:
            await import_gap(address, planned)
        except StoreRefusedError as error:
            if "is in use by" not in error.message or monotonic_ms() > deadline_ms:
                raise
            await asyncio.sleep(1.0)
        else:
            return


async def _unseal(config: Config, reads: StoreReads) -> int:
    """Open every sealed deck of a round in play, and forget it at once; how many. DeckSealedError if one cannot be."""
    sealer, count = Sealer(load_kek(config)), 0
    for _, round_ in await reads.open_rounds("", after=0, limit=ROUNDS_MAX):
        if round_.sealed and not round_.table_id:
            sealer.unseal(round_.instance, round_.draw_no, round_.deal, round_.sealed)
            count += 1
    return count


def _replay(config: Config, address: StoreAddress, place: Path) -> None:
    """Export the copy, and replay it as an auditor does. BackupError if anything is wrong with it."""
    export = place / "export.jsonl"
    asyncio.run(export_to(replace(config, store=address), ([], []), str(export), private=True))
    command = [sys.executable, "-m", "certification", "replay", str(export), "--keys", str(config.bundle)]
    root = config.keys / ROOT_FINGERPRINT
    if root.is_file():
        command += ["--root", root.read_text("ascii").strip()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    for line in done.stdout.strip().splitlines():
        _say("replay", line)
    if done.returncode:
        why = f"the replay of the restored store fails: {done.stderr.strip()[-300:]}"
        raise BackupError(why, value=done.returncode)


def _say(step: str, what: str) -> None:
    print(f"{step}\t{what}", flush=True)
