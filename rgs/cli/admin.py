"""`rgs admin …`: orders of admins over gRPC: switches, guards, malfunctions, and voids by two admins (docs/node.md).

An order prints what was done and the hash of the signed event. `--dry-run` lets the server check an order whole and
changes nothing: it prints what the order would do, or why it would be refused. Reasons are codes in UPPER_SNAKE. An
order over rounds is done round by round; the exit status is 1 if one of them was refused. Rounds of a table are paused
and made void at the table (`rgs tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

import typer

from rgs.cli.connection import with_client
from rgs.cli.options import HOME, DryRun, HomeOption, grouped, new_app, note
from rgs.core.amounts import format_money
from rgs.core.errors import InvalidFieldError
from rgs.core.statements import leaf_hash
from rgs.devkit.client import Client
from rgs.v1 import admin_pb2 as pb

PARTY: Final = "demo-admin"

app = new_app(help="Orders of admins: switches, guards, malfunctions, voids by two admins. --dry-run changes nothing.")


class Scope(StrEnum):
    """What a switch is about."""

    PLAY = "play"
    OPERATOR = "operator"
    GAME = "game"
    PLAYER = "player"


Reason = Annotated[str, typer.Option(help="Why, as a code in UPPER_SNAKE.")]
Rounds = Annotated[list[str], typer.Argument(help="Ids of rounds, 100 at most.", show_default=False)]
Name = Annotated[str, typer.Option(help="Of the switch, where its scope has one.")]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Who calls which server."""

    party: Annotated[str, typer.Option(help="The admin; its certificate must be in the home.")] = PARTY
    server: Annotated[str | None, typer.Option(help="HOST:PORT; default: the home's server.")] = None
    home: HomeOption = HOME


@app.command()
@grouped
def switches(connection: Connection) -> int:
    """List everything that is switched off."""

    def ask(client: Client) -> None:
        found = client.call(client.admin.ListSwitches, pb.ListSwitchesRequest()).switches
        for one in found:
            since = one.time.ToJsonString()
            print(f"{_subject(one)} off since {since} by {one.admin}: {one.reason}")
        if not found:
            note("nothing is switched off")

    return _with(connection, ask)


@app.command()
@grouped
def switch(
    scope: Annotated[Scope, typer.Argument(help="What is switched.")],
    state: Annotated[str, typer.Argument(help="on or off.")],
    reason: Reason,
    operator: Name = "",
    game: Name = "",
    player: Name = "",
    dry_run: DryRun = False,
    *,
    connection: Connection,
) -> int:
    """Switch play, an operator, a game or a player off or on. Rounds that are dealt are played out."""
    if state not in ("on", "off"):
        raise InvalidFieldError("the state of a switch is on or off", field="state", limit="on, off", value=state[:40])

    def ask(client: Client) -> None:
        wanted = pb.Switch(
            scope=pb.SwitchScope.Value(f"SWITCH_SCOPE_{scope.name}"), operator=operator, game=game, player=player
        )
        request = pb.SetSwitchRequest(
            request_id=client.request_id(), scope=wanted.scope, operator=operator, game=game, player=player,
            enabled=state == "on", reason=reason, dry_run=dry_run,
        )  # fmt: skip
        listed = client.call(client.admin.ListSwitches, pb.ListSwitchesRequest()).switches
        before = "off" if any(_subject(one) == _subject(wanted) for one in listed) else "on"
        answer = client.call(client.admin.SetSwitch, request)
        _done(f"{_subject(wanted)} was {before}, {'would be' if dry_run else 'is'} {state}", answer.statement)

    return _with(connection, ask)


@app.command()
@grouped
def guards(connection: Connection) -> int:
    """List the guards: what each has stopped, why and since when."""

    def ask(client: Client) -> None:
        for guard in client.call(client.admin.ListGuards, pb.ListGuardsRequest()).guards:
            latched = " (latched)" * guard.latched
            since = f" since {guard.time.ToJsonString()}: {guard.code}" * guard.closed
            print(f"{guard.name} {'closed' if guard.closed else 'open'}{latched}{since}")

    return _with(connection, ask)


