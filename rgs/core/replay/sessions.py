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
from typing import Any, Final, NamedTuple

from rgs.core.bet_limits import BetLimits, bet_limits_body, parse_bet_limits, verify_bet_limits
from rgs.core.errors import InvalidFieldError
from rgs.core.free_bets import granted_minor, reclaimed_minor
from rgs.core.games.types import Ruleset
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.ledger import Participation
from rgs.core.limits import Headroom, SessionLimits, headroom_of, parse_limits
from rgs.core.replay.checks import BALANCE, RULES, SESSION
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.scope import NumberSequence, Range
from rgs.core.replay.seats import OpenSeat, seat_of_state, verify_balance_before
from rgs.core.statements import LINK_ZERO, UnhandledKindError

COVERED_MINOR: Final = 10**18
"""More than any amount of a statement, which has at most 18 digits: what a round may cost where the wallet decides."""
_OF_PARTICIPATION: Final = frozenset({"purchase", "free_bet", "seat_opening", "participation_end"})
"""Links that no seamless session has."""
_PLAYABLE: Final = _OF_PARTICIPATION | {"round_opening"}

FOLLOWERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"session_open"}),
    "session_open": frozenset({"purchase", "session_close"}),
    "purchase": _PLAYABLE,
    "round_opening": frozenset({"round_final"}),
    "round_final": _PLAYABLE,
    "seat_opening": frozenset({"seat_final"}),
    "seat_final": _PLAYABLE,
    "free_bet before": frozenset({"round_opening"}),
    "free final": frozenset({"free_bet"}),
    "free_bet behind": _PLAYABLE,
    "participation_end": frozenset({"session_close"}),
    "session_close": frozenset(),
}
"""Which kind of link may follow which: one round at a time, only its final while it is open, one participation. A round
of a free bet stands between the two links of the free bet.
"""
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


