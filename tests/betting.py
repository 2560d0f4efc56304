"""A house on paper whose bets are debited one by one: honest, or wrong in its legs in one place."""

from __future__ import annotations

from collections.abc import Sequence

from tests.factory import Body, House, Lie, Player, Worker

RICH_MINOR = 10**9


class Bettor:
    """One session; `skip` leaves out legs by their number, from 1."""

    def __init__(self, house: House, worker: Worker, player: Player, skip: Sequence[int]) -> None:
        self._house, self._worker, self._player, self._skip = house, worker, player, skip
        self._legs = 0
        player.funds = RICH_MINOR

    def leg(self, direction: str, amount: int, round_id: str) -> None:
        self._legs += 1
        if self._legs in self._skip:
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
            "transaction_id": self._house.ulid(),
        }
        self._house.link(self._worker, player, "money_leg", body)

    def play(self, ante: int, actions: Sequence[str]) -> None:
        house, player, round_id = self._house, self._player, self._house.ulid()
        self.leg("debit", 2 * ante, round_id)
        house.deal(self._worker, [player], {"ante": ante}, round_id=round_id)
        house.act(player, actions)
        assert player.round is not None
        if cost := sum(int(action["amount_minor"]) for action in player.round.actions):
            self.leg("debit", cost, round_id)
        before = player.returned
        house.settle(self._worker, player)
        if returned := player.returned - before:
            self.leg("credit", returned, round_id)


def bet_by_bet(
    lie: Lie | None = None, *, jurisdiction: str = "gb-ukgc", skip: Sequence[int] = (), funding: str = "seamless",
    goes_on: bool = False,
) -> House:  # fmt: skip
    """Four rounds of one session: a debit each before them, one within two of them, credits behind what returns."""

    def told(kind: str, number: int, body: Body) -> None:
        if kind == "session_open" and funding:
            body["funding"] = funding
        if lie is not None:
            lie(kind, number, body)

    house = House("bets-7", lie=told)
    one = house.start("rgs-1")
    player = house.open(one, jurisdiction=jurisdiction)
    bettor = Bettor(house, one, player, skip)
    bettor.play(100, ["play_4x"])
    bettor.play(50, ["check", "check", "fold"])
    bettor.play(20, ["check", "play_2x"])
    bettor.play(30, ["play_3x"])
    if goes_on:
        bettor.play(10, ["check", "check", "fold"])
    house.close(one, player)
    house.end(one)
    return house
