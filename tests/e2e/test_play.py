"""`rgs play` against a real server: with piped input, in a terminal, interrupted, refused, and lied to."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from rgs.cli import play
from rgs.cli.options import run_app
from rgs.core.cards import FULL_DECK, format_card
from rgs.core.statements import leaf_hash
from rgs.devkit.client import Client, OutcomeUnknownError
from rgs.devkit.terminal.cards_art import card_text, draw_cards, format_elapsed
from rgs.v1.audit_pb2 import GetStatementRequest, ListStatementsResponse
from rgs.v1.play_pb2 import ActResponse, StartRoundResponse
from rgs.v1.session_pb2 import BuyParticipationRequest, BuyParticipationResponse
from tests.support.process.served import Served, rgs, rgs_here, serving

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("play")) as one:
        yield one


def played(
    served: Served, player: str, *keys: str, options: tuple[str, ...] = (), command: Command = rgs_here
) -> tuple[int, str]:
    """Exit status and everything said, with the keys as lines of input."""
    arguments = ("--home", str(served.home), "--server", served.address, "--player", player, *options)
    done = command("play", *arguments, said="".join(f"{key}\n" for key in keys))
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


HOLDEM = ("--game", "casino-holdem")
UTH = ("--game", "uth-solo")


# --- with piped input --------------------------------------------------------------------------------------------


def test_a_whole_session(served: Served) -> None:
    status, said = played(
        *(served, "anna", "50", "b", "5", "1", "d", "c", "h", "b", "s", "b", "r", "b", "q", "y"),
        options=HOLDEM,
        command=rgs,
    )
    assert status == 0
    headers = said.count("╭─ Casino Hold'em ─")
    ids = re.findall(r"session id ([0-9A-Z]{16}) +participation id ([0-9A-Z]{16}|-) ", said)
    assert len(ids) == headers >= 7
    assert len({session_id for session_id, _ in ids}) == 1
    assert [one for _, one in ids].count("-") == 1  # before the purchase only
    assert "[d] deal: ante 5.00 EUR, AA 1.00 EUR" in said
    assert "[c] call 10.00 EUR   [f] fold   [q] leave" in said
    assert re.search(r"✓ round_opening [0-9a-f]{12}…, round_final [0-9a-f]{12}… verified, anchored", said)
    assert re.search(r"ante +5\.00 EUR +(wins|loses|pushes) +back", said)
    assert "computed again: commitment, deck, cards, actions, hands, settlement, balance" in said
    assert re.search(r"no\. +date +code +game +staked +returned\n +1 .* #[\d:]{8} +casino-holdem +16\.00 EUR", said)
    assert [kind for _, kind in re.findall(r"^ +(\d) +([a-z_]+) +[0-9a-f]{48}…", said, re.MULTILINE)] == [
        *("session_open", "purchase", "round_opening", "round_final")
    ]
    assert re.search(r"straight flush +20:1", said)
    assert "97.84 % (certified)" in said
    assert re.search(r"✓ session_close [0-9a-f]{12}… verified, anchored", said)
    assert re.search(r"Session closed\. Bought 50\.00 EUR, staked 16\.00 EUR, returned \d", said)


def test_a_round_left_open_is_offered_again(served: Served) -> None:
    status, said = played(served, "bert", "", "d", "c", options=UTH)  # then the input ends, at the second decision
    assert status == 0
    assert "The session stays open at the server" in said
    shown = re.findall(r"commitment ([0-9a-f]{64})", said)
    status, said = played(served, "bert", "y", "c", "f", "q", "l")
    assert status == 0
    assert "A session of Ultimate Texas Hold'em is still open" in said
    assert re.findall(r"commitment ([0-9a-f]{64})", said)[0] == shown[0]
    assert "You folded" in said
    assert re.search(r"round_final [0-9a-f]{12}… verified, anchored", said)
    status, said = played(served, "bert", "n", "q", "y", options=HOLDEM)  # leave it as it is, and open another
    assert status == 0
    assert "Casino Hold'em" in said
    status, said = played(served, "bert", "y", "q", "y")
    assert status == 0
    closed = "Session closed. Bought 100.00 EUR, staked 2.00 EUR, returned 0.00 EUR; back to the wallet 98.00 EUR."
    assert closed in " ".join(said.split())


def test_refusals_are_said_with_reason_and_limit(served: Served) -> None:
    keys = ("2000", "x", "50", "b", "9999", "", "d", "b", "0.01", "0", "d", "q", "y")
    status, said = played(served, "carl", *keys, options=UTH)
    said = " ".join(said.split())
    assert status == 0
    assert "PARTICIPATION_CAP field=amount_minor limit=100000 value=200000" in said
    assert "✗ x is not an amount" in said
    assert "above the maximum [STAKE_ABOVE_MAXIMUM field=" in said
    assert "below the minimum [STAKE_BELOW_MINIMUM field=" in said


def test_what_the_balance_does_not_cover_is_shown_and_not_taken(served: Served) -> None:
    status, said = played(served, "dora", "3", "b", "1", "0", "d", "4", "q", "l", options=UTH)
    assert status == 0
    assert " ".join(said.split()).count("(the balance does not cover it)") == 2
    assert "one of: c q" in said


def test_the_game_is_asked_for(served: Served) -> None:
    status, said = played(served, "emil", "2", "q", "y")
    assert status == 0
    assert "[1] Ultimate Texas Hold'em (uth-solo)" in said or "[2] Ultimate Texas Hold'em (uth-solo)" in said
    assert "uth-seven-box" not in said  # table games are not offered
    status, said = played(served, "emil", options=("--game", "baccarat"))
    assert (status, "unknown game baccarat; known games:" in said) == (1, True)


def test_another_root_is_refused(served: Served) -> None:
    status, said = played(served, "fred", "50", options=("--root", "ab" * 32, *UTH))
    assert status == 1
    assert "the server's keys begin with root" in said
    assert "Buy the right" not in said


def test_without_a_fingerprint_it_says_unanchored(served: Served) -> None:
    fingerprint = served.home / "keys" / "root.fingerprint"
    elsewhere = fingerprint.with_name("root.elsewhere")
    fingerprint.rename(elsewhere)
    try:
        status, said = played(served, "gerd", "50", "q", "y", options=UTH)
    finally:
        elsewhere.rename(fingerprint)
    assert status == 0
    assert "verified, UNANCHORED: root key not confirmed" in said
    assert "anchored\n" not in said


def test_no_server_is_said_in_one_line(served: Served) -> None:
    status, said = played(served, "hans", options=("--server", "127.0.0.1:1"))
    assert status == 1
    assert said.startswith("rgs: no answer from 127.0.0.1:1: ")
    assert said.count("\n") == 1


# --- in a terminal -----------------------------------------------------------------------------------------------


BECOME_ITS_SESSION = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A pseudo terminal of 80 columns with the client in it, so that Ctrl-C reaches it as a signal."""

    def __init__(self, served: Served, player: str, options: tuple[str, ...] = HOLDEM) -> None:
        arguments = ["--home", str(served.home), "--server", served.address, "--player", player, *options]
        self._file, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", BECOME_ITS_SESSION, sys.executable, "-m", "rgs", "play", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""

    def wait_for(self, text: str) -> str:
        """What is said up to the text, from where the last wait ended."""
        last = time.monotonic() + 30
        begin = len(self.said)
        while text not in self.said[begin:]:
            assert time.monotonic() < last, self.said[begin:]
            self._read()
        return self.said[begin:]

    def _read(self) -> None:
        if select.select([self._file], [], [], 0.2)[0]:
            self.said += os.read(self._file, 65536).decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def press_for(self, keys: str, text: str) -> str:
        """Press until the text is said, and return what is said up to it. People do so when a key was too early: the
        terminal discards it when the table moves in that moment.
        """
        last = time.monotonic() + 60
        begin = len(self.said)
        while text not in self.said[begin:]:
            assert time.monotonic() < last, self.said[begin:]
            self.press(keys)
            again = time.monotonic() + 5
            while text not in self.said[begin:] and time.monotonic() < again:
                self._read()
        return self.said[begin:]

    def mode(self) -> int:
        """Whether typed keys are shown, and taken line by line."""
        flags: int = termios.tcgetattr(self._file)[3]
        return flags & (termios.ECHO | termios.ICANON)

    def wait_for_mode(self, mode: int) -> None:
        last = time.monotonic() + 30
        while self.mode() != mode:
            assert time.monotonic() < last
            time.sleep(0.01)

    def end(self) -> int:
        """Read to the end; the exit status."""
        while True:
            try:
                if not (data := os.read(self._file, 65536)):
                    break
            except OSError:  # how Linux says that the other side has closed
                break
            self.said += data.decode("utf-8", "replace")
        os.close(self._file)
        return self._process.wait(30)


