"""The ids that others use for the same things: the regulator's of sessions and participations, the wallet's of
transactions (check 23).

A participation stands in one session. A regulator's participation id names one participation; its session id names one
session, or those of one table. A transaction moves money once. All ids are kept in one set, 16 bytes each, because the
files do not say when an id will not come again. Where an erased private block had required ids, it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rgs.core.replay.checks import IDS
from rgs.core.replay.identifiers import IdSet
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.sessions import Chain
from rgs.core.sessions import PLAY_MONEY
from rgs.core.statements import UnhandledKindError

TEST_REGULATOR: Final = "test-regulator"
"""The regulator in the block of a session whose ids the embedded test regulator made."""

_OUTSIDE: Final = ("regulator", "regulator_session_id", "regulator_participation_id", "wallet_transaction_id")


class Registered:
    """The ids of one replay."""

    def __init__(self) -> None:
        self._used = IdSet()
        self.absent = 0
        """Erased blocks whose jurisdiction requires the ids in them."""

    def verify(self, statement: Statement, chain: Chain, rulebook: Rulebook) -> None:
        """Check 23 of a session_open, purchase, participation_end, transfer or free_bet, before the chain takes it.

        UnhandledKindError for any other kind.
        """
        kind, body = statement.kind.name, statement.body
        if kind == "free_bet" and body["direction"] == "debit" and not self._used.add_text("grant", body["grant_id"]):
            raise statement.failure(IDS, f"free bet {body['grant_id']} has paid for a round before")
        if kind in {"transfer", "free_bet"}:
            return self._transaction(statement, body["transaction_id"])
        if kind not in {"session_open", "purchase", "participation_end"}:
            raise UnhandledKindError(kind, "rgs.core.replay.registered.Registered.verify")
        if kind == "purchase" and chain.participation_id is None:
            participation_id = body["participation_id"]
            if not self._used.add_text("participation", participation_id):
                raise statement.failure(IDS, f"participation {participation_id} is another session's")
        named = body["jurisdiction"] if kind == "session_open" else chain.jurisdiction
        law = rulebook.jurisdiction(named)
        is_demo = body.get("mode") == "demo" if kind == "session_open" else chain.is_demo
        is_required = law is not None and law.regulator_ids_required and not is_demo
        if statement.private is None:
            self.absent += is_required
            return None
        block: Mapping[str, str] = statement.private["block"]
        if kind == "session_open":
            ruleset = rulebook.ruleset(body["ruleset"])
            is_solo = ruleset is not None and ruleset.max_seats == 1
            table = "" if is_solo else body.get("table", "")
            if is_demo:
                return _verify_play_money(statement, block, reason="")
            if block.get("reason") == PLAY_MONEY:
                raise statement.failure(IDS, f"reason {PLAY_MONEY} in a session that is not played with play money")
            return self._session(statement, block, table, is_required=is_required)
        if is_demo or (is_demo is None and block.get("reason") == PLAY_MONEY):
            chain.is_demo = True
            return _verify_play_money(statement, block, reason=PLAY_MONEY)
        if block.get("reason"):
            raise statement.failure(IDS, f"reason {block['reason']}, which only a session with play money has")
        return self._participation(statement, block, chain, is_required=is_required)

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        return {"absent": self.absent, "used": self._used.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.absent = state["absent"]
        self._used.restore(state["used"])

    def _session(self, statement: Statement, block: Mapping[str, str], table: str, *, is_required: bool) -> None:
        """`table` is empty for solo play."""
        body, named, regulator = statement.body, block.get("regulator_session_id", ""), block.get("regulator", "")
        if is_required and not named:
            raise statement.failure(IDS, "no regulator_session_id, which the jurisdiction requires")
        if bool(regulator) != bool(named):
            raise statement.failure(IDS, f"regulator_session_id {named or 'none'} of regulator {regulator or 'nobody'}")
        if (regulator == TEST_REGULATOR) != body["test_regulator"]:
            raise statement.failure(
                IDS, f"test_regulator is {body['test_regulator']}, the regulator is {regulator or 'nobody'}"
            )
        if not named:
            return
        is_new = self._used.add_text("session", named)
        is_first_there = bool(table) and self._used.add_text("session at", named, table)
        if not is_new and (is_first_there or not table):
            raise statement.failure(IDS, f"regulator_session_id {named} is that of a session that is not at this table")

    def _participation(
        self, statement: Statement, block: Mapping[str, str], chain: Chain, *, is_required: bool
    ) -> None:
        named = block.get("regulator_participation_id", "")
        known, chain.regulator_participation_id = chain.regulator_participation_id, named
        if is_required and not named:
            raise statement.failure(IDS, "no regulator_participation_id, which the jurisdiction requires")
        if known is not None and named != known:
            raise statement.failure(
                IDS, f"regulator_participation_id {named or 'none'}, the participation's is {known or 'none'}"
            )
        if known is None and named and not self._used.add_text("right", named):
            raise statement.failure(IDS, f"regulator_participation_id {named} is another participation's")
        transaction_id = block.get("wallet_transaction_id", "")
        if not transaction_id:
            raise statement.failure(IDS, "no wallet_transaction_id")
        self._transaction(statement, transaction_id)

    def _transaction(self, statement: Statement, transaction_id: str) -> None:
        if not self._used.add_text("transaction", transaction_id):
            raise statement.failure(IDS, f"transaction {transaction_id} was named before")


def _verify_play_money(statement: Statement, block: Mapping[str, str], *, reason: str) -> None:
    """Nobody outside has an id of a session with play money; the block of a purchase or an end says why."""
    for name in _OUTSIDE:
        if block.get(name):
            raise statement.failure(IDS, f"{name} in a session with play money")
    if block.get("reason", "") != reason:
        raise statement.failure(IDS, f"reason {block.get('reason') or 'none'} where {reason or 'none'} is due")