class PaidRound(NamedTuple):
    """A round that a free bet pays for: what its debit says."""

    grant_id: str
    round_id: str
    amount_minor: int
    expiry_time: str


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
    free_bet: PaidRound | None = None
    """The free bet whose return is still to come."""
    reclaimed_minor: int | None = 0
    """What the final of its round returned of the granted stakes; None if the files do not show it."""
    unseen_round: str = ""
    """The newest round, if the link before the first that the files hold of it is outside of them: a free bet may have
    paid for it.
    """
    is_demo: bool | None = None
    """Whether the session is played with play money; None if no link so far shows it."""
    bet_limits: BetLimits = ()

    def verify_link(self, statement: Statement, ranges: list[Range] | None) -> None:
        """Check 7. The number becomes the newest if it is above the last."""
        body = statement.body
        before, number = self.links.last, int(body["link_no"])
        fault = self.links.advance(number, ranges)
        is_cut = number > before + 1
        if is_cut:
            self._forget(statement)
        if fault:
            raise statement.failure(SESSION, f"link {fault}")
        if not is_cut and body["previous"] != self.head:
            raise statement.failure(SESSION, f"link {number} does not name the hash of link {before}")
        if not is_cut and statement.kind.name not in _followers(self.kind, self.is_seamless):
            raise statement.failure(SESSION, f"{statement.kind.name} may not follow {self.kind or 'nothing'}")
        if body["time"] < self.time:
            raise statement.failure(SESSION, f"time goes back from {self.time} to {body['time']}")

    def _forget(self, next_link: Statement) -> None:
        """Forget counts and sums; ruleset, jurisdiction, table and participation of a session stay."""
        if self.seat is not None and not self.seat.table_round and self.is_seamless is not False:
            # Nothing but transfers stands between an opening and its final.
            self.seat.is_funding_seen = False
            if next_link.kind.name == "round_final" and self._is_of_seat(next_link.body):
                self._be_seamless()
        self.kind = self.transfer_round = self.unseen_round = ""
        self.free_bet = None
        self.purchase_no = self.round_no = self.balance_minor = None
        self.bought_minor = self.staked_minor = self.returned_minor = None

    def is_over(self, next_link: Statement) -> bool:
        """Whether this link behind missing ones shows that the open round has ended in them: it is neither its final
        nor a debit within it.
        """
        body, kind = next_link.body, next_link.kind.name
        if kind in ("round_final", "seat_final"):
            return not self._is_of_seat(body)
        if kind == "transfer" and self.seat is not None and not self.seat.table_round:
            return bool(body["direction"] != "debit" or body["round_id"] != self.seat.round_id)
        return True

    def advance(self, statement: Statement, seat: OpenSeat | None = None) -> None:
        """Take the link as the newest, and what it says as the state. `seat` is that of an opening."""
        body = statement.body
        self.unseen_round = self._unseen(statement)
        self.kind, self.head, self.time = statement.kind.name, statement.hash, body["time"]
        if self.free_bet is not None and not self._is_of_free_bet(body):
            self.free_bet = None
        if self.kind in _OF_PARTICIPATION and self.is_seamless is None:
            self.is_seamless = False
        match self.kind:
            case "round_opening":
                self.round_no, self.balance_minor = int(body["round_no"]), int(body["balance_after_minor"])
                self._start(body["deal"])
                self.seat = seat
            case "seat_opening":
                self.round_no, self.balance_minor = int(body["round_no"]), int(body["balance_after_minor"])
                self.seat, self.start_time = seat, (seat and seat.start_time) or self.start_time
            case "round_final" | "seat_final":
                self._end_round(body)
            case "session_open":
                self.rules, self.jurisdiction = body["ruleset"], body["jurisdiction"]
                self.currency, self.table = body["currency"], body.get("table", "")
                self.operator = body["operator"]
                self.limits, self.open_time = parse_limits(body.get("limits", {})), body["time"]
                self.is_seamless = "funding" in body
                self.is_demo = body.get("mode") == "demo"
                self.bet_limits = parse_bet_limits(body.get("bet_limits", ()))
            case "transfer":
                self._take_transfer(body)
            case "free_bet":
                self._take_free_bet(body)
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
        if self.is_seamless:  # the wallet decides what is covered; check 18 compares the debits
            balance_minor += COVERED_MINOR
        is_limited = bool(limits.loss_minor or limits.stake_minor)
        if not is_limited or self.staked_minor is None or self.returned_minor is None:
            return Headroom(balance_minor, None, None)
        headroom = headroom_of(
            self.limits, Participation(staked_minor=self.staked_minor, returned_minor=self.returned_minor)
        )
        return headroom._replace(balance_minor=balance_minor)

    def _is_of_free_bet(self, body: dict[str, Any]) -> bool:
        """Whether the link belongs to the round that the free bet pays for."""
        named = body["deal"]["round_id"] if self.kind == "round_opening" else body.get("round_id")
        return self.free_bet is not None and named == self.free_bet.round_id

    def _unseen(self, statement: Statement) -> str:
        """The round of an opening or final, if the files begin behind the link that may say who paid for it."""
        body, is_behind_gap = statement.body, not self.kind and self.links.last > 1
        kind = statement.kind.name
        if kind == "round_opening" and is_behind_gap:
            return str(body["deal"]["round_id"])
        if kind != "round_final":
            return ""
        if self._is_of_seat(body):
            return self.unseen_round if self.unseen_round == body["round_id"] else ""
        return str(body["round_id"]) if is_behind_gap else ""

    def _is_of_seat(self, final: dict[str, Any]) -> bool:
        """Whether the final answers the open seat."""
        return self.seat is not None and self.seat.opening == final["opening"]

    def _end_round(self, body: dict[str, Any]) -> None:
        """Take a final. What a free bet paid, and what of it came back, is not the player's."""
        granted = 0
        if self.unseen_round:
            self.reclaimed_minor = self._reclaimable(body)
        if self.free_bet is not None:
            self.kind, granted = "free final", self.free_bet.amount_minor
            self.reclaimed_minor = reclaimed_minor(body["settlement"]) if "settlement" in body else granted
        self.balance_minor, self.seat = int(body["balance_after_minor"]), None
        self.transfer_round = body["round_id"]
        if self.staked_minor is not None and self.returned_minor is not None:
            self.staked_minor += int(body["staked_minor"]) - granted
            self.returned_minor += int(body["returned_minor"]) - ((self.reclaimed_minor or 0) if granted else 0)

    def _reclaimable(self, body: dict[str, Any]) -> int | None:
        """What goes back to the campaign if one paid for the round of this final."""
        if "settlement" in body:
            return reclaimed_minor(body["settlement"])
        return granted_minor(self.seat.bets) if self.seat is not None and self._is_of_seat(body) else None

    def _take_free_bet(self, body: dict[str, Any]) -> None:
        """Take a free bet's debit or its return."""
        amount = int(body["amount_minor"])
        if body["direction"] == "debit":
            self.kind = "free_bet before"
            self.free_bet = PaidRound(body["grant_id"], body["round_id"], amount, body.get("expiry_time", ""))
        else:
            self.kind, self.free_bet, amount = "free_bet behind", None, -amount
        self.balance_minor = None if self.balance_minor is None else max(0, self.balance_minor + amount)

    def _take_transfer(self, body: dict[str, Any]) -> None:
        """Take a transfer; its place in the chain shows its purpose."""
        self.transfer_round = body["round_id"]
        self._be_seamless()
        amount = int(body["amount_minor"])
        if body["direction"] == "credit":
            self.kind, amount = "transfer behind", -amount
        else:
            self.kind = "transfer before" if self.seat is None else "transfer within"
            self.bought_minor = None if self.bought_minor is None else self.bought_minor + amount
            if self.seat is not None:
                self.seat.balance_before_minor += amount
        self.balance_minor = None if self.balance_minor is None else max(0, self.balance_minor + amount)

    def _be_seamless(self) -> None:
        """A link shows that bets are debited one by one, unless one before has shown that they are not."""
        if self.is_seamless is None and self.seat is not None:  # its opening did not show what may be debited
            self.seat.funds_minor += COVERED_MINOR
        self.is_seamless = self.is_seamless is not False

    def state(self) -> dict[str, Any]:
        """What `chain_of_state` needs, for JSON."""
        seat = self.seat and self.seat.state()
        limits = bet_limits_body(self.bet_limits)
        return {**asdict(replace(self, seat=None)), "bet_limits": limits, "codes": sorted(self.codes), "seat": seat}

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
        "bet_limits": parse_bet_limits(state["bet_limits"]),
        "codes": frozenset(state["codes"]),
        "free_bet": state["free_bet"] and PaidRound(*state["free_bet"]),
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
    if body["currency"] not in jurisdiction.currencies:
        raise statement.failure(RULES, f"{body['currency']} is not a currency of {jurisdiction.id}")
    if body["test_regulator"] and not jurisdiction.test_regulator_allowed:
        raise statement.failure(RULES, f"{jurisdiction.id} does not allow the test regulator")
    if "funding" in body and jurisdiction.regulator_ids_required:
        raise statement.failure(RULES, f"{jurisdiction.id} requires a participation")
    if ruleset.table_only and "table" not in body:
        raise statement.failure(RULES, f"{ruleset.id} is played at a table, and none is named")
    if statement.kind.version > 1:
        _verify_second(statement, ruleset, jurisdiction)