PROMPT = "\x1b[1m>\x1b[0m "
CLEAR = "\x1b[2J"


def test_single_keys_in_a_terminal(served: Served) -> None:
    terminal = Terminal(served, "ida")
    terminal.wait_for("How much?")
    terminal.press("50\n")
    assert CLEAR in terminal.wait_for(PROMPT)
    terminal.press("d")
    table = terminal.wait_for(PROMPT)
    assert "\x1b[1;31m" in table or table.count("♠") + table.count("♣") >= 5  # red suits are red
    terminal.press("\x1b[C")  # the right arrow ends in C, and is no call
    assert "one of: c f q" in terminal.wait_for(PROMPT)
    terminal.press("fdq")  # several at once: a paste, and no decision
    assert "one of: c f q" in terminal.wait_for(PROMPT)
    terminal.press("f")
    assert "You folded" in terminal.wait_for(PROMPT)
    terminal.press("q")
    terminal.wait_for(PROMPT)
    terminal.press("y")
    assert terminal.end() == 0
    assert "Session closed. Bought 50.00 EUR" in terminal.said
    screens = terminal.said.split(CLEAR)[1:]
    assert max(screen.count("\n") for screen in screens) <= 24


def test_what_is_typed_ahead_decides_nothing(served: Served) -> None:
    terminal = Terminal(served, "lena")
    terminal.wait_for("How much?")
    terminal.press("50\nd")
    terminal.wait_for(PROMPT)
    terminal.press("q")  # were the d heard, a round would be open now
    assert "[y] close: 50.00 EUR goes back" in terminal.wait_for(PROMPT)
    terminal.press("y")
    assert terminal.end() == 0
    assert "staked 0.00 EUR" in terminal.said


