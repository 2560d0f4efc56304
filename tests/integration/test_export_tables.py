"""`rgs export`, `rgs receipt` and `rgs dispute-export` of seats at tables: both verifiers take what they write, and it
holds nothing of other operators' seats.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from certification import dispute, omission, replay
from certification import receipt as receipts
from rgs.cli import export
from rgs.cli.dispute import command as dispute_export
from rgs.cli.receipt import command as receipt
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.statements import ExportLine, format_line, parse_line
from rgs.core.tables.machine import State
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from tests.support.records.audited import WITNESS, vkey_of, witnessed
from tests.support.service.harness import ROOT_KEY, open_harness
from tests.support.service.places import LOG_KEY, sequence
from tests.support.service.player import Player
from tests.support.service.table_records import SharedEvening, kind_and_body, make_home
from tests.verifier import independent_verifier

TABLES = ("uth-online", "uth-seven-box")
Lines = list[tuple[str, dict[str, Any], bytes]]


@dataclass(frozen=True)
class Night:
    """What an evening left: a home, the sessions of both operators, three rounds. OTHER played the second one alone."""

    home: Path
    own: tuple[str, ...]
    others: tuple[str, ...]
    rounds: tuple[str, ...]


async def _play(home: Path, table_id: str, *, is_running: bool) -> Night:
    store = home / "store"
    store.mkdir(parents=True)
    async with open_harness(store, ended=not is_running) as harness:
        evening = await SharedEvening(harness, table_id).gather()
        rounds = [await evening.play(), await evening.play(*evening.others), await evening.play()]
        own, others = ([sitter.session_id for sitter in sitters] for sitters in (evening.own, evening.others))
        if is_running:
            await evening.bet()
            await evening.until(State.DECIDING)
        else:
            await evening.break_up()
        await sequence(harness, home / "translog")
    make_home(home)
    return Night(home, tuple(own), tuple(others), tuple(rounds))


@pytest.fixture(scope="module", params=TABLES)
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Night:
    return asyncio.run(_play(tmp_path_factory.mktemp("ended") / "home", request.param, is_running=False))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return asyncio.run(_play(tmp_path_factory.mktemp("running") / "home", "uth-online", is_running=True))


async def _restarted(home: Path) -> Night:
    """A round that the first boot begins and the second ends."""
    store = home / "store"
    store.mkdir(parents=True)
    async with open_harness(store) as harness:
        evening = await SharedEvening(harness).gather()
        rounds = [await evening.play()]
        await evening.bet()
        await evening.until(State.DECIDING)
        rounds.append((await evening.row()).table.round_id)
        clock = harness.clock
    async with open_harness(store, clock=clock.again()) as harness:
        again = SharedEvening(harness)
        await again.until(State.RESULT)
    make_home(home)
    own, others = (tuple(one.session_id for one in sitters) for sitters in (evening.own, evening.others))
    return Night(home, own, others, tuple(rounds))


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return asyncio.run(_restarted(tmp_path_factory.mktemp("restarted") / "home"))


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str], running: Night) -> Callable[[bytes], Any]:
    """Both verifiers on an export: their exit status and last line, which must be the same."""

    def verified(content: bytes) -> tuple[int, str]:
        path = tmp_path / "verified.jsonl"
        path.write_bytes(content)
        arguments = [str(path), "--keys", str(running.home / "keys" / "keys.json"), "--root", ROOT_KEY.keyid]
        found = []
        for main in (replay.main, independent_verifier.main):
            status = main(arguments)
            found.append((status, capsys.readouterr().out.splitlines()[-1]))
        assert found[0] == found[1]
        return found[0]

    return verified


def exported(night: Night, out: Path, *, sessions: tuple[str, ...] = (), instances: tuple[str, ...] = ()) -> bytes:
    out.unlink(missing_ok=True)
    export.command(out=str(out), session=list(sessions), instance=list(instances), home=night.home)
    return out.read_bytes()


def read(content: bytes) -> Lines:
    lines = content.splitlines()
    return [(*kind_and_body(parse_line(line).envelope), line) for line in lines]


def test_a_whole_export_has_everything_and_needs_no_paths(
    ended: Night, tmp_path: Path, verify: Callable[[bytes], Any]
) -> None:
    content = exported(ended, tmp_path / "all.jsonl")
    assert verify(content) == (0, "3 rounds verified, 0 failed, ANCHORED")
    kinds = Counter(kind for kind, _, _ in read(content))
    assert (kinds["table_round"], kinds["table_seats"], kinds["export_scope"]) == (3, 3, 0)
    assert not any(parse_line(line).path for line in content.splitlines())


def test_an_export_beside_a_running_table_has_paths(
    running: Night, tmp_path: Path, verify: Callable[[bytes], Any]
) -> None:
    content = exported(running, tmp_path / "all.jsonl")
    assert verify(content) == (0, "3 rounds verified, 0 failed, ANCHORED")
    assert {len(parse_line(line).path) for kind, _, line in read(content) if kind == "seat_opening"} == {6}
    bare = b"".join(
        format_line(ExportLine(parse_line(line).envelope, parse_line(line).private)) + b"\n"
        for line in content.splitlines()
    )
    assert verify(bare)[0] == 1


@pytest.mark.parametrize("count", [1, 2])
def test_an_export_of_sessions_has_what_their_seats_need_and_no_more(
    ended: Night, tmp_path: Path, verify: Callable[[bytes], Any], count: int
) -> None:
    chosen = ended.own[:count]
    content = exported(ended, tmp_path / "part.jsonl", sessions=chosen)
    assert verify(content) == (0, "2 rounds verified, 0 failed, ANCHORED")
    lines = read(content)
    kinds = Counter(kind for kind, _, _ in lines)
    assert "table_seats" not in kinds
    assert [kinds[kind] for kind in ("table_round", "table_deal", "table_final")] == [2, 2, 2]
    assert kinds["seat_opening"] == kinds["seat_final"] == 2 * count
    assert {body["session_id"] for _, body, _ in lines if "session_id" in body} == set(chosen)
    for other in {*ended.own, *ended.others} - set(chosen):
        assert other.encode() not in content
    for place, (kind, _, _) in enumerate(lines):
        if kind in {"table_round", "table_deal", "table_final", "seat_opening", "seat_final"}:
            rest = b"".join(line + b"\n" for at, (_, _, line) in enumerate(lines) if at != place)
            assert verify(rest)[0] == 1, f"without {kind}"


def test_a_changed_path_fails(ended: Night, tmp_path: Path, verify: Callable[[bytes], Any]) -> None:
    content = exported(ended, tmp_path / "part.jsonl", sessions=ended.own[:1])
    line = next(line for kind, _, line in read(content) if kind == "seat_opening")
    parsed = parse_line(line)
    for place in range(len(parsed.path)):
        path = list(parsed.path)
        path[place] = bytes(32)
        changed = format_line(ExportLine(parsed.envelope, parsed.private, tuple(path)))
        assert verify(content.replace(line, changed))[0] == 1


def test_an_export_of_the_instance_is_verified(running: Night, tmp_path: Path, verify: Callable[[bytes], Any]) -> None:
    everything = read(exported(running, tmp_path / "all.jsonl"))
    instances = tuple(body["instance"] for kind, body, _ in everything if kind == "instance_start")
    for sessions in ((), running.own[:1]):
        content = exported(running, tmp_path / "part.jsonl", sessions=sessions, instances=instances)
        assert verify(content) == (0, "3 rounds verified, 0 failed, ANCHORED")


def test_what_one_instance_signed_comes_with_what_it_names(
    restarted: Night, tmp_path: Path, verify: Callable[[bytes], Any]
) -> None:
    everything = read(exported(restarted, tmp_path / "all.jsonl"))
    first, second = (body["instance"] for kind, body, _ in everything if kind == "instance_start")
    for instance, rounds in ((first, 2), (second, 1)):
        content = exported(restarted, tmp_path / "part.jsonl", instances=(instance,))
        assert verify(content)[0] == 0
        assert Counter(kind for kind, _, _ in read(content))["table_deal"] == rounds
    both = exported(restarted, tmp_path / "part.jsonl", instances=(first, second), sessions=restarted.own[:1])
    assert verify(both) == (0, "2 rounds verified, 0 failed, ANCHORED")
    content = exported(restarted, tmp_path / "part.jsonl", sessions=restarted.own[:1])
    assert verify(content) == (0, "2 rounds verified, 0 failed, ANCHORED")
    receipt(restarted.rounds[1], home=restarted.home, session=restarted.own[0], output=tmp_path)
    held = next(tmp_path.glob(f"{restarted.rounds[1]}-*-seat.jsonl")).read_bytes()
    assert verify(held) == (0, "1 rounds verified, 0 failed, ANCHORED")
    assert Counter(kind for kind, _, _ in read(held))["instance_start"] == 2


# --- a receipt --------------------------------------------------------------------------------------------------------


def _policy(night: Night, folder: Path) -> Path:
    """A policy with the night's log, which a witness has cosigned."""
    (shard,) = [path.parent for path in (night.home / "translog").glob("*/checkpoint")]
    witnessed(shard)
    vkey = format_vkey(note_key(f"log.example/{shard.name}", ED25519, LOG_KEY))
    policy = folder / "policy.txt"
    policy.write_text(f"log {vkey}\nwitness w {vkey_of('w.example', WITNESS)}\nquorum w\n")
    return policy


