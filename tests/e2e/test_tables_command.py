"""`rgs tables` against a real server: an admin sets a table up, runs it, and gets a refusal in one line.

One order is given from a process of its own, as from a shell; the others within this one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from rgs.core.rulesets import canonical_form, hash_of, parse_document
from rgs.devkit.client import Client, ClientIdentity
from rgs.node.config import load_config
from rgs.v1 import session_pb2, table_pb2
from rgs.v1.audit_pb2 import GetStatementRequest
from tests.support.process.served import PARTY, Served, rgs, rgs_here, serving
from tests.support.service.tables import ALWAYS, config_text

EVENT = re.compile(r"  statement ([0-9a-f]{64})\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("tables")) as one:
        second = rgs_here(
            "party", "add", "--role", "admin", "--party", "second-admin", "--issue", "--home", str(one.home)
        )
        assert second.returncode == 0, second.stderr
        yield one


def tables(served: Served, *arguments: str) -> CompletedProcess[str]:
    done = rgs_here("tables", *arguments, "--home", str(served.home), "--server", served.address)
    assert "Traceback" not in done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    return done


def ordered(served: Served, *arguments: str) -> str:
    """What an order says; its event can be read from the server."""
    done = tables(served, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    (event,) = EVENT.findall(done.stdout)
    with Client(served.address, ClientIdentity.of_party(load_config(served.home), "demo-auditor")) as client:
        client.call(client.audit.GetStatement, GetStatementRequest(hash=bytes.fromhex(event)))
    return done.stdout


def refused(served: Served, *arguments: str, reason: str) -> None:
    done = tables(served, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rgs: ")
    assert f"[{reason}" in done.stderr
    assert done.stderr.count("\n") == 1


def written(folder: Path, table_id: str, **rows: object) -> Path:
    """A configuration as a file."""
    rows = {"operators": [PARTY], "hours": ALWAYS, **rows}
    path = folder / "table.toml"
    path.write_text(config_text(table_id, **rows), "utf-8")
    return path


def listed(served: Served) -> list[list[str]]:
    """The lines of the list by columns, without its head. The server reads its tables once a second."""
    time.sleep(1.1)
    done = tables(served, "list")
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = [line.split() for line in done.stdout.splitlines()]
    assert head == ["table", "state", "players", "free", "game", "hours", "change", "(UTC)"]
    return lines


def seated(served: Served, client: Client, player: str, table: table_pb2.TableEntry) -> str:
    """A player who sits at the table; the session id."""
    request = session_pb2.OpenSessionRequest(
        request_id=client.request_id(),
        game=table.game,
        player=player,
        currency="EUR",
        operator_reference=client.request_id(),
        table=table.table,
    )
    session = client.call(client.sessions.OpenSession, request).session
    client.call(client.sessions.BuyParticipation, client.requests.buy(session, 10_000))
    join = table_pb2.JoinRequest(request_id=client.request_id(), session_id=session.session_id, nickname="Al")
    client.call(client.tables.Join, join)
    return session.session_id


def test_an_empty_lobby_is_no_error(served: Served) -> None:
    done = tables(served, "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no table is configured\n")


def test_a_table_is_set_up_run_and_shut(served: Served, tmp_path: Path) -> None:
    file = written(tmp_path, "uth-online", id="sala-1")
    sha256 = hash_of(canonical_form(parse_document(file.read_text("utf-8"))))
    where = ("--home", str(served.home), "--server", served.address)
    done = rgs("tables", "configure", str(file), "--reason", "NEW_TABLE", *where)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("configured sala-1: the configuration is in force\n  statement ")
    assert done.stdout.endswith(f"\n  config {sha256}\n")
    refused(served, "configure", str(file), "--reason", "AGAIN", reason="TABLE_CONFIG_REFUSED field=version")
    ((name, state, *rest),) = listed(served)
    assert (name, rest) == ("sala-1", ["0", "-", "uth-online", "-"])
    assert state in {"shut", "idle"}, "the dealer opens it by its hours"
    assert ordered(served, "shut", "sala-1", "--reason", "CLEANING").startswith("sala-1 is kept shut")
    assert ordered(served, "open", "sala-1", "--reason", "CLEANED").startswith("sala-1 follows its hours\n")
    refused(served, "open", "sala-2", "--reason", "CLEANED", reason="NOT_FOUND field=table")
    refused(served, "open", "sala-1", "--reason", "clean", reason="INVALID_FIELD field=reason")
    refused(served, "resume", "sala-1", "--reason", "REPAIRED", reason="TABLE_STATE")


def test_boxes_players_and_chat(served: Served, tmp_path: Path) -> None:
    file = written(tmp_path, "uth-seven-box", id="boxes-of-a-table-with-a-long-name")
    name = "boxes-of-a-table-with-a-long-name"
    ordered(served, "configure", str(file), "--reason", "NEW_TABLE")
    whose = ("--operator", PARTY, "--reason", "GUEST")
    said = ordered(served, "reserve", name, "3", "--player", "guest-1", *whose)
    assert said.startswith(f"box 3 of {name} is held for guest-1 of")
    lines = listed(served)
    assert lines[lines.index([name]) + 1][1:] == ["0", "6/7", "uth-seven-box", "-"]
    ordered(served, "reserve", name, "3", "--reason", "GONE")
    with Client(served.address, ClientIdentity.of_party(load_config(served.home), PARTY)) as client:
        entries = client.call(client.tables.ListTables, table_pb2.ListTablesRequest()).tables
        (entry,) = [one for one in entries if one.table == name]
        session_id = seated(served, client, "player-1", entry)
        text = "buona sera " * 15
        line = client.call(
            client.tables.Say,
            table_pb2.SayRequest(request_id=client.request_id(), session_id=session_id, text=text),
        ).line
        chat = tables(served, "chat", name).stdout
        assert chat.splitlines()[0].split()[0] == line.message_id
        assert chat.splitlines()[0].endswith(" Al")
        assert " ".join(chat.split()).endswith(text.strip())
        ordered(served, "erase", line.message_id, "--reason", "RUDE")
        assert "buona" not in tables(served, "chat", name).stdout
        assert "(erased)" in tables(served, "chat", name).stdout
        ordered(served, "bar", name, "--operator", PARTY, "--player", "player-1", "--reason", "CHEATING")
        joined = table_pb2.JoinRequest(request_id=client.request_id(), session_id=session_id, nickname="Al")
        with pytest.raises(Exception, match="barred"):
            client.call(client.tables.Join, joined)
        ordered(served, "bar", name, "--operator", PARTY, "--player", "player-1", "--reason", "FORGIVEN", "--lift")
        client.call(client.tables.Join, joined)


def test_a_malfunction_and_a_void_by_two(served: Served, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "uth-online",
        id="sala-3",
        timers={"betting_ms": 1_000, "amber_ms": 0, "decision_ms": 600_000, "result_ms": 1_000},
    )
    ordered(served, "configure", str(file), "--reason", "NEW_TABLE")
    assert ordered(served, "pause", "sala-3", "--malfunction", "NO_LIGHT").startswith("sala-3 is paused\n")
    assert ["sala-3", "paused"] in [line[:2] for line in listed(served)]
    assert ordered(served, "cancel", "sala-3", "--reason", "LIGHT").startswith("sala-3 is idle, its bets are returned")
    with Client(served.address, ClientIdentity.of_party(load_config(served.home), PARTY)) as client:
        entries = client.call(client.tables.ListTables, table_pb2.ListTablesRequest()).tables
        (entry,) = [one for one in entries if one.table == "sala-3"]
        session_id = seated(served, client, "player-3", entry)
        table_request = table_pb2.GetTableRequest(table="sala-3", session_id=session_id)
        seat = client.call(client.tables.GetTable, table_request).seat
        request = table_pb2.PlaceBetsRequest(
            request_id=client.request_id(),
            session_id=session_id,
            device_no=seat.device_no,
            seat_version=seat.seat_version,
        )
        request.bets.add(bet="ante", amount_minor=100)
        client.call(client.tables.PlaceBets, request)
        round_id = _await_decisions(client, table_request)
        ordered(served, "pause", "sala-3", "--malfunction", "NO_LIGHT")
        assert ordered(served, "resume", "sala-3", "--reason", "LIGHT").startswith("sala-3 goes on\n")
        ordered(served, "pause", "sala-3", "--malfunction", "NO_LIGHT")
        order = ("void", "sala-3", "--round", round_id, "--reason", "NO_LIGHT")
        stakes = "  1 seat gets back 200 minor units of EUR (2.00 EUR)\n"
        stakes += f"  seat 1: 200 to session {session_id}\n    of demo-operator\n"
        tried = tables(served, *order, "--dry-run")
        assert tried.stdout == f"round {round_id} would be proposed to be void\n{stakes}"
        assert ordered(served, *order).startswith("proposed: ")
        refused(served, *order, reason="SECOND_ADMIN_NEEDED")
        tried = tables(served, *order, "--party", "second-admin", "--dry-run")
        assert tried.stdout == f"round {round_id} would be void\n{stakes}"
        assert tried.stderr == "dry run: nothing was changed\n"
        said = ordered(served, *order, "--party", "second-admin")
        assert said.startswith(f"round {round_id} is void\n")


def _await_decisions(client: Client, request: table_pb2.GetTableRequest) -> str:
    """The round's id, once its cards are shown."""
    for _ in range(200):
        table = client.call(client.tables.GetTable, request).table
        if table.state == table_pb2.TABLE_STATE_DECIDING:
            return table.round_id
        time.sleep(0.05)
    raise AssertionError("no cards are shown")


def test_what_is_not_understood_has_status_2(served: Served, tmp_path: Path) -> None:
    for arguments in ((), ("shut", "sala-1"), ("list", "--table", "sala-1"), ("reserve", "sala-1", "0")):
        assert tables(served, *arguments).returncode == 2
    file = tmp_path / "table.toml"
    file.write_bytes(b"id = \xff")
    assert tables(served, "configure", str(file), "--reason", "NEW_TABLE").returncode == 2


def test_no_server_is_one_line(served: Served) -> None:
    done = rgs_here("tables", "list", "--home", str(served.home), "--server", "127.0.0.1:1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "does the server run? [UNAVAILABLE]" in done.stderr
