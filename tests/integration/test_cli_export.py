"""`rgs export`: what comes out is what the replay takes, whole or under a signed scope, beside a running server."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.cli import export
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import (
    KINDS,
    Ed25519Signer,
    ExportLine,
    key_fingerprint,
    parse_envelope,
    parse_line,
    parse_statement,
    private_hash,
)
from rgs.core.times import format_time
from rgs.node.config import load_config
from rgs.node.keyring import load_bundle, load_node_signer
from rgs.store.changes import Change, Draft, NewInstance
from rgs.store.sqlite.store import SqliteStore, connect
from tests.support.process.commands import Cli

NOW_MS = time.time_ns() // 1_000_000 + 86_400_000
"""Behind the keys that `rgs init` makes."""
TIME = format_time(NOW_MS)
FIRST, SECOND = "0" * 25 + "1", "0" * 25 + "2"
RULESET = next(rules for rules in map(load_ruleset, SHIPPED_RULESETS) if not rules.table_only)
DEMO = load_jurisdiction("demo")


class Server:
    """As much of a server as writes statements: instances, sessions, events."""

    def __init__(self, cli: Cli) -> None:
        self.config = load_config(cli.home)
        self.store = SqliteStore(Path(str(self.config.store)))
        self.name = ""
        self.boots = 0
        self._runner = asyncio.Runner()

    def _commit(self, change: Change) -> None:
        self._runner.run(self.store.commit(change))

    def start(self, in_flight: int = 1) -> str:
        self.boots += 1
        previous = self._runner.run(self.store.previous_boot("node1", 0))
        self.name = f"node1-b{self.boots}-w0"
        signer = Ed25519Signer.from_seed(bytes([self.boots]) * 32)
        body: dict[str, Any] = {
            "boot_no": str(self.boots),
            "draws_in_flight_max": str(in_flight),
            "manifest": "0" * 64,
            "node": "node1",
            "public_key": signer.public_key.hex(),
            "rng_version": "1.0.0",
            "software_version": "0.1.0",
            "store_epoch": self._runner.run(self.store.meta("store_epoch")),
            "time": TIME,
            "worker": "0",
        }
        if previous is not None:
            body["previous_boot"] = {
                "instance": previous.instance,
                "last_draw_no": str(previous.draw_no),
                "last_statement_no": str(previous.statement_no),
            }
        starting = self.store.start_instance(
            NewInstance(
                instance=self.name,
                node="node1",
                boot_no=self.boots,
                worker=0,
                start_ms=NOW_MS + self.boots,
                start=Draft("instance_start", body),
                node_signer=load_node_signer(self.config),
                signer=signer,
            )
        )
        self._runner.run(starting)
        return self.name

    def event(self, count: int = 1) -> None:
        for _ in range(count):
            self._commit(Change(drafts=(Draft("event", {"code": "RNG_STARTED", "time": TIME}),)))

    def open(self, session_id: str) -> None:
        named = {"regulator": "test-regulator", "regulator_session_id": f"M{session_id[-15:]}"}
        block, salt = {"player": f"player-{session_id[-1]}", **named}, bytes(32)
        body = {
            "currency": "EUR",
            "jurisdiction": {"id": DEMO.id, "sha256": DEMO.sha256, "version": str(DEMO.version)},
            "operator": "demo-operator",
            "private": private_hash(salt, block).hex(),
            "ruleset": {"id": RULESET.id, "sha256": RULESET.sha256, "version": str(RULESET.version)},
            "test_regulator": True,
            "time": TIME,
        }
        session = Session(
            session_id=session_id,
            operator="demo-operator",
            player="player",
            operator_reference="",
            ruleset_id=RULESET.id,
            jurisdiction_id=DEMO.id,
            currency="EUR",
            status=SessionStatus.OPEN,
            open_ms=NOW_MS,
            last_ms=NOW_MS,
            version=1,
        )
        draft = Draft("session_open", body, {"block": block, "salt": salt.hex()})
        self._commit(Change(session=session, drafts=(draft,)))

    def close(self, session_id: str) -> None:
        session = self._runner.run(self.store.session(session_id))
        assert session is not None
        body = {"reason": "PLAYER", "rounds": "0", "time": TIME}
        change = replace(session, version=session.version + 1, status=SessionStatus.CLOSED, close_ms=NOW_MS)
        self._commit(Change(session=change, drafts=(Draft("session_close", body),)))

    def end(self) -> None:
        body = {"last_draw_no": "0", "reason": "STOPPED", "time": TIME}
        self._commit(Change(drafts=(Draft("instance_end", body),), ends=(self.name, NOW_MS)))

    def stop(self) -> None:
        self._runner.run(self.store.close())
        self._runner.close()


def _history(cli: Cli, *, running: bool) -> Server:
    """Two boots; the first session spans both, the second lies in the second boot."""
    server = Server(cli)
    server.start()
    server.event()
    server.open(FIRST)
    server.end()
    server.start()
    server.open(SECOND)
    server.close(FIRST)
    server.event(2)
    server.close(SECOND)
    if not running:
        server.end()
    return server


def _export(cli: Cli, *options: str) -> list[bytes]:
    out = cli.home.parent / f"export-{len(list(cli.home.parent.iterdir()))}.jsonl"
    cli("export", "--home", str(cli.home), "--out", str(out), *options)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert not list(out.parent.glob(".export*"))
    return out.read_bytes().splitlines()


def _kinds(lines: list[bytes]) -> list[str]:
    return [parse_statement(parse_envelope(parse_line(line).envelope))[0].name for line in lines]


def _replayed(cli: Cli, lines: list[bytes]) -> Replay:
    """The lines as an auditor reads them; no check may fail."""
    root = (cli.home / "keys" / "root.fingerprint").read_text().strip()
    book = KeyBook(load_bundle(load_config(cli.home)), root=root)
    assert book.anchored
    replay = Replay(book, Rulebook())
    failures = [failure for line in lines for failure in replay.feed(line)] + replay.finish()
    assert [failure.message for failure in failures] == []
    return replay


def test_everything_of_a_stopped_server_needs_no_scope(cli: Cli) -> None:
    server = _history(cli, running=False)
    server.stop()
    lines = _export(cli)
    assert _kinds(lines) == [
        *("instance_start", "event", "session_open", "instance_end", "instance_start", "session_open"),
        *("session_close", "event", "event", "session_close", "instance_end"),
    ]
    summary = _replayed(cli, lines).summary
    assert (summary.is_cut, summary.sessions, summary.instances, summary.private_verified) == (False, 2, 2, 2)


def test_beside_a_running_server_a_scope_says_how_far_it_goes(cli: Cli) -> None:
    server = _history(cli, running=True)
    server.open("0" * 25 + "3")
    try:
        lines = _export(cli)
        server.event()
    finally:
        server.stop()
    assert _kinds(lines)[0] == "export_scope"
    assert "everything so far" in cli.err
    _, scope = parse_statement(parse_envelope(parse_line(lines[0]).envelope))
    assert scope["reason"] == "UNFINISHED"
    assert {row["instance"]: row["last"] for row in scope["instances"]} == {"node1-b1-w0": "4", "node1-b2-w0": "7"}
    summary = _replayed(cli, lines).summary
    assert (summary.is_cut, summary.sessions, summary.instances) == (True, 3, 2)


def test_a_server_that_was_killed_leaves_an_unfinished_instance(cli: Cli) -> None:
    server = _history(cli, running=True)
    server.stop()
    assert _kinds(_export(cli))[0] == "export_scope"


def test_one_session_comes_with_the_starts_that_its_links_need(cli: Cli) -> None:
    server = _history(cli, running=True)
    try:
        lines = _export(cli, "--session", FIRST)
        assert _kinds(lines) == ["export_scope", "instance_start", "session_open", "instance_start", "session_close"]
        assert _replayed(cli, lines).summary.sessions == 1
        _, scope = parse_statement(parse_envelope(parse_line(lines[0]).envelope))
        assert scope["sessions"] == [{"first": "1", "last": "2", "session_id": FIRST}]
        both = _export(cli, "--session", SECOND, "--session", FIRST)
        assert _replayed(cli, both).summary.sessions == 2
        assert _kinds(both).count("session_open") == 2
    finally:
        server.stop()


def test_instances_and_sessions_together_are_written_once_each(cli: Cli) -> None:
    server = _history(cli, running=False)
    server.stop()
    lines = _export(cli, "--instance", "node1-b2-w0", "--session", FIRST)
    assert len(lines) == len(set(lines)) == 1 + 7 + 2
    assert _replayed(cli, lines).summary.is_cut
    alone = _export(cli, "--instance", "node1-b1-w0")
    assert _kinds(alone) == ["export_scope", "instance_start", "event", "session_open", "instance_end"]
    _replayed(cli, alone)


def test_private_blocks_are_left_out_when_asked(cli: Cli) -> None:
    server = _history(cli, running=False)
    server.stop()
    assert sum(parse_line(line).private is not None for line in _export(cli)) == 2
    bare = _export(cli, "--no-private")
    assert not any(parse_line(line).private for line in bare)
    assert b"player-1" not in b"".join(bare)
    _replayed(cli, bare)


def test_stdout_has_the_lines_and_nothing_else(cli: Cli) -> None:
    server = _history(cli, running=False)
    server.stop()
    text = cli("export", "--home", str(cli.home))
    assert [line.encode("ascii") for line in text.splitlines()] == _export(cli)
    assert "exported 11 statements (everything), SHA-256 " in cli.err


def test_many_ranges_need_several_scopes_and_few_rows_at_a_time(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "SCOPE_INSTANCES", 2)
    monkeypatch.setattr(export, "SCOPE_SESSIONS", 1)
    monkeypatch.setattr(export, "PAGE_ROWS", 3)
    server = _history(cli, running=False)
    for _ in range(3):
        server.start()
        server.event(8)
        server.end()
    server.start()
    names = [row.instance for row in server._runner.run(server.store.instances(alive_only=False))]
    server.stop()
    whole = _export(cli)
    assert _kinds(whole)[:4] == ["export_scope", "export_scope", "export_scope", "instance_start"]
    _replayed(cli, whole)
    chosen = [option for name in names for option in ("--instance", name)]
    lines = _export(cli, *chosen, "--session", FIRST, "--session", SECOND)
    assert _kinds(lines).count("export_scope") == 3
    assert [line for line in lines if line not in set(whole)][3:] == []
    assert lines[3:] == whole[3:]
    _replayed(cli, lines)


def test_the_longest_scope_fits_a_statement() -> None:
    name, number = "n" * 64, 10**18 - 1
    instances = {f"{at:03d}".ljust(64, "n"): number for at in range(export.SCOPE_INSTANCES)}
    sessions = {f"{at:026d}": (number, number) for at in range(export.SCOPE_SESSIONS)}
    plan = export.ExportPlan(instances, sessions, export.SELECTION)
    (line,) = export.scope_lines(plan, Ed25519Signer.from_seed(bytes(32)), NOW_MS)
    _, body = parse_statement(parse_envelope(line.envelope))
    assert (len(body["instances"]), len(body["sessions"]), len(name)) == (100, 200, 64)


def test_what_is_not_there_is_named_and_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    server = _history(cli, running=False)
    server.stop()
    out = tmp_path / "out.jsonl"
    command = ("export", "--home", str(cli.home), "--out", str(out))
    assert "there is no session" in cli.refused(*command, "--session", "0" * 26)
    assert "there is no instance node1-b9-w0" in cli.refused(*command, "--instance", "node1-b9-w0")
    assert "field=session" in cli.refused(*command, "--session", "x")
    assert not out.exists()
    out.write_text("evidence")
    assert "not overwritten" in cli.refused(*command)
    assert out.read_text() == "evidence"


@pytest.mark.parametrize("options", [[], ["--instance", "node1-b2-w0"], ["--session", SECOND]])
@pytest.mark.parametrize("which", ["middle", "last"])
def test_a_statement_that_the_store_has_lost_is_not_passed_over(
    cli: Cli, tmp_path: Path, options: list[str], which: str
) -> None:
    server = _history(cli, running=False)
    server.stop()
    store = connect(Path(str(load_config(cli.home).store)))
    rows = store.execute("SELECT id, kind, instance, session_id FROM statements ORDER BY id").fetchall()
    if options[:1] == ["--session"]:
        rows = [row for row in rows if row[3] == SECOND]
        if which == "last":  # a chain's end is known from its links alone; a first one that is gone shows
            rows = rows[:1]
    else:
        rows = [row for row in rows if row[2] == "node1-b2-w0"]
    store.execute("DELETE FROM statements WHERE id = ?", (rows[-1 if which == "last" else len(rows) // 2 - 1][0],))
    store.close()
    out = tmp_path / "out.jsonl"
    line = cli.refused("export", "--home", str(cli.home), "--out", str(out), *options)
    assert "EXPORT_REFUSED" in line
    assert not out.exists()
    assert not list(tmp_path.glob(".out*"))


def test_without_a_node_key_no_scope_is_signed(cli: Cli, tmp_path: Path) -> None:
    server = _history(cli, running=False)
    server.stop()
    (cli.home / "keys" / "node.key").unlink()
    out = tmp_path / "out.jsonl"
    command = ("export", "--home", str(cli.home), "--out", str(out))
    assert "there is no private key of" in cli.refused(*command, "--session", FIRST)
    assert not out.exists()
    cli(*command)


def test_an_empty_store_gives_an_empty_file(cli: Cli) -> None:
    assert _export(cli) == []
    assert "exported 0 statements" in cli.err


def test_lines_have_no_private_block_where_there_is_none() -> None:
    signer = Ed25519Signer.from_seed(bytes(32))
    plan = export.ExportPlan({"i": 1}, {}, export.UNFINISHED)
    (line,) = export.scope_lines(plan, signer, NOW_MS)
    assert line == ExportLine(line.envelope, None)
    assert json.loads(parse_envelope(line.envelope).payload)["kind"] == "export_scope"
    assert parse_envelope(line.envelope).payload_type == KINDS["export_scope"].payload_type
    assert parse_envelope(line.envelope).keyid == key_fingerprint(signer.public_key)
