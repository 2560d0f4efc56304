"""Lives in which rounds are stopped: limits of every kind, pauses, resumes, voids, switches, players who leave for
days and rounds that end by rule. Whatever happens, money sums to zero, every participation ends once, totals equal a
scan, and replay agrees.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgs.core import rounds
from rgs.core.errors import RgsError
from rgs.core.limits import Headroom, SessionLimits
from rgs.core.sessions import Session
from rgs.service.play import settlement
from tests.property.test_lives_whole import PHASES, Step, World, entropy_of, live
from tests.support.service.admins import AdminOf
from tests.support.service.harness import Request, read_statement
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player

LIMITS = (SessionLimits(), SessionLimits(loss_minor=300, stake_minor=700), SessionLimits(duration_ms=3_600_000))
HOUR_MS = 3_600_000
SCOPES = (("play", ""), ("operator", "op-1"), ("game", "casino-holdem"), ("player", "op-1/player-1"))
WHAT = [
    *["next"] * 9, "buy", "end", "repeat", "stale", "pause", "pause", "resume", "propose", "propose", "approve",
    "approve", "leave", "day", "switch", "recover", "report",
]  # fmt: skip
STEPS = st.builds(Step, st.sampled_from(WHAT), st.integers(0, 2), st.integers(0, 999))
BATCHES = st.lists(
    st.one_of(st.lists(STEPS, min_size=1, max_size=4), st.sampled_from(["stop", "die"])), min_size=1, max_size=16
)


class StoppedWorld(World):
    """A world with two admins, whose players have limits and come back in a new session when one is closed."""

    @property
    def admins(self) -> tuple[AdminOf, AdminOf]:
        return AdminOf(self.harness), AdminOf(self.harness, "admin-2")

    def next_request(self, player: Player, number: int) -> Request:
        if player.session and player.session["status"] == "closed":
            player.session, player.round = {}, {}
        if not player.session:
            return replace(player.opening(), limits=LIMITS[self.players.index(player)])
        if player.round and not player.round["legal_actions"]:
            return player.decision("fold")  # it is paused: refused
        return super().next_request(player, number)

    async def take(self, step: Step) -> None:
        player = self.players[step.who]
        if player.session and step.what != "stale":
            await self.refresh(player)
        if player.round and step.what in ("pause", "resume", "propose", "approve"):
            with suppress(RgsError):
                await self.order(step, str(player.round["round_id"]))
            return
        match step.what:
            case "leave":
                self.harness.clock.tick(600_000)
                await self.harness.services.interruptions.finish_due()
            case "day":
                self.harness.clock.tick(HOUR_MS * (1 + step.number % 24))
            case "switch":
                scope, subject = SCOPES[step.number % len(SCOPES)]
                await self.admins[0].switch(scope, subject, enabled=step.number % 3 > 0)
            case _:
                await super().take(step)

    async def order(self, step: Step, round_id: str) -> None:
        admin = self.admins[step.number % 2]
        match step.what:
            case "pause":
                await admin.pause(round_id)
            case "resume":
                await admin.resume(round_id)
            case "propose":
                await admin.propose(round_id)
            case _:
                await admin.approve(round_id)

    async def finish(self) -> None:
        """What is paused is resumed; whatever is switched off, everybody can leave."""
        for player in self.players:
            if player.session:
                await self.refresh(player)
                if player.round and not player.round["legal_actions"]:
                    await self.admins[0].resume(str(player.round["round_id"]))
        await super().finish()


@settings(max_examples=25, phases=PHASES)
@given(BATCHES, st.integers(0, 1 << 32))
def test_every_stopped_life_adds_up(batches: list[list[Step] | str], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, entropy_of(seed):
        asyncio.run(live(Path(folder), batches, StoppedWorld))


# --- the oracle sees it -----------------------------------------------------------------------------------------------


def steps(who: int, *named: str) -> list[list[Step] | str]:
    """One thing after the other; a number behind a name is the step's."""
    made: list[list[Step] | str] = []
    for name in named:
        what, _, number = name.partition(" ")
        made.append([Step(what, who, int(number or 0))])
    return made


# Player 0: a void round, one paused and resumed, one finished by rule, another day. Player 1 comes to his limits.
SIT = ("next", "next 999")
ORDINARY = [
    *steps(0, *SIT, "next", "pause", "propose 0", "approve 0", "approve 1", "next", "pause", "resume"),
    *steps(0, "next", "leave", "next", "pause 1", "propose 1", "approve 0", "day 23"),
    *steps(1, *SIT, *["next 19"] * 30),
]


def live_ordinarily() -> Counter[str]:
    """How often each significant thing happened: codes of events, how rounds ended, days on which they did."""
    with tempfile.TemporaryDirectory() as folder, entropy_of(7):
        asyncio.run(live(Path(folder), ORDINARY, StoppedWorld))
        bodies = [read_statement(row.envelope) for row in stored_statements(Path(folder))]
    finals = [body for body in bodies if body["kind"] == "round_final"]
    seen = Counter(body["code"] for body in bodies if body["kind"] == "event")
    seen.update(body["status"] for body in finals)
    seen["days"] = len({body["time"][:10] for body in finals})
    return seen


def test_an_ordinary_stopped_life_adds_up() -> None:
    seen = live_ordinarily()
    assert (seen["void"], seen["VOID_PROPOSED"], seen["MALFUNCTION"]) == (2, 2, 3)
    assert (seen["ROUND_RESUMED"], seen["ROUND_FINISHED_BY_RULE"]) == (1, 1)
    assert seen["settled"] >= 4
    assert seen["days"] == 2


def test_the_oracle_sees_a_void_that_keeps_the_stakes(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = settlement._ended

    def careless(session: Session, returned_minor: int) -> Session:
        return genuine(session, returned_minor - returned_minor % 11)

    monkeypatch.setattr(settlement, "_ended", careless)
    with pytest.raises((AssertionError, RgsError)):
        live_ordinarily()


def test_the_oracle_sees_limits_that_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rgs.core.sessions.headroom_of", lambda _limits, money, _reserved: Headroom(money.balance_minor, None, None)
    )
    with pytest.raises(AssertionError, match=r"8 rules|15 actions"):
        live_ordinarily()


def test_the_oracle_sees_a_void_that_one_admin_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(round_: object, void: object, **more: object) -> object:
        approvals = (void.approvals[0], void.approvals[0])  # type: ignore[attr-defined]
        return genuine(round_, replace(void, approvals=approvals), **more)  # type: ignore[type-var, arg-type]

    genuine = rounds.void_body
    monkeypatch.setattr(settlement, "void_body", alone)
    with pytest.raises(AssertionError, match="19 void"):
        live_ordinarily()