def test_a_receipt_of_a_seat_is_verified(
    ended: Night, tmp_path: Path, verify: Callable[[bytes], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    night = Night(shutil.copytree(ended.home, tmp_path / "home"), ended.own, ended.others, ended.rounds)
    policy, round_id, session = _policy(night, tmp_path), night.rounds[0], night.own[1]
    for opening, name in ((False, "final"), (True, "opening")):
        receipt(round_id, home=night.home, opening=opening, session=session, output=tmp_path)
        shown = capsys.readouterr().out
        assert re.search(r"^regulator's session id [0-9A-Z]{16}, participation id [0-9A-Z]{16}$", shown, re.MULTILINE)
        files = [str(tmp_path / f"{round_id}-{session}-{name}{suffix}") for suffix in (".json", ".tlog-proof")]
        assert receipts.main([*files, "--policy", str(policy), "--root", ROOT_KEY.keyid]) == 0
        content = Path(files[0]).read_bytes()
        assert kind_and_body(content)[0] == f"seat_{name}"
    held = next(tmp_path.glob(f"{round_id}-*-seat.jsonl")).read_bytes()
    assert verify(held) == (0, "1 rounds verified, 0 failed, ANCHORED")
    lines = read(held)
    kinds = [kind for kind, _, _ in lines]
    assert sorted(kinds) == [
        "export_scope", "instance_start", "seat_final", "seat_opening", "table_deal", "table_final", "table_round",
    ]  # fmt: skip
    assert parse_line(next(line for kind, _, line in lines if kind == "seat_opening")).path
    assert all(parse_line(line).private is None for line in held.splitlines())
    for other in {*night.own, *night.others} - {session}:
        assert other.encode() not in held


def test_a_receipt_shows_that_the_round_was_dealt_with_the_seat(
    ended: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night = Night(shutil.copytree(ended.home, tmp_path / "home"), ended.own, ended.others, ended.rounds)
    policy, session, out = _policy(night, tmp_path), night.own[0], tmp_path / "out"
    (shard,) = (night.home / "translog").glob("*/checkpoint")
    for round_id in (night.rounds[0], night.rounds[2]):
        out.mkdir()
        receipt(round_id, home=night.home, session=session, output=out)
        held = next(out.glob(f"{round_id}-*-seat.jsonl"))
        arguments = [str(held), "--log", str(shard.parent), "--policy", str(policy), "--root", ROOT_KEY.keyid]
        capsys.readouterr()
        assert omission.main([*arguments, "--keys", str(night.home / "keys" / "keys.json")]) == 0
        reported = capsys.readouterr().out
        assert "UNDER_ROOT" in reported
        assert "OMITTED" not in reported
        shutil.rmtree(out)


def test_each_change_of_a_receipt_is_found(ended: Night, tmp_path: Path, verify: Callable[[bytes], Any]) -> None:
    receipt(ended.rounds[2], home=ended.home, session=ended.own[0], output=tmp_path)
    receipt(ended.rounds[0], home=ended.home, session=ended.own[1], output=tmp_path)
    held = next(tmp_path.glob(f"{ended.rounds[2]}-*-seat.jsonl")).read_bytes()
    other = next(tmp_path.glob(f"{ended.rounds[0]}-*-seat.jsonl")).read_bytes()
    assert verify(held)[0] == verify(other)[0] == 0
    lines, others = read(held), {kind: line for kind, _, line in read(other)}
    for kind, _, line in lines:
        if kind == "instance_start":
            continue
        assert verify(held.replace(line + b"\n", b""))[0] == 1, f"without {kind}"
        if kind != "export_scope":
            assert verify(held.replace(line, others[kind]))[0] == 1, f"{kind} of another round"
        payload = line.index(b'"payload":"') + 40
        flipped = line[:payload] + (b"A" if line[payload : payload + 1] != b"A" else b"B") + line[payload + 1 :]
        assert verify(held.replace(line, flipped))[0] == 1, f"{kind} changed"


def test_a_receipt_of_a_round_in_play_has_no_final(
    running: Night, tmp_path: Path, verify: Callable[[bytes], Any]
) -> None:
    content = exported(running, tmp_path / "part.jsonl", sessions=running.own[:1])
    kind, body, _ = read(content)[-1]
    assert kind == "seat_opening"
    receipt(body["round_id"], home=running.home, session=running.own[0], opening=True, output=tmp_path)
    held = next(tmp_path.glob(f"{body['round_id']}-*-seat.jsonl")).read_bytes()
    assert {"table_final", "seat_final"}.isdisjoint(kind for kind, _, _ in read(held))
    assert verify(held)[1] == "0 rounds verified, 0 failed, ANCHORED"


def test_a_seat_is_named_by_its_session(ended: Night, tmp_path: Path) -> None:
    for session in ("", "0" * 26):
        with pytest.raises(InvalidFieldError, match="--session"):
            receipt(ended.rounds[0], home=ended.home, session=session, output=tmp_path)
        with pytest.raises(InvalidFieldError, match="--session"):
            dispute_export(ended.rounds[0], tmp_path / "no.zip", home=ended.home, session=session)
    assert list(tmp_path.iterdir()) == []


# --- a dispute --------------------------------------------------------------------------------------------------------


def test_a_dispute_is_verified_and_shown(ended: Night, tmp_path: Path) -> None:
    night = Night(shutil.copytree(ended.home, tmp_path / "home"), ended.own, ended.others, ended.rounds)
    policy, zipped, page = _policy(night, tmp_path), tmp_path / "complaint.zip", tmp_path / "page.html"
    for session in (night.own[0], night.others[1]):
        zipped.unlink(missing_ok=True)
        dispute_export(night.rounds[2], zipped, home=night.home, session=session)
        trusted = ["--policy", str(policy), "--root", ROOT_KEY.keyid]
        assert dispute.main([str(zipped), *trusted, "--html", str(page)]) == 0
        files = dispute.read_zip(zipped)
        assert "page.html" in files
        assert json.dumps(night.rounds[2])[1:-1] in page.read_text()
        kinds = Counter(kind for kind, _, _ in read(files["session.jsonl"]))
        assert "table_seats" not in kinds
        for other in {*night.own, *night.others} - {session}:
            assert not any(other.encode() in content for content in files.values())


def test_a_round_of_solo_play_has_two_files_as_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "store").mkdir(parents=True)

    async def played() -> str:
        async with open_harness(home / "store") as harness:
            player = Player(harness)
            await player.sit()
            await player.play()
            await sequence(harness, home / "translog")
        return player.session_id

    session = asyncio.run(played())
    night = Night(make_home(home), (session,), (), ())
    policy, out = _policy(night, tmp_path), tmp_path / "out"
    out.mkdir()
    everything = read(exported(night, tmp_path / "all.jsonl"))
    round_id = next(body["round_id"] for kind, body, _ in everything if kind == "round_final")
    for named in ("", session):
        for opening, name in ((False, "final"), (True, "opening")):
            receipt(round_id, home=home, opening=opening, session=named, output=out)
            files = [str(out / f"{round_id}-{name}{suffix}") for suffix in (".json", ".tlog-proof")]
            assert receipts.main([*files, "--policy", str(policy), "--root", ROOT_KEY.keyid]) == 0
    assert len(list(out.iterdir())) == 4
    dispute_export(round_id, tmp_path / "complaint.zip", home=home)
    assert dispute.main([str(tmp_path / "complaint.zip"), "--policy", str(policy), "--root", ROOT_KEY.keyid]) == 0
    with pytest.raises(InvalidFieldError, match="--session"):
        receipt(round_id, home=home, session="0" * 26, output=out)
    with pytest.raises(NotFoundError, match="no round_final"):
        receipt("0" * 26, home=home, output=out)
