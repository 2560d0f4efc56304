"""A round in English, sentence by sentence, from its signed statements (docs/support.md).

A pure function over parsed statements. While a round is in play it has no final, and there is no card to tell of: the
opening has none. Names of bets, decisions and hands are those that players read (`rgs.core.texts`). Amounts are in
major units, times are UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rgs.core.amounts import format_money
from rgs.core.free_bets import reclaimed_minor
from rgs.core.rounds import Round
from rgs.core.rulesets import Ruleset
from rgs.core.sessions import Session
from rgs.core.texts import Texts, load_texts
from rgs.core.times import format_time

Body = Mapping[str, Any]
_WHO: Final = {"player": "The player", "timer": "The timer", "rule": "The rule for interrupted rounds"}
_RESULTS: Final = {"win": "won", "lose": "lost", "push": "pushed"}


@dataclass(frozen=True, slots=True)
class SignedRound:
    """The bodies of a seat's statements. `final` and, at a table, `shared` (its `table_final`) are empty until they are
    signed.
    """

    opening: Body
    final: Body = field(default_factory=dict)
    shared: Body = field(default_factory=dict)


def explain(
    signed: SignedRound, round_: Round, session: Session, ruleset: Ruleset, malfunction_code: str = ""
) -> list[str]:
    """The sentences. Row and session give ids and the currency, the statements everything else.

    `malfunction_code` is why the round or its table is paused now; empty if it is not.
    """
    lines = _Sentences(signed, round_, session, ruleset, load_texts("en"), malfunction_code)
    return [*lines.start(), *(lines.end() if signed.final else lines.in_play())]


@dataclass(frozen=True, slots=True)
class _Sentences:
    signed: SignedRound
    round: Round
    session: Session
    ruleset: Ruleset
    texts: Texts
    malfunction_code: str

    def start(self) -> list[str]:
        opening, round_ = self.signed.opening, self.round
        game = self.texts(f"game.{self._family}.name")
        where = f" at table {round_.table_id}" * bool(round_.table_id)
        bets = [(bet["bet"], int(bet["amount_minor"])) for bet in opening["seat"]["bets"]]
        staked = self._money(sum(amount for _, amount in bets))
        rules = f"{self.ruleset.id} version {self.ruleset.version}"
        lines = [
            f"Round {round_.game_code} of {game} ({rules}){where} began at {_time(format_time(round_.start_ms))}.",
            f"The opening bets were {self._listed(bets)}: {staked} in all.",
        ]
        if round_.free_bet:
            lines.append(f"The campaign {round_.free_bet.partition(':')[0]} paid ante and blind as a free bet.")
        if self.session.is_demo:
            lines.append("It was played with play money.")
        if self.session.is_seamless:
            lines.append("The wallet was debited for each bet.")
        else:
            lines.append(
                f"The balance was {self._money(int(opening['balance_before_minor']))} before the bets, and"
                f" {self._money(int(opening['balance_after_minor']))} after them."
            )
        return lines

    def in_play(self) -> list[str]:
        """The decisions so far are in the row: they are signed with the final."""
        lines = [self._decided(taken.body()) for taken in self.round.actions]
        lines.append("The round is in play. Its cards are not shown here before its final reveals them.")
        if self.malfunction_code:
            paused = "Its table" if self.round.table_id else "It"
            lines.append(
                f"{paused} is paused since a malfunction was logged ({self.malfunction_code}): an admin resumes it, or"
                " two admins make the round void."
            )
        return lines

    def end(self) -> list[str]:
        final = self.signed.final
        lines = [self._decided(action) for action in final["actions"]]
        lines += self._cards()
        lines += self._void() if final["status"] == "void" else [*self._hands(), *self._bets()]
        staked, returned = int(final["staked_minor"]), int(final["returned_minor"])
        lines.append(f"In all {self._money(staked)} were staked and {self._money(returned)} returned: {self._net()}.")
        lines += self._free()
        if not self.session.is_seamless:
            lines.append(f"The balance after the round was {self._money(int(final['balance_after_minor']))}.")
        lines.append(f"The round ended at {_time(final['time'])}.")
        return lines

    # --- parts ----------------------------------------------------------------------------------------------------

    @property
    def _family(self) -> str:
        return self.ruleset.family

    def _money(self, amount_minor: int) -> str:
        return format_money(amount_minor, self.session.currency)

    def _listed(self, bets: Sequence[tuple[str, int]]) -> str:
        return ", ".join(f"{self.texts.bet(self._family, bet)} {self._money(amount)}" for bet, amount in bets)

    def _decided(self, action: Body) -> str:
        name = self.texts.known(f"game.{self._family}.action.{action['action'].upper()}", action["action"])
        phase = self.texts.known(f"phase.{action['phase'].upper()}", action["phase"])
        when = phase if phase.startswith("before") else f"at the {phase}"
        cost = f" for {self._money(int(action['amount_minor']))}" * (int(action["amount_minor"]) > 0)
        return f"{_WHO[action['by']]} chose {name}{cost}, {when}, at {_time(action['time'])}."

    def _cards(self) -> list[str]:
        final, shared = self.signed.final, self.signed.shared
        cards = dict(final.get("cards") or shared.get("cards") or {})
        if not cards:
            return ["No card was revealed."]
        mine = final.get("hole_cards") or cards.get("hole_cards") or ()
        held = f"The player held {' '.join(mine)}, the dealer" if mine else "The dealer held"
        dealer = f"{held} {' '.join(cards['dealer_cards'])}"
        return [f"{dealer}; the board was {' '.join(cards['board'])}."]

    def _hands(self) -> list[str]:
        """At a table the dealer's hand, and one that all seats share, stand in the table's final."""
        outcome = {**self.signed.shared.get("hands", {}), **self.signed.final["outcome"]}
        lines = [
            f"The player had {self._hand(outcome['player_hand'])}, the dealer {self._hand(outcome['dealer_hand'])}."
        ]
        if not outcome["dealer_qualifies"]:
            lines.append("The dealer did not qualify.")
        match outcome["outcome"]:
            case "player":
                lines.append("The player's hand was better.")
            case "dealer":
                lines.append("The dealer's hand was better.")
            case "tie":
                lines.append("The hands were equal.")
            case _:
                lines.append("The player had folded.")
        return lines

    def _hand(self, hand: Body) -> str:
        category = hand["category"]
        return f"{self.texts.known(f'hand.{category}', category)} ({' '.join(hand['best5'])})"

    def _bets(self) -> list[str]:
        return [
            f"The bet {self.texts.bet(self._family, bet['bet'])} of {self._money(int(bet['stake_minor']))}"
            f" {_RESULTS[bet['result']]}: {self._money(int(bet['returned_minor']))} came back."
            for bet in self.signed.final["settlement"]
        ]

    def _free(self) -> list[str]:
        if not self.round.free_bet:
            return []
        return [f"Of it {self._money(self._reclaimed())} went back to the campaign: the stake of the free bet."]

    def _void(self) -> list[str]:
        """At a table the reason stands in the table's final."""
        void = self.signed.final.get("void") or self.signed.shared["void"]
        admins = " and ".join(approval["party"] for approval in void["approvals"])
        lines = [f"The round was made void ({void['reason']}) by the admins {admins}. Every stake came back."]
        would = self.signed.final.get("would_have_been") or void.get("would_have_been")
        if would:
            returned = sum(int(bet["returned_minor"]) for bet in would)
            lines.append(f"By the default decisions {self._money(returned)} would have returned.")
        return lines

    def _reclaimed(self) -> int:
        if not self.round.free_bet:
            return 0
        is_void = self.signed.final["status"] == "void"
        return self.round.granted_minor if is_void else reclaimed_minor(self.signed.final["settlement"])

    def _net(self) -> str:
        """The stake of a free bet is neither the player's when it is placed, nor when it comes back."""
        final = self.signed.final
        net = int(final["returned_minor"]) - int(final["staked_minor"]) + self.round.granted_minor - self._reclaimed()
        if not net:
            return "the player neither won nor lost"
        return f"the player {'won' if net > 0 else 'lost'} {self._money(abs(net))}"


def _time(text: str) -> str:
    """`2026-11-21T22:30:00.123Z` for people."""
    return text[:19].replace("T", " ") + " UTC"
