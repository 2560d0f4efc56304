"""Verifies every signed statement of a player's session while it is played, link by link.

The checks are those of an auditor's replay (docs/verify.md): key path and signature (3), schema (4), private block (5),
the session's chain (7), rules, deal and stakes (8 to 10), and for a final everything from the commitment to the balance
(11 to 18). At a table the same, with what its seats share (`rgs.devkit.terminal.table_proof`). Besides, the statement
received must be the stored one, and the views must show what was signed.

Gaps in the numbers of an instance, and draws (6, 20, 21), show only in the whole files.
"""

from __future__ import annotations

from typing import Any, Final

from rgs.core import statements
from rgs.core.errors import VerificationError
from rgs.core.replay import Rulebook, sessions
from rgs.core.replay.checks import SESSION
from rgs.core.replay.finals import verify_final
from rgs.core.replay.openings import verify_opening
from rgs.core.replay.reading import Statement
from rgs.core.replay.scope import NumberSequence
from rgs.core.replay.seat_finals import read_table_seat, verify_seat_final, verify_seat_opening
from rgs.core.replay.seats import OpenSeat, read_seat
from rgs.core.replay.table_rounds import TableRound
from rgs.devkit.client import Client
from rgs.devkit.terminal.key_path import Keys, stored_statement
from rgs.devkit.terminal.table_proof import TableProof
from rgs.v1.audit_pb2 import GetStatementRequest, ListStatementsRequest
from rgs.v1.audit_pb2 import Statement as StoredStatement
from rgs.v1.common_pb2 import RoundView, SessionView
from rgs.v1.history_pb2 import RoundRecord
from rgs.v1.table_pb2 import TableView

_PAGE: Final = 200
_SOLO: Final = ("round_opening", "round_final")
_AT_TABLE: Final = ("seat_opening", "seat_final")


class SessionProof:
    """The signed links of one session, verified in their order."""

    def __init__(self, client: Client, keys: Keys, session_id: str) -> None:
        self._client = client
        self._keys = keys
        self._rulebook = Rulebook()
        self._session_id = session_id
        self._chain = sessions.Chain(session_id, NumberSequence(is_whole=True, head=0))
        self._ids: dict[str, str] = {}
        self._page = ""
        """The token of the newest page that was read."""
        self.links: list[Statement] = []
        self.tables = TableProof(client, keys, self._rulebook)
        self._shared: dict[str, TableRound] = {}
        """What the seats of the session's rounds at a table share, by round."""

    def take(self, envelope: bytes) -> Statement:
        """Verify the next link, as it was received. VerificationError names the check that fails."""
        request = GetStatementRequest(hash=statements.leaf_hash(envelope))
        stored = stored_statement(
            self._client, request, SESSION, "the server has not stored the statement that it sent"
        )
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
        self.links, self._page = [], ""
        self.tables.begin_again()
        self.follow()

    def follow(self) -> list[Statement]:
        """Verify the links that the server has signed meanwhile, and return them. VerificationError."""
        known, after = len(self.links), self._chain.links.last
        request = ListStatementsRequest(session_id=self._session_id, page_size=_PAGE, page_token=self._page)
        for page in self._client.pages(self._client.audit.ListStatements, request):
            for stored in page.statements:
                if stored.link_no > after:
                    self._verify(stored)
            self._page = page.next_page_token or self._page
        return self.links[known:]

    def take_view(self, view: TableView) -> list[Statement]:
        """Verify the statements of a table's view. Returns those that are new, links among them. VerificationError."""
        links = self.follow() if self._chain.seat is not None and self.tables.is_new(view) else []
        return [*links, *self.tables.take(view)]

    def verify_shown(self, session: SessionView, round_: RoundView | None) -> None:
        """VerificationError unless the views show the ids, amounts and cards of the verified statements."""
        last = self.links[-1].body
        claims: _Claims = {field: (getattr(session, field), signed) for field, signed in self._ids.items()}
        if "balance_after_minor" in last:
            is_open = self._chain.kind in {"round_opening", "seat_opening"}
            actions = round_.actions if round_ is not None and is_open else ()
            decided = sum(action.amount_minor for action in actions)
            claims["balance"] = (str(session.balance_minor), str(int(last["balance_after_minor"]) - decided))
        if round_ is not None and self._chain.kind == "round_opening":
            claims["commitment"] = (round_.commitment.hex(), last["commitment"])
            claims["game code"] = (round_.game_code, last["deal"]["game_code"])
        elif round_ is not None and self._chain.kind == "round_final":
            claims |= _claims(round_, last)
        elif round_ is not None and self._chain.kind in {"seat_opening", "seat_final"}:
            claims |= self.table_claims(round_, self.links[-1])
        _verify_claims(self.links[-1], claims)

    def shared_of(self, link: Statement) -> TableRound:
        """What all seats share in the round of a seat's opening or final."""
        return self._shared[link.round_id]

    def table_claims(self, round_: RoundView, link: Statement) -> _Claims:
        """What a view of a round at a table shows, and what is signed, up to a seat's opening or final."""
        claims: _Claims = {"round": (round_.round_id, link.round_id)}
        shared = self.shared_of(link)
        claims["commitment"] = (round_.commitment.hex(), shared.commitment)
        claims["game code"] = (round_.game_code, shared.body["game_code"])
        if link.kind.name == "seat_final":
            cards = shared.final_body.get("cards", {})
            own = {"hole_cards": link.body["hole_cards"]} if "hole_cards" in link.body else {}
            claims |= _claims(round_, {**link.body, "cards": {**cards, **own}} if cards else link.body)
        return claims

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
            case "free_bet":
                sessions.verify_free_bet(statement, chain, self._rulebook)
            case "participation_end":
                sessions.verify_participation_end(statement, chain)
            case "session_close":
                sessions.verify_session_close(statement, chain)
            case "seat_opening":
                round_ = self.tables.of_deal(statement.body["deal"])
                seat = read_table_seat(statement, round_)
                verify_seat_opening(statement, seat, chain, self._rulebook, round_)
                if round_ is not None:
                    self.tables.join(statement, round_, seat.leaf)
                    self._shared[statement.round_id] = round_
            case "seat_final":
                self.tables.of_final(statement.body["table_final"])
                verify_seat_final(statement, chain.seat, self._shared.get(statement.round_id))
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
        kinds = _AT_TABLE if "seat_opening" in found else _SOLO
        for kind in kinds:
            if kind not in found:
                raise SESSION.failure(f"the session has no {kind} of round {record.summary.round_id}")
        self.opening, self.final = (found[kind] for kind in kinds)
        for link, envelope in ((self.opening, record.opening), (self.final, record.final)):
            if link.hash != statements.leaf_hash(envelope).hex():
                raise link.failure(SESSION, f"the {link.kind.name} of the history differs from the session's")
        row, view = record.summary, record.round
        self.revealed = self.final.body
        """Where salt, transcript and deck stand, if they were revealed."""
        if kinds == _AT_TABLE:
            self.revealed = session.shared_of(self.final).final_body
            claims = session.table_claims(view, self.final)
        else:
            opened = self.opening.body
            claims = _claims(view, self.final.body) | {
                "commitment": (view.commitment.hex(), opened["commitment"]),
                "game code": (view.game_code, opened["deal"]["game_code"]),
            }
        claims |= {
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
