"""What an auditor wants to see beside failures: exposure, voids and who approved them, rounds that stay open, what was
bought and paid out, artifacts, and which statements of the key bundle are in the log.

Takes every authentic statement in the order of the log. Only one thing here is a failure: a key statement that stands
in the log twice, or before one that precedes it in the bundle. The log may lack the end of the bundle: it may have
grown since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from rgs.core.errors import VerificationError
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.replay.checks import KEY
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.rounds import DECK_UNRECOVERABLE
from rgs.core.statements import UnhandledKindError

VOIDS_MAX: Final = 10_000
"""So many voids are listed one by one; all are counted."""


@dataclass(eq=False)
class AuditFindings:
    """The counts of one log. What is counted has the function that makes it, and reads it from JSON."""

    rulebook: Rulebook
    bundle: Mapping[bytes, int]
    """The hash of each statement of the key bundle, and its place from 1."""
    keys_logged: int = field(default_factory=int)
    """Statements of the key bundle, from its first, that the log has."""
    exposure: Counter[str] = field(default_factory=Counter)
    """`node day` -> draws that are unknown, at most."""
    voids: list[dict[str, str]] = field(default_factory=list)
    voids_by_session: dict[str, dict[str, int]] = field(default_factory=dict)
    """`session currency` -> sums of its voids; `unknown` counts those that do not tell what would have been."""
    voids_by_admin: dict[str, dict[str, int]] = field(default_factory=dict)
    """`admin currency` -> the same."""
    bought_minor: Counter[str] = field(default_factory=Counter)
    """By currency: purchases, and stakes debited one by one."""
    paid_out_minor: Counter[str] = field(default_factory=Counter)
    granted_minor: Counter[str] = field(default_factory=Counter)
    """By currency: what campaigns paid for free bets, and what of it went back to them."""
    reclaimed_minor: Counter[str] = field(default_factory=Counter)
    newest: str = field(default_factory=str)
    """The latest time of a numbered statement."""
    open: dict[str, list[Any]] = field(default_factory=dict)
    """Opening -> round id, session id, time, seconds of its jurisdiction's period."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """`<SHA-256> <length>` -> name, of this shard: its folder has the files."""
    named: dict[str, str] = field(default_factory=dict)
    """SHA-256 -> what sessions and instances name by it: rulesets, jurisdictions, the manifest."""
    reported: set[str] = field(default_factory=set)
    """SHA-256 of every artifact, of earlier shards too."""
    table_voids: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Hash of a void `table_final` -> its `void`, until the table's next round: its seats' finals name it."""
    _tables: dict[str, list[Any]] = field(default_factory=dict)
    """Hash of a `table_round` without its end -> round id, its table, time, seconds of its jurisdiction's period."""
    _instances: dict[str, tuple[str, int]] = field(default_factory=dict)
    _periods: dict[str, int] = field(default_factory=dict)
    _currencies: dict[str, str] = field(default_factory=dict)
    _play_money: set[str] = field(default_factory=set)
    """Open sessions with play money: in no sum of money."""

    def take(self, statement: Statement) -> list[VerificationError]:
        """One statement."""
        if not statement.kind.numbered:  # a root's clock is a person's
            return list(self._take_key(statement))
        self.newest = max(self.newest, statement.body["time"])
        (self._take_link if statement.kind.linked else self._take_unlinked)(statement)
        return []

    def _take_link(self, statement: Statement) -> None:
        """A link of a session."""
        body = statement.body
        match statement.kind.name:
            case "round_opening":
                period = self._periods.get(body["session_id"], 0)
                row = [body["deal"]["round_id"], body["session_id"], body["time"], period]
                self.open[statement.hash] = row
            case "seat_opening":
                self.open[statement.hash] = [
                    body["round_id"], body["session_id"], body["time"], self._periods.get(body["session_id"], 0)
                ]  # fmt: skip
            case "round_final":
                self.open.pop(body["opening"], None)
                if body["status"] == "void" and "void" in body:
                    self._void(body, body["void"], body["void"].get("would_have_been"))
                    self._expose(body, body["void"])
            case "seat_final":
                self.open.pop(body["opening"], None)
                if body["status"] == "void" and body["table_final"] in self.table_voids:
                    self._void(body, self.table_voids[body["table_final"]], body.get("would_have_been"))
            case "session_open":
                self._periods[body["session_id"]] = self._period(body["jurisdiction"])
                self._currencies[body["session_id"]] = body["currency"]
                if body.get("mode") == "demo":
                    self._play_money.add(body["session_id"])
                for kind in ("ruleset", "jurisdiction"):
                    self.named[body[kind]["sha256"]] = f"{kind} {body[kind]['id']}"
            case "session_close":
                self._periods.pop(body["session_id"], None)
                self._currencies.pop(body["session_id"], None)
                self._play_money.discard(body["session_id"])
            case "purchase" | "participation_end" if body["session_id"] in self._play_money:
                pass
            case "purchase":
                self.bought_minor[self._currency(body)] += int(body["amount_minor"])
            case "transfer" | "free_bet" as kind:
                in_minor, out_minor = (
                    (self.bought_minor, self.paid_out_minor)
                    if kind == "transfer"
                    else (self.granted_minor, self.reclaimed_minor)
                )
                moved = in_minor if body["direction"] == "debit" else out_minor
                moved[self._currency(body)] += int(body["amount_minor"])
            case "participation_end":
                self.paid_out_minor[self._currency(body)] += int(body["paid_out_minor"])
            case name:
                raise UnhandledKindError(name, "certification.findings.AuditFindings._take_link")

    def _take_unlinked(self, statement: Statement) -> None:
        """A numbered statement of no session."""
        body = statement.body
        match statement.kind.name:
            case "table_round":
                self.table_voids = {
                    final: void for final, void in self.table_voids.items() if void["table"] != body["table"]
                }
                period = self._period(body["jurisdiction"])
                self._tables[statement.hash] = [body["round_id"], body["table"], body["time"], period]
                self.named[body["config"]] = f"configuration of table {body['table']}"
            case "table_final":
                begun = self._tables.pop(body["table_round"], None)
                if body["status"] == "void" and "void" in body:
                    self.table_voids[statement.hash] = {**body["void"], "table": begun[1] if begun else ""}
                    if "deal" in body:
                        self._expose(body, body["void"])
            case "instance_start":
                self._instances[body["instance"]] = (body["node"], int(body["draws_in_flight_max"]))
                self.named[body["manifest"]] = "manifest"
            case "draw_window":
                node, most = self._instances.get(body["instance"], ("unknown", 0))
                self._instances[body["instance"]] = (node, max(most, int(body["draws_in_flight_max"])))
            case "instance_lost":
                node, most = self._instances.get(body["lost"]["instance"], ("unknown", 0))
                self.exposure[f"{node} {body['time'][:10]}"] += most
            case "artifact":
                self.artifacts[f"{body['sha256']} {body['bytes']}"] = body["name"]
                self.reported.add(body["sha256"])
            case "instance_end" | "discarded_draw" | "event" | "table_seats" | "table_deal":
                pass  # the replay has checked them, and nothing further is found in them
            case name:
                raise UnhandledKindError(name, "certification.findings.AuditFindings._take_unlinked")

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        kept = {name: getattr(self, name) for name in _KEPT}
        return {name: sorted(value) if isinstance(value, set) else value for name, value in kept.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`. TypeError, ValueError or AttributeError if it is not a state."""
        if state.keys() != _KEPT.keys():
            raise ValueError("the findings are of another version")
        for name, read in _KEPT.items():
            setattr(self, name, read(state[name]))

    def overdue(self) -> list[dict[str, str]]:
        """The rounds that are open for longer than their jurisdiction lets an interrupted round stay: of sessions, and
        of tables.
        """
        return [
            {"opening": opening, "round_id": round_id, "session_id": "", "table": "", of: name, "time": time}
            for of, rows in (("session_id", self.open), ("table", self._tables))
            for opening, (round_id, name, time, period) in rows.items()
            if _passed(time, self.newest) > timedelta(seconds=period)
        ]

    def _period(self, named: Mapping[str, str]) -> int:
        law: Jurisdiction | None = self.rulebook.jurisdiction(named)
        return law.finish_after_s if law else 0

    def _take_key(self, statement: Statement) -> Iterator[VerificationError]:
        number, logged = self.bundle.get(bytes.fromhex(statement.hash), 0), self.keys_logged
        if not number:
            return
        if number <= logged:
            yield statement.failure(KEY, f"statement {number} of the key bundle stands in the log before")
        elif number > logged + 1:
            yield statement.failure(
                KEY, f"statement {number} of the key bundle is in the log, and {logged + 1} is not before it"
            )
        self.keys_logged = max(number, logged)

    def _currency(self, body: Mapping[str, Any]) -> str:
        return self._currencies.get(body["session_id"], "")

    def _void(self, body: Mapping[str, Any], void: Mapping[str, Any], would_have: list[dict[str, str]] | None) -> None:
        """What a final tells of its void: who approved it, and what would have been returned."""
        returned = None if would_have is None else sum(int(row["returned_minor"]) for row in would_have)
        admins = [approval["party"] for approval in void["approvals"]]
        currency = self._currency(body)
        _add_void(self.voids_by_session.setdefault(f"{body['session_id']} {currency}", {}), body, returned)
        is_money = body["session_id"] not in self._play_money
        for admin in sorted(set(admins)) if is_money else ():
            _add_void(self.voids_by_admin.setdefault(f"{admin} {currency}", {}), body, returned)
        if len(self.voids) < VOIDS_MAX:
            self.voids.append(
                {
                    "approved_by": ", ".join(admins),
                    "currency": currency,
                    "reason": void["reason"],
                    "returned_minor": body["returned_minor"],
                    "round_id": body["round_id"],
                    "seat_no": body["seat_no"],
                    "session_id": body["session_id"],
                    "staked_minor": body["staked_minor"],
                    "time": body["time"],
                    "would_have_returned_minor": "unknown" if returned is None else str(returned),
                }
            )

    def _expose(self, body: Mapping[str, Any], void: Mapping[str, Any]) -> None:
        """A deck that is not revealed counts as exposure, once a deal."""
        if void["reason"] == DECK_UNRECOVERABLE:
            node, _ = self._instances.get(body["instance"], ("unknown", 0))
            self.exposure[f"{node} {body['time'][:10]}"] += 1


_KEPT: Final[Mapping[str, Callable[..., object]]] = {
    one.name: one.default_factory
    for one in sorted(fields(AuditFindings), key=lambda one: one.name)
    if one.default_factory is not MISSING
}
"""What a state holds, and how it is read from JSON."""


def _add_void(sums: dict[str, int], body: Mapping[str, Any], would_have_returned: int | None) -> None:
    for name, more in (
        ("voids", 1),
        ("staked_minor", int(body["staked_minor"])),
        ("would_have_returned_minor", would_have_returned or 0),
        ("unknown", would_have_returned is None),
    ):
        sums[name] = sums.get(name, 0) + more


def _passed(begin: str, end: str) -> timedelta:
    return datetime.fromisoformat(end) - datetime.fromisoformat(begin)
