"""The matching rules for money: what the facts about one transaction id come to. The store joins them.

Ids come first: everything in one call has the same id (a ticket of the regulator may have participation and number
instead). Then amounts are compared with zero tolerance, and times with that of `Terms.clock_limit_ms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rgs.core.amounts import format_money
from rgs.core.reconcile.classes import CLOCK_LIMIT_S, BreakClass
from rgs.core.reconcile.facts import OF_ROUNDS, Break, SignedTransfer, Ticket, WalletRow
from rgs.core.times import format_time

ACCEPTED, REFUSED, PENDING, TOMBSTONE = "accepted", "refused", "pending", "tombstone"
STATUSES = (ACCEPTED, REFUSED, PENDING, TOMBSTONE)
DEBIT, CREDIT, ROLLBACK = "debit", "credit", "rollback"
KINDS = (DEBIT, CREDIT, ROLLBACK)
SHOWN_MAX = 10
"""Rows of one id that a break shows."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run compares. `from_ms`..`to_ms` is the period without its end; `as_of_ms` is the time of the report.

    A source claims to reach to its `…_until_ms`: what is younger and missing there is timing. A missing source is not
    compared.
    """

    as_of_ms: int
    from_ms: int
    to_ms: int
    wallet: bool
    regulator: bool
    receipts: bool
    wallet_until_ms: int
    regulator_until_ms: int
    receipts_until_ms: int
    is_cut: bool = False
    """The export is a part: other sources may have more, and later times than `as_of_ms`."""
    clock_limit_ms: int = CLOCK_LIMIT_S * 1000
    """The most that the clocks of wallet and regulator may differ from the server's."""

    def is_due(self, time_ms: int) -> bool:
        """Whether this run must explain an event at that time."""
        return self.from_ms <= time_ms < self.to_ms

    def is_whole(self, begun_ms: int, ended_ms: int) -> bool:
        """Whether this run must explain everything between the two times."""
        return self.from_ms <= begun_ms and ended_ms <= self.to_ms

    def is_in_part(self, begun_ms: int, ended_ms: int) -> bool:
        """Whether this run must explain a part of it."""
        return self.from_ms < ended_ms and begun_ms < self.to_ms

    def may_be_outside(self, time_ms: int) -> bool:
        """Whether the record may lack something that another source dates so."""
        return not self.is_due(time_ms) or (self.is_cut and time_ms > self.as_of_ms)

    def may_be_dated(self, time_ms: int, begun_ms: int, ended_ms: int) -> bool:
        """Whether another clock may give `time_ms` for an event between the two times."""
        return begun_ms - self.clock_limit_ms <= time_ms <= ended_ms + self.clock_limit_ms


def match_money(
    key: str, transfers: Sequence[SignedTransfer], rows: Sequence[WalletRow], tickets: Sequence[Ticket], terms: Terms
) -> Iterator[Break]:
    """The breaks of one transaction id, most often none."""
    if any(not transfer.is_sound for transfer in transfers):
        return  # the failed check is a break already
    standing = [transfer for transfer in transfers if transfer.kind != ROLLBACK]
    cancelled = {transfer.kind for transfer in transfers} >= {ROLLBACK}
    if standing and not cancelled:
        if len(standing) > 1:
            found = tuple((f"statement {transfer.statement}", _money(transfer)) for transfer in standing)
            yield _of_transfer(BreakClass.DUPLICATE, standing[0], found, ("statements",))
            return
        yield from _match_transfer(standing[0], rows, tickets, terms)
    else:
        yield from _match_nothing(key, rows, tickets, terms)


# --- the record names it ------------------------------------------------------------------------------------------


Fault = tuple[BreakClass, str, str]
"""Class, what the record says, what the other says."""


class _Other(NamedTuple):
    """What another source says of a transfer, the difference in money, and whether the player got too little."""

    source: str
    says: str
    time_ms: int
    off_minor: int
    is_short: bool


