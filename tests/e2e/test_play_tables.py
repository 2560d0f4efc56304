"""`rgs play` at tables of a real server: whole rounds with piped input and by keys, resumed, on two devices, paused,
void, and lied to.
"""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from rgs.cli import play
from rgs.cli.options import run_app
from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.demo.tables import with_timers
from rgs.devkit.shipped_tables import set_up, shipped_table
from rgs.devkit.terminal.seat_watch import SeatWatch
from rgs.node.config import load_config
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import SESSION_STATUS_OPEN
from rgs.v1.session_pb2 import ListSessionsRequest
from tests.e2e.test_play import PROMPT, Terminal, bent, played
from tests.support.process.served import PARTY, Served, rgs, serving

pytestmark = pytest.mark.slow  # windows of real seconds

ADMIN, SECOND_ADMIN = "demo-admin", "demo-admin-2"
TIMERS = {"betting_ms": 3_000, "amber_ms": 1_500, "decision_ms": 3_000, "result_ms": 1_000}
ONLINE, BOXES = "uth-online", "uth-seven-box"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("play")) as one:
        issued = ("--role", "admin", "--party", SECOND_ADMIN, "--issue", "--home", str(one.home))
        assert rgs("party", "add", *issued).returncode == 0
        with client_of(one, ADMIN) as admin:
            set_up(admin, [with_timers(shipped_table(table), TIMERS) for table in (ONLINE, BOXES)], "NEW_TABLE")
            await_state(admin, ONLINE, pb.TABLE_STATE_IDLE)
            await_state(admin, BOXES, pb.TABLE_STATE_IDLE)
        yield one


@pytest.fixture(autouse=True)
def at_rest(request: pytest.FixtureRequest) -> None:
    """No round of the test before is under way, and no window is open that nobody bets in."""
    if "served" in request.fixturenames:
        with client_of(request.getfixturevalue("served")) as client:
            for table in (ONLINE, BOXES):
                await_state(client, table, pb.TABLE_STATE_IDLE)


def client_of(served: Served, party: str = PARTY) -> Client:
    return Client(served.address, ClientIdentity.of_party(load_config(served.home), party))


def view_of(client: Client, table: str) -> pb.TableView:
    return client.call(client.tables.GetTable, pb.GetTableRequest(table=table)).table


def await_state(client: Client, table: str, *states: pb.TableState.ValueType) -> pb.TableView:
    last = time.monotonic() + 30
    while (view := view_of(client, table)).state not in states:
        assert time.monotonic() < last, view
        time.sleep(0.05)
    return view


def at_table(table: str) -> tuple[str, ...]:
    return ("--table", table)


# --- with piped input ------------------------------------------------------------------------------------------------


def test_a_round_with_one_hand_for_all(served: Served) -> None:
    """Join, bet, wait for red, raise four times: every statement is verified, the balance adds up."""
    keys = ("50", "p", "w", "4", "q", "y")
    status, said = played(served, "adam", *keys, options=at_table(ONLINE))
    assert status == 0
    assert "╭─ Ultimate Texas Hold'em, one table for all ─" in said
    assert "Place your bets: the first bet starts the clock" in said
    assert "your bets ante 1.00 EUR   blind 1.00 EUR" in said
    assert "[c] check   [4] play 4x 4.00 EUR   [3] play 3x 3.00 EUR" in said
    for kind in ("table_round", "table_deal", "seat_opening", "table_final", "seat_final", "session_close"):
        assert re.search(rf"✓ (\w+ \w+…, )*{kind} [0-9a-f]{{12}}…", said), kind
    assert "UNANCHORED" not in said
    assert "before the flop: play 4x 4.00 EUR" in said
    assert re.search(r"play 4\.00 EUR (wins|loses|pushes), back", said)
    assert "dealer: Place your bets, please." in said
    assert "dealer: No more bets." in said
    assert re.search(r"Session closed\. Bought 50\.00 EUR, staked 6\.00 EUR", said)
    assert "DOES NOT VERIFY" not in said


def test_who_stays_silent_is_decided_for_by_the_timer(served: Served) -> None:
    status, said = played(served, "berta", "50", "p", "w", "w", "w", "w", "q", "y", options=at_table(ONLINE))
    assert status == 0
    said = " ".join(said.split())
    assert "before the flop: check, automatic: the time ran out · flop: check, automatic: the time ran out" in said
    assert "You folded" in said
    assert "staked 2.00 EUR, returned 0.00 EUR" in said


