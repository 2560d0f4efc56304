"""Oracles over the files that a server leaves in its folder, still open or left behind.

`replay` is the auditor's procedure, `verify_numbers` counts numbers, links and draws by itself, and `verify_books`
compares, participation by participation, what the statements, the sessions, the wallet and the regulator tell. None of
them asks the server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from rgs.core.statements import LINK_ZERO, ExportLine, format_line, parse_canonical
from rgs.core.times import format_time
from rgs.store.interface import StatementRow
from rgs.store.regulator import RegulatorStore
from rgs.store.sqlite.store import SqliteReads, connect
from rgs.store.wallet import WalletStore
from tests.support.clocks import NOW_MS
from tests.support.service.harness import ACCOUNT_MINOR, NODE_KEY, ROOT_KEY, key_bundle, read_statement, sealed
from tests.support.waiting import all_at_once


def stored_statements(folder: Path) -> list[StatementRow]:
    """All statements in commit order, over a connection of their own."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        return all_at_once(SqliteReads(connection).statements_in_order())


def export_lines(folder: Path) -> Iterator[bytes]:
    """The statements as an auditor gets them, without line feeds; an export_scope first unless everything has ended."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        instances = connection.execute(
            "SELECT instance, alive, statement_no FROM instances ORDER BY instance"
        ).fetchall()
        links = "SELECT count(*) FROM sessions WHERE link_no > 0 AND status <> 'closed'"
        is_whole = not any(alive for _, alive, _ in instances) and connection.execute(links).fetchone() == (0,)
    if not is_whole:
        scope = {
            "instances": [{"first": "1", "instance": name, "last": str(last)} for name, _, last in instances],
            "kind": "export_scope",
            "reason": "UNFINISHED",
            "sessions": [],
            "time": format_time(NOW_MS),
        }
        yield format_line(ExportLine(sealed(scope, NODE_KEY), None))
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        query = "SELECT opening_hash, path FROM rounds WHERE table_id <> ''"
        paths = {bytes.fromhex(opening): path for opening, path in connection.execute(query)}
    for row in stored_statements(folder):
        path = paths.get(row.hash, b"")
        nodes = tuple(path[at : at + 32] for at in range(0, len(path), 32))
        line = ExportLine(row.envelope, parse_canonical(row.private) if row.private else None, nodes)
        yield format_line(line)


def replay_lines(lines: Iterable[bytes]) -> tuple[list[str], Summary]:
    """Every failed check as text, and the counts."""
    run = Replay(KeyBook(key_bundle(), root=ROOT_KEY.keyid), Rulebook())
    failures = [str(failure.metadata["check"]) + ": " + failure.message for line in lines for failure in run.feed(line)]
    failures += [f"{failure.metadata['check']}: {failure.message}" for failure in run.finish()]
    return failures, run.summary


def replay(folder: Path) -> Summary:
    """The counts of a replay of everything in which no check fails."""
    failures, summary = replay_lines(export_lines(folder))
    assert failures == [], failures
    return summary


@dataclass(frozen=True, slots=True)
class Account:
    """One participation as one of the books tells it."""

    bought_minor: int
    staked_minor: int
    returned_minor: int
    rounds: int
    ended: bool


def verify_numbers(rows: Sequence[StatementRow]) -> None:
    """Numbers of every instance and links of every session without gap; every draw accounted for once."""
    numbers: defaultdict[str, int] = defaultdict(int)
    links: defaultdict[str, tuple[int, str]] = defaultdict(lambda: (0, LINK_ZERO))
    draws: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        body = read_statement(row.envelope)
        assert (body["instance"], int(body["statement_no"])) == (row.instance, row.statement_no)
        assert row.statement_no == numbers[row.instance] + 1, (row.instance, row.statement_no)
        numbers[row.instance] += 1
        if row.link_no:
            link_no, previous = links[row.session_id]
            assert (row.link_no, body["previous"]) == (link_no + 1, previous), (row.session_id, row.link_no)
            links[row.session_id] = (row.link_no, row.hash.hex())
        if row.kind in {"round_opening", "table_deal"}:
            draws[body["deal"]["instance"]].append(int(body["deal"]["draw_no"]))
        if row.kind == "discarded_draw":
            draws[row.instance].append(int(body["draw_no"]))
    for instance, numbers_drawn in draws.items():
        assert sorted(numbers_drawn) == list(range(1, len(numbers_drawn) + 1)), instance


def verify_one_operation_a_request(folder: Path) -> None:
    """No request has asked for money under two ids; an opening that was given up had not asked yet."""
    query = (
        "SELECT party, method, request_id FROM operations WHERE status <> 'failed' GROUP BY party, method, request_id"
        " HAVING count(*) > 1"
    )
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        assert connection.execute(query).fetchall() == []


def verify_books(folder: Path, *, account_minor: int = ACCOUNT_MINOR) -> Summary:
    """Nothing is under way: all books tell the same of every participation, and replay agrees. Participations with play
    money stand in the statements and in the main store only.
    """
    rows = stored_statements(folder)
    verify_numbers(rows)
    assert replay(folder).failures == 0
    reported: dict[str, Account] = {}
    participation_of: dict[str, str] = {}
    for row in rows:
        body = read_statement(row.envelope)
        if row.kind == "purchase":
            participation_id = participation_of.setdefault(row.session_id, body["participation_id"])
            before = reported.get(participation_id, Account(0, 0, 0, 0, ended=False))
            assert participation_id == body["participation_id"]
            assert not before.ended
            reported[participation_id] = Account(
                before.bought_minor + int(body["amount_minor"]),
                before.staked_minor,
                before.returned_minor,
                before.rounds,
                ended=False,
            )
        elif row.kind in {"round_final", "seat_final"}:
            before = reported[participation_of[row.session_id]]
            reported[participation_of[row.session_id]] = Account(
                before.bought_minor,
                before.staked_minor + int(body["staked_minor"]),
                before.returned_minor + int(body["returned_minor"]),
                before.rounds + 1,
                ended=False,
            )
        elif row.kind == "participation_end":
            before = reported[body["participation_id"]]
            assert not before.ended, "a participation ended twice"
            assert int(body["paid_out_minor"]) == before.bought_minor - before.staked_minor + before.returned_minor
            reported[body["participation_id"]] = Account(
                before.bought_minor, before.staked_minor, before.returned_minor, before.rounds, ended=True
            )
    verify_one_operation_a_request(folder)
    _verify_main_store(folder, reported)
    demos = {row.session_id for row in rows if read_statement(row.envelope).get("mode") == "demo"}
    played_free = {participation_of.get(session_id) for session_id in demos}
    reported = {name: account for name, account in reported.items() if name not in played_free}
    _verify_totals(folder, [row for row in rows if row.session_id not in demos])
    _verify_wallet(folder, reported, account_minor)
    _verify_regulator(folder, reported)
    return replay(folder)


def _verify_main_store(folder: Path, reported: dict[str, Account]) -> None:
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM operations WHERE status = 'pending'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM stage_reports").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM sessions WHERE pending_operation <> ''").fetchone() == (0,)
        query = (
            "SELECT participation_id, bought_minor, staked_minor, returned_minor, rounds, ended, paid_out_minor"
            " FROM sessions WHERE participation_id <> '' AND open_round_id = ''"
        )
        for participation_id, bought, staked, returned, rounds, ended, paid_out in connection.execute(query):
            assert Account(bought, staked, returned, rounds, bool(ended)) == reported[participation_id]
            assert paid_out == (bought - staked + returned if ended else 0)


def _verify_totals(folder: Path, rows: Sequence[StatementRow]) -> None:
    """The running totals are those of all finals, void rounds apart."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        query = "SELECT session_id, operator, player, ruleset_id, currency FROM sessions"
        played_in = {session_id: key for session_id, *key in connection.execute(query)}
        query = (
            "SELECT day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,"
            " void_minor FROM totals"
        )
        kept = {tuple(row[:5]): tuple(row[5:]) for row in connection.execute(query)}
    scanned: defaultdict[tuple[str, ...], tuple[int, ...]] = defaultdict(lambda: (0, 0, 0, 0, 0))
    for row in rows:
        if row.kind in {"round_final", "seat_final"}:
            body = read_statement(row.envelope)
            staked, returned = int(body["staked_minor"]), int(body["returned_minor"])
            more = (0, 0, 0, 1, staked) if body["status"] == "void" else (1, staked, returned, 0, 0)
            key = (body["time"][:10], *played_in[row.session_id])
            scanned[key] = tuple(map(sum, zip(scanned[key], more, strict=True)))
    assert kept == scanned


