"""Keys change while the server runs: rounds in play go on, nothing is lost, all of it replays under the first root."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from certification import replay as certify
from rgs.cli import run
from rgs.core.statements import ExportLine, format_canonical, format_line, seal_envelope
from rgs.core.statements.kinds import KINDS
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle, parse_line
from rgs.core.times import format_time
from rgs.node.config import Config
from rgs.node.keyring import load_node_signer, load_root_signer, read_fingerprint
from rgs.store.changes import StoreError
from rgs.store.sqlite.store import SqliteStore
from rgs.v1 import admin_pb2, audit_pb2, play_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, reason_in, serving, status_in
from tests.support.clocks import ManualClock
from tests.support.process.commands import MANIFEST
from tests.support.service import harness as service_harness
from tests.support.service.crashing import FAILPOINT, forking, live, serve_children
from tests.support.service.harness import NODE_KEY, open_harness, read_statement, round_document, session_document
from tests.support.service.harness import ServiceHarness as Small
from tests.support.service.oracles import replay, stored_statements, verify_books, verify_numbers
from tests.support.service.player import Player as Guest
from tests.support.waiting import until
from tests.verifier import independent_verifier

pytestmark = pytest.mark.slow

CHECK, FOLD = 1, 7

# --- helpers ----------------------------------------------------------------------------------------------------------


async def rgs(config: Config, *arguments: str) -> None:
    """A command of the operator's people, beside the running server."""
    assert await asyncio.to_thread(run, [*arguments, "--home", str(config.keys.parent)], MANIFEST) == 0, arguments


async def until_instance(harness: ApiHarness, boot_no: int) -> None:
    await until(lambda: harness.server.instance == f"node1-b{boot_no}-w0")


async def until_keys(player: ApiClient, count: int) -> list[bytes]:
    """What the server tells auditors, once it tells so many key statements."""
    async with asyncio.timeout(15):
        while True:
            reported = await player.audit.ListKeyStatements(audit_pb2.ListKeyStatementsRequest())
            if len(reported.envelopes) == count:
                return list(reported.envelopes)
            await asyncio.sleep(0.05)


async def leave(player: ApiClient) -> None:
    await player.sessions.EndParticipation(
        session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
    )
    await player.sessions.CloseSession(
        session_pb2.CloseSessionRequest(request_id=request_id(), session_id=player.session_id)
    )


PAUSE_S = 0.05
"""Between two rounds: the money lasts as long as the keys take to change."""


async def play_unary(player: ApiClient, done: asyncio.Event) -> int:
    rounds = 0
    while not done.is_set():
        await player.round_to_the_end()
        rounds += 1
        await asyncio.sleep(PAUSE_S)
    return rounds


async def play_streamed(player: ApiClient, done: asyncio.Event) -> int:
    """The same on one stream, which stays open over every change of keys."""
    stream, rounds = player.play.Play(), 0

    async def ask(**request: Any) -> Any:
        await stream.write(play_pb2.PlayRequest(**request))
        answer = await stream.read()
        kind = answer.WhichOneof("response")
        assert kind != "error", answer
        return getattr(answer, kind)

    while not done.is_set():
        started = await ask(start_round=player.start_request())
        player.seen(started)
        player.round_no = started.session.next_round_no
        for action in (CHECK, CHECK, FOLD):
            player.seen(await ask(act=player.act_request(action)))
        rounds += 1
        await asyncio.sleep(PAUSE_S)
    await stream.done_writing()
    return rounds


async def until_keys_guard(harness: ApiHarness, *, closed: bool) -> None:
    admin: Any = AdminServiceStub(harness.channel("demo-admin"))
    async with asyncio.timeout(15):
        while True:
            guards = (await admin.ListGuards(admin_pb2.ListGuardsRequest())).guards
            if [guard.closed for guard in guards if guard.name == "keys"] == [closed]:
                return
            await asyncio.sleep(0.02)