def test_bets_are_changed_and_taken_back(served: Served) -> None:
    keys = ("50", "b", "3", "2", "p", "x", "q", "y")
    status, said = played(served, "chris", *keys, options=at_table(ONLINE))
    assert status == 0
    assert "ante 1.00 to 100.00 EUR" in said
    assert "[p] place: ante 3.00 EUR, trips 2.00 EUR" in said
    assert "your bets ante 3.00 EUR   blind 3.00 EUR   trips 2.00 EUR" in said
    assert said.rindex("your bets none yet") > said.index("your bets ante 3.00 EUR")
    assert "staked 0.00 EUR, returned 0.00 EUR; back to the wallet 50.00 EUR" in " ".join(said.split())


def test_a_bet_outside_the_limits_is_refused_in_words(served: Served) -> None:
    status, said = played(served, "dirk", "50", "b", "0.50", "0", "p", "q", "y", options=at_table(ONLINE))
    assert status == 0
    assert "STAKE_BELOW_MINIMUM" in said


def test_a_box_is_chosen_and_a_line_is_written(served: Served) -> None:
    with client_of(served) as client, seated(client, BOXES, "elsa", box=2, bets={}):
        status, said = played(served, "emma", "100", "3", "m", "good evening", "q", "y", options=at_table(BOXES))
    assert status == 0
    assert "Choose a box:" in said
    assert "[1] box 1   [3] box 3" in said
    assert "[2] box 2" not in said
    assert re.search(r">3 +emma \(you\)", said)
    assert re.search(r" 2 +elsa", said)
    assert "emma: good evening" in said


def test_the_lobby_offers_games_and_tables(served: Served) -> None:
    status, said = played(served, "fritz", "r", "3", "q", "l")
    assert status == 0
    assert said.count("[1] Ultimate Texas Hold'em (uth-solo)") == 2  # once more after the refresh
    assert "[3] Ultimate Texas Hold'em, one table for all (uth-online)" in said
    assert "ante 1.00 to 100.00 EUR, trips 1.00 to 50.00 EUR" in said
    assert re.search(r"\b[0-7] of 7 boxes free", said), said  # others of this server may still sit
    status, said = played(served, "fritz", "n", options=at_table("uth-nowhere"))
    assert (status, "unknown table uth-nowhere; tables: uth-online, uth-seven-box" in said) == (1, True)


def test_a_session_with_rounds_is_resumed_and_verified_from_its_first_link(served: Served) -> None:
    status, said = played(served, "gustav", "50", "p", "w", "4", "q", "l", options=at_table(ONLINE))
    assert status == 0
    assert "The session stays open at the server." in said
    status, said = played(served, "gustav", "y", "s", "b", "h", "1", "v", "b", "b", "q", "y")
    assert status == 0
    assert "A session of Ultimate Texas Hold'em is still open" in said
    kinds = [kind for _, kind in re.findall(r"^ +(\d) +([a-z_]+) +[0-9a-f]{48}…", said, re.MULTILINE)]
    assert kinds == ["session_open", "purchase", "seat_opening", "seat_final"]
    assert "✓ cards, decisions and hands follow from deck and rules" in said
    assert re.search(r"✓ seat_opening [0-9a-f]{12}…, seat_final [0-9a-f]{12}… verified, anchored", said)
    assert "Session closed." in said


def test_an_empty_lobby_of_a_new_home_offers_to_set_the_tables_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("empty")) as new:
        status, said = played(new, "hugo", "s")
        assert status == 0
        assert "No table is set up." in said
        assert "[s] set up the three tables of the project" in said
        shown = said.split("> s")[1]
        for table in (ONLINE, BOXES, "uth-lugano"):
            assert f"({table})" in shown
        assert "[s] set up" not in shown
        events = rgs("tables", "list", "--home", str(new.home), "--server", new.address)
        assert len(events.stdout.splitlines()) == 4
        key = new.home / "tls" / "clients" / f"{ADMIN}.key"
        key.rename(key.with_suffix(".away"))
        _, said = played(new, "hugo")
        assert "[s] set up" not in said


# --- two devices, pause, void ----------------------------------------------------------------------------------------


