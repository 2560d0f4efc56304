"""Verifies every signed statement of a player's session while it is played, link by link.

The checks are those of an auditor's replay (docs/verify.md): key path and signature (3), schema (4), private block (5),
the session's chain (7), rules, deal and stakes (8 to 10), and for a final everything from the commitment to the balance
(11 to 18). Besides, the statement received must be the stored one, and the views must show what was signed.

Keys without a root fingerprint from outside make the verdict UNANCHORED. Gaps in the numbers of an instance, and draws
(6, 20, 21), show only in the whole files.
"""

from __future__ import annotations

from typing import Any, Final

import grpc

from rgs.core import statements
from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook, Rulebook, sessions
from rgs.core.replay.checks import KEY, SESSION, Check
from rgs.core.replay.finals import verify_final
from rgs.core.replay.openings import verify_opening
from rgs.core.replay.reading import Statement, read_statement
from rgs.core.replay.scope import NumberSequence
from rgs.core.replay.seats import OpenSeat, read_seat
from rgs.core.statements.lines import format_key_bundle
from rgs.devkit.client import CallError, Client
from rgs.v1.audit_pb2 import GetStatementRequest, ListKeyStatementsRequest, ListStatementsRequest
from rgs.v1.audit_pb2 import Statement as StoredStatement
from rgs.v1.common_pb2 import RoundView, SessionView
from rgs.v1.history_pb2 import RoundRecord

_PAGE: Final = 200


class Keys:
    """The key path from the server: the key statements, and the start of each instance that is met."""

    def __init__(self, client: Client, root: str | None) -> None:
        """`root`: 64 hex digits from outside, or None. VerificationError if the keys have another root."""
        self._client = client
        answer = client.call(client.audit.ListKeyStatements, ListKeyStatementsRequest())
        self._book = KeyBook(format_key_bundle(list(answer.envelopes)), root=root)
        self._instances: set[str] = set()
        self.root = self._book.root
        self.anchored = self._book.anchored
        if root is not None and not self.anchored:
            raise KEY.failure(f"the server's keys begin with root {self.root}, expected was {root}")

    def read(self, stored: StoredStatement) -> Statement:
        """Parse a statement, with checks 1 to 5. VerificationError."""
        _, body = statements.parse_statement(statements.parse_envelope(stored.envelope))
        if body["instance"] not in self._instances:
            self._learn(body["instance"])
        return read_statement(_line(stored), self._book)

    def _learn(self, instance: str) -> None:
        request = GetStatementRequest(instance=instance, statement_no=1)
        stored = _stored(self._client, request, KEY, f"the server does not have the start of instance {instance}")
        start = read_statement(_line(stored), self._book)
        if start.kind.name != "instance_start" or start.body["instance"] != instance:
            raise KEY.failure(f"statement 1 of instance {instance} is not its start")
        self._book.add_instance(start.body, start.keyid)
        self._instances.add(instance)


