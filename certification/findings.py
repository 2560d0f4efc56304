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
    _tables: dict[str, str] = field(default_factory=dict)
    """Hash of a `table_round` without its end -> its table."""
    _instances: dict[str, tuple[str, int]] = field(default_factory=dict)
    _periods: dict[str, int] = field(default_factory=dict)
    _currencies: dict[str, str] = field(default_factory=dict)

    def take(self, statement: Statement) -> Iterator[VerificationError]:
        """One statement."""
        body = statement.body
        if not statement.kind.numbered:  # a root's clock is a person's
            yield from self._take_key(statement)
            return
        self.newest = max(self.newest, body["time"])
        match statement.kind.name:
            case "round_opening" | "seat_opening":
                period = self._periods.get(body["session_id"], 0)
                self.open[statement.hash] = [statement.round_id, body["session_id"], body["time"], period]
            case "round_final" | "seat_final":
                self._end_seat(body)
            case "table_round":
                self._begin_table_round(statement)
            case "table_final":
                self._end_table_round(statement)
            case "instance_start":
                self._instances[body["instance"]] = (body["node"], int(body["draws_in_flight_max"]))
                self.named[body["manifest"]] = "manifest"
            case "draw_window":
                self._widen(body)
            case "instance_lost":
                node, most = self._instances.get(body["lost"]["instance"], ("unknown", 0))
                self.exposure[f"{node} {body['time'][:10]}"] += most
            case "session_open":
                self._open_session(body)
            case "session_close":
                self._periods.pop(body["session_id"], None)
                self._currencies.pop(body["session_id"], None)
            case "purchase":
                self.bought_minor[self._currency(body)] += int(body["amount_minor"])
            case "transfer":
                moved = self.bought_minor if body["direction"] == "debit" else self.paid_out_minor
                moved[self._currency(body)] += int(body["amount_minor"])
            case "artifact":
                self.artifacts[f"{body['sha256']} {body['bytes']}"] = body["name"]
                self.reported.add(body["sha256"])
            case "participation_end":
                self.paid_out_minor[self._currency(body)] += int(body["paid_out_minor"])
            case "instance_end" | "discarded_draw" | "event" | "table_seats" | "table_deal":
                pass  # the replay has checked them, and nothing further is found in them
            case name:
                raise UnhandledKindError(name, "certification.findings.AuditFindings.take")

    def _open_session(self, body: Mapping[str, Any]) -> None:
        law: Jurisdiction | None = self.rulebook.jurisdiction(body["jurisdiction"])
        self._periods[body["session_id"]] = law.finish_after_s if law else 0
        self._currencies[body["session_id"]] = body["currency"]
        for kind in ("ruleset", "jurisdiction"):
            self.named[body[kind]["sha256"]] = f"{kind} {body[kind]['id']}"

    def _widen(self, body: Mapping[str, Any]) -> None:
        node, most = self._instances.get(body["instance"], ("unknown", 0))
        self._instances[body["instance"]] = (node, max(most, int(body["draws_in_flight_max"])))

    def _begin_table_round(self, statement: Statement) -> None:
        body = statement.body
        self.table_voids = {final: void for final, void in self.table_voids.items() if void["table"] != body["table"]}
        self._tables[statement.hash] = body["table"]
        self.named[body["config"]] = f"configuration of table {body['table']}"

    def _end_table_round(self, statement: Statement) -> None:
        body = statement.body
        table = self._tables.pop(body["table_round"], "")
        if body["status"] == "void" and "void" in body:
            self.table_voids[statement.hash] = {**body["void"], "table": table}
            self._expose(body, body["void"])

    def _end_seat(self, body: Mapping[str, Any]) -> None:
        """A final. A seat at a table that is void says itself only what would have been; why, the table's final says."""
        self.open.pop(body["opening"], None)
        if body["status"] != "void":
            return
        if "void" in body:
            self._void(body, body["void"], body["void"].get("would_have_been"))
            self._expose(body, body["void"])
        elif void := self.table_voids.get(body.get("table_final", "")):
            self._void(body, void, body.get("would_have_been"))

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        return {**{name: getattr(self, name) for name in _KEPT}, "reported": sorted(self.reported)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`. TypeError, ValueError or AttributeError if it is not a state."""
        if state.keys() != _KEPT.keys():
            raise ValueError("the findings are of another version")
        for name, read in _KEPT.items():
            setattr(self, name, read(state[name]))

    def overdue(self) -> list[dict[str, str]]:
        """The rounds that are open for longer than their jurisdiction lets an interrupted round stay."""
        return [
            {"opening": opening, "round_id": round_id, "session_id": session_id, "time": time}
            for opening, (round_id, session_id, time, period) in self.open.items()
            if _passed(time, self.newest) > timedelta(seconds=period)
        ]

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
        for admin in sorted(set(admins)):
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
