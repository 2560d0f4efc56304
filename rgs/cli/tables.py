"""`rgs tables …`: what admins do at tables, over gRPC with an admin's certificate (docs/tables.md).

Lists go to stdout in lines of at most 80 characters. An order prints what was done, and the hash of the signed event.
Reasons and malfunctions are codes in UPPER_SNAKE. A void takes two admins: each gives the same order as another party.
An order without an answer is repeated with its request id, a few times; the exit status is 1 if nothing answers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.connection import with_client
from rgs.cli.options import HOME, DryRun, HomeOption, grouped, new_app, note
from rgs.core.amounts import format_money
from rgs.core.errors import FormatError
from rgs.core.rulesets import canonical_form, hash_of, parse_document
from rgs.core.statements import leaf_hash
from rgs.devkit.client import Client
from rgs.v1 import table_pb2 as pb

PARTY: Final = "demo-admin"
LINE_MAX: Final = 80
_NAME_WIDTH: Final = 20
"""A longer name of a table stands in a line of its own."""
_HEAD: Final = ("table", "state", "players", "free", "game", "hours change (UTC)")

app = new_app(help="Tables: configure, open and shut, pause and go on, void, bar, reserve, chat.")

Table = Annotated[str, typer.Argument(help="Its id, as `rgs tables list` shows it.", show_default=False)]
Reason = Annotated[str, typer.Option(help="Why, as a code in UPPER_SNAKE.")]
Operator = Annotated[str, typer.Option(help="The operator of the player.")]
Player = Annotated[str, typer.Option(help="The operator's pseudonym of the player.")]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Who calls which server."""

    party: Annotated[str, typer.Option(help="The admin; its certificate must be in the home.")] = PARTY
    server: Annotated[str | None, typer.Option(help="HOST:PORT; default: the home's server.")] = None
    home: HomeOption = HOME


# --- lists -----------------------------------------------------------------------------------------------------------


@app.command("list")
@grouped
def list_(connection: Connection) -> int:
    """List all tables: state, players (at least so many), free boxes, game, next change by the hours."""

    def ask(client: Client) -> None:
        pages = client.pages(client.tables.ListTables, pb.ListTablesRequest(page_size=200))
        rows = [_row(entry) for page in pages for entry in page.tables]
        if not rows:
            note("no table is configured")
            return
        for row in (_HEAD, *rows):
            print("\n".join(_lines(row)))

    return _with_client(connection, ask)


@app.command()
@grouped
def chat(
    table: Table,
    lines: Annotated[int, typer.Option(help="The newest so many lines.", min=1, max=200)] = 50,
    *,
    connection: Connection,
) -> int:
    """Show the newest lines of a table's chat, the newest last, each with its id for `rgs tables erase`."""

    def ask(client: Client) -> None:
        page = client.call(client.tables.ListMessages, pb.ListMessagesRequest(table=table, page_size=lines))
        for line in reversed(page.lines):
            print(f"{line.message_id} {line.time.ToJsonString()} {line.nickname or line.code or '(erased)'}")
            if line.player:
                print(textwrap.fill(f"{line.player} of {line.operator}:", LINE_MAX, initial_indent="  "))
            print(textwrap.fill(line.text, LINE_MAX, initial_indent="  ", subsequent_indent="  ") or "  -")

    return _with_client(connection, ask)


# --- tables ----------------------------------------------------------------------------------------------------------


