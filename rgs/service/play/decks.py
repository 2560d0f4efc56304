"""Decks of rounds in play: unsealed for one call, checked against the commitment, never kept (ARCHITECTURE 2.9).

The view of a round is made here as well, because it needs the deck: unsealed while the round is open, read from the
final afterwards. A deck that does not match its commitment is refused.
"""

from __future__ import annotations

import hmac
import json

from rgs.core import games
from rgs.core.cards import parse_card
from rgs.core.limits import Headroom
from rgs.core.rounds import Round, RoundStatus, UnsealedDeck, seat_of
from rgs.core.statements import commitment_of, parse_envelope
from rgs.core.views import RoundView, blind_view, round_view
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.sealing import DeckSealedError
from rng.shuffle import transcript_to_deck


class Decks:
    """Unseals decks with the keys of this node."""

    def __init__(self, instance: Instance, games: GameCatalog) -> None:
        self._instance = instance
        self._games = games

    def open(self, round_: Round) -> UnsealedDeck:
        """Unseal the deck of a round in play; DeckSealedError if that fails, or if it is not the committed deck."""
        salt, transcript = self._instance.sealer.unseal(round_.instance, round_.draw_no, round_.deal, round_.sealed)
        if not hmac.compare_digest(commitment_of(round_.deal, salt, transcript), round_.commitment):
            raise DeckSealedError("the sealed deck of this round does not match its commitment")
        deck = transcript_to_deck(transcript)
        return UnsealedDeck(seat_of(round_, self._games.rulesets[round_.ruleset_id], deck), deck, salt, transcript)

    def can_open(self, round_: Round) -> bool:
        """Whether the sealed deck of a round can be unsealed with the keys at hand."""
        try:
            self.open(round_)
        except DeckSealedError:
            return False
        return True

    def view(self, round_: Round, final: bytes, headroom: Headroom | None = None) -> RoundView:
        """What the player may see of the round now; without cards if it is paused or void and its deck is lost."""
        running = round_.actions_hash()
        ruleset = self._games.rulesets[round_.ruleset_id]
        if round_.status is RoundStatus.OPEN:
            try:
                seat = self.open(round_).seat
            except DeckSealedError:
                if not round_.malfunction:
                    raise
                return blind_view(round_, ruleset, actions_hash=running)
            return round_view(round_, seat, actions_hash=running, headroom=headroom)
        body = json.loads(parse_envelope(final).payload)
        if "deck" not in body:
            return blind_view(round_, ruleset, actions_hash=running)
        seat = seat_of(round_, ruleset, [int(parse_card(card)) for card in body["deck"]])
        if round_.status is RoundStatus.VOID:
            return round_view(round_, seat, actions_hash=running)
        return round_view(round_, seat, actions_hash=running, settlement=games.settle(seat))