@app.command("clear-guard")
@grouped
def clear_guard(
    name: Annotated[str, typer.Argument(help="Its name, as `rgs admin guards` shows it.")],
    reason: Reason,
    connection: Connection,
) -> int:
    """Clear a guard that latched. It opens if the server finds no fault now."""

    def ask(client: Client) -> None:
        request = pb.ClearGuardRequest(request_id=client.request_id(), name=name, reason=reason)
        _done(f"guard {name} is cleared", client.call(client.admin.ClearGuard, request).statement)

    return _with(connection, ask)


@app.command()
@grouped
def pause(
    round_id: Annotated[str, typer.Argument(help="The id of a round in play.", show_default=False)],
    malfunction: Annotated[str, typer.Option(help="What happened, as a code in UPPER_SNAKE.")],
    connection: Connection,
) -> int:
    """Log a malfunction of a round, and pause it."""

    def ask(client: Client) -> None:
        request = pb.ReportMalfunctionRequest(request_id=client.request_id(), round_id=round_id, code=malfunction)
        _done(f"round {round_id} is paused", client.call(client.admin.ReportMalfunction, request).statement)

    return _with(connection, ask)


@app.command()
@grouped
def resume(
    round_id: Annotated[str, typer.Argument(help="The id of a paused round.", show_default=False)],
    reason: Reason,
    connection: Connection,
) -> int:
    """End a pause: the round goes on where it stood."""

    def ask(client: Client) -> None:
        request = pb.ResumeRoundRequest(request_id=client.request_id(), round_id=round_id, reason=reason)
        _done(f"round {round_id} goes on", client.call(client.admin.ResumeRound, request).statement)

    return _with(connection, ask)


@app.command("propose-void")
@grouped
def propose_void(rounds: Rounds, reason: Reason, dry_run: DryRun = False, *, connection: Connection) -> int:
    """Propose to make paused rounds void: the first of two steps."""

    def ask(client: Client) -> int:
        request = pb.ProposeVoidRequest(
            request_id=client.request_id(), round_ids=rounds, reason=reason, dry_run=dry_run
        )
        answer = client.call(client.admin.ProposeVoid, request)
        return _voids(answer.results, "proposed", dry_run=dry_run)

    return _with(connection, ask)


@app.command("approve-void")
@grouped
def approve_void(rounds: Rounds, dry_run: DryRun = False, *, connection: Connection) -> int:
    """Make rounds void that another admin has proposed: all stakes come back, everything is revealed."""

    def ask(client: Client) -> int:
        request = pb.ApproveVoidRequest(request_id=client.request_id(), round_ids=rounds, dry_run=dry_run)
        return _voids(client.call(client.admin.ApproveVoid, request).results, "void", dry_run=dry_run)

    return _with(connection, ask)


def _with(connection: Connection, ask: Callable[[Client], int | None]) -> int:
    return with_client(connection.home, connection.party, connection.server, ask)


def _subject(switch: pb.Switch) -> str:
    scope = pb.SwitchScope.Name(switch.scope).removeprefix("SWITCH_SCOPE_").lower()
    return " ".join(filter(None, (scope, switch.operator, switch.game, switch.player)))


def _voids(results: Iterable[pb.VoidResult], done: str, *, dry_run: bool) -> int:
    status = 0
    for result in results:
        if result.refusal:
            status = 1
            print(f"round {result.round_id} refused: {result.refusal}")
        elif dry_run:
            stakes = format_money(result.staked_minor, result.currency)
            print(f"round {result.round_id} would be {done} ({result.reason}), {stakes} of stakes would come back")
        else:
            _done(f"round {result.round_id} {done}", result.statement)
    if dry_run:
        note("dry run: nothing was changed")
    return status


def _done(what: str, statement: bytes) -> None:
    print(what)
    if statement:
        print(f"  statement {leaf_hash(statement).hex()}")
    else:
        note("dry run: nothing was changed")