def test_an_interrupt_leaves_the_round_open_and_the_terminal_as_it_was(served: Served) -> None:
    terminal = Terminal(served, "jens")
    before = terminal.mode()
    terminal.wait_for("How much?")
    terminal.press("50\n")
    terminal.wait_for(PROMPT)
    assert terminal.mode() != before
    terminal.press("d")
    terminal.wait_for(PROMPT)
    terminal.press("\x03")
    terminal.wait_for("Interrupted. The session stays open")
    terminal.wait_for_mode(before)
    assert terminal.end() == 130
    status, said = played(served, "jens", "y", "f", "q", "y")
    assert status == 0
    assert "You folded" in said


# --- lied to -----------------------------------------------------------------------------------------------------


def lied_to(
    served: Served, monkeypatch: pytest.MonkeyPatch, player: str, keys: str, lie: Callable[[Message], None], game: str
) -> int:
    """Play in this process, with every answer passed through the lie."""
    original = Client.call

    def call(self: Client, method: Any, request: Any) -> Any:
        answer = original(self, method, request)
        lie(answer)
        return answer

    monkeypatch.setattr(Client, "call", call)
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{key}\n" for key in keys.split(" "))))
    options = ["--home", str(served.home), "--server", served.address, "--player", player, "--game", game]
    return run_app(play.app, "play", options)


def _other_card(cards: Any) -> None:
    cards[0] = next(card for card in ("2c", "3c", "4c", "5c", "6c", "7c") if card not in cards)


def _bend_balance(answer: Message) -> None:
    if isinstance(answer, BuyParticipationResponse):
        answer.session.balance_minor += 1


def _bend_id(answer: Message) -> None:
    if isinstance(answer, BuyParticipationResponse):
        answer.session.regulator_participation_id = "A" * 16


def _bend_commitment(answer: Message) -> None:
    if isinstance(answer, StartRoundResponse):
        answer.round.commitment = bytes(32)


def _bend_board(answer: Message) -> None:
    if isinstance(answer, ActResponse) and answer.final:
        _other_card(answer.round.board)


def _bend_returned(answer: Message) -> None:
    if isinstance(answer, ActResponse) and answer.final:
        answer.round.returned_minor += 100


def _bend_receipt(answer: Message) -> None:
    if isinstance(answer, StartRoundResponse):
        answer.opening = bent(answer.opening)


