"""A record factory whose rounds are paid for by free bets: honest, or wrong in one place."""

from __future__ import annotations

from collections.abc import Sequence

from rgs.core import games
from rgs.core.free_bets import granted_minor, reclaimed_minor
from rgs.core.rounds import pushed_objects, settlement_objects
from tests.support.records.factory import Lie, RecordFactory
from tests.support.records.parts import SessionRecord, Worker

EXPIRY = "2027-01-01T00:00:00.000Z"


class Guest:
    """One session with free bets; `skip` leaves out its `free_bet` statements by their number, from 1, and `again`
    tells them twice.
    """

    def __init__(
        self,
        factory: RecordFactory,
        worker: Worker,
        player: SessionRecord,
        skip: Sequence[int] = (),
        again: Sequence[int] = (),
    ) -> None:
        self._factory, self._worker, self._player = factory, worker, player
        self._skip, self._again = skip, again
        self._links = 0

    def play(self, ante: int, actions: Sequence[str], *, void: str = "", **side_bets: int) -> None:
        """A round from the campaign's debit to what goes back to it. `void` is the reason of its void."""
        factory, player = self._factory, self._player
        round_id, grant_id = factory.ulid(), factory.ulid()
        bets = games.check_stakes(player.ruleset, {"ante": ante, **side_bets})
        self.move("debit", granted_minor(bets), grant_id, round_id)
        factory.deal(self._worker, [player], {"ante": ante, **side_bets}, round_id=round_id)
        factory.act(player, actions)
        assert player.round is not None
        if void:
            rows = pushed_objects(bets)
            factory.void(self._worker, player, void)
        else:
            rows = settlement_objects(games.settle(player.round.seat))
            factory.settle(self._worker, player)
        self.move("credit", reclaimed_minor(rows), grant_id, round_id)

    def move(self, direction: str, amount: int, grant_id: str, round_id: str) -> None:
        """The campaign's debit or the return to it."""
        self._links += 1
        for _ in range((self._links not in self._skip) + (self._links in self._again)):
            self._emit(direction, amount, grant_id, round_id)

    def _emit(self, direction: str, amount: int, grant_id: str, round_id: str) -> None:
        body = {
            "amount_minor": str(amount),
            "direction": direction,
            "grant_id": grant_id,
            "round_id": round_id,
            "transaction_id": self._factory.ulid(),
        }
        if direction == "debit":
            self._player.granted += amount
            body |= {"campaign": "spring", "expiry_time": EXPIRY}
        else:
            self._player.reclaimed += amount
        self._factory.link(self._worker, self._player, "free_bet", body)


def free_bets(
    lie: Lie | None = None,
    *,
    skip: Sequence[int] = (),
    again: Sequence[int] = (),
    reason: str = "MALFUNCTION",
    jurisdiction: str = "demo",
    law_version: int | None = None,
    ruleset: str = "uth-solo",
    is_demo: bool = False,
) -> RecordFactory:
    """A session of five rounds: the first, third, fourth and fifth are free; the third is void for `reason`, the fifth
    has trips.
    """
    factory = RecordFactory("free-5", lie=lie, law_version=law_version)
    one = factory.start("rgs-1")
    player = factory.open(one, ruleset, jurisdiction=jurisdiction, demo=is_demo)
    factory.buy(one, player, 10_000)
    guest = Guest(factory, one, player, skip, again)
    is_holdem = ruleset == "casino-holdem"
    guest.play(100, ["call"] if is_holdem else ["play_4x"])
    factory.play(one, player, {"ante": 50}, ["fold"] if is_holdem else ["check", "check", "fold"])
    guest.play(20, [], void=reason)
    guest.play(30, ["fold"] if is_holdem else ["check", "check", "fold"])
    if is_holdem:
        guest.play(200, ["call"])
    else:
        guest.play(200, ["check", "play_2x"], trips=50)
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    return factory
