"""`rgs support …`: what support staff looks up, over gRPC with a certificate of the role support (docs/support.md).

It only reads. Answers go to stdout, amounts in major units, times in UTC. Nothing found is exit status 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from rgs.cli.connection import with_client
from rgs.cli.options import HOME, HomeOption, grouped, new_app, note
from rgs.core.amounts import format_money
from rgs.devkit.client import Client
from rgs.v1 import common_pb2 as common
from rgs.v1 import support_pb2 as pb
from rgs.v1.history_pb2 import RoundSummary
from rgs.v1.support_pb2_grpc import SupportServiceStub

PARTY: Final = "demo-support"
LIST_MAX: Final = 1000

app = new_app(help="Look up players, sessions and rounds, and explain a round in words. It changes nothing.")

Operator = Annotated[str, typer.Option(help="The operator; needed by a support party of all operators.")]
Most = Annotated[int, typer.Option("--limit", help="Lines at most.", min=1, max=LIST_MAX)]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Who calls which server."""

    party: Annotated[str, typer.Option(help="The support party; its certificate must be in the home.")] = PARTY
    server: Annotated[str | None, typer.Option(help="HOST:PORT; default: the home's server.")] = None
    home: HomeOption = HOME


@app.command()
@grouped
def find(
    text: Annotated[str, typer.Argument(help="A player, an id, a game code, a reference, a transaction id.")],
    operator: Annotated[str, typer.Option(help="Only at this operator; needed with a game code.")] = "",
    date: Annotated[str, typer.Option(help="With a game code: the UTC date of the round's start.")] = "",
    limit: Most = 50,
    *,
    connection: Connection,
) -> int:
    """Find what a text names exactly: a player, a session, a round."""

    def ask(client: Client) -> int:
        request = pb.FindRequest(text=text, operator=operator, date=date, page_size=min(limit, 200))
        matches = [one for page in client.pages(_stub(client).Find, request) for one in page.matches][:limit]
        for match in matches:
            kind = pb.SupportMatchKind.Name(match.kind).removeprefix("SUPPORT_MATCH_KIND_").lower()
            named = [f"{name} {value}" for name, value in (
                ("operator", match.operator), ("player", match.player or "(erased)"),
                ("session", match.session_id), ("round", match.round_id),
            ) if value]  # fmt: skip
            print(f"{kind}: {', '.join(named)}, {_time(match.time)}")
        if not matches:
            note("rgs: nothing has exactly this name, or it belongs to another operator")
        return 0 if matches else 1

    return with_client(connection.home, connection.party, connection.server, ask)


@app.command()
@grouped
def player(
    player: Annotated[str, typer.Argument(help="The operator's pseudonym of the player.", show_default=False)],
    operator: Operator = "",
    limit: Most = 20,
    *,
    connection: Connection,
) -> int:
    """Show what keeps a player from starting, and the newest sessions."""

    def ask(client: Client) -> None:
        stub = _stub(client)
        answer = client.call(stub.GetPlayer, pb.GetPlayerRequest(operator=operator, player=player))
        print(f"player {answer.player} of {answer.operator}")
        for bar in answer.bars:
            where = f" {bar.table}" * bool(bar.table)
            print(f"  stopped: {bar.scope}{where} since {_time(bar.since_time)}, {bar.reason}")
        request = pb.ListSupportSessionsRequest(operator=operator, player=player, page_size=min(limit, 200))
        for session in _first(client.pages(stub.ListSupportSessions, request), "sessions", limit):
            print(f"  {_session_line(session)}")

    return with_client(connection.home, connection.party, connection.server, ask)


@app.command()
@grouped
def session(
    session_id: Annotated[str, typer.Argument(help="Its id.", show_default=False)],
    limit: Most = 50,
    *,
    connection: Connection,
) -> int:
    """Show a session: money, ids, what it waits for, its transfers and its newest rounds."""

    def ask(client: Client) -> None:
        stub = _stub(client)
        request = pb.GetSupportSessionRequest(session_id=session_id, page_size=200)
        transfers: list[pb.SupportTransfer] = []
        one, wait = pb.SupportSession(), None
        for page in client.pages(stub.GetSupportSession, request):
            one, wait = page.session, page.wait if page.HasField("wait") else None
            transfers += page.transfers
            if len(transfers) >= limit:
                break
        _print_session(one)
        if wait is not None:
            amount = format_money(wait.amount_minor, one.currency)
            reason = f", last {wait.last_reason}" * bool(wait.last_reason)
            print(
                f"  waits for {wait.kind} of {amount} ({wait.progress}) since {_time(wait.since_time)}: transaction"
                f" {wait.transaction_id}, {wait.attempts} attempts{reason}"
            )
        for transfer in transfers[:limit]:
            of = f", round {transfer.round_id}" * bool(transfer.round_id)
            amount = format_money(transfer.amount_minor, one.currency)
            print(
                f"  {_time(transfer.time)} {transfer.kind} {amount}, transaction {transfer.transaction_id or '-'}{of}"
            )
        listed = pb.ListSupportRoundsRequest(session_id=session_id, page_size=min(limit, 200))
        for summary in _first(client.pages(stub.ListSupportRounds, listed), "rounds", limit):
            print(f"  {_round_line(summary)}")

    return with_client(connection.home, connection.party, connection.server, ask)


