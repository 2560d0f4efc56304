"""A launch with nothing but what it needs, and one that is named by what it is not."""

from __future__ import annotations

from rgs.core.limits import SessionLimits
from rgs.service.play.requests import CreateLaunch, OpenSession
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player


async def test_what_a_launch_leaves_out_its_session_does_not_have(harness: ServiceHarness) -> None:
    request = CreateLaunch(harness.request_id(), "uth-solo", "anna", "EUR", "ref:1")
    assert request.wanted() == OpenSession(request.request_id, "uth-solo", "anna", "EUR", "ref:1")
    token, _ = await harness.launches.create(OPERATOR, request)
    anna = Player(harness)
    await anna.send(OpenSession(harness.request_id(), "", "", "", "", launch_token=token))
    session = (await anna.view()).session
    assert (session.language, session.return_url, session.table_id) == ("", "", "")
    assert (session.limits, session.bet_limits, session.is_demo) == (SessionLimits(), (), False)
    assert await harness.store.session_token(session.session_id) == b""
    assert [row.kind for row in stored_statements(harness.folder) if row.session_id] == ["session_open"]