def _match_transfer(
    transfer: SignedTransfer, rows: Sequence[WalletRow], tickets: Sequence[Ticket], terms: Terms
) -> Iterator[Break]:
    moved = [row for row in rows if row.status == ACCEPTED and row.kind != ROLLBACK]
    differing: dict[tuple[BreakClass, str], list[_Other]] = {}
    for row in moved if terms.wallet else ():
        if (fault := _fault_of_row(transfer, row, terms)) is not None:
            other = _Other("wallet", fault[2], row.time_ms, _distance(row, transfer), _is_short(row, transfer))
            differing.setdefault(fault[:2], []).append(other)
    for ticket in tickets:
        if (fault := _fault_of_ticket(transfer, ticket, terms)) is not None:
            off_minor = abs(ticket.amount_minor - transfer.amount_minor)
            other = _Other("regulator", fault[2], ticket.time_ms, off_minor, is_short=False)
            differing.setdefault(fault[:2], []).append(other)
    for (kind, ours), others in sorted(differing.items()):
        times = [transfer.time_ms, *(other.time_ms for other in others if kind is BreakClass.TIME_DIFFERS)]
        if not any(map(terms.is_due, times)):
            continue
        is_money = kind in {BreakClass.AMOUNT_DIFFERS, BreakClass.DIRECTION_DIFFERS}
        yield _of_transfer(
            kind,
            transfer,
            (("statements", ours), *((other.source, other.says) for other in others)),
            ("statements", *dict.fromkeys(other.source for other in others)),
            amount_minor=max(other.off_minor for other in others) if is_money else transfer.amount_minor,
            is_short=is_money and any(other.is_short for other in others),
        )
    if terms.wallet:
        yield from _match_times(transfer, moved, rows, terms)
    if terms.regulator and transfer.source == "purchase" and terms.is_due(transfer.time_ms):
        yield from _match_tickets(transfer, tickets, terms)


def _fault_of_row(transfer: SignedTransfer, row: WalletRow, terms: Terms) -> Fault | None:
    """The most urgent difference between a transfer and a row that moved its money."""
    if transfer.currency and row.currency != transfer.currency:
        return BreakClass.CURRENCY_DIFFERS, _money(transfer), _money(row)
    if row.kind != transfer.kind:
        return BreakClass.DIRECTION_DIFFERS, _money(transfer), _money(row)
    if row.amount_minor != transfer.amount_minor:
        return BreakClass.AMOUNT_DIFFERS, _money(transfer), _money(row)
    if transfer.player and row.player and row.player != transfer.player:
        return BreakClass.CONTENT_DIFFERS, f"player {transfer.player}", f"player {row.player}"
    if transfer.operator and row.operator and row.operator != transfer.operator:
        return BreakClass.OPERATOR_DIFFERS, f"operator {transfer.operator}", f"operator {row.operator}"
    if row.reference and row.reference not in _references(transfer):
        return BreakClass.CONTENT_DIFFERS, f"reference {transfer.reference}", f"reference {row.reference}"
    return _fault_of_time(transfer, row.time_ms, terms)


def _references(transfer: SignedTransfer) -> tuple[str, ...]:
    """What a wallet may keep of the reference: for a single bet the session is enough."""
    return (transfer.reference, transfer.session_id) if transfer.source in OF_ROUNDS else (transfer.reference,)


def _fault_of_ticket(transfer: SignedTransfer, ticket: Ticket, terms: Terms) -> Fault | None:
    if ticket.amount_minor != transfer.amount_minor:
        theirs = format_money(ticket.amount_minor, transfer.currency)
        return BreakClass.AMOUNT_DIFFERS, format_money(transfer.amount_minor, transfer.currency), theirs
    for name, ours, theirs in (
        ("player", transfer.player, ticket.player),
        ("regulator session", transfer.regulator_session_id, ticket.regulator_session_id),
        ("regulator participation", transfer.regulator_participation_id, ticket.regulator_participation_id),
        ("transaction", transfer.transaction_id, ticket.transaction_id),
        ("purchase", str(transfer.purchase_no), str(ticket.purchase_no)),
    ):
        if ours and theirs and ours != theirs:
            return BreakClass.CONTENT_DIFFERS, f"{name} {ours}", f"{name} {theirs}"
    return _fault_of_time(transfer, ticket.time_ms, terms)


