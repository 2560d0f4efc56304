"""Decks of tables' rounds: unsealed for one call and checked against the commitment (ARCHITECTURE 2.9)."""

from __future__ import annotations

import hmac

from rgs.core.cards import parse_card
from rgs.core.errors import NotFoundError
from rgs.core.statements import commitment_of, parse_envelope, parse_statement
from rgs.core.tables.bodies import RevealedDeal
from rgs.core.tables.rows import TableRound
from rgs.service.game_catalog import GameCatalog
from rgs.service.sealing import DeckSealedError, Sealer
from rgs.store.interface import StoreReads
from rng.shuffle import transcript_to_deck


class TableDecks:
    """Unseals the decks of tables with the keys of this node. Before the table's end, callers give away what is shown
    and nothing else.
    """

    def __init__(self, store: StoreReads, sealer: Sealer, games: GameCatalog) -> None:
        self._store = store
        self._sealer = sealer
        self._games = games

    def open(self, round_: TableRound) -> RevealedDeal:
        """The deal of a dealt round. DeckSealedError if it cannot be unsealed, or is not the committed one."""
        salt, transcript = self._sealer.unseal(round_.instance, round_.draw_no, round_.core, round_.sealed)
        if not hmac.compare_digest(commitment_of(round_.core, salt, transcript), round_.commitment):
            raise DeckSealedError("the sealed deck of this round does not match its commitment")
        ruleset = self._games.rulesets[round_.ruleset_id]
        return RevealedDeal(ruleset, round_.hands, transcript_to_deck(transcript), salt, transcript)

    async def of_ended(self, round_: TableRound) -> RevealedDeal | None:
        """The deal of a round whose `table_final` is signed, as that shows it; None where it shows none."""
        final = await self._store.statement_of_hash(bytes.fromhex(round_.final))
        if final is None:
            raise NotFoundError(f"no statement {round_.final}", kind="statement")
        _, body = parse_statement(parse_envelope(final.envelope))
        if "deck" not in body:
            return None
        deck = [int(parse_card(card)) for card in body["deck"]]
        salt, transcript = bytes.fromhex(body["salt"]), bytes.fromhex(body["transcript"])
        return RevealedDeal(self._games.rulesets[round_.ruleset_id], round_.hands, deck, salt, transcript)

    async def round_of(self, round_id: str) -> TableRound:
        """A round of a table. NotFoundError."""
        round_ = await self._store.table_round(round_id)
        if round_ is None:
            raise NotFoundError(f"no round {round_id} of a table", kind="round", field="round_id", round_id=round_id)
        return round_