def _verify_second(statement: Statement, ruleset: Ruleset, jurisdiction: Jurisdiction) -> None:
    """What version 2 says: play money where it is allowed, with nobody outside; limits inside the ruleset's."""
    body = statement.body
    if "mode" not in body and "bet_limits" not in body:
        raise statement.failure(RULES, "version 2 without mode and bet_limits, which version 1 says as well")
    if "mode" in body:
        if not jurisdiction.demo_allowed:
            raise statement.failure(RULES, f"{jurisdiction.id} version {jurisdiction.version} allows no play money")
        named = [name for name in ("funding", "table") if name in body] + ["test_regulator"] * body["test_regulator"]
        if named:
            raise statement.failure(RULES, f"a session with play money has {' and '.join(named)}")
    if "bet_limits" in body:
        if not body["bet_limits"]:
            raise statement.failure(RULES, "bet_limits is empty")
        limits = parse_bet_limits(body["bet_limits"])
        try:
            verify_bet_limits(limits, ruleset.limits, ruleset.step_minor, whose=ruleset.id)
        except InvalidFieldError as error:
            raise statement.failure(RULES, error.message) from None


def verify_purchase(statement: Statement, chain: Chain, rulebook: Rulebook) -> None:
    """Number and participation (7), the jurisdiction's cap (8), the amounts (18)."""
    body = statement.body
    amount, bought = int(body["amount_minor"]), int(body["bought_minor"])
    if chain.purchase_no is not None and int(body["purchase_no"]) != chain.purchase_no + 1:
        raise statement.failure(SESSION, f"purchase {body['purchase_no']} comes after {chain.purchase_no}")
    if chain.participation_id not in (None, body["participation_id"]):
        raise statement.failure(SESSION, "a second participation in one session")
    jurisdiction = rulebook.jurisdiction(chain.jurisdiction)
    if jurisdiction is not None and bought > (cap := jurisdiction.cap_minor(chain.currency)):
        raise statement.failure(RULES, f"purchases of {bought} exceed the cap of {cap} of {jurisdiction.id}")
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


