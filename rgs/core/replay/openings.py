"""An opening: the deal core that the commitment binds, the seat in it, and the stakes (checks 8 to 10; 18 for its
balance).

A deal has at most 256 seats: the audit path of a seat has at most eight hashes (docs/formats.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from rgs.core import games
from rgs.core.errors import RgsError, VerificationError
from rgs.core.free_bets import granted_minor
from rgs.core.games.types import StakeLimits
from rgs.core.replay.checks import BALANCE, DEAL, RULES, SESSION, STAKES
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.seats import OpenSeat, verify_balance_after, verify_balance_before
from rgs.core.replay.sessions import Chain
from rgs.core.rulesets import Ruleset
from rgs.core.tlog.merkle import verify_inclusion
from rng.shuffle import PROCEDURE

SEATS_MAX = 256


def verify_opening(statement: Statement, seat: OpenSeat, chain: Chain, rulebook: Rulebook) -> None:
    """Checks 7 (round number, round paid for), 8, 9 (all that one seat can show), 10 and 18 of a round_opening."""
    body = statement.body
    deal: dict[str, Any] = body["deal"]
    # (7) The stage.
    if chain.round_no is not None and int(seat.round_no) != chain.round_no + 1:
        raise statement.failure(SESSION, f"stage {seat.round_no} comes after {chain.round_no}")
    if chain.is_seamless and chain.transfer_round not in (seat.round_id, ""):
        raise statement.failure(SESSION, "the debit before it was for another round")
    if chain.free_bet is not None and chain.free_bet.round_id != seat.round_id:
        raise statement.failure(SESSION, "the free bet before it was for another round")
    # (8) The ruleset of the session, and the jurisdiction's pace.
    if seat.ruleset is None:
        raise statement.failure(
            RULES, f"ruleset {deal['ruleset']['id']} version {deal['ruleset']['version']} is not known"
        )
    if chain.rules is not None and deal["ruleset"] != chain.rules:
        raise statement.failure(RULES, "the deal names another ruleset than the session")
    verify_pace(statement, chain, rulebook, deal["start_time"])
    if chain.free_bet is not None and deal["start_time"] >= chain.free_bet.expiry_time:
        raise statement.failure(
            RULES, f"started at {deal['start_time']}, the free bet ends at {chain.free_bet.expiry_time}"
        )
    verify_limits(statement, seat, chain, deal["start_time"])
    # (9) The deal core, and the seat in it.
    _verify_deal(statement, chain, seat.ruleset)
    _verify_seat(statement, seat)
    # (10) The stakes.
    verify_stakes(statement, seat, seat.ruleset)
    verify_bets_within(statement, seat, dict(chain.bet_limits))
    # (18) The balance, and what a free bet pays.
    if chain.free_bet is not None:
        granted, paid = granted_minor(seat.bets), chain.free_bet
        if granted != paid.amount_minor:
            raise statement.failure(BALANCE, f"the free bet paid {paid.amount_minor}, ante and blind are {granted}")
    verify_balance_before(statement, chain.balance_minor, seat.balance_before_minor)
    verify_balance_after(statement, seat)


def verify_pace(statement: Statement, chain: Chain, rulebook: Rulebook, start_time: str) -> None:
    """The jurisdiction's least time between two starts of a session; starts do not go back in time in any case."""
    if start_time < chain.start_time:
        raise statement.failure(SESSION, f"the start goes back from {chain.start_time} to {start_time}")
    jurisdiction = rulebook.jurisdiction(chain.jurisdiction)
    if not chain.start_time or jurisdiction is None or not jurisdiction.min_round_interval_ms:
        return
    passed = datetime.fromisoformat(start_time) - datetime.fromisoformat(chain.start_time)
    if passed < timedelta(milliseconds=jurisdiction.min_round_interval_ms):
        raise statement.failure(RULES, f"started {passed} after the round before, too early for {jurisdiction.id}")