@app.command()
@grouped
def configure(
    file: Annotated[Path, typer.Argument(help="The configuration, TOML.", exists=True, dir_okay=False)],
    reason: Reason,
    connection: Connection,
) -> int:
    """Set up a table, or give it the next version of its configuration."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{file} is not UTF-8", field="file", value=str(file)) from None
    sha256 = hash_of(canonical_form(parse_document(text)))

    def ask(client: Client) -> None:
        request = pb.ConfigureTableRequest(request_id=client.request_id(), config=text, reason=reason)
        answer = client.call(client.table_admin.ConfigureTable, request)
        is_in_force = answer.table.config == sha256
        when = "is in force" if is_in_force else "comes into force when no round is running"
        _done(f"configured {answer.table.table}: the configuration {when}", answer.statement)
        print(f"  config {sha256}")

    return _with_client(connection, ask)


@app.command("open")
@grouped
def open_(table: Table, reason: Reason, connection: Connection) -> int:
    """Let a table follow its opening hours again."""
    return _set_open(connection, table, reason, is_open=True)


@app.command()
@grouped
def shut(table: Table, reason: Reason, connection: Connection) -> int:
    """Keep a table shut, whatever its hours say; a running round is finished first."""
    return _set_open(connection, table, reason, is_open=False)


def _set_open(connection: Connection, table: str, reason: str, *, is_open: bool) -> int:
    def ask(client: Client) -> None:
        request = pb.SetTableOpenRequest(request_id=client.request_id(), table=table, open=is_open, reason=reason)
        answer = client.call(client.table_admin.SetTableOpen, request)
        done = "follows its hours" if is_open else "is kept shut, after its running round"
        _done(f"{table} {done}", answer.statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def pause(
    table: Table,
    malfunction: Annotated[str, typer.Option(help="What happened, as a code in UPPER_SNAKE: players see it.")],
    connection: Connection,
) -> int:
    """Log a malfunction: every clock of the table stands."""

    def ask(client: Client) -> None:
        request = pb.PauseTableRequest(request_id=client.request_id(), table=table, malfunction_code=malfunction)
        _done(f"{table} is paused", client.call(client.table_admin.PauseTable, request).statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def resume(table: Table, reason: Reason, connection: Connection) -> int:
    """End a pause: the table goes on where it was, with a whole window."""

    def ask(client: Client) -> None:
        request = pb.ResumeTableRequest(request_id=client.request_id(), table=table, reason=reason)
        _done(f"{table} goes on", client.call(client.table_admin.ResumeTable, request).statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def cancel(table: Table, reason: Reason, connection: Connection) -> int:
    """Give up a pause from before the bets had their numbers, or from the results: all bets return."""

    def ask(client: Client) -> None:
        request = pb.CancelBetsRequest(request_id=client.request_id(), table=table, reason=reason)
        _done(f"{table} is idle, its bets are returned", client.call(client.table_admin.CancelBets, request).statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def void(
    table: Table,
    round: Annotated[str, typer.Option(help="The round's id, so that no other one is meant.")],  # noqa: A002
    reason: Reason,
    dry_run: DryRun = False,
    *,
    connection: Connection,
) -> int:
    """Make the paused round of a table void: one admin proposes, another one gives the same order and approves."""

    def ask(client: Client) -> None:
        request = pb.VoidTableRoundRequest(
            request_id=client.request_id(), table=table, round_id=round, reason=reason, dry_run=dry_run
        )
        answer = client.call(client.table_admin.VoidTableRound, request)
        if dry_run:
            print(f"round {round} would be {'void' if answer.approved else 'proposed to be void'}")
            _print_stakes(answer)
            note("dry run: nothing was changed")
            return
        done = f"round {round} is void" if answer.approved else f"proposed: round {round} waits for another admin"
        _done(done, answer.statement)

    return _with_client(connection, ask)


# --- places and chat -------------------------------------------------------------------------------------------------


@app.command()
@grouped
def bar(
    table: Table,
    operator: Operator,
    player: Player,
    reason: Reason,
    lift: Annotated[bool, typer.Option("--lift", help="Let the player back.")] = False,
    *,
    connection: Connection,
) -> int:
    """Bar a player from a table. One who sits there leaves; cut bets are played out."""

    def ask(client: Client) -> None:
        request = pb.BarPlayerRequest(
            request_id=client.request_id(),
            table=table,
            operator=operator,
            player=player,
            barred=not lift,
            reason=reason,
        )
        answer = client.call(client.table_admin.BarPlayer, request)
        _done(f"{player} of {operator} {'may play at' if lift else 'is barred from'} {table}", answer.statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def reserve(
    table: Table,
    box: Annotated[int, typer.Argument(help="The number of the box.", min=1, show_default=False)],
    reason: Reason,
    operator: Operator = "",
    player: Player = "",
    *,
    connection: Connection,
) -> int:
    """Hold a box for a player; without --operator and --player for nobody any more."""

    def ask(client: Client) -> None:
        request = pb.ReserveBoxRequest(
            request_id=client.request_id(), table=table, box=box, operator=operator, player=player, reason=reason
        )
        answer = client.call(client.table_admin.ReserveBox, request)
        done = f"is held for {player} of {operator}" if player else "is held for nobody"
        _done(f"box {box} of {table} {done}", answer.statement)

    return _with_client(connection, ask)


@app.command()
@grouped
def erase(
    message: Annotated[str, typer.Argument(help="The id of the line, as `rgs tables chat` shows it.")],
    reason: Reason,
    connection: Connection,
) -> int:
    """Empty a line of chat."""

    def ask(client: Client) -> None:
        request = pb.EraseMessageRequest(request_id=client.request_id(), message_id=message, reason=reason)
        _done(f"erased {message}", client.call(client.table_admin.EraseMessage, request).statement)

    return _with_client(connection, ask)


# --- all -------------------------------------------------------------------------------------------------------------


def _with_client(connection: Connection, ask: Callable[[Client], None]) -> int:
    """Connect and ask; the exit status. A refusal is printed with its reason."""
    return with_client(connection.home, connection.party, connection.server, ask)


def _done(what: str, statement: bytes) -> None:
    print(textwrap.fill(what, LINE_MAX, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
    print(f"  statement {leaf_hash(statement).hex()}")


def _print_stakes(answer: pb.VoidTableRoundResponse) -> None:
    """What would come back to whom, in minor units."""
    total = format_money(answer.staked_minor, answer.currency)
    seats = "1 seat gets" if answer.seats == 1 else f"{answer.seats} seats get"
    print(f"  {seats} back {answer.staked_minor} minor units of {answer.currency} ({total})")
    for one in answer.stakes:
        seat = f"seat {one.seat_no}" if one.seat_no else "a seat without number"
        print(f"  {seat}: {one.staked_minor} to session {one.session_id}\n    of {one.operator}")
    if answer.seats > len(answer.stakes):
        print(f"  and {answer.seats - len(answer.stakes)} more")


def _row(entry: pb.TableEntry) -> tuple[str, ...]:
    state = pb.TableState.Name(entry.state).removeprefix("TABLE_STATE_").lower()
    players = f"{entry.players_at_least}{'+' * bool(entry.players_at_least)}"
    free = f"{entry.boxes_free}/{entry.boxes}" if entry.boxes else "-"
    change = (
        entry.hours_change_time.ToDatetime().strftime("%Y-%m-%d %H:%M") if entry.HasField("hours_change_time") else "-"
    )
    return entry.table, state, players, free, entry.game, change


def _lines(row: tuple[str, ...]) -> list[str]:
    """A table's line, or two if its name is long."""
    name, state, players, free, game, change = row
    rest = f"{state:8} {players:>8} {free:>4} {game:14} {change}".rstrip()
    if len(name) <= _NAME_WIDTH:
        return [f"{name:{_NAME_WIDTH}} {rest}"]
    return [name, f"{'':{_NAME_WIDTH}} {rest}"]
