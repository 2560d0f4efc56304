"""From statements to the state that they leave: a restored store is brought up to its log (docs/keys.md).

A statement holds all of a session except its private block. Without that block a session that only the log knows has no
player and no regulator's id. Decisions that no final names are lost, and so is a deck that only the lost store held;
such rounds cannot be continued. The statements were verified before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rgs.core.bet_limits import parse_bet_limits
from rgs.core.ledger import Participation
from rgs.core.limits import parse_limits
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Funding, Mode, Session, SessionStatus
from rgs.core.statements import UnhandledKindError, format_canonical, parse_canonical
from rgs.core.times import parse_time

Body = Mapping[str, Any]
Block = Mapping[str, str]
"""A private block, empty if it was erased."""
Request = Mapping[str, str]
"""digest (hex), method, party and request_id of a client's request."""


def with_request(private: bytes, digest: bytes, method: str, party: str, request_id: str) -> bytes:
    """A private block and the request that had its statement as effect, in one text."""
    request = {"digest": digest.hex(), "method": method, "party": party, "request_id": request_id}
    return format_canonical({**parse_canonical(private), "request": request})


def split_request(kept: bytes) -> tuple[bytes, Request]:
    """The private block, and the request (empty if none was kept). Inverse of `with_request`."""
    document = parse_canonical(kept)
    request = document.pop("request", {})
    return format_canonical(document), request


def session_of(body: Body, block: Block) -> Session:
    """The session of a `session_open`, before its first link."""
    return Session(
        session_id=body["session_id"],
        operator=body["operator"],
        player=block.get("player", ""),
        operator_reference=block.get("operator_reference", ""),
        ruleset_id=body["ruleset"]["id"],
        jurisdiction_id=body["jurisdiction"]["id"],
        currency=body["currency"],
        status=SessionStatus.OPEN,
        open_ms=parse_time(body["time"]),
        last_ms=parse_time(body["time"]),
        test_regulator=body["test_regulator"],
        limits=parse_limits(body.get("limits", {})),
        funding=Funding(body.get("funding", Funding.PARTICIPATION)),
        table_id=body.get("table", ""),
        mode=Mode(body.get("mode", Mode.REAL)),
        bet_limits=parse_bet_limits(body.get("bet_limits", ())),
    )


def advance_session(session: Session, kind: str, body: Body, block: Block, hash_: bytes) -> Session:
    """The session after one more link of its chain. UnhandledKindError for a kind that is no link.

    Bets at a table are reserved between two rounds. So behind a link nothing is: it ended them, or came before them.
    """
    money = session.participation
    after = replace(
        session,
        version=session.version + 1,
        last_ms=max(session.last_ms, parse_time(body["time"])),
        link_no=int(body["link_no"]),
        link_hash=hash_.hex(),
        pending_operation="",
        reserved_minor=0,
        regulator_session_id=block.get("regulator_session_id", session.regulator_session_id),
        regulator_participation_id=block.get("regulator_participation_id", session.regulator_participation_id),
    )
    match kind:
        case "session_open":
            return replace(after, status=SessionStatus.OPEN)
        case "purchase":
            return replace(
                after,
                participation=replace(money, bought_minor=int(body["bought_minor"])),
                participation_id=body["participation_id"],
                purchase_no=int(body["purchase_no"]),
            )
        case "round_opening":
            deal = body["deal"]
            suffix = deal["game_code"].partition("-")[2]
            return replace(
                after,
                participation=_with_balance(money, int(body["balance_after_minor"])),
                round_no=int(body["round_no"]),
                open_round_id=deal["round_id"],
                last_start_ms=parse_time(deal["start_time"]),
                code_count=int(suffix or "1"),
            )
        case "seat_opening":
            return replace(
                after,
                participation=_with_balance(money, int(body["balance_after_minor"])),
                round_no=int(body["round_no"]),
                open_round_id=body["round_id"],
                last_start_ms=after.last_ms,
            )
        case "round_final" | "seat_final":
            returned = replace(money, returned_minor=money.returned_minor + int(body["returned_minor"]))
            return replace(
                after,
                participation=_with_balance(returned, int(body["balance_after_minor"])),
                rounds=session.rounds + 1,
                open_round_id="",
            )
        case "transfer":
            amount_minor = int(body["amount_minor"])
            if body["direction"] == "debit":
                return replace(after, participation=money.bet(amount_minor))
            paid = replace(money, paid_out_minor=money.paid_out_minor + amount_minor)
            return replace(after, participation=paid)
        case "free_bet":  # of the campaign's money only what came back with a round is in the account by now
            back_minor = int(body["amount_minor"]) if body["direction"] == "credit" else 0
            return replace(after, participation=replace(money, returned_minor=money.returned_minor - back_minor))
        case "participation_end":
            ended = replace(money, paid_out_minor=int(body["paid_out_minor"]), ended=True)
            return replace(after, participation=ended)
        case "session_close":
            return replace(after, status=SessionStatus.CLOSED, close_ms=parse_time(body["time"]))
        case _:
            raise UnhandledKindError(kind, "rgs.core.recovery.advance_session")


def _with_balance(money: Participation, balance_minor: int) -> Participation:
    """The account with this balance: the difference was staked."""
    staked_minor = money.bought_minor + money.returned_minor - money.paid_out_minor - balance_minor
    return replace(money, staked_minor=staked_minor)


def round_of(body: Body, hash_: bytes, session: Session) -> Round:
    """The round of a `round_opening`, without its deck, which is lost."""
    deal, seat = body["deal"], body["seat"]
    return Round(
        round_id=deal["round_id"],
        session_id=session.session_id,
        operator=session.operator,
        player=session.player,
        ruleset_id=deal["ruleset"]["id"],
        round_no=int(body["round_no"]),
        seat_no=int(seat["seat_no"]),
        game_code=deal["game_code"],
        instance=deal["instance"],
        draw_no=int(deal["draw_no"]),
        deal=format_canonical(deal),
        commitment=bytes.fromhex(body["commitment"]),
        bets=tuple((bet["bet"], int(bet["amount_minor"])) for bet in seat["bets"]),
        balance_before_minor=int(body["balance_before_minor"]),
        start_ms=parse_time(deal["start_time"]),
        opening_hash=hash_.hex(),
    )


def end_round(round_: Round, body: Body) -> Round:
    """The round after its `round_final`, or the seat after its `seat_final`."""
    actions = tuple(
        TakenAction(
            phase=taken["phase"],
            action=taken["action"],
            amount_minor=int(taken["amount_minor"]),
            time_ms=parse_time(taken["time"]),
            by=taken["by"],
            party=taken["party"],
            request_digest=taken["request_digest"],
        )
        for taken in body["actions"]
    )
    return replace(
        round_,
        version=round_.version + 1,
        status=RoundStatus(body["status"]),
        sealed=b"",
        actions=actions,
        end_ms=parse_time(body["time"]),
        staked_minor=int(body["staked_minor"]),
        returned_minor=int(body["returned_minor"]),
        malfunction="",
        malfunction_code="",
    )