def verify_limits(statement: Statement, seat: OpenSeat, chain: Chain, start_time: str) -> None:
    """The limits of the session_open: its duration has not passed, and they cover the opening bets."""
    duration_ms = chain.limits.duration_ms
    if duration_ms:
        passed = datetime.fromisoformat(start_time) - datetime.fromisoformat(chain.open_time)
        if passed >= timedelta(milliseconds=duration_ms):
            raise statement.failure(RULES, f"started {passed} after the session opened, its limit is {duration_ms} ms")
    granted = 0 if chain.free_bet is None else granted_minor(seat.bets)
    staked = seat.staked_minor - granted
    headroom = chain.headroom(seat.balance_before_minor - granted)
    for name, left_minor in (("loss", headroom.loss_left_minor), ("stake", headroom.stake_left_minor)):
        if left_minor is not None and staked > left_minor:
            raise statement.failure(RULES, f"staked {staked} where the session's {name} limit leaves {left_minor}")
    seat.funds_minor = headroom.minor - staked


def _verify_deal(statement: Statement, chain: Chain, ruleset: Ruleset) -> None:
    body = statement.body
    deal: dict[str, Any] = body["deal"]
    if deal["instance"] != body["instance"]:
        raise statement.failure(DEAL, f"dealt by {deal['instance']}, signed by {body['instance']}")
    if deal["shuffle"] != PROCEDURE:
        raise statement.failure(DEAL, f"shuffle procedure {deal['shuffle']} is not {PROCEDURE}")
    start_time, code = deal["start_time"], deal["game_code"]
    if start_time > body["time"]:
        raise statement.failure(DEAL, f"starts at {start_time}, after its opening")
    if code.partition("-")[0] != f"#{start_time[11:19]}":
        raise statement.failure(DEAL, f"game code {code} is not that of {start_time}")
    if code in chain.codes and start_time[:19] == chain.start_time[:19]:
        raise statement.failure(DEAL, f"game code {code} is that of another round of this day and session")
    if chain.table is not None and deal["table"] != chain.table:
        raise statement.failure(DEAL, f"table {deal['table'] or 'none'} is not the session's")
    seats = int(deal["seats"])
    most = min(ruleset.max_seats or SEATS_MAX, SEATS_MAX) if deal["table"] else 1
    if seats > most:
        raise statement.failure(DEAL, f"{seats} seats where at most {most} may be dealt")


def _verify_seat(statement: Statement, seat: OpenSeat) -> None:
    """Check 9: the seat is this session's, and its leaf is in the deal's seats_root at its number."""
    body = statement.body
    if body["seat"]["session_id"] != body["session_id"]:
        raise statement.failure(DEAL, "the seat is another session's")
    path = [bytes.fromhex(node) for node in body["path"]]
    root = bytes.fromhex(body["deal"]["seats_root"])
    try:
        verify_inclusion(seat.leaf, seat.seat_no - 1, seat.seats, path, root)
    except VerificationError as error:
        raise statement.failure(DEAL, f"seat {seat.seat_no}: {error.message}") from None


def verify_stakes(statement: Statement, seat: OpenSeat, ruleset: Ruleset) -> None:
    """Check 10: the opening bets are the game's, in order, within the ruleset's limits and on its step."""
    try:
        expected = _stakes_due(ruleset, seat.bets)
    except RgsError as error:
        raise statement.failure(STAKES, error.message) from None
    if seat.bets != expected:
        raise statement.failure(STAKES, f"bets {_text(seat.bets)} where {_text(expected)} are due")


def verify_bets_within(statement: Statement, seat: OpenSeat, limits: Mapping[str, StakeLimits]) -> None:
    """Check 10: the bets are within these limits, of the session or of the table."""
    for bet, amount in seat.bets:
        one = limits.get(bet)
        if one is not None and not one.min_minor <= amount <= one.max_minor:
            raise statement.failure(STAKES, f"{bet} {amount} is not within {one.min_minor} to {one.max_minor}")


@lru_cache(maxsize=4096)  # the same few stakes are placed again and again
def _stakes_due(ruleset: Ruleset, bets: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return games.check_stakes(ruleset, placed_bets(bets, ruleset))


def placed_bets(bets: tuple[tuple[str, int], ...], ruleset: Ruleset) -> dict[str, int]:
    """The bets without those that the system places itself."""
    system = set(ruleset.rules.opening_bets) - set(ruleset.rules.placed_bets)
    return {bet: amount for bet, amount in bets if bet not in system}


def _text(bets: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{bet} {amount}" for bet, amount in bets)
