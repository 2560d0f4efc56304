"""Nothing that anybody sends reaches the generator (GLI-19 4.5.2, 4.6; UKGC RTS 7A; ARCHITECTURE 2.6).

Two servers are given the same entropy, byte for byte, and other requests: other players, operators, ids, games, stakes,
decisions and times. The decks that they deal are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rgs.core.games.types import Action
from rgs.service.callers import Caller, Role
from rgs.service.instance import Instance
from rng import generator as generator_module
from rng.generator import Draw, Generator
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.harness import open_harness
from tests.support.service.player import Player

ROUNDS = 4


@dataclass(frozen=True)
class Sent:
    """What the outside decides."""

    player: str = "anna"
    operator: str = "op-1"
    first_id: int = 1
    game: str = "uth-solo"
    stakes: tuple[tuple[str, int], ...] = (("ante", 100),)
    bought_minor: int = 20_000
    action: Action = Action.CHECK
    clock_ms: int = NOW_MS


PLAIN = Sent()
OTHERS = {
    "player": replace(PLAIN, player="zoe-with-a-long-name"),
    "operator": replace(PLAIN, operator="op-2"),
    "request ids": replace(PLAIN, first_id=1 << 90),
    "game": replace(PLAIN, game="casino-holdem"),
    "stakes": replace(PLAIN, stakes=(("ante", 370), ("trips", 50))),
    "money": replace(PLAIN, bought_minor=9_870),
    "decisions": replace(PLAIN, action=Action.PLAY_4X),
    "time": replace(PLAIN, clock_ms=NOW_MS + 86_400_000 * 37 + 12_345),
}


async def drawn(folder: Path, sent: Sent, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The transcripts of the rounds, under entropy that is the same each time."""
    served = itertools.count()

    def getrandom(n_bytes: int, _flags: int = 0) -> bytes:
        return hashlib.sha512(next(served).to_bytes(8, "big")).digest()[:n_bytes]

    transcripts: list[bytes] = []
    draw = Generator.draw

    def watched(self: Generator) -> Draw:
        found = draw(self)
        transcripts.append(found.transcript)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(os, "getrandom", getrandom)
        patched.setattr(generator_module, "_serials", itertools.count(7))
        patched.setattr("rng.generator.Generator.draw", watched)
        async with open_harness(folder, clock=ManualClock(sent.clock_ms)) as harness:
            ids = itertools.count(sent.first_id)
            patched.setattr(harness, "request_id", lambda: str(uuid.UUID(int=next(ids))))
            guest = Player(harness, name=sent.player, game=sent.game)
            guest.caller = Caller(sent.operator, Role.OPERATOR, "demo")
            await guest.sit(sent.bought_minor)
            for _ in range(ROUNDS):
                harness.clock.tick(1500)
                stakes = dict(sent.stakes)
                await guest.start(stakes.pop("ante"), **stakes)
                while guest.round["status"] == "open":
                    legal = [action for action, _, available in guest.round["legal_actions"] if available]
                    await guest.act(sent.action.value if sent.action.value in legal else legal[-1])
    assert len(transcripts) == ROUNDS
    return transcripts


@pytest.mark.parametrize("name", OTHERS)
async def test_nothing_in_a_request_changes_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = await drawn(tmp_path / "plain", PLAIN, monkeypatch)
    assert await drawn(tmp_path / "other", OTHERS[name], monkeypatch) == plain
    assert len(set(plain)) == ROUNDS


@pytest.mark.parametrize(
    "leak",
    [
        lambda harness, player: harness.random_bytes(len(player)),
        lambda harness, player: harness._generator._generator._drbg.reseed(hashlib.sha256(player.encode()).digest()),
    ],
    ids=["how many bytes are read", "what is mixed in"],
)
async def test_the_comparison_sees_a_player_who_reaches_the_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: Callable[[Instance, str], object]
) -> None:
    """Planted: the player's name decides how much entropy goes elsewhere, or goes into the state."""
    draw, player = Instance.draw, [""]

    async def reached(self: Instance) -> Draw:
        leak(self, player[0])
        return await draw(self)

    monkeypatch.setattr(Instance, "draw", reached)
    seen = []
    for sent in (PLAIN, OTHERS["player"]):
        player[0] = sent.player * 4
        seen.append(await drawn(tmp_path / sent.player, sent, monkeypatch))
    assert seen[0] != seen[1]


def test_a_draw_has_no_argument_by_which_anything_could_come_in() -> None:
    assert list(inspect.signature(Generator.draw).parameters) == ["self"]
    assert list(inspect.signature(Instance.draw).parameters) == ["self"]
