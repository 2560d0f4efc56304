"""An admin's word for a clock that the database contradicts, at a whole server over PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.clock import APART_MS
from rgs.store.address import PostgresAddress
from rgs.v1 import admin_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.integration.test_api_guards import NOT_SERVING, PLAY, SERVING, guards, until
from tests.support.api.client import refused, request_id
from tests.support.api.harness import info_in, serving, status_in
from tests.support.service.harness import read_statement


async def test_a_word_against_the_database_is_refused_and_says_how_far_the_clocks_are_apart(
    tmp_path: Path, database: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)
    async with serving(tmp_path, database) as harness:
        admin, channel = AdminServiceStub(harness.channel("demo-admin")), harness.channel()
        harness.clock.jumped_ms = 3_600_000
        await until(channel, PLAY, NOT_SERVING)
        clear = admin_pb2.ClearGuardRequest(request_id=request_id(), name="clock", reason="CLOCK_SET_RIGHT")
        error = await refused(admin.ClearGuard(clear))
        info = info_in(status_in(error))
        assert (error.code().name, info.reason) == ("FAILED_PRECONDITION", "CLOCKS_DIFFER")
        assert (info.metadata["guard"], info.metadata["limit"]) == ("clock", str(APART_MS))
        assert abs(int(info.metadata["value"]) - 3_600_000) < APART_MS
        assert "behind" in str(error.details())
        assert (await guards(harness))["clock"].closed
        harness.clock.jumped_ms = 0
        assert read_statement((await admin.ClearGuard(clear)).statement)["after"] == "OPEN"
        await until(channel, PLAY, SERVING)
