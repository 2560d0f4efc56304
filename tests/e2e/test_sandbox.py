"""`rgs sandbox` as a process: its folder is used again, and its wallet fails when it is told to."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from rgs.core.tables.config import SHIPPED_TABLES
from rgs.devkit.client import Client, OutcomeUnknownError
from rgs.devkit.processes.server import free_address
from rgs.v1 import common_pb2, play_pb2, session_pb2, table_pb2
from tests.support.process.sandbox import sandbox
from tests.support.process.served import rgs, rgs_here

pytestmark = pytest.mark.slow


def opened(client: Client, player: str) -> common_pb2.SessionView:
    request = session_pb2.OpenSessionRequest(
        request_id=client.request_id(), game="casino-holdem", player=player, currency="EUR", operator_reference=player
    )
    return client.call(client.sessions.OpenSession, request).session


def start_of(client: Client, session: common_pb2.SessionView) -> play_pb2.StartRoundRequest:
    return play_pb2.StartRoundRequest(
        request_id=client.request_id(),
        session_id=session.session_id,
        round_no=session.next_round_no,
        bets=[common_pb2.Bet(bet="ante", amount_minor=1_00)],
    )


def test_its_folder_is_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder) as first:
        with first.client("demo-operator") as client:
            tables = [
                client.call(client.tables.GetTable, table_pb2.GetTableRequest(table=name)) for name in SHIPPED_TABLES
            ]
            assert [found.table.table for found in tables] == list(SHIPPED_TABLES)
        with first.client("seamless-operator") as client:
            left_open = opened(client, "stays")
            assert left_open.funding == common_pb2.FUNDING_SEAMLESS
    ca = (folder / "home" / "tls" / "ca.pem").read_bytes()
    certificate = (folder / "home" / "tls" / "clients" / "seamless-operator.pem").read_bytes()
    everywhere = f"0.0.0.0:{free_address().rpartition(':')[2]}"  # as in a container
    with sandbox(folder, "--listen", everywhere) as second:
        assert (folder / "home" / "tls" / "ca.pem").read_bytes() == ca
        assert (folder / "home" / "tls" / "clients" / "seamless-operator.pem").read_bytes() == certificate
        with second.client("seamless-operator") as client:
            started = client.call(client.play.StartRound, start_of(client, left_open))
            assert started.round.status == common_pb2.ROUND_STATUS_OPEN
        again = rgs("sandbox", "--home", str(folder), "--listen", free_address(), "--wallet-listen", free_address())
        assert again.returncode == 1
        assert "another process is at work in" in again.stderr


def test_a_lost_reply_of_the_wallet_is_one_debit(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    with sandbox(folder, "--fault", "Debit:1:lost_reply") as running, running.client("seamless-operator") as client:
        session = opened(client, "anna")
        start = start_of(client, session)
        with pytest.raises(OutcomeUnknownError) as lost:
            client.call_once(client.play.StartRound, start)
        assert lost.value.reason == "WALLET_UNAVAILABLE"
        started = client.call(client.play.StartRound, start)  # the same request, the same id
        assert started.session.wallet_balance_minor == 1_000_000 - 1_00
        fold = play_pb2.ActRequest(
            request_id=client.request_id(),
            session_id=session.session_id,
            round_id=started.round.round_id,
            round_version=started.round.round_version,
            action=common_pb2.ACTION_FOLD,
        )
        assert client.call(client.play.Act, fold).round.status == common_pb2.ROUND_STATUS_SETTLED
        last = time.monotonic() + 20
        while "wallet: fault 1: Debit call 1" not in running.printed:
            assert time.monotonic() < last, running.printed
            time.sleep(0.1)
    debits = [row for row in running.wallet_rows() if row[1] == "debit" and "accepted" in row]
    assert [row[2:5] for row in debits] == [["anna", "EUR", "100"]]


def test_a_folder_of_another_origin_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "ascii")
    refused = rgs_here("sandbox", "--home", str(tmp_path))
    assert refused.returncode == 1
    assert "was not made by `rgs sandbox`: name a new or empty folder with --home" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--listen", "127.0.0.1:0"), "--listen needs a port of its own"),
        (("--listen", "localhost:50999", "--wallet-listen", "localhost:50999"), "--wallet-listen needs a port of its"),
        (("--fault", "Debit:1:no_such"), "unknown fault 'no_such'"),
        (("--lost-replies", "1001"), "'--lost-replies': Input should be less than or equal to 1000"),
    ],
)
def test_options_that_are_not_understood_make_nothing(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    folder = tmp_path / "sandbox"
    refused = rgs_here("sandbox", "--home", str(folder), *options)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not folder.exists()


def test_a_taken_port_is_named_before_anything_is_made(tmp_path: Path) -> None:
    folder, taken = tmp_path / "sandbox", free_address()
    host, port = taken.split(":")
    with socket.create_server((host, int(port))):
        refused = rgs_here("sandbox", "--home", str(folder), "--listen", taken)
    assert refused.returncode == 2
    assert f"cannot listen on {taken}: Address already in use; name another address with --listen" in refused.stderr
    assert not folder.exists()