class Seated:
    """A player of the same operator who is no `rgs play`: bets once, and says nothing more."""

    def __init__(self, client: Client, table: str, player: str, box: int, bets: dict[str, int]) -> None:
        self.client, requests = client, client.requests
        opened = client.call(client.sessions.OpenSession, requests.open(table, player, "EUR", player, table)).session
        client.call(client.sessions.BuyParticipation, requests.buy(opened, 20_000))
        answer = client.call(client.tables.Join, requests.join(opened.session_id, player, box))
        self.seat = answer.seat
        if bets:
            round_id = view_of(client, table).round_id
            client.call(client.tables.PlaceBets, requests.place_bets(self.seat, round_id, bets))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.call(self.client.tables.Leave, self.client.requests.leave_seat(self.seat))


def seated(client: Client, table: str, player: str, *, box: int, bets: dict[str, int]) -> Seated:
    return Seated(client, table, player, box, bets)


def in_terminal(served: Served, player: str, table: str) -> Terminal:
    return Terminal(served, player, at_table(table))


def test_a_round_by_keys_fits_the_terminal_and_the_clock_runs(served: Served) -> None:
    terminal = in_terminal(served, "ina", ONLINE)
    terminal.wait_for("How much?")
    terminal.press("50\n")
    terminal.wait_for("Place your bets")
    assert re.search(r"your bets .*ante 1\.00 EUR", terminal.press_for("\n", "blind 1.00 EUR"))
    terminal.wait_for("Your decision")
    assert "Last bets" in terminal.said  # by the clock alone: no message says it
    terminal.press_for("c", "before the flop: check")
    terminal.wait_for("play 2x")
    terminal.press_for("2", "back ")
    terminal.wait_for("Place your bets")
    assert "[y] close" in terminal.press_for("q", PROMPT)
    terminal.press("y")
    assert terminal.end() == 0
    assert "Session closed. Bought 50.00 EUR" in terminal.said
    frames = terminal.said.split("\x1b[H")[1:]
    assert len(frames) > 10
    assert max(frame.partition("\x1b[J")[0].count("\n") for frame in frames) < 24


def test_a_key_that_was_pressed_before_the_cards_decides_nothing(served: Served) -> None:
    terminal = in_terminal(served, "jana", ONLINE)
    terminal.wait_for("How much?")
    terminal.press("50\n")
    terminal.wait_for("Place your bets")
    terminal.press_for("\n", "blind 1.00 EUR")
    with client_of(served) as client:
        await_state(client, ONLINE, pb.TABLE_STATE_DECIDING)
        said = terminal.wait_for("Your decision")
        terminal.press("zzz")  # keys that mean nothing
        assert "play 4x" in said + terminal.wait_for("play 4x")
        assert not view_of(client, ONLINE).table_final
    terminal.press("\x03")
    terminal.wait_for("Interrupted. The session stays open")
    assert terminal.end() == 130


def test_another_device_takes_the_seat_over_and_gives_it_back(served: Served) -> None:
    terminal = in_terminal(served, "karl", ONLINE)
    terminal.wait_for("How much?")
    terminal.press("50\n")
    terminal.wait_for("Place your bets")
    with client_of(served) as client:
        (session,) = (
            one
            for one in client.call(client.sessions.ListSessions, ListSessionsRequest(player="karl")).sessions
            if one.status == SESSION_STATUS_OPEN
        )
        client.call(client.tables.Join, client.requests.join(session.session_id, "karl"))
        terminal.wait_for("You play this seat on another device now.")
        terminal.press_for("y", "place: ante")
        request = pb.GetTableRequest(table=ONLINE, session_id=session.session_id)
        assert client.call(client.tables.GetTable, request).seat.device_no == 3
    assert "[y] close" in terminal.press_for("q", PROMPT)
    terminal.press("y")
    assert terminal.end() == 0


def test_a_pause_and_a_void_are_told_of_and_verified(served: Served) -> None:
    terminal = in_terminal(served, "lara", BOXES)
    terminal.wait_for("How much?")
    terminal.press("50\n")
    assert "Choose a box:" in terminal.wait_for(PROMPT)
    terminal.press("1")
    terminal.wait_for("Place your bets")
    terminal.press_for("\n", "blind ")
    terminal.wait_for("Your decision")
    with client_of(served, ADMIN) as first, client_of(served, SECOND_ADMIN) as second:
        round_id = view_of(first, BOXES).round_id
        pause = pb.PauseTableRequest(request_id=first.request_id(), table=BOXES, malfunction_code="CAMERA_FAILED")
        first.call(first.table_admin.PauseTable, pause)
        terminal.wait_for("(CAMERA_FAILED)")
        for admin in (first, second):
            void = pb.VoidTableRoundRequest(
                request_id=admin.request_id(), table=BOXES, round_id=round_id, reason="NOT_TO_BE_TRUSTED"
            )
            admin.call(admin.table_admin.VoidTableRound, void)
    terminal.wait_for("The round is void")  # the dealer's line stays, the result of the round does not
    terminal.wait_for("Place your bets")
    assert "[y] close: 50.00 EUR" in terminal.press_for("q", PROMPT)
    terminal.press("y")
    assert terminal.end() == 0
    assert "DOES NOT VERIFY" not in terminal.said
    assert re.search(r"seat_final [0-9a-f]{12}… verified", terminal.said)


