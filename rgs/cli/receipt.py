"""`rgs receipt ROUND_ID [--opening]`: writes the receipt of a round, which the operator hands to the player.

It writes two files for each seat: the signed statement, and its `.tlog-proof` with the key path. `certify receipt`
verifies them offline. If the log does not hold the statement yet, only the statement is written.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.options import HOME, HomeOption
from rgs.core.errors import NotFoundError
from rgs.core.ids import check_ulid
from rgs.node.config import Config
from rgs.node.files import PUBLIC_MODE, write_whole
from rgs.node.home import open_home
from rgs.node.keyring import load_bundle
from rgs.node.stores import reading
from rgs.store.interface import StatementRow
from rgs.tlog.published import make_proof

_ROWS_MAX: Final = 1_000
"""More than the statements of one round: it has two for each seat."""
LogOption = Annotated[
    Path | None, typer.Option("--log", help="A copy of the log, instead of the home's log.", file_okay=False)
]


def command(
    round_id: Annotated[str, typer.Argument(help="The round.")],
    log: LogOption = None,
    home: HomeOption = HOME,
    opening: Annotated[bool, typer.Option("--opening", help="The receipt of the opening, not of the final.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for the files.", exists=True, file_okay=False)] = Path(),
) -> int:
    """Write the receipt of a round: the statement of each seat, and the proof that it is in the log."""
    config = open_home(home)
    kind = "round_opening" if opening else "round_final"
    rows = asyncio.run(statements_of(config, check_ulid(round_id, "round_id"), kind))
    bundle = load_bundle(config)
    for number, (row, start) in enumerate(rows, 1):
        path = output / f"{round_id}-{kind.removeprefix('round_')}{f'-{number}' if len(rows) > 1 else ''}.json"
        write_whole(path, row.envelope, PUBLIC_MODE)
        print(path)
        try:
            proof = make_proof(log or config.translog, row.hash, bundle=bundle, start=start)
        except NotFoundError:
            print("not in the log yet: the signed statement is the receipt until then, see `certify omission`")
            continue
        write_whole(path.with_suffix(".tlog-proof"), proof, PUBLIC_MODE)
        print(path.with_suffix(".tlog-proof"))
    return 0


async def statements_of(config: Config, round_id: str, kind: str) -> list[tuple[StatementRow, bytes]]:
    """The statements of one kind of a round, each with the `instance_start` of its instance. NotFoundError."""
    async with reading(config.store) as reads:
        rows = [row for row in await reads.statements_of_round(round_id, 0, _ROWS_MAX) if row.kind == kind]
        if not rows:
            raise NotFoundError(f"there is no {kind} of round {round_id}", kind="round", round_id=round_id)
        starts = {name: await reads.start_of(name) for name in {row.instance for row in rows}}
        return [(row, starts[row.instance]) for row in rows]