class SessionProof:
    """The signed links of one session, verified in their order."""

    def __init__(self, client: Client, keys: Keys, session_id: str) -> None:
        self._client = client
        self._keys = keys
        self._rulebook = Rulebook()
        self._session_id = session_id
        self._chain = sessions.Chain(session_id, NumberSequence(is_whole=True, head=0))
        self._ids: dict[str, str] = {}
        self.links: list[Statement] = []

    def take(self, envelope: bytes) -> Statement:
        """Verify the next link, as it was received. VerificationError names the check that fails."""
        request = GetStatementRequest(hash=statements.leaf_hash(envelope))
        stored = _stored(self._client, request, SESSION, "the server has not stored the statement that it sent")
        if stored.envelope != envelope:
            raise SESSION.failure("the statement that was sent differs from the stored one")
        if stored.link_no > self._chain.links.last + 1:  # a decision by rule, or by another device of the player
            self.catch_up()
        else:
            self._verify(stored)
        link = self.links[-1]
        if link.hash != statements.leaf_hash(envelope).hex():
            raise SESSION.failure("the session has statements after the one that was sent")
        return link

    def catch_up(self) -> None:
        """Verify the session from its first link. VerificationError."""
        self._chain = sessions.Chain(self._session_id, NumberSequence(is_whole=True, head=0))
        self.links = []
        request = ListStatementsRequest(session_id=self._session_id, page_size=_PAGE)
        for page in self._client.pages(self._client.audit.ListStatements, request):
            for stored in page.statements:
                self._verify(stored)

    def verify_shown(self, session: SessionView, round_: RoundView | None) -> None:
        """VerificationError unless the views show the ids, amounts and cards of the verified statements."""
        last = self.links[-1].body
        claims: _Claims = {field: (getattr(session, field), signed) for field, signed in self._ids.items()}
        if "balance_after_minor" in last:
            actions = round_.actions if round_ is not None and self._chain.kind == "round_opening" else ()
            decided = sum(action.amount_minor for action in actions)
            claims["balance"] = (str(session.balance_minor), str(int(last["balance_after_minor"]) - decided))
        if round_ is not None and self._chain.kind == "round_opening":
            claims["commitment"] = (round_.commitment.hex(), last["commitment"])
            claims["game code"] = (round_.game_code, last["deal"]["game_code"])
        elif round_ is not None and self._chain.kind == "round_final":
            claims |= _claims(round_, last)
        _verify_claims(self.links[-1], claims)

    def _verify(self, stored: StoredStatement) -> None:
        statement = self._keys.read(stored)
        chain = self._chain
        chain.verify_link(statement, None)
        seat: OpenSeat | None = None
        match statement.kind.name:
            case "session_open":
                sessions.verify_session_open(statement, self._rulebook)
            case "purchase":
                sessions.verify_purchase(statement, chain, self._rulebook)
            case "round_opening":
                seat = read_seat(statement, self._rulebook)
                verify_opening(statement, seat, chain, self._rulebook)
            case "round_final":
                verify_final(statement, chain.seat, chain.is_seamless)
            case "transfer":
                sessions.verify_transfer(statement, chain)
            case "participation_end":
                sessions.verify_participation_end(statement, chain)
            case "session_close":
                sessions.verify_session_close(statement, chain)
            case "seat_opening" | "seat_final":
                raise statement.failure(SESSION, "this client verifies the rounds of solo play, not those of a table")
            case name:
                raise VerificationError(f"{name} is not a link of a session", check=SESSION.label)
        chain.advance(statement, seat)
        self.links.append(statement)
        if statement.private is not None:
            block = statement.private["block"]
            self._ids |= {field: block[field] for field in _IDS if field in block}


class RoundProof:
    """Proves an ended round of the history from the first statement of its session on."""

    def __init__(self, client: Client, keys: Keys, record: RoundRecord) -> None:
        """VerificationError of the first check that fails, of the session, the round or its view."""
        session = SessionProof(client, keys, record.summary.session_id)
        session.catch_up()
        self.links = len(session.links)
        """Number of statements of the session, all verified."""
        found = {link.kind.name: link for link in session.links if link.round_id == record.summary.round_id}
        for kind in ("round_opening", "round_final"):
            if kind not in found:
                raise SESSION.failure(f"the session has no {kind} of round {record.summary.round_id}")
        self.opening, self.final = found["round_opening"], found["round_final"]
        for link, envelope in ((self.opening, record.opening), (self.final, record.final)):
            if link.hash != statements.leaf_hash(envelope).hex():
                raise link.failure(SESSION, f"the {link.kind.name} of the history differs from the session's")
        row, view = record.summary, record.round
        opened = self.opening.body
        claims = _claims(view, self.final.body) | {
            "commitment": (view.commitment.hex(), opened["commitment"]),
            "game code": (view.game_code, opened["deal"]["game_code"]),
            "staked": (str(row.staked_minor), self.final.body["staked_minor"]),
            "returned of the list": (str(row.returned_minor), self.final.body["returned_minor"]),
        }
        _verify_claims(self.final, claims)


_Claims = dict[str, tuple[Any, Any]]


def _claims(round_: RoundView, final: dict[str, Any]) -> _Claims:
    """Pairs of the value shown in a view of an ended round, and the value signed in its final."""
    claims: _Claims = {
        "returned": (str(round_.returned_minor), final["returned_minor"]),
        "actions hash": (round_.actions_hash.hex(), final["actions_hash"]),
    }
    if "cards" in final:
        claims |= {place: (list(getattr(round_, place)), final["cards"][place]) for place in _PLACES}
    return claims


def _verify_claims(statement: Statement, claims: _Claims) -> None:
    for name, (shown, signed) in claims.items():
        if shown != signed:
            raise statement.failure(SESSION, f"{name} was shown as {shown}, signed is {signed}")


_PLACES: Final = ("board", "dealer_cards", "hole_cards")
_IDS: Final = ("regulator_session_id", "regulator_participation_id")


def _stored(client: Client, request: GetStatementRequest, check: Check, otherwise: str) -> StoredStatement:
    """A stored statement. VerificationError of `check` if there is none; CallError for any other refusal."""
    try:
        return client.call(client.audit.GetStatement, request).statement
    except CallError as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        raise check.failure(otherwise) from None


def _line(stored: StoredStatement) -> bytes:
    private = statements.parse_canonical(stored.private) if stored.private else None
    return statements.format_line(statements.ExportLine(stored.envelope, private))
