"""The faults that a simulator commits: by a schedule, or by pseudo-random choice from a seed. Every run is the same.

A plan is TOML or JSON:

    seed = "demo-1"
    until_call = 200          # from call 201 on there are no faults; 0 or left out: never
    [per_mille]               # of all calls, by chance
    lost_reply = 50
    [[schedule]]
    fault = "delay"
    method = "Debit"          # left out: every method
    call = 3                  # counted per method from 1; left out: every call
    calls = 1                 # how many from there on

SHA-256 of seed, method and call number makes the choice. A plan with unknown faults or keys, or with chances above
1,000 per mille in all, is an error.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, Final

from rgs.core.errors import InvalidFieldError, UnknownFieldError

DOMAIN: Final = "rgs/simulator/fault/v1"
PER_MILLE: Final = 1000
_CALLS_MAX: Final = 10**9


@unique
class Fault(StrEnum):
    """What a simulator can do wrong: first on the way, then in the book of one of the two simulators."""

    LOST_REQUEST = "lost_request"  # the request does not arrive
    LOST_REPLY = "lost_reply"  # processed, but the answer is lost
    DELAY = "delay"  # processed after the caller's deadline
    DUPLICATE = "duplicate"  # delivered twice
    REORDER = "reorder"  # delivered after the next message of the same transaction: a debit after its rollback
    OUTAGE = "outage"  # this call and the next, `calls` in all over every method, get UNAVAILABLE
    RESTART = "restart"  # processed, then the simulator restarts with its book; the answer is lost
    RESTART_EMPTY = "restart_empty"  # processed, then it restarts with a new book; the old file is kept
    CONFLICTING_RETRY = "conflicting_retry"  # a repeat of a known transaction is refused as a conflict
    NO_CONFLICT = "no_conflict"  # a known id with other values is answered as a repeat
    WRONG_CODE = "wrong_code"  # the google.rpc.Status of a refusal names another code than the call

    # The wallet's book.
    WRONG_AMOUNT = "wrong_amount"  # one minor unit more is entered; the answer repeats the request's amount
    WRONG_ECHO = "wrong_echo"  # the answer names one minor unit more than was requested and entered
    NO_BALANCE = "no_balance"  # the receipt of a transfer that stands has no balance
    LONG_REFERENCE = "long_reference"  # the wallet's reference in a receipt has 65 characters
    ROUNDED = "rounded"  # the amount is rounded down to hundreds; the answer repeats the request's amount
    DOUBLE_ENTRY = "double_entry"  # a repeat moves the money again
    NO_TOMBSTONE = "no_tombstone"  # a rollback of an unknown debit leaves no entry
    ROLLBACK_REFUSED = "rollback_refused"  # a rollback of an unknown debit is refused
    LATE_DEBIT = "late_debit"  # a debit that was rolled back takes money when it is repeated
    NOT_FINAL = "not_final"  # a debit that was refused for lack of money succeeds later
    TOKEN_FIRST = "token_first"  # noqa: S105 - the token is checked before the transaction: an expired one stops a repeat
    ZERO_TAKEN = "zero_taken"  # a debit of 0 is accepted
    ZERO_REFUSED = "zero_refused"  # a credit of 0 is refused as malformed
    FORGETFUL = "forgetful"  # GetTransaction answers TRANSACTION_UNKNOWN
    WRONG_BALANCE = "wrong_balance"  # GetBalance answers one minor unit more
    FREE_BET_SPENT = "free_bet_spent"  # a debit that was refused or rolled back uses its free bet up
    FREE_BET_TWICE = "free_bet_twice"  # a free bet of which a debit stands is paid again

    # The regulator's book.
    NEW_IDS = "new_ids"  # a repeat is answered with an id that was never issued
    WRONG_ID = "wrong_id"  # the id that is issued is malformed
    WRONG_TRANSACTION = "wrong_transaction"  # the answer names another transaction
    NO_CAP = "no_cap"  # the cap of a participation is not enforced
    CLOSES_SEATED = "closes_seated"  # a session is closed although a player is seated
    ENDS_TWICE = "ends_twice"  # a second end of a participation is accepted
    FUTURE_DATES = "future_dates"  # times after the clock are accepted
    CHANGED_HASH = "changed_hash"  # a stage is entered with another final hash
    ALIGNMENT_RUNNING = "alignment_running"  # every message is refused with "later"


@dataclass(frozen=True, slots=True)
class Planned:
    """A row of the schedule: method "" means every method, call 0 every call."""

    fault: Fault
    method: str = ""
    call: int = 0
    calls: int = 1

    def hits(self, method: str, call: int) -> bool:
        """Whether the row applies to this call of the method."""
        if self.method not in ("", method):
            return False
        # One call begins an outage; the server counts its calls over all methods.
        calls = 1 if self.fault is Fault.OUTAGE else self.calls
        return self.call == 0 or self.call <= call < self.call + calls


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Schedule, chances and seed of a simulator's faults."""

    schedule: tuple[Planned, ...] = ()
    per_mille: tuple[tuple[Fault, int], ...] = ()
    seed: str = ""
    until_call: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number among the calls of its method, and its faults."""

    method: str
    number: int
    faults: frozenset[Fault]
    outage_calls: int = 0


class Faults:
    """Applies a plan: counts calls and faults. `emit` receives a line for each fault."""

    def __init__(self, plan: FaultPlan, emit: Callable[[str], None] = lambda _: None) -> None:
        self._plan = plan
        self._emit = emit
        self._calls: Counter[str] = Counter()
        self.is_on = True
        self.committed: Counter[Fault] = Counter()

    def follow(self, plan: FaultPlan) -> None:
        """Apply another plan from now on. The counts go on."""
        self._plan = plan

    def next(self, method: str) -> Call:
        """Count a call, and find its faults."""
        self._calls[method] += 1
        number, plan = self._calls[method], self._plan
        if not self.is_on or (plan.until_call and self._calls.total() > plan.until_call):
            return Call(method, number, frozenset())
        hits = [row for row in plan.schedule if row.hits(method, number)]
        faults = {row.fault for row in hits}
        if chosen := chance(plan.seed, method, number, plan.per_mille):
            faults.add(chosen)
        outage_calls = max((row.calls for row in hits if row.fault is Fault.OUTAGE), default=1)
        return Call(method, number, frozenset(faults), outage_calls)

    def commit(self, call: Call, fault: Fault, subject: str) -> None:
        """Count a fault that takes place now, and tell it."""
        self.committed[fault] += 1
        self._emit(f"fault {self.committed.total()}: {call.method} call {call.number} {subject or '-'}: {fault}")

    def commit_if_due(self, call: Call, fault: Fault, subject: str) -> bool:
        """Commit the fault if the plan has it for this call; whether it has."""
        is_due = fault in call.faults
        if is_due:
            self.commit(call, fault, subject)
        return is_due


def chance(seed: str, method: str, number: int, per_mille: Sequence[tuple[Fault, int]]) -> Fault | None:
    """The fault that the seed gives to a call, or None."""
    text = "\0".join((DOMAIN, seed, method, str(number))).encode()
    drawn = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") * PER_MILLE >> 64
    for fault, share in per_mille:
        if drawn < share:
            return fault
        drawn -= share
    return None


def parse_plan(text: str) -> FaultPlan:
    """A plan from TOML or JSON. InvalidFieldError, UnknownFieldError."""
    try:
        document: Any = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError(f"the plan of faults is neither TOML nor JSON: {error}", field="faults") from None
    table = _table(document, "faults", ("seed", "until_call", "per_mille", "schedule"))
    rows = table.get("schedule", [])
    if not isinstance(rows, list):
        raise InvalidFieldError("schedule must be a list of tables", field="schedule")
    schedule = tuple(_planned(_table(row, "schedule", ("fault", "method", "call", "calls"))) for row in rows)
    per_mille = _table(table.get("per_mille", {}), "per_mille", tuple(Fault))
    shares = tuple((_fault(name), _number(share, "per_mille", 0, PER_MILLE)) for name, share in per_mille.items())
    if (total := sum(share for _, share in shares)) > PER_MILLE:
        raise InvalidFieldError(
            f"the chances come to {total} of {PER_MILLE}", field="per_mille", limit=PER_MILLE, value=total
        )
    seed = _text(table.get("seed", ""), "seed")
    return FaultPlan(schedule, shares, seed, _number(table.get("until_call", 0), "until_call", 0, _CALLS_MAX))


def parse_planned(text: str) -> Planned:
    """`METHOD:CALL:FAULT`, `*` for every method or call: "Debit:3:lost_reply". InvalidFieldError."""
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidFieldError(f"{text[:80]!r} is not METHOD:CALL:FAULT", field="fault", value=text[:80])
    method, call, fault = parts
    number = 0 if call == "*" else int(call) if call.isascii() and call.isdigit() else -1
    return Planned(_fault(fault), "" if method == "*" else method, _number(number, "call", 0, _CALLS_MAX))


def _planned(row: Mapping[str, Any]) -> Planned:
    return Planned(
        _fault(row.get("fault")),
        _text(row.get("method", ""), "method"),
        _number(row.get("call", 0), "call", 0, _CALLS_MAX),
        _number(row.get("calls", 1), "calls", 1, _CALLS_MAX),
    )


def _table(value: object, field: str, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidFieldError(f"{field} must be a table", field=field)
    for key in value:
        if key not in keys:
            raise UnknownFieldError(f"{field} has no key {key}; known keys: {', '.join(keys)}", field=field, value=key)
    return value


def _fault(name: object) -> Fault:
    if not isinstance(name, str) or name not in set(Fault):
        raise InvalidFieldError(f"unknown fault {name!r}; known faults: {', '.join(Fault)}", field="fault", value=name)
    return Fault(name)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidFieldError(f"{field} must be text", field=field, value=str(value)[:80])
    return value


def _number(value: object, field: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidFieldError(
            f"{field} must be a whole number from {least} to {most}", field=field, limit=most, value=str(value)[:80]
        )
    return value
