"""A record factory whose bets are debited one by one: honest, or wrong in its transfers in one place."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.records.factory import Lie, RecordFactory
from tests.support.records.parts import SessionRecord, Worker

RICH_MINOR = 10**9


class Bettor:
    """One session; `skip` leaves out transfers by their number, from 1; `tells_losses`: a round that returns nothing
    has a credit of 0 behind it.
    """

    def __init__(
        self,
        factory: RecordFactory,
        worker: Worker,
        player: SessionRecord,
        skip: Sequence[int],
        *,
        reports_losses: bool = True,
    ) -> None:
        self._factory, self._worker, self._player, self._skip = factory, worker, player, skip
        self._reports_losses = reports_losses
        self._transfers = 0
        self.newest = ""
        """The id of the newest round."""
        player.funds = RICH_MINOR

    def transfer(self, direction: str, amount: int, round_id: str) -> None:
        self._transfers += 1
        if self._transfers in self._skip:
            return
        player = self._player
        if direction == "debit":
            player.bought += amount
            if player.round is not None:
                player.round.before += amount
        else:
            player.paid_out += amount
        body = {
            "amount_minor": str(amount),
            "direction": direction,
            "round_id": round_id,
            "transaction_id": self._factory.ulid(),
        }
        self._factory.link(self._worker, player, "transfer", body)

    def play(self, ante: int, actions: Sequence[str]) -> None:
        factory, player, round_id = self._factory, self._player, self._factory.ulid()
        self.newest = round_id
        self.transfer("debit", 2 * ante, round_id)
        factory.deal(self._worker, [player], {"ante": ante}, round_id=round_id)
        factory.act(player, actions)
        assert player.round is not None
        if cost := sum(int(action["amount_minor"]) for action in player.round.actions):
            self.transfer("debit", cost, round_id)
        before = player.returned
        factory.settle(self._worker, player)
        if (returned := player.returned - before) or self._reports_losses:
            self.transfer("credit", returned, round_id)


def bet_by_bet(
    lie: Lie | None = None, *, jurisdiction: str = "gb-ukgc", skip: Sequence[int] = (), is_seamless: bool = True,
    goes_on: bool = False, reports_losses: bool = True, nothing: str = "",
) -> RecordFactory:  # fmt: skip
    """Four rounds of one session: a debit each before them, one within three of them, a credit behind each. The first
    three return nothing. `nothing` is the direction of a transfer of 0 too many behind the third.
    """

    factory = RecordFactory("bets-7", lie=lie)
    one = factory.start("rgs-1")
    player = factory.open(one, jurisdiction=jurisdiction, seamless=is_seamless)
    bettor = Bettor(factory, one, player, skip, reports_losses=reports_losses)
    bettor.play(100, ["play_4x"])
    bettor.play(50, ["check", "check", "fold"])
    bettor.play(20, ["check", "play_2x"])
    if nothing:
        bettor.transfer(nothing, 0, bettor.newest)
    bettor.play(30, ["play_3x"])
    if goes_on:
        bettor.play(10, ["check", "check", "fold"])
    factory.close(one, player)
    factory.end(one)
    return factory