@app.command()
@grouped
def rounds(
    player: Annotated[str, typer.Argument(help="The operator's pseudonym of the player.", show_default=False)],
    operator: Operator = "",
    limit: Most = 50,
    *,
    connection: Connection,
) -> int:
    """List the ended rounds of a player over all sessions, last ended first."""

    def ask(client: Client) -> None:
        request = pb.ListSupportRoundsRequest(operator=operator, player=player, page_size=min(limit, 200))
        for summary in _first(client.pages(_stub(client).ListSupportRounds, request), "rounds", limit):
            print(_round_line(summary))

    return with_client(connection.home, connection.party, connection.server, ask)


@app.command("round")
@grouped
def round_(
    round_id: Annotated[str, typer.Argument(help="Its id, as `rgs support find` shows it.", show_default=False)],
    session_id: Annotated[str, typer.Option("--session", help="At a table: the seat of this session.")] = "",
    *,
    connection: Connection,
) -> int:
    """Explain a round in words, from its signed statements."""

    def ask(client: Client) -> None:
        request = pb.ExplainRoundRequest(round_id=round_id, session_id=session_id)
        answer = client.call(_stub(client).ExplainRound, request)
        summary = answer.summary
        print(f"round {summary.round_id} of session {summary.session_id}, player {summary.player or '(erased)'}")
        for sentence in answer.sentences:
            print(f"  {sentence}")
        others = [one for one in answer.session_ids if one != summary.session_id]
        if others:
            note(f"other seats of the round (--session): {' '.join(others)}")

    return with_client(connection.home, connection.party, connection.server, ask)


def _stub(client: Client) -> SupportServiceStub:
    return SupportServiceStub(client.channel)


def _first(pages: Iterator[Any], field: str, most: int) -> Iterator[Any]:
    """The first rows of a list, and no page more than they need."""
    for page in pages:
        for row in getattr(page, field):
            if most <= 0:
                return
            most -= 1
            yield row
        if most <= 0:
            return


def _print_session(one: pb.SupportSession) -> None:
    print(_session_line(one))
    at = f" at table {one.table}" * bool(one.table)
    test = " (test regulator)" * one.test_regulator
    print(f"  player {one.player or '(erased)'} of {one.operator}, {one.game}{at}")
    print(f"  operator's reference {one.operator_reference or '-'}")
    print(f"  regulator's session {one.regulator_session_id or '-'}{test}")
    print(f"  regulator's participation {one.regulator_participation_id or '-'}")
    amounts = ("bought", "staked", "returned", "paid_out", "balance")
    shown = [
        f"{name.replace('_', ' ')} {format_money(getattr(one, f'{name}_minor'), one.currency)}" for name in amounts
    ]
    print(f"  {', '.join(shown)}; rounds {one.rounds}")


def _session_line(one: pb.SupportSession) -> str:
    status = common.SessionStatus.Name(one.status).removeprefix("SESSION_STATUS_").lower()
    play_money = ", play money" * (one.mode == common.MODE_DEMO)
    open_round = f", round {one.open_round_id} in play" * bool(one.open_round_id)
    return f"session {one.session_id} {status}, opened {_time(one.open_time)}{play_money}{open_round}"


def _round_line(summary: RoundSummary) -> str:
    status = common.RoundStatus.Name(summary.status).removeprefix("ROUND_STATUS_").lower()
    money = ""
    if summary.status != common.ROUND_STATUS_OPEN:
        staked, returned = (
            format_money(one, summary.currency) for one in (summary.staked_minor, summary.returned_minor)
        )
        money = f", staked {staked}, returned {returned}"
    return f"round {summary.round_id} {summary.game_code} {status}, began {_time(summary.start_time)}{money}"


def _time(time: Timestamp) -> str:
    return time.ToDatetime().strftime("%Y-%m-%d %H:%M:%S") + " UTC"
