"""Switches of admins: each stops just what its scope says, no dealt round, and is a signed event."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import DisabledError, InvalidFieldError
from rgs.service.callers import Caller, Role
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player

OTHER = Caller("op-2", Role.OPERATOR, "demo")
# Who is there: (name, game, operator); and which of them each switch stops.
THERE = [("anna", "uth-solo", "op-1"), ("bert", "casino-holdem", "op-1"), ("anna", "uth-solo", "op-2")]
SWITCHES = [
    ("play", "", [0, 1, 2]),
    ("operator", "op-1", [0, 1]),
    ("operator", "op-2", [2]),
    ("game", "uth-solo", [0, 2]),
    ("game", "casino-holdem", [1]),
    ("player", "op-1/anna", [0]),
    ("player", "op-2/anna", [2]),
    ("player", "op-1/carl", []),
]


def players_of(harness: ServiceHarness) -> list[Player]:
    return [
        Player(harness, game=game, name=name, caller=Caller(operator, Role.OPERATOR, "demo"))
        for name, game, operator in THERE
    ]


async def stopped(player: Player) -> list[str]:
    """What the player may not do now, each with the scope that forbids it; a dealt round is not among it."""
    fresh = Player(player.harness, game=player._game, name=player.name, caller=player.caller)
    found = []
    for name, call in (("open", fresh.open), ("buy", lambda: player.buy(10)), ("start", player.start)):
        try:
            await call()
        except DisabledError as error:
            found.append(f"{name}: {error.metadata['scope']}")
    if not found:
        await player.finish_round()
    return found


@pytest.mark.parametrize(("scope", "subject", "which"), SWITCHES)
async def test_a_switch_stops_its_scope_and_nothing_else(
    tmp_path: Path, harness: ServiceHarness, scope: str, subject: str, which: list[int]
) -> None:
    playing, waiting = players_of(harness), players_of(harness)
    for player in (*playing, *waiting):
        await player.sit()
    for player in playing:
        await player.start()
    admin = AdminOf(harness)
    body = read_statement((await admin.switch(scope, subject)).envelope)
    assert (body["code"], body["before"], body["after"]) == ("SWITCH_CHANGED", "enabled", "disabled")
    assert (body["subject"], body["actor"], body["reason"]) == (f"{scope} {subject}".strip(), "admin-1", "INSPECTION")
    for number, player in enumerate(waiting):
        result = [f"{step}: {scope}" for step in ("open", "buy", "start")]
        assert await stopped(player) == (result if number in which else []), number
    # What was dealt is played, paid out and closed.
    for player in (*playing, *waiting):
        if player.round.get("status") == "open":
            await player.finish_round()
        await player.leave()
    body = read_statement((await admin.switch(scope, subject, enabled=True)).envelope)
    assert (body["before"], body["after"]) == ("disabled", "enabled")
    assert harness.services.admin.switches() == ()
    for player in players_of(harness):
        await player.sit()
        await player.play()
        await player.leave()
    await harness.settle()
    replayed = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "event"]
    assert [body["code"] for body in replayed].count("SWITCH_CHANGED") == 2
    verify_books(tmp_path)


async def test_the_widest_switch_is_told(harness: ServiceHarness) -> None:
    admin = AdminOf(harness)
    for scope, subject in (("player", "op-1/anna"), ("game", "uth-solo"), ("operator", "op-1"), ("play", "")):
        await admin.switch(scope, subject)
        with pytest.raises(DisabledError) as caught:
            await Player(harness).open()
        assert caught.value.metadata == {"scope": scope, "subject": subject, "code": "INSPECTION"}


async def test_a_switch_outlives_the_process(tmp_path: Path) -> None:
    async with open_harness(tmp_path, ended=False) as harness:
        await AdminOf(harness).switch("game", "uth-solo")
    async with open_harness(tmp_path, clock=harness.clock) as harness:
        (switch,) = harness.services.admin.switches()
        assert (switch.scope, switch.subject, switch.party) == ("game", "uth-solo", "admin-1")
        with pytest.raises(DisabledError):
            await Player(harness).open()
        await Player(harness, game="casino-holdem").open()


async def test_a_repeated_order_changes_nothing_again(tmp_path: Path, harness: ServiceHarness) -> None:
    admin = harness.services.admin
    off = AdminOf(harness).order("SetSwitch", scope="play")
    first = await admin.set_switch(off, "play", "", enabled=False, reason="INSPECTION")
    await AdminOf(harness).switch("play", enabled=True)
    assert await admin.set_switch(off, "play", "", enabled=False, reason="INSPECTION") == first
    assert admin.switches() == ()
    events = [read_statement(row.envelope)["code"] for row in stored_statements(tmp_path) if row.kind == "event"]
    assert events.count("SWITCH_CHANGED") == 2


@pytest.mark.parametrize(
    ("scope", "subject"),
    [
        ("play", "op-1"), ("operator", ""), ("operator", "a b"), ("game", "poker"), ("game", ""), ("player", "op-1"),
        ("player", "op-1/"), ("player", "/anna"), ("table", "t-1"), ("", ""),
    ],
)  # fmt: skip
async def test_what_cannot_be_switched(tmp_path: Path, harness: ServiceHarness, scope: str, subject: str) -> None:
    before = len(stored_statements(tmp_path))
    with pytest.raises(InvalidFieldError):
        await AdminOf(harness).switch(scope, subject)
    assert len(stored_statements(tmp_path)) == before