def verify(export: Path, keys: Path, root: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    """Status and last line of both verifiers."""
    found = []
    for main in (certify.main, independent_verifier.main):
        capsys.readouterr()
        status = main([str(export), "--keys", str(keys), "--root", root])
        found.append((status, capsys.readouterr().out.splitlines()[-1]))
    assert found[0] == found[1]
    return found


def bodies(export: Path) -> list[dict[str, Any]]:
    return [read_statement(parse_line(line).envelope) for line in export.read_bytes().splitlines()]


# --- the whole server -------------------------------------------------------------------------------------------------


async def test_keys_change_while_everybody_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(tmp_path) as harness:
        config, root = harness.config, read_fingerprint(harness.config.keys)
        waiting = await ApiClient(harness.channel(), "waiting").seated()
        opening = read_statement((await waiting.start()).opening)
        auditor = ApiClient(harness.channel("demo-auditor"))
        first = await ApiClient(harness.channel(), "first").seated()
        await first.round_to_the_end()
        early = tmp_path / "early.jsonl"
        await rgs(config, "export", "--out", str(early))

        done = asyncio.Event()
        unary = [await ApiClient(harness.channel(), f"unary-{number}").seated() for number in range(4)]
        streamed = [await ApiClient(harness.channel(), f"stream-{number}").seated() for number in range(4)]
        crowd = [asyncio.create_task(play_unary(player, done)) for player in unary]
        crowd += [asyncio.create_task(play_streamed(player, done)) for player in streamed]

        await rgs(config, "keys", "node-new", "--node", "node1")
        await until_instance(harness, 2)
        assert len(await until_keys(auditor, 3)) == 3, "the new key is served before anything is signed under it"
        await waiting.act(CHECK)
        await rgs(config, "keys", "root-rotate")
        await until_keys(auditor, 4)
        assert harness.server.instance == "node1-b2-w0", "a new root alone starts no instance"
        await rgs(config, "keys", "end", "--node", "node1", "--reason", "RETIRED")
        await rgs(config, "keys", "node-new", "--node", "node1")
        await until_instance(harness, 3)
        await rgs(config, "keys", "end", "--node", "node1", "--reason", "RETIRED")
        served = await until_keys(auditor, 7)
        assert served == list(parse_key_bundle(config.bundle.read_bytes()))
        done.set()
        rounds = await asyncio.gather(*crowd)
        assert min(rounds) >= 2, rounds
        await waiting.act(CHECK)
        final = read_statement((await waiting.act(FOLD)).final)
        assert (opening["instance"], final["instance"]) == ("node1-b1-w0", "node1-b3-w0")
        for player in (waiting, first, *unary, *streamed):
            await leave(player)
        await harness.stop()

        export = tmp_path / "export.jsonl"
        await rgs(config, "export", "--out", str(export))
        verdict = (0, f"{sum(rounds) + 2} rounds verified, 0 failed, ANCHORED")
        assert verify(export, config.bundle, root, capsys) == [verdict] * 2
        # What was exported before the keys changed, scope under the old node key included, with today's bundle.
        assert verify(early, config.bundle, root, capsys) == [(0, "1 rounds verified, 0 failed, ANCHORED")] * 2

        reported = bodies(export)
        verify_ends(reported, served)
        verify_draws(reported)
        refuse_what_lies_behind(tmp_path, config, reported, export)


def verify_ends(reported: list[dict[str, Any]], served: list[bytes]) -> None:
    """Each ended key names the instance that ended under it, with the number of its last statement."""
    ends = {body["instance"]: body for body in reported if body["kind"] == "instance_end"}
    assert [ends[name]["reason"] for name in sorted(ends)] == ["KEYS_CHANGED", "KEYS_CHANGED", "DRAINED"]
    named = [body for body in map(read_statement, served) if body["kind"] == "key_end"]
    assert [body["instance"] for body in named] == ["node1-b1-w0", "node1-b2-w0"]
    assert [body["last_statement_no"] for body in named] == [ends[body["instance"]]["statement_no"] for body in named]
    changed = [body for body in reported if body.get("code") == "KEYS_CHANGED"]
    assert [body["subject"] for body in changed if body["subject"] == "node1"] == ["node1", "node1"]
    assert [body["statement_no"] for body in changed if body["subject"] == "node1"] != []
    hashes = [(body["before"], body["after"]) for body in changed if body["subject"] == "bundle"]
    assert [before for before, _ in hashes[1:]] == [after for _, after in hashes[:-1]]


def verify_draws(reported: list[dict[str, Any]]) -> None:
    """Every instance dealt, and accounts for its draws from 1 on."""
    for name in ("node1-b1-w0", "node1-b2-w0", "node1-b3-w0"):
        numbers = [int(body["statement_no"]) for body in reported if body["instance"] == name]
        assert numbers == list(range(1, len(numbers) + 1)), name
        draws = [
            int((body["deal"] if body["kind"] == "round_opening" else body)["draw_no"])
            for body in reported
            if body["instance"] == name and body["kind"] in {"round_opening", "discarded_draw"}
        ]
        assert sorted(draws) == list(range(1, len(draws) + 1)), name
        assert draws, name


def refuse_what_lies_behind(folder: Path, config: Config, reported: list[dict[str, Any]], export: Path) -> None:
    """Planted: the ends of keys are moved, or something is signed behind them; both verifiers name it."""
    root = read_fingerprint(config.keys)
    statements = list(parse_key_bundle(config.bundle.read_bytes()))
    signer = load_root_signer(config.keys)
    planted = folder / "planted.json"
    last = [body for body in map(read_statement, statements) if body["kind"] == "key_end"][-1]
    for change in ({"last_statement_no": str(int(last["last_statement_no"]) - 1)}, {"time": reported[0]["time"]}):
        body = format_canonical({**last, **change})
        planted.write_bytes(
            format_key_bundle([*statements[:-1], seal_envelope(KINDS["key_end"].payload_type, body, signer)])
        )
        assert certify.main([str(export), "--keys", str(planted), "--root", root]) == 1
        assert independent_verifier.main([str(export), "--keys", str(planted), "--root", root]) == 1


async def test_an_old_node_key_signs_nothing_behind_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: whoever kept the old private key starts another instance with it."""
    async with serving(tmp_path) as harness:
        config, root = harness.config, read_fingerprint(harness.config.keys)
        stolen = load_node_signer(config)
        player = await ApiClient(harness.channel()).seated()
        await player.round_to_the_end()
        await leave(player)
        await rgs(config, "keys", "node-new", "--node", "node1")
        await until_instance(harness, 2)
        await rgs(config, "keys", "end", stolen.keyid, "--reason", "RETIRED")
        await harness.stop()
        export = tmp_path / "export.jsonl"
        await rgs(config, "export", "--out", str(export))
        assert verify(export, config.bundle, root, capsys)[0] == (0, "1 rounds verified, 0 failed, ANCHORED")
        start = next(body for body in bodies(export) if body["kind"] == "instance_start")
        again = {
            **start,
            "boot_no": "9",
            "instance": "node1-b9-w0",
            "public_key": "2" * 64,
            "time": format_time(harness.clock.now_ms() + 1000),
        }
        line = ExportLine(seal_envelope(KINDS["instance_start"].payload_type, format_canonical(again), stolen), None)
        export.write_bytes(export.read_bytes() + format_line(line) + b"\n")
        assert verify(export, config.bundle, root, capsys)[0] == (1, "1 rounds verified, 0 failed, ANCHORED")
        certify.main([str(export), "--keys", str(config.bundle), "--root", root])
        assert f"key {stolen.keyid} ended at" in capsys.readouterr().out


async def test_a_key_that_signs_still_is_not_ended_with_a_guessed_number(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        keyid, before = load_node_signer(harness.config).keyid, harness.config.bundle.read_bytes()
        arguments = ["keys", "end", keyid, "--reason", "RETIRED", "--home", str(harness.config.keys.parent)]
        assert await asyncio.to_thread(run, arguments, MANIFEST) == 1
        assert harness.config.bundle.read_bytes() == before


async def test_without_a_key_in_force_no_new_round_begins_and_those_dealt_are_settled(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        config = harness.config
        player = await ApiClient(harness.channel()).seated()
        await player.start()
        number = ("--instance", "node1-b1-w0", "--last-statement-no", "9999")
        await rgs(config, "keys", "end", load_node_signer(config).keyid, "--reason", "RETIRED", *number)
        other = ApiClient(harness.channel(), "player-2")
        await until_keys_guard(harness, closed=True)
        assert reason_in(status_in(await refused(other.open()))) == "GUARD_CLOSED"
        for action in (CHECK, CHECK, FOLD):
            await player.act(action)
        await rgs(config, "keys", "node-new", "--node", "node1")
        await until_instance(harness, 2)
        await until_keys_guard(harness, closed=False)
        await other.seated()
        await other.round_to_the_end()


async def test_a_bundle_that_takes_something_back_is_not_served(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        config, auditor = harness.config, ApiClient(harness.channel("demo-auditor"))
        first = config.bundle.read_bytes()
        await rgs(config, "keys", "node-new", "--node", "node2")
        served = await until_keys(auditor, 3)
        for content in (first, b"{}", config.bundle.read_bytes()[:-4]):
            config.bundle.write_bytes(content)
            await asyncio.sleep(0.3)  # the bundle is looked at thrice
            reported = await auditor.audit.ListKeyStatements(audit_pb2.ListKeyStatementsRequest())
            assert list(reported.envelopes) == served
        assert harness.server.instance == "node1-b1-w0"


# --- the turn itself --------------------------------------------------------------------------------------------------


async def test_instances_follow_one_another_in_a_crowd(tmp_path: Path) -> None:
    """Twelve turns among sixteen clients that never stop: all books agree, and every number and draw is there."""
    async with open_harness(tmp_path) as harness:
        guests = [Guest(harness, name=f"guest-{number}") for number in range(16)]
        for guest in guests:
            await guest.sit(100_000)
        done = asyncio.Event()

        async def play(guest: Guest) -> None:
            while not done.is_set():
                await guest.play()

        crowd = [asyncio.create_task(play(guest)) for guest in guests]
        for _ in range(12):
            await harness.instance.hand_over(NODE_KEY, ())
            await asyncio.sleep(0.03)
        done.set()
        await asyncio.gather(*crowd)
        for guest in guests:
            await guest.leave()
        await harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.instances, summary.draws_exposed, summary.is_cut) == (13, 0, False)
    dealt = {row.instance for row in stored_statements(tmp_path) if row.kind == "round_opening"}
    assert len(dealt) >= 10, dealt


async def test_a_turn_waits_for_the_draws_in_flight_and_new_rounds_wait_for_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SqliteStore.commit
    working, released = asyncio.Event(), asyncio.Event()

    async def slow(self: SqliteStore, change: Any) -> Any:
        if change.draw_no and not working.is_set():
            working.set()
            await released.wait()
        return await commit(self, change)

    async with open_harness(tmp_path) as harness:
        anna, bert = Guest(harness), Guest(harness, name="bert")
        await anna.sit()
        await bert.sit()
        monkeypatch.setattr(SqliteStore, "commit", slow)
        first = asyncio.create_task(anna.start())
        await working.wait()
        turn = asyncio.create_task(harness.instance.hand_over(NODE_KEY, ()))
        await until(lambda: harness.instance._handing_over is not None)
        second = asyncio.create_task(bert.start())
        await asyncio.sleep(0.05)
        assert not turn.done()
        assert not second.done()
        assert harness.instance.name == "node-1-b1-w0"
        released.set()
        await asyncio.gather(first, turn, second)
        opened = [row.instance for row in stored_statements(tmp_path) if row.kind == "round_opening"]
        assert opened == ["node-1-b1-w0", "node-1-b2-w0"]
        for guest in (anna, bert):
            await guest.finish_round()
            await guest.leave()
        await harness.settle()
    assert verify_books(tmp_path).instances == 2


async def test_a_turn_whose_caller_goes_comes_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SqliteStore.commit
    working, released = asyncio.Event(), asyncio.Event()

    async def slow(self: SqliteStore, change: Any) -> Any:
        working.set()
        await released.wait()
        return await commit(self, change)

    async with open_harness(tmp_path) as harness:
        monkeypatch.setattr(SqliteStore, "commit", slow)
        turn = asyncio.create_task(harness.instance.hand_over(NODE_KEY, ()))
        await working.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        released.set()
        await harness.instance.handed_over()
    ended = [row.instance for row in stored_statements(tmp_path) if row.kind == "instance_end"]
    assert ended == ["node-1-b1-w0", "node-1-b2-w0"]
    assert replay(tmp_path).instances == 2


async def test_a_turn_that_the_store_refuses_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Guest(harness)
        await anna.sit()
        await anna.start()
        before = len(stored_statements(tmp_path))

        def broken(_self: SqliteStore, _group: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "_commit", broken)
            with pytest.raises(StoreError):
                await harness.instance.hand_over(NODE_KEY, ())
        assert (harness.instance.name, len(stored_statements(tmp_path))) == ("node-1-b1-w0", before)
        await harness.services.monitor.poll()  # the probe that opens the store's guard
        await anna.finish_round()
        await anna.play()
        await harness.instance.hand_over(NODE_KEY, ())
        await anna.play()
        await anna.leave()
        await harness.settle()
    assert verify_books(tmp_path).instances == 2


# --- killed around the turn -------------------------------------------------------------------------------------------


async def life(folder: Path) -> None:
    """Six clients with a round in play, three that begin one, and the turn among them; killed at a commit."""
    service_harness._REQUESTS = itertools.count(1 << 40)  # not those of the life after
    harness = Small(folder, clock=ManualClock())
    await harness.start()
    guests = [Guest(harness, name=f"guest-{number}") for number in range(9)]
    for guest in guests:
        await guest.sit()
    for guest in guests[:6]:
        await guest.start()
    (folder / "sessions.txt").write_text("\n".join(guest.session_id for guest in guests), "ascii")
    FAILPOINT.step = "turn"
    moves = [guest.finish_round() for guest in guests[:6]] + [guest.play() for guest in guests[6:]]
    if FAILPOINT.kill_at.startswith("turn/rgs/1/"):
        await harness.instance.hand_over(NODE_KEY, ())  # nothing else is under way
    await asyncio.gather(*moves[:3], harness.instance.hand_over(NODE_KEY, ()), *moves[3:])
    await harness.stop()


def main() -> None:
    """This file as a program."""
    serve_children(lambda order: life(Path(order["folder"])))


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    with forking("tests.integration.test_key_rotation") as process:
        yield process


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 7))
async def test_killed_around_the_turn(tmp_path: Path, processes: subprocess.Popen[str], commit: int, when: str) -> None:
    order = {"folder": str(tmp_path), "kill_at": f"turn/rgs/{commit}/{when}"}
    error = tmp_path / "error.txt"
    assert live(processes, order) == -signal.SIGKILL, error.read_text("utf-8") if error.exists() else "it lived"
    left = stored_statements(tmp_path)
    verify_numbers(left)
    kinds = [(row.instance, row.kind) for row in left if row.kind in {"instance_start", "instance_end"}]
    one, two = "node-1-b1-w0", "node-1-b2-w0"
    turned = [(one, "instance_start"), (one, "instance_end"), (two, "instance_start")]
    assert kinds in (turned[:1], turned), kinds
    if commit == 1:
        assert kinds == (turned[:1] if when == "before" else turned)
    async with open_harness(tmp_path, clock=ManualClock(1_795_000_600_000)) as harness:
        for number, session_id in enumerate((tmp_path / "sessions.txt").read_text("ascii").split()):
            guest = Guest(harness, name=f"guest-{number}")
            view, _ = await harness.sessions.get(guest.caller, session_id)
            guest.session = session_document(view)
            if view.open_round is not None:
                guest.round = round_document(view.open_round)
                await guest.finish_round()
            await guest.leave()
        await harness.settle()
    summary = verify_books(tmp_path)
    lost = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "instance_lost"]
    assert [body["lost"]["instance"] for body in lost] == [kinds[-1][0]], "whichever did not end by itself"
    assert summary.instances == len(kinds) // 2 + 2


if __name__ == "__main__":
    main()