def bent(envelope: bytes) -> bytes:
    """The envelope with another signature."""
    return re.sub(rb'"sig":"(..)', lambda found: b'"sig":"' + (b"yy" if found[1] == b"zz" else b"zz"), envelope)


@pytest.mark.parametrize(
    ("player", "lie", "said"),
    [
        ("lied-balance", _bend_balance, "balance was shown as 5001, signed is 5000"),
        ("lied-id", _bend_id, "regulator_participation_id was shown as AAAAAAAAAAAAAAAA, signed is"),
        ("lied-commitment", _bend_commitment, "commitment was shown as 0000"),
        ("lied-board", _bend_board, "board was shown as"),
        ("lied-returned", _bend_returned, "returned was shown as"),
    ],
)
def test_what_was_shown_must_be_what_was_signed(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    player: str,
    lie: Callable[[Message], None],
    said: str,
) -> None:
    assert lied_to(served, monkeypatch, player, "50 d f d f", lie, "casino-holdem") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ DOES NOT VERIFY, check 7 session: " + said in out
    assert "Stop playing here." in out


def test_a_bent_receipt_is_seen(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lied_to(served, monkeypatch, "lied-receipt", "50 d f d f", _bend_receipt, "casino-holdem") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ DOES NOT VERIFY, check 7 session: the server has not stored the statement that it sent" in out


def test_a_bent_signature_is_seen(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bent in the answer and in the store alike, so that only the signature tells."""
    finals: dict[bytes, bytes] = {}
    original = Client.call

    def call(self: Client, method: Any, request: Any) -> Any:
        if isinstance(request, GetStatementRequest) and request.hash in finals:
            answer = original(self, method, GetStatementRequest(hash=finals[request.hash]))
            answer.statement.envelope = bent(answer.statement.envelope)
            return answer
        answer = original(self, method, request)
        if isinstance(answer, ActResponse) and answer.final:
            finals[leaf_hash(bent(answer.final))] = leaf_hash(answer.final)
            answer.final = bent(answer.final)
        return answer

    monkeypatch.setattr(Client, "call", call)
    assert lied_to(served, monkeypatch, "lied-signature", "50 d f d", lambda _: None, "casino-holdem") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ DOES NOT VERIFY, check 3 key: the signature does not verify" in out


def test_resuming_verifies_from_the_first_link(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert played(served, "kurt", "50", "d", "f", "q", "l", options=HOLDEM)[0] == 0

    def drop_the_purchase(answer: Message) -> None:
        if isinstance(answer, ListStatementsResponse):
            del answer.statements[1]

    assert lied_to(served, monkeypatch, "kurt", "y q l", drop_the_purchase, "casino-holdem") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ DOES NOT VERIFY, check 7 session: link 3 comes after 1: 1 missing" in out


def test_silence_is_asked_about_and_repeated_with_the_same_id(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The purchase happens, its answer is lost; the person asks again, and nothing is bought twice."""
    requested: list[str] = []
    original = Client.call

    def call(self: Client, method: Any, request: Any) -> Any:
        answer = original(self, method, request)
        if isinstance(request, BuyParticipationRequest):
            requested.append(request.request_id)
            if len(requested) == 1:
                raise OutcomeUnknownError(Status(message="lost"), grpc.StatusCode.DEADLINE_EXCEEDED)
        return answer

    monkeypatch.setattr(Client, "call", call)
    assert lied_to(served, monkeypatch, "lost-answer", "50 a q y", lambda _: None, "casino-holdem") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "No answer: lost [DEADLINE_EXCEEDED]" in out
    assert "Session closed. Bought 50.00 EUR" in out
    assert len(requested) == 2
    assert len(set(requested)) == 1


# --- cards and amounts -------------------------------------------------------------------------------------------


def test_all_cards_are_as_wide_as_each_other() -> None:
    for plain in (False, True):
        for card in FULL_DECK:
            rows = draw_cards([format_card(card)], 1, plain=plain)
            assert {row.cell_len for row in rows} == {7}
            assert card_text(format_card(card), plain=plain).plain in rows[1].plain
    plain_rows = draw_cards(["As"], 3, face_down=True, plain=True)
    assert all(row.plain.isascii() for row in plain_rows)
    assert len({str(card_text(format_card(card))) for card in FULL_DECK}) == 52


def test_elapsed_time_is_in_hours_minutes_and_seconds() -> None:
    assert format_elapsed(3_723_999) == "1:02:03"