def _fault_of_time(transfer: SignedTransfer, time_ms: int, terms: Terms) -> Fault | None:
    if terms.may_be_dated(time_ms, transfer.begun_ms, transfer.time_ms):
        return None
    requested = f"between {format_time(transfer.begun_ms)} and {format_time(transfer.time_ms)}"
    return BreakClass.TIME_DIFFERS, requested, format_time(time_ms)


def _match_times(
    transfer: SignedTransfer, moved: Sequence[WalletRow], rows: Sequence[WalletRow], terms: Terms
) -> Iterator[Break]:
    """Whether the wallet moved the money once, in this period, and did not take it back."""
    back = [row for row in rows if row.kind == ROLLBACK and row.status == ACCEPTED]
    left = len(moved) - len(back)
    said = (("statements", _money(transfer)), ("wallet", _rows(rows)))
    if left == 1:
        dated = max(row.time_ms for row in moved)
        is_reported = not terms.may_be_dated(dated, transfer.begun_ms, transfer.time_ms)  # as a fault of its own
        if terms.is_due(transfer.time_ms) != terms.is_due(dated) and not is_reported:
            yield _of_transfer(BreakClass.TIMING, transfer, said, ("statements", "wallet"))
    elif not terms.is_due(transfer.time_ms):
        return
    elif left > 1:
        yield _of_transfer(
            BreakClass.DUPLICATE,
            transfer,
            said,
            ("wallet",),
            amount_minor=transfer.amount_minor * (left - 1),
            is_short=transfer.kind == DEBIT,
        )
    elif transfer.kind == CREDIT:
        if transfer.amount_minor or transfer.source in OF_ROUNDS:  # a payout of 0 may be missing
            late = not rows and transfer.time_ms >= terms.wallet_until_ms
            # A credit of 0 shows the wallet that the round has ended. Without it nobody is owed anything.
            kind = BreakClass.MISSING_CREDIT if transfer.amount_minor else BreakClass.STATE_DIFFERS
            yield _of_transfer(BreakClass.TIMING if late else kind, transfer, said, ("statements", "wallet"))
    elif moved or any(row.status == PENDING for row in rows):
        yield _of_transfer(BreakClass.STATE_DIFFERS, transfer, said, ("statements", "wallet"))
    else:
        late = not rows and transfer.time_ms >= terms.wallet_until_ms
        yield _of_transfer(
            BreakClass.TIMING if late else BreakClass.MISSING_DEBIT, transfer, said, ("statements", "wallet")
        )


def _match_tickets(transfer: SignedTransfer, tickets: Sequence[Ticket], terms: Terms) -> Iterator[Break]:
    ours = f"purchase {transfer.purchase_no} of {format_money(transfer.amount_minor, transfer.currency)}"
    if not tickets:
        late = transfer.time_ms >= terms.regulator_until_ms
        kind = BreakClass.TIMING if late else BreakClass.MISSING_AT_REGULATOR
        yield _of_transfer(
            kind, transfer, (("statements", ours), ("regulator", "nothing")), ("statements", "regulator")
        )
    elif len(tickets) > 1:
        found = (("statements", ours), ("regulator", f"{len(tickets)} purchases of this number"))
        yield _of_transfer(BreakClass.DUPLICATE, transfer, found, ("regulator",))


# --- the record does not name it, or names it as taken back ---------------------------------------------------------


