"""Verifies what all seats of a table's rounds share, as a player's session meets it.

The checks are those of an auditor's replay: the order of the rounds (24), the rules and limits (8, 10), the deal (25),
the windows (26), nothing early (27), and from the commitment to the hands everything that `table_final` reveals (11 to
14, 16). The statements come with the table's views; those of a round that was not watched are read from the server by
their hashes. A seat is checked against the root over all seats (28) where its path is at hand.

Rounds that the session did not play may be missing: it is the order of a cut export. How many seats others have
(`table_seats`) is not shown to operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rgs.core import statements
from rgs.core.errors import VerificationError
from rgs.core.replay import Rulebook
from rgs.core.replay.checks import TABLE, TABLE_DEAL
from rgs.core.replay.reading import Statement
from rgs.core.replay.table_rounds import TableRound
from rgs.core.replay.tables import Tables
from rgs.devkit.client import Client
from rgs.devkit.terminal.key_path import Keys, stored_statement
from rgs.v1.audit_pb2 import GetStatementRequest
from rgs.v1.audit_pb2 import Statement as StoredStatement
from rgs.v1.table_pb2 import TABLE_STATE_RESULT, TABLE_STATE_SETTLING, TABLE_STATE_VOIDING, TableView

_SHARED: Final = frozenset({"table_round", "table_deal", "table_final"})
_SHOWN: Final = frozenset({TABLE_STATE_SETTLING, TABLE_STATE_VOIDING, TABLE_STATE_RESULT})
"""The states in which all cards lie open."""


class TableProof:
    """The rounds of one table, each of their shared statements verified once."""

    def __init__(self, client: Client, keys: Keys, rulebook: Rulebook) -> None:
        self._client = client
        self._keys = keys
        self._rulebook = rulebook
        self._tables = Tables()
        self._known: dict[str, bytes] = {}
        """Envelopes by hash: of the views, and read from the server."""
        self._taken: dict[str, Statement] = {}
        self._fixed: dict[str, Statement] = {}
        """The `table_round` of each round, by its id."""
        self._board: list[str] = []
        """The cards on the board that were shown last, in the round of `_shown`."""
        self._shown = ""

    def begin_again(self) -> None:
        """Verify all rounds anew, in the order in which they are asked for. What was received is kept."""
        self._tables = Tables()
        self._taken, self._fixed = {}, {}

    # --- what views bring ---------------------------------------------------------------------------------------------

    def take(self, view: TableView) -> list[Statement]:
        """Verify what the view brings, and that it shows what is signed. Returns what is new. VerificationError."""
        new = [self._take(envelope) for envelope in _envelopes(view) if _hash(envelope) not in self._taken]
        fixed = self._fixed.get(view.round_id)
        if fixed is not None:
            self._verify_view(view, fixed)
        return new

    def is_new(self, view: TableView) -> bool:
        """Whether the view begins a round whose `table_round` was not verified yet."""
        return bool(view.table_round) and _hash(view.table_round) not in self._taken

    def _take(self, envelope: bytes) -> Statement:
        statement = self._keys.read(StoredStatement(envelope=envelope))
        kind, body = statement.kind.name, statement.body
        if kind not in _SHARED:
            raise statement.failure(TABLE, f"{kind} is not a statement that the seats of a table share")
        self._known[statement.hash] = envelope
        self._taken[statement.hash] = statement  # also one that fails: it is reported once
        if kind == "table_round":
            self._fixed[statement.round_id] = statement
            self._tables.begin(statement, self._rulebook, is_whole=False)
        elif kind == "table_deal":
            self._need(body["deal"]["table_round"])
            self._tables.take_deal(statement, is_whole=False)
        else:
            for named in filter(None, (body["table_round"], body.get("deal", ""))):
                self._need(named)
            self._tables.end(statement, is_whole=False)
        return statement

    def _verify_view(self, view: TableView, fixed: Statement) -> None:
        """VerificationError unless the view shows the round, the code, the commitment and the cards that are signed.
        `fixed` is the `table_round`; a stream brings each statement once, so the view itself may be without it.
        """
        round_ = self._tables.of_round(fixed.hash)
        if round_ is None:
            raise fixed.failure(TABLE, "the round of the view is not the table's")
        body, cards = round_.body, round_.final_body.get("cards", {})
        claims: dict[str, tuple[object, object]] = {
            "table": (view.table, round_.table),
            "round number": (str(view.table_round_no), body["table_round_no"]),
            "game code": (view.game_code, body["game_code"]),
        }
        if round_.commitment:
            claims["commitment"] = (view.commitment.hex(), round_.commitment)
        for place in ("board", "dealer_cards", "hole_cards"):
            if place in cards and view.state in _SHOWN:
                claims[place] = (list(getattr(view, place)), cards[place])
        if self._shown != round_.round_id:
            self._shown, self._board = round_.round_id, []
        claims["board shown before"] = (list(view.board)[: len(self._board)], self._board)
        self._board = max(self._board, list(view.board), key=len)
        for name, (shown, signed) in claims.items():
            if shown != signed:
                raise fixed.failure(TABLE, f"{name} was shown as {shown}, signed is {signed}")

    # --- what a session's links name ----------------------------------------------------------------------------------

    def of_deal(self, deal: str) -> TableRound | None:
        """The round of a `table_deal`, by its hash. VerificationError if it does not verify."""
        self._need(deal)
        return self._tables.of_deal(deal)

    def of_final(self, final: str) -> None:
        """Have a `table_final`, by its hash. VerificationError if it does not verify."""
        self._need(final)

    def join(self, statement: Statement, round_: TableRound, leaf: bytes) -> None:
        """Check 28 of a `seat_opening`; under the root where the path is at hand."""
        self._tables.join(statement, round_, leaf, is_whole=not statement.path)

    def _need(self, named: str) -> None:
        if named in self._taken:
            return
        if named not in self._known:
            request = GetStatementRequest(hash=bytes.fromhex(named))
            stored = stored_statement(self._client, request, TABLE_DEAL, f"the server does not have statement {named}")
            if _hash(stored.envelope) != named:
                raise VerificationError(f"the server's statement {named} has another hash", check=TABLE.label)
            self._known[named] = stored.envelope
        self._take(self._known[named])


def _envelopes(view: TableView) -> Iterator[bytes]:
    yield from filter(None, (view.table_round, view.table_deal, view.table_final))


def _hash(envelope: bytes) -> str:
    return statements.leaf_hash(envelope).hex()