def verify_free_bet(statement: Statement, chain: Chain, rulebook: Rulebook) -> None:
    """Its terms and its round (7), the jurisdiction and the expiry (8), what goes back to the campaign (18)."""
    body = statement.body
    is_debit = body["direction"] == "debit"
    if is_debit != ("campaign" in body) or is_debit != ("expiry_time" in body):
        raise statement.failure(SESSION, "campaign and expiry_time stand in the debit of a free bet, and only there")
    if is_debit:
        _verify_allowed(statement, chain, rulebook)
        if body["amount_minor"] == "0":
            raise statement.failure(BALANCE, "a free bet of nothing")
        return
    if chain.free_bet is not None:
        paid = chain.free_bet
        if (body["grant_id"], body["round_id"]) != (paid.grant_id, paid.round_id):
            raise statement.failure(
                SESSION, f"a return that is not of free bet {paid.grant_id} in round {paid.round_id}"
            )
    elif chain.kind:
        if chain.kind != "round_final" or not chain.unseen_round:
            raise statement.failure(SESSION, "the return of a free bet that paid for no round")
        if body["round_id"] != chain.unseen_round:
            raise statement.failure(SESSION, f"a return that is not of round {chain.unseen_round}")
    if chain.free_bet is None:  # the debit, which is judged by this, is outside of the files
        _verify_allowed(statement, chain, rulebook)
    due = chain.reclaimed_minor if chain.kind else None
    if due is not None and int(body["amount_minor"]) != due:
        raise statement.failure(
            BALANCE, f"{body['amount_minor']} goes back to the campaign, {due} of its stakes came back"
        )


def _verify_allowed(statement: Statement, chain: Chain, rulebook: Rulebook) -> None:
    """Check 8: the jurisdiction allows free bets, and no play money is played."""
    jurisdiction = rulebook.jurisdiction(chain.jurisdiction)
    if jurisdiction is not None and not jurisdiction.free_bets_allowed:
        raise statement.failure(RULES, f"{jurisdiction.id} does not allow free bets")
    if chain.is_demo:
        raise statement.failure(RULES, "a free bet in a session that is played with play money")


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
