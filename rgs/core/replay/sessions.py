"""The chain of one session: its links in order, which kind may follow which, and its participation account
(checks 7, 8, 18).

A link becomes the chain's state even if a check fails on it, so that one fault is reported once. What links outside the
files may have changed is unknown (None) and is then taken as given. A link whose number is not above the last is a
repetition, and nothing further is read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Final

from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.limits import Headroom, SessionLimits, headroom_of, parse_limits
from rgs.core.replay.checks import BALANCE, RULES, SESSION
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.scope import NumberSequence, Range
from rgs.core.replay.seats import OpenSeat, seat_of_state, verify_balance_before
from rgs.core.statements import LINK_ZERO, UnhandledKindError

_PLAYABLE: Final = frozenset({"purchase", "round_opening", "seat_opening", "participation_end"})

FOLLOWERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"session_open"}),
    "session_open": frozenset({"purchase", "session_close"}),
    "purchase": _PLAYABLE,
    "round_opening": frozenset({"round_final"}),
    "round_final": _PLAYABLE,
    "seat_opening": frozenset({"seat_final"}),
    "seat_final": _PLAYABLE,
    "participation_end": frozenset({"session_close"}),
    "session_close": frozenset(),
}
"""Which kind of link may follow which: one round at a time, only its final while it is open, one participation."""
SEAMLESS_FOLLOWERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"session_open"}),
    "session_open": frozenset({"transfer", "session_close"}),
    "transfer before": frozenset({"round_opening"}),
    "round_opening": frozenset({"transfer", "round_final"}),
    "transfer within": frozenset({"transfer", "round_final"}),
    "round_final": frozenset({"transfer", "session_close"}),
    "transfer behind": frozenset({"transfer", "session_close"}),
    "session_close": frozenset(),
}
"""The same if each bet is debited and each return credited: a transfer stands before the opening, within the round, or
after the final.
"""


@dataclass(slots=True)
class Chain:
    """One session after its links so far. None is unknown: links outside the files may have changed it."""

    session_id: str
    links: NumberSequence
    kind: str = ""
    head: str = LINK_ZERO
    time: str = ""
    rules: dict[str, str] | None = None
    jurisdiction: dict[str, str] | None = None
    currency: str = ""
    limits: SessionLimits = field(default_factory=SessionLimits)
    open_time: str = ""
    """Time of the session_open, from which the limit of duration runs."""
    table: str | None = None
    operator: str | None = None
    participation_id: str | None = None
    regulator_participation_id: str | None = None
    """None if no block so far names it; empty if a block names none."""
    purchase_no: int | None = 0
    bought_minor: int | None = 0
    staked_minor: int | None = 0
    returned_minor: int | None = 0
    balance_minor: int | None = 0
    round_no: int | None = 0
    start_time: str = ""
    codes: frozenset[str] = frozenset()
    """The game codes of the rounds that started in the second of `start_time` (RULEBOOK R-4)."""
    seat: OpenSeat | None = None
    """The seat of the open round."""
    is_seamless: bool | None = None
    """Whether bets are debited one by one; None if no link so far shows it."""
    transfer_round: str = ""
    """The round of the newest transfer or final."""

    def verify_link(self, statement: Statement, ranges: list[Range] | None) -> None:
        """Check 7. The number becomes the newest if it is above the last."""
        body = statement.body
        before, number = self.links.last, int(body["link_no"])
        fault = self.links.advance(number, ranges)
        is_cut = number > before + 1
        if is_cut:
            self._forget()
        if fault:
            raise statement.failure(SESSION, f"link {fault}")
        if not is_cut and body["previous"] != self.head:
            raise statement.failure(SESSION, f"link {number} does not name the hash of link {before}")
        if not is_cut and statement.kind.name not in _followers(self.kind, self.is_seamless):
            raise statement.failure(SESSION, f"{statement.kind.name} may not follow {self.kind or 'nothing'}")
        if body["time"] < self.time:
            raise statement.failure(SESSION, f"time goes back from {self.time} to {body['time']}")

    def _forget(self) -> None:
        """Forget counts and sums; ruleset, jurisdiction, table and participation of a session stay."""
        self.kind = self.transfer_round = ""
        self.purchase_no = self.round_no = self.balance_minor = None
        self.bought_minor = self.staked_minor = self.returned_minor = None

    def advance(self, statement: Statement, seat: OpenSeat | None = None) -> None:
        """Take the link as the newest, and what it says as the state. `seat` is that of an opening."""
        body = statement.body
        self.kind, self.head, self.time = statement.kind.name, statement.hash, body["time"]
        match self.kind:
            case "round_opening":
                self.round_no, self.balance_minor = int(body["round_no"]), int(body["balance_after_minor"])
                self._start(body["deal"])
                self.seat = seat
            case "seat_opening":
                self.round_no, self.balance_minor = int(body["round_no"]), int(body["balance_after_minor"])
                self.seat, self.start_time = seat, (seat and seat.start_time) or self.start_time
            case "round_final" | "seat_final":
                self.balance_minor, self.seat = int(body["balance_after_minor"]), None
                self.transfer_round = body["round_id"]
                if self.staked_minor is not None and self.returned_minor is not None:
                    self.staked_minor += int(body["staked_minor"])
                    self.returned_minor += int(body["returned_minor"])
            case "session_open":
                self.rules, self.jurisdiction = body["ruleset"], body["jurisdiction"]
                self.currency, self.table = body["currency"], body.get("table", "")
                self.operator = body["operator"]
                self.limits, self.open_time = parse_limits(body.get("limits", {})), body["time"]
                self.is_seamless = "funding" in body
            case "transfer":
                self._take_transfer(body)
            case "purchase":
                self.participation_id, self.purchase_no = body["participation_id"], int(body["purchase_no"])
                self.bought_minor, self.balance_minor = int(body["bought_minor"]), int(body["balance_after_minor"])
            case "participation_end" | "session_close":
                pass  # no round and no purchase follows; the sums are those of the links before
            case kind:
                raise UnhandledKindError(kind, "rgs.core.replay.sessions.Chain.advance")

    def headroom(self, balance_minor: int) -> Headroom:
        """What a round with this balance before it may cost in all. Unknown sums do not limit."""
        limits = self.limits
        is_limited = bool(limits.loss_minor or limits.stake_minor or self.is_seamless)
        if not is_limited or self.staked_minor is None or self.returned_minor is None:
            return Headroom(balance_minor, None, None)
        headroom = headroom_of(
            self.limits, Participation(staked_minor=self.staked_minor, returned_minor=self.returned_minor)
        )
        if self.is_seamless:  # the wallet decides what is covered; the opening bets were debited before
            balance_minor += PARTICIPATION_MINOR_MAX - (self.bought_minor or 0)
        return headroom._replace(balance_minor=balance_minor)

    def _take_transfer(self, body: dict[str, Any]) -> None:
        """Take a transfer; its place in the chain shows its purpose."""
        self.transfer_round = body["round_id"]
        self.is_seamless = self.is_seamless is not False
        amount = int(body["amount_minor"])
        if body["direction"] == "credit":
            self.kind, amount = "transfer behind", -amount
        else:
            self.kind = "transfer before" if self.seat is None else "transfer within"
            self.bought_minor = None if self.bought_minor is None else self.bought_minor + amount
            if self.seat is not None:
                self.seat.balance_before_minor += amount
        self.balance_minor = None if self.balance_minor is None else max(0, self.balance_minor + amount)

    def state(self) -> dict[str, Any]:
        """What `chain_of_state` needs, for JSON."""
        seat = self.seat and self.seat.state()
        return {**asdict(replace(self, seat=None)), "codes": sorted(self.codes), "seat": seat}

    def _start(self, deal: dict[str, Any]) -> None:
        is_same_second = deal["start_time"][:19] == self.start_time[:19]
        self.codes = (self.codes if is_same_second else frozenset()) | {deal["game_code"]}
        self.start_time = deal["start_time"]
        # If the files begin after the session_open, the first deal shows what is played, and where.
        self.rules = self.rules or deal["ruleset"]
        self.table = deal["table"] if self.table is None else self.table


def chain_of_state(state: Mapping[str, Any], rulebook: Rulebook) -> Chain:
    """The chain of a `state`."""
    values = {
        "codes": frozenset(state["codes"]),
        "limits": SessionLimits(**state["limits"]),
        "links": NumberSequence(**state["links"]),
        "seat": state["seat"] and seat_of_state(state["seat"], rulebook),
    }
    return Chain(**{**state, **values})


@cache  # of the few kinds that there are
def _followers(kind: str, is_seamless: bool | None) -> frozenset[str]:
    """Which kinds of link may come next; those of both ways of funding if it is unknown."""
    bought = frozenset[str]() if is_seamless else FOLLOWERS.get(kind, frozenset())
    seamless = frozenset[str]() if is_seamless is False else SEAMLESS_FOLLOWERS.get(kind, frozenset())
    return bought | seamless


def verify_session_open(statement: Statement, rulebook: Rulebook) -> None:
    """Check 8: known ruleset and jurisdiction, currency and regulator allowed, a table where the game needs one."""
    body = statement.body
    ruleset, jurisdiction = rulebook.ruleset(body["ruleset"]), rulebook.jurisdiction(body["jurisdiction"])
    if ruleset is None:
        raise statement.failure(RULES, f"ruleset {_text(body['ruleset'])} is not known")
    if jurisdiction is None:
        raise statement.failure(RULES, f"jurisdiction {_text(body['jurisdiction'])} is not known")
    if body["currency"] != jurisdiction.currency:
        raise statement.failure(RULES, f"{body['currency']} is not the currency of {jurisdiction.id}")
    if body["test_regulator"] and not jurisdiction.test_regulator_allowed:
        raise statement.failure(RULES, f"{jurisdiction.id} does not allow the test regulator")
    if "funding" in body and jurisdiction.regulator_ids_required:
        raise statement.failure(RULES, f"{jurisdiction.id} requires a participation")
    if ruleset.table_only and "table" not in body:
        raise statement.failure(RULES, f"{ruleset.id} is played at a table, and none is named")


def verify_purchase(statement: Statement, chain: Chain, rulebook: Rulebook) -> None:
    """Number and participation (7), the jurisdiction's cap (8), the amounts (18)."""
    body = statement.body
    amount, bought = int(body["amount_minor"]), int(body["bought_minor"])
    if chain.purchase_no is not None and int(body["purchase_no"]) != chain.purchase_no + 1:
        raise statement.failure(SESSION, f"purchase {body['purchase_no']} comes after {chain.purchase_no}")
    if chain.participation_id not in (None, body["participation_id"]):
        raise statement.failure(SESSION, "a second participation in one session")
    jurisdiction = rulebook.jurisdiction(chain.jurisdiction)
    if jurisdiction is not None and bought > jurisdiction.participation_cap_minor:
        raise statement.failure(
            RULES,
            f"purchases of {bought} exceed the cap of {jurisdiction.participation_cap_minor} of {jurisdiction.id}",
        )
    if bought < amount or (chain.bought_minor is not None and bought != chain.bought_minor + amount):
        raise statement.failure(BALANCE, f"bought {bought}, but {chain.bought_minor} before and {amount} now")
    before, after = int(body["balance_before_minor"]), int(body["balance_after_minor"])
    verify_balance_before(statement, chain.balance_minor, before)
    if after != before + amount:
        raise statement.failure(BALANCE, f"balance {after} after buying {amount} on {before}")


