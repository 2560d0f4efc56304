"""`rgs archive`: rounds that were moved out of the store are served, listed, exported and replayed as before, over both
stores.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rgs.cli.archive import move
from rgs.core.statements.lines import parse_line
from rgs.node.clock import now_ms
from rgs.node.config import Config
from rgs.node.stores import reading
from rgs.service.callers import Role
from rgs.store.address import PostgresAddress
from rgs.store.archive import INDEX_FILE, STATEMENTS_FILE, UNDELETED, part_names
from rgs.v1 import audit_pb2, history_pb2, report_pb2, support_pb2
from rgs.v1.report_pb2_grpc import ReportServiceStub
from rgs.v1.support_pb2_grpc import SupportServiceStub
from tests.support.api.archived import ROUNDS, counted, exported, play_and_close, replayed, until_read
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import ApiHarness, reason_in, serving, status_in


async def everything(harness: ApiHarness, sessions: dict[str, list[str]]) -> dict[str, Any]:
    """The bytes of all that the server says of these sessions and rounds."""
    player, auditor = (ApiClient(harness.channel(party)) for party in ("demo-operator", "demo-auditor"))
    said: dict[str, Any] = {}
    for session, rounds in sessions.items():
        for client, who in ((player, "operator"), (auditor, "auditor")):
            for round_ in rounds:
                record = await client.history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=round_))
                assert len(record.records[0].free_bets) == (2 if round_ == rounds[0] else 0)
                said[f"{who} record {round_}"] = record.SerializeToString(deterministic=True)
                request = audit_pb2.ListStatementsRequest(round_id=round_)
                said[f"{who} statements {round_}"] = (await client.audit.ListStatements(request)).statements
            page = await client.audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=session))
            said[f"{who} links {session}"] = list(page.statements)
            for row in page.statements:
                for named in ({"hash": row.hash}, {"instance": row.instance, "statement_no": row.statement_no}):
                    found = await client.audit.GetStatement(audit_pb2.GetStatementRequest(**named))
                    assert found.statement == row
        listed = history_pb2.ListRoundsRequest(session_id=session)
        said[f"rounds {session}"] = list((await player.history.ListRounds(listed)).rounds)
    stub: Any = ReportServiceStub(player.channel)
    said["finals"] = [final async for final in stub.WatchFinals(report_pb2.WatchFinalsRequest(first_no=1))]
    return said


async def test_what_was_moved_is_served_and_exported_as_before(
    tmp_path: Path, either_database: PostgresAddress | None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "archive"
    async with serving(tmp_path, either_database, archive=str(folder)) as harness:
        folder.mkdir()
        config = harness.config
        sessions, folds = {}, list[tuple[Any, Any]]()
        for number in range(3):
            player = ApiClient(harness.channel(), f"player-{number}")
            rounds = await play_and_close(player, folds)
            sessions[player.session_id] = rounds
        open_ = await ApiClient(harness.channel(), "player-open").seated()
        await open_.round_to_the_end()
        await until_read(config)
        before = await everything(harness, sessions)
        assert len(before["finals"]) == 3 * ROUNDS + 1
        await harness.stop()
        whole = await asyncio.to_thread(exported, config, tmp_path / "before.jsonl")
        found = await counted(config)
        assert (found.sessions, found.rounds) == (3, 3 * ROUNDS)
        assert dict(found.stays) == {"open": 1}
        assert part_names(folder) == []

        moved = await move(config, now_ms() + 1000, now_ms())
        assert (moved.sessions, moved.rounds, dict(moved.stays)) == (3, 3 * ROUNDS, {"open": 1})
        async with reading(config.store) as reads:
            for session, rounds in sessions.items():
                assert not [one for one in rounds if await reads.round(one) is not None]
                kinds = [row.kind for row in await reads.statements_of_session(session, 0, 100)]
                assert kinds == ["session_open", "purchase", "participation_end", "session_close"]
        (name,) = part_names(folder)
        assert not (folder / name / UNDELETED).exists()
        capsys.readouterr()
        assert await asyncio.to_thread(replayed, config, folder / name / STATEMENTS_FILE) == 0
        assert f"{3 * ROUNDS} rounds verified, 0 failed, ANCHORED" in capsys.readouterr().out

        again = await asyncio.to_thread(exported, config, tmp_path / "after.jsonl")
        assert again.splitlines()[1:] == whole.splitlines()[1:], "but for the time of the scope"
        assert (await move(config, now_ms() + 1000, now_ms())).sessions == 0
        assert part_names(folder) == [name]

        stranger = harness.issue(Role.OPERATOR, "op-2")
        await harness.allow(stranger, Role.OPERATOR, "op-2", "demo")
        await harness.restart()
        assert await everything(harness, sessions) == before
        for fold, response in folds:
            assert await ApiClient(harness.channel()).play.Act(fold) == response, "a repeat gets its stored answer"
        explained = await supported(harness, sessions)
        assert len(explained) == 3 * ROUNDS
        assert all(text.sentences for text in explained)
        other = ApiClient(harness.channel(stranger))
        round_id = sessions[min(sessions)][0]
        for client, wanted in ((other, round_id), (ApiClient(harness.channel()), "0" * 26)):
            request = history_pb2.GetRoundRecordRequest(round_id=wanted)
            assert reason_in(status_in(await refused(client.history.GetRoundRecord(request)))) == "NOT_FOUND"
        listed = await other.audit.ListStatements(audit_pb2.ListStatementsRequest(round_id=round_id, page_size=1))
        assert not listed.statements
        assert not listed.next_page_token, "its pages do not show how many statements others have"
        assert not await texts_in(config, folder / name)


async def supported(harness: ApiHarness, sessions: dict[str, list[str]]) -> list[Any]:
    """What support staff is told of the rounds."""
    stub: Any = SupportServiceStub(harness.channel("demo-support"))
    rounds = [one for of_session in sessions.values() for one in of_session]
    return [await stub.ExplainRound(support_pb2.ExplainRoundRequest(round_id=one)) for one in rounds]


async def texts_in(config: Config, part: Path) -> list[str]:
    """What a part must not hold, if it holds it: pseudonyms, references, private salts, sealed decks."""
    content = b"".join((part / file).read_bytes() for file in (STATEMENTS_FILE, INDEX_FILE))
    assert all(line.private is None for line in map(parse_line, (part / STATEMENTS_FILE).read_bytes().splitlines()))
    secret = ["player-0", "player-1", "player-2"]
    async with reading(config.store) as reads:
        async for row in reads.statements_in_order():
            if row.private:
                document = json.loads(row.private)
                secret += [document["salt"], *(text for text in document["block"].values() if len(text) > 12)]
    assert len(secret) > 10
    return [text for text in secret if text.encode() in content]
