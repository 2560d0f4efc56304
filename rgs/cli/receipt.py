"""`rgs receipt ROUND_ID [--opening]`: writes the receipt of a round, which the operator hands to the player.

It writes two files: the signed statement, and its `.tlog-proof` with the key path. `certify receipt` verifies them
offline. If the log does not hold the statement yet, only the statement is written. The last line names both ids of the
regulator, which stand in no receipt.

Of a seat at a table there is a third one, `-seat.jsonl`: the seat's opening with its path, its final, and what all
seats share, as a cut export. `certify replay` verifies it, and nothing of other seats stands in it. If the round has
several seats, `--session` names one.
"""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.export import export_seat
from rgs.cli.options import HOME, HomeOption
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.ids import check_ulid
from rgs.core.rounds import Round
from rgs.core.statements import leaf_hash
from rgs.node.config import Config, open_home
from rgs.node.files import PUBLIC_MODE, write_whole
from rgs.node.keyring import load_bundle
from rgs.node.stores import reading
from rgs.store.interface import StatementRow, StoreReads
from rgs.tlog.published import make_proof

_NAMES: Final = ("opening", "final")
LogOption = Annotated[
    Path | None, typer.Option("--log", help="A copy of the log, instead of the home's log.", file_okay=False)
]


def command(
    round_id: Annotated[str, typer.Argument(help="The round.")],
    log: LogOption = None,
    home: HomeOption = HOME,
    opening: Annotated[bool, typer.Option("--opening", help="The receipt of the opening, not of the final.")] = False,
    session: Annotated[str, typer.Option(help="The session of the seat, if the round has several seats.")] = "",
    output: Annotated[
        Path, typer.Option(help="Folder for the files; made if it is not there.", file_okay=False)
    ] = Path(),
) -> int:
    """Write the receipt of a round: the signed statement, and the proof that it is in the log."""
    config = open_home(home)
    name = _NAMES[0 if opening else 1]
    row, start = asyncio.run(statement_of(config, check_ulid(round_id, "round_id"), session, name))
    ids = asyncio.run(_regulator_ids(config, row.session_id))
    is_seat = row.kind.startswith("seat_")
    of = f"{round_id}-{row.session_id}" if is_seat else round_id  # a round of a table has a receipt for each seat
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{of}-{name}.json"
    _write(path, row.envelope)
    if is_seat:
        held = io.BytesIO()
        asyncio.run(export_seat(config, round_id, row.session_id, held))
        _write(output / f"{of}-seat.jsonl", held.getvalue())
    try:
        proof = make_proof(log or config.translog, row.hash, bundle=load_bundle(config), start=start)
    except NotFoundError:
        print("not in the log yet: the signed statement is the receipt until then, see `certify omission`")
    else:
        _write(path.with_suffix(".tlog-proof"), proof)
    print(f"regulator's session id {ids[0] or '-'}, participation id {ids[1] or '-'}")
    return 0


async def _regulator_ids(config: Config, session_id: str) -> tuple[str, str]:
    """Both ids of the session (RULEBOOK R-1): they are shown wherever a round is."""
    async with reading(config.store, config.archive) as reads:
        session = await reads.session(session_id)
    return ("", "") if session is None else (session.regulator_session_id, session.regulator_participation_id)


def _write(path: Path, content: bytes) -> None:
    write_whole(path, content, PUBLIC_MODE)
    print(path)


async def statement_of(config: Config, round_id: str, session: str, name: str) -> tuple[StatementRow, bytes]:
    """The `opening` or `final` of a seat in a round, and the `instance_start` of its instance. `session` may be empty
    where the round has one seat. NotFoundError, InvalidFieldError.
    """
    async with reading(config.store, config.archive) as reads:
        seat = await _seat_of(reads, round_id, session, name)
        envelope = (await reads.round_envelopes(round_id, seat.seat_no))[_NAMES.index(name)]
        row = await reads.statement_of_hash(leaf_hash(envelope), round_id=round_id) if envelope else None
        if row is None:
            raise NotFoundError(f"there is no {name} of round {round_id}", kind="round", round_id=round_id)
        return row, await reads.start_of(row.instance)


async def _seat_of(reads: StoreReads, round_id: str, session: str, name: str) -> Round:
    found = await reads.seats_of_round(round_id, 0, 2)
    if not found:
        raise NotFoundError(f"there is no round_{name} of round {round_id}", kind="round", round_id=round_id)
    if session and found[0].table_id:
        seat = await reads.seat(check_ulid(session, "session"), round_id)
        found = [] if seat is None else [seat]
    elif session:
        found = [seat for seat in found if seat.session_id == session]
    if len(found) != 1:
        what = "several seats" if found else "no seat of this session"
        raise InvalidFieldError(f"the round has {what}: choose one with --session", field="session", value=session[:26])
    return found[0]
