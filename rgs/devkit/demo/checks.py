"""The demo's comparisons after play: the players' receipts with the export, the history and the wallet.

Every statement received over gRPC must be in the export byte for byte, and a session's links in the order of arrival.
The history must list exactly the rounds played. The wallet must have moved what the sessions bought and paid out. Any
difference is a DemoError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.times import format_date
from rgs.devkit.client import Client
from rgs.devkit.demo.player import DemoError, PlayedRound, PlayedSession
from rgs.store.wallet import WalletStore
from rgs.v1.admin_pb2 import ListPendingCreditsRequest
from rgs.v1.audit_pb2 import ListKeyStatementsRequest
from rgs.v1.history_pb2 import GetRoundRecordRequest, ListRoundsRequest

_PAGE: Final = 50


def verify_keys(client: Client, path: Path) -> None:
    """The server gives out the key statements of the bundle that auditors get. DemoError."""
    given = list(client.call(client.audit.ListKeyStatements, ListKeyStatementsRequest()).envelopes)
    if given != parse_key_bundle(path.read_bytes()):
        raise DemoError(f"the server's {len(given)} key statements are not those of {path.name}")


def verify_history(client: Client, sessions: Iterable[PlayedSession]) -> int:
    """The history lists each player's rounds, last ended first; one round of each session is found by date and code.

    Returns the number of rounds listed. DemoError.
    """
    listed = 0
    by_player: dict[str, list[PlayedSession]] = {}
    for session in sessions:
        by_player.setdefault(session.player, []).append(session)
    for player, played in by_player.items():
        request = ListRoundsRequest(player=player, page_size=_PAGE)
        found = [row for page in client.pages(client.history.ListRounds, request) for row in page.rounds]
        views = [round_.view for session in reversed(played) for round_ in reversed(session.rounds)]
        rows = [(row.round_id, row.game_code, row.staked_minor, row.returned_minor) for row in found]
        expected = [(view.round_id, view.game_code, view.staked_minor, view.returned_minor) for view in views]
        if rows != expected:
            raise DemoError(f"the history of {player} lists {len(rows)} rounds that are not the {len(expected)} played")
        listed += len(rows)
        for session in played:
            if not session.rounds:  # on a machine under load a player may have missed every window of a table
                continue
            _verify_found(client, session, session.rounds[len(session.rounds) // 2])
    return listed


def _verify_found(client: Client, session: PlayedSession, round_: PlayedRound) -> None:
    """R-4 (code of a round): support finds the round by date and code."""
    code = round_.view.game_code
    date = format_date(round_.view.start_time.ToMilliseconds())
    request = GetRoundRecordRequest(player=session.player, date=date, game_code=code)
    records = client.call(client.history.GetRoundRecord, request).records
    found = [(record.opening, record.final) for record in records if record.round.round_id == round_.view.round_id]
    session.expect(found == [(round_.opening, round_.final)], f"round {code} of {date} is not found as it was played")


def verify_owed(client: Client, sessions: Iterable[PlayedSession]) -> int:
    """The server lists exactly these sessions' balances as credits due. Returns their sum, minor units. DemoError."""
    due = {session.view.session_id: session.view.balance_minor for session in sessions}
    pages = client.pages(client.admin.ListPendingCredits, ListPendingCreditsRequest(page_size=_PAGE))
    owed = {credit.session_id: credit.amount_minor for page in pages for credit in page.credits}
    if owed != due:
        raise DemoError(f"{len(due)} credits of {sum(due.values())} are due, the server lists {owed}")
    return sum(owed.values())


def verify_export(path: Path, sessions: Iterable[PlayedSession]) -> int:
    """Each session has the same statements in the export as it received, with its rounds in the same order.

    Returns the number of statements compared. DemoError.
    """
    exported: dict[str, list[bytes]] = {}
    with path.open("rb") as file:
        for line in file:
            envelope = parse_line(line.removesuffix(b"\n")).envelope
            _, body = parse_statement(parse_envelope(envelope))
            if "link_no" in body:
                exported.setdefault(body["session_id"], []).append(envelope)
    compared = 0
    for session in sessions:
        links = exported.pop(session.view.session_id, [])
        rounds = [envelope for round_ in session.rounds for envelope in (round_.opening, round_.final)]
        received = Counter([*session.others, *rounds])
        session.expect(Counter(links) == received, f"{len(links)} links are exported, {received.total()} were received")
        opened = set(rounds)
        session.expect([link for link in links if link in opened] == rounds, "its rounds are exported in another order")
        compared += len(links)
    if exported:
        raise DemoError(f"the export holds {len(exported)} sessions that nobody played: {', '.join(exported)}")
    return compared


def verify_wallet(path: Path, sessions: Sequence[PlayedSession]) -> int:
    """The wallet moved for each player what its sessions paid out, less what they bought.

    Returns the sum over all players, minor units. DemoError; VerificationError if the book does not add up.
    """
    due: Counter[str] = Counter()
    for session in sessions:
        due[session.player] += session.view.paid_out_minor - session.view.bought_minor
    moved: Counter[str] = Counter()
    with closing(WalletStore(path)) as store:
        store.verify()
        for entry in store.rows():
            if entry.kind != "opening":
                moved[entry.player] += entry.transfer_minor
    for player in sorted(due.keys() | moved.keys()):
        if moved[player] != due[player]:
            raise DemoError(f"the wallet moved {moved[player]} for {player}, its sessions come to {due[player]}")
    return moved.total()