def verify_transfer(statement: Statement, chain: Chain) -> None:
    """The round (7); no debit of 0, nothing left over before a round, everything credited after it (18)."""
    body = statement.body
    is_debit = body["direction"] == "debit"
    if is_debit and body["amount_minor"] == "0":
        raise statement.failure(BALANCE, "a debit of nothing")
    if chain.seat is not None:
        if not is_debit or body["round_id"] != chain.seat.round_id:
            raise statement.failure(SESSION, "a transfer that is not a debit for the open round")
    elif is_debit:
        if chain.balance_minor:
            raise statement.failure(BALANCE, f"{chain.balance_minor} of the round before was not credited")
    elif chain.kind not in ("round_final", "") or chain.transfer_round not in (body["round_id"], ""):
        raise statement.failure(SESSION, "a credit that is not for the round before it")
    elif chain.balance_minor is not None and int(body["amount_minor"]) != chain.balance_minor:
        raise statement.failure(BALANCE, f"credited {body['amount_minor']}, the round returned {chain.balance_minor}")


def verify_participation_end(statement: Statement, chain: Chain) -> None:
    """Participation (7), the sums of the chain, and bought - staked + returned = paid out (18)."""
    body = statement.body
    if chain.participation_id not in (None, body["participation_id"]):
        raise statement.failure(SESSION, "the end of another participation")
    _verify_rounds(statement, chain)
    for name, summed in (
        ("bought_minor", chain.bought_minor),
        ("staked_minor", chain.staked_minor),
        ("returned_minor", chain.returned_minor),
        ("paid_out_minor", chain.balance_minor),
    ):
        if summed is not None and int(body[name]) != summed:
            raise statement.failure(BALANCE, f"{name} is {body[name]}, the links come to {summed}")
    bought, staked, returned = (int(body[field]) for field in ("bought_minor", "staked_minor", "returned_minor"))
    if bought - staked + returned != int(body["paid_out_minor"]):
        raise statement.failure(BALANCE, f"{bought} - {staked} + {returned} is not {body['paid_out_minor']}")


def verify_session_close(statement: Statement, chain: Chain) -> None:
    """The number of rounds (7); in seamless mode nothing is left over (18)."""
    _verify_rounds(statement, chain)
    if chain.is_seamless and chain.balance_minor:
        raise statement.failure(BALANCE, f"{chain.balance_minor} of the last round was not credited")


def _verify_rounds(statement: Statement, chain: Chain) -> None:
    if chain.round_no is not None and int(statement.body["rounds"]) != chain.round_no:
        raise statement.failure(SESSION, f"{statement.body['rounds']} rounds, the links show {chain.round_no}")


def _text(named: Mapping[str, str]) -> str:
    return f"{named['id']} version {named['version']} with hash {named['sha256']}"