def _verify_wallet(folder: Path, reported: dict[str, Account], account_minor: int) -> None:
    with closing(WalletStore(folder / "wallet.db")) as store:
        store.verify()
        entries = list(store.rows())
    undone = {entry.transaction_id for entry in entries if entry.kind == "rollback"}
    debited: defaultdict[str, int] = defaultdict(int)
    credited: defaultdict[str, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "debit" and entry.transaction_id not in undone:
            debited[entry.reference] += entry.amount_minor
        if entry.kind == "credit":
            credited[entry.reference].append(entry.amount_minor)
    assert debited == {reference: account.bought_minor for reference, account in reported.items()}
    assert credited == {
        reference: [account.bought_minor - account.staked_minor + account.returned_minor]
        for reference, account in reported.items()
        if account.ended
    }
    opened = sum(entry.amount_minor for entry in entries if entry.kind == "opening")
    assert opened % account_minor == 0


def _verify_regulator(folder: Path, reported: dict[str, Account]) -> None:
    with closing(RegulatorStore(folder / "regulator.db")) as store:
        store.verify()
    with closing(connect(folder / "regulator.db", read_only=True)) as connection:
        query = "SELECT reference, bought_minor, staked_minor, returned_minor, stages, ended FROM participations"
        regulator = {
            reference: Account(bought, staked, returned, stages, bool(ended))
            for reference, bought, staked, returned, stages, ended in connection.execute(query)
        }
    assert regulator == reported


def table(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of the store as they stand on the disk."""
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        return list(connection.execute(query))