def test_who_leaves_in_a_round_gives_up_the_seat_and_finds_the_result_later(served: Served) -> None:
    status, said = played(served, "mona", "50", "p", "w", "q", "l", options=at_table(ONLINE))
    assert status == 0
    assert "[l] leave: your bets stand, and the timer decides for you" in said
    with client_of(served) as client:
        await_state(client, ONLINE, pb.TABLE_STATE_IDLE, pb.TABLE_STATE_RESULT)
    status, said = played(served, "mona", "y", "q", "y")
    assert status == 0
    assert "staked 2.00 EUR, returned 0.00 EUR" in " ".join(said.split())


# --- lied to ---------------------------------------------------------------------------------------------------------


def _bend_commitment(view: pb.TableView) -> None:
    if view.commitment:
        view.commitment = bytes(32)


def _bend_board(view: pb.TableView) -> None:
    if len(view.board) == 3:
        view.board[0] = next(card for card in ("2c", "3c", "4c", "5c") if card not in view.board)


def _bend_dealer(view: pb.TableView) -> None:
    if view.table_final:
        view.dealer_cards[0] = next(card for card in ("2c", "3c", "4c") if card not in view.dealer_cards)


def _bend_signature(view: pb.TableView) -> None:
    view.table_deal = bent(view.table_deal)


def _bend_code(view: pb.TableView) -> None:
    if view.table_round:
        view.game_code = "#00:00:00"


@pytest.mark.parametrize(
    ("player", "lie", "said"),
    [
        ("lied-commitment", _bend_commitment, "check 24 table: commitment was shown as 0000"),
        ("lied-board", _bend_board, "check 24 table: board"),
        ("lied-dealer", _bend_dealer, "check 24 table: dealer_cards was shown as"),
        ("lied-signature", _bend_signature, "check "),
        ("lied-code", _bend_code, "check 24 table: game code was shown as #00:00:00"),
    ],
)
def test_what_a_table_shows_must_be_what_was_signed(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    player: str,
    lie: Callable[[pb.TableView], None],
    said: str,
) -> None:
    """Every view of the table is bent on its way, by stream and by call."""
    news, call = SeatWatch.news, Client.call

    def bent_news(self: SeatWatch, timeout_s: float = 0.0) -> Any:
        found = news(self, timeout_s)
        for one in found:
            if isinstance(one, pb.WatchSeatResponse) and one.HasField("table"):
                lie(one.table)
        return found

    def bent_call(self: Client, method: Any, request: Any) -> Any:
        answer = call(self, method, request)
        if isinstance(answer, pb.GetTableResponse):
            lie(answer.table)
        return answer

    monkeypatch.setattr(SeatWatch, "news", bent_news)
    monkeypatch.setattr(Client, "call", bent_call)
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in ("50", "p", "w", "c", "4", "c", "w"))))
    options = ["--home", str(served.home), "--server", served.address, "--player", player, *at_table(ONLINE)]
    assert run_app(play.app, "play", options) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"✗ DOES NOT VERIFY, {said}" in out
    assert "Stop playing here." in out


# --- the stream ------------------------------------------------------------------------------------------------------


def test_a_stream_that_breaks_is_opened_again(served: Served) -> None:
    with (
        client_of(served) as client,
        seated(client, ONLINE, "nora", box=0, bets={}) as player,
        SeatWatch(client, player.seat.session_id) as watch,
    ):
        assert await_news(watch, "seat").seat.session_id == player.seat.session_id
        watch._call.cancel()
        assert await_news(watch, "seat").seat.device_no == 1


def await_news(watch: SeatWatch, field: str) -> pb.WatchSeatResponse:
    last = time.monotonic() + 20
    while time.monotonic() < last:
        for one in watch.news(0.5):
            if isinstance(one, pb.WatchSeatResponse) and one.WhichOneof("response") == field:
                return one
    raise AssertionError(f"no {field} came")