def _match_nothing(key: str, rows: Sequence[WalletRow], tickets: Sequence[Ticket], terms: Terms) -> Iterator[Break]:
    """The record names nothing: the wallet may not have moved money, and the regulator may have no purchase."""
    debits = [row for row in rows if row.kind == DEBIT and row.status == ACCEPTED]
    credits_ = [row for row in rows if row.kind == CREDIT and row.status == ACCEPTED]
    backs = [row for row in rows if row.kind == ROLLBACK]
    landed = [row for row in backs if row.status == ACCEPTED]
    kind: BreakClass | None = None
    about: WalletRow | None = None
    if debits and backs and min(row.time_ms for row in backs) < max(row.time_ms for row in debits):
        kind, about = BreakClass.LATE_AFTER_ROLLBACK, max(debits, key=lambda row: row.time_ms)
    elif len(debits) > len(landed):
        about = debits[0]
        kind = BreakClass.MISSING_IN_RGS if not tickets else BreakClass.LINK_MISSING
        if len(debits) > 1 and backs:
            kind = BreakClass.DUPLICATE
    elif len(credits_) > max(0, len(landed) - len(debits)):
        kind, about = BreakClass.MISSING_IN_RGS, credits_[0]
    elif pending := [row for row in rows if row.status == PENDING]:
        kind, about = BreakClass.STATE_DIFFERS, pending[0]
    if kind is not None and about is not None:
        if not terms.may_be_outside(about.time_ms):
            found = [("statements", "nothing"), ("wallet", _rows(rows))]
            if tickets:
                found.append(("regulator", f"purchase of {format_money(tickets[0].amount_minor, about.currency)}"))
            yield Break(
                kind,
                f"transaction {key}",
                tuple(found),
                about.time_ms,
                amount_minor=about.amount_minor,
                operator=about.operator,
                player=about.player,
                currency=about.currency,
                sources=("wallet", *(("regulator",) if tickets else ())),
                is_owed=about.kind == DEBIT and about.status == ACCEPTED,
            )
    elif tickets:
        yield from _lone_ticket(key, rows, tickets[0], terms)


def _lone_ticket(key: str, rows: Sequence[WalletRow], ticket: Ticket, terms: Terms) -> Iterator[Break]:
    if not ticket.is_session_known or terms.may_be_outside(ticket.time_ms):
        return  # the missing session is one break for everything in it
    kind = BreakClass.ORPHAN_TICKET if terms.wallet else BreakClass.LINK_MISSING
    bought = f"purchase {ticket.purchase_no} of {format_money(ticket.amount_minor, ticket.currency)}"
    found = [("statements", "nothing"), ("regulator", bought)]
    if terms.wallet:
        found.insert(1, ("wallet", _rows(rows)))
    yield Break(
        kind,
        f"transaction {key}",
        tuple(found),
        ticket.time_ms,
        amount_minor=ticket.amount_minor,
        player=ticket.player,
        currency=ticket.currency,
        sources=("regulator",),
    )


def _of_transfer(
    kind: BreakClass,
    transfer: SignedTransfer,
    found: tuple[tuple[str, str], ...],
    sources: tuple[str, ...],
    *,
    amount_minor: int | None = None,
    is_short: bool = False,
) -> Break:
    """The break of a transfer. `is_short`: the wallet gave less than is due, or took more. That is owed to the player,
    but for the money of a campaign: it is the operator's.
    """
    return Break(
        kind,
        f"transaction {transfer.transaction_id}",
        found,
        transfer.time_ms,
        amount_minor=transfer.amount_minor if amount_minor is None else amount_minor,
        operator=transfer.operator,
        player=transfer.player,
        currency=transfer.currency,
        game=transfer.game,
        sources=sources,
        is_owed=(is_short or kind is BreakClass.MISSING_CREDIT) and transfer.source != "free_bet",
    )


def _distance(row: WalletRow, transfer: SignedTransfer) -> int:
    return (
        abs(row.amount_minor - transfer.amount_minor)
        if row.kind == transfer.kind
        else row.amount_minor + transfer.amount_minor
    )


def _is_short(row: WalletRow, transfer: SignedTransfer) -> bool:
    """Whether the wallet gave the player less than is due, or took more."""
    moved, due = (fact.amount_minor if fact.kind == CREDIT else -fact.amount_minor for fact in (row, transfer))
    return moved < due


def _money(fact: SignedTransfer | WalletRow) -> str:
    return f"{fact.kind} {format_money(fact.amount_minor, fact.currency)}"


def _rows(rows: Sequence[WalletRow]) -> str:
    """The wallet's rows of one id, in order of time."""
    said = [f"{_money(row)} {row.status} {format_time(row.time_ms)}" for row in rows[:SHOWN_MAX]]
    return "; ".join(said + ["and more"] * (len(rows) > SHOWN_MAX)) or "nothing"
