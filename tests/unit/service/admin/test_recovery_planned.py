"""The rows that a recovery imports for a gap, planned from a few statements by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rgs.core.ledger import Participation
from rgs.core.sessions import Funding, Session, SessionStatus
from rgs.core.statements import UnhandledKindError, format_canonical
from rgs.core.tables.recovery import new_table
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.times import format_date, format_time
from rgs.service.admin.recovery import REASON, plan_import
from rgs.service.admin.table_recovery import TableImport
from rgs.service.events import EventCode
from rgs.service.game_catalog import GameCatalog
from rgs.store.changes import DayCount
from rgs.store.interface import InstanceRow
from rgs.store.recovery import Import, InstanceState
from rgs.tlog.gap import Missing
from tests.support.clocks import NOW_MS

TIME, DAY = format_time(NOW_MS), format_date(NOW_MS)
KEPT = Session(
    session_id="S1", operator="op-1", player="anna", operator_reference="", ruleset_id="uth-solo",
    jurisdiction_id="demo", currency="EUR", status=SessionStatus.OPEN, open_ms=1, last_ms=1,
    participation=Participation(bought_minor=100),
)  # fmt: skip
BETTER = replace(KEPT, session_id="S2", funding=Funding.SEAMLESS)
IN_ROUND = replace(BETTER, session_id="S3", open_round_id="R3")


class Reads:
    """A store with three sessions and three instances."""

    async def instances(self, *, alive_only: bool) -> list[InstanceRow]:
        assert not alive_only
        return [instance_row("i-0", 0), instance_row("i-1", 1), instance_row("i-9", 9)]

    async def session(self, session_id: str) -> Session | None:
        return {one.session_id: one for one in (KEPT, BETTER, IN_ROUND)}.get(session_id)

    async def tables(self, _after: str, _limit: int) -> list[TableRow]:
        return []


def instance_row(name: str, boot_no: int) -> InstanceRow:
    return InstanceRow(
        name, "node-1", boot_no, worker=0, alive=True, statement_no=40 + boot_no, draw_no=50 + boot_no, start_ms=7
    )


def missing(kind: str, instance: str, number: int, block: bytes = b"", **body: Any) -> Missing:
    whole = {"instance": instance, "statement_no": str(number), "time": TIME, **body}
    return Missing(kind, whole, bytes([number]) * 32, b"envelope", private=block)


async def planned(*gap: Missing) -> Import:
    reads: Any = Reads()
    return await plan_import(reads, gap)


def link(kind: str, number: int, session_id: str, block: bytes = b"", **body: Any) -> Missing:
    return missing(kind, "i-1", number, block, session_id=session_id, link_no="3", **body)


async def test_only_instances_that_the_gap_touches_are_written() -> None:
    start: dict[str, Any] = {"node": "node-2", "boot_no": "4", "worker": "3"}
    found = await planned(
        missing("instance_start", "i-2", 1, **start),
        missing("event", "i-1", 47, code="SWITCH_CHANGED"),
        missing("discarded_draw", "i-1", 48, draw_no="60"),
        missing("discarded_draw", "i-1", 49, draw_no="59"),
        missing("instance_lost", "i-1", 50, lost={"instance": "i-0"}),
    )
    assert found.instances == {
        "i-0": InstanceState("node-1", 0, 0, 7, 40, 50, NOW_MS),
        "i-1": InstanceState("node-1", 1, 0, 7, 50, 60),
        "i-2": InstanceState("node-2", 4, 3, NOW_MS, 1, 0),
    }
    assert found.statements[1] == ("i-1", 47, "event", "SWITCH_CHANGED", "", 0, "", 0, bytes([47]) * 32, b"envelope")
    ended = await planned(missing("instance_end", "i-1", 42))
    assert ended.instances == {"i-1": InstanceState("node-1", 1, 0, 7, 42, 51, NOW_MS)}


BOUGHT: dict[str, Any] = {
    "amount_minor": "500", "bought_minor": "600", "participation_id": "P1", "purchase_no": "2", "private": "00" * 32,
}  # fmt: skip


async def test_what_is_bought_and_paid_out_is_counted_for_its_day_and_a_lost_block_is_counted() -> None:
    block = format_canonical({"block": {"regulator_participation_id": "N" * 16}, "salt": "00" * 32})
    found = await planned(
        link("purchase", 42, "S1", block, **BOUGHT),
        link("purchase", 43, "S1", **{**BOUGHT, "purchase_no": "3", "bought_minor": "1100"}),
        link("participation_end", 44, "S1", paid_out_minor="1100", private="00" * 32),
        link("session_close", 45, "S1"),
    )
    assert found.days == [
        DayCount("op-1", "EUR", DAY, purchases=1, bought_minor=500),
        DayCount("op-1", "EUR", DAY, purchases=1, bought_minor=500),
        DayCount("op-1", "EUR", DAY, ends=1, final_balance_minor=1100),
    ]
    assert (found.lost_privates, found.privates) == (2, [("i-1", 42, block)])
    assert found.operations == [("purchase", "S1")]
    session = found.sessions["S1"]
    assert (session.status, session.regulator_participation_id, session.purchase_no) == (
        SessionStatus.CLOSED, "N" * 16, 3,
    )  # fmt: skip


@pytest.mark.parametrize(("kept", "kind"), [(BETTER, "start"), (IN_ROUND, "act")], ids=["start", "act"])
async def test_a_debit_of_the_gap_ends_the_operation_that_made_it(kept: Session, kind: str) -> None:
    debit: dict[str, Any] = {"direction": "debit", "amount_minor": "100", "round_id": "R3", "transaction_id": "T1"}
    found = await planned(link("transfer", 42, kept.session_id, **debit))
    assert (found.operations, found.owed, found.lost_privates) == ([(kind, kept.session_id)], [], 0)
    for first, ends in (("session_open", "open"), ("participation_end", "end"), ("session_close", "close")):
        found = await planned(link(first, 42, kept.session_id, paid_out_minor="0"))
        assert found.operations == [(ends, kept.session_id)]


async def test_a_credit_of_the_gap_is_owed_again() -> None:
    debit: dict[str, Any] = {"direction": "debit", "amount_minor": "100", "round_id": "R3", "transaction_id": "T1"}
    credit: dict[str, Any] = {**debit, "direction": "credit", "transaction_id": "T2"}
    found = await planned(link("transfer", 42, "S2", **debit), link("transfer", 43, "S2", **credit))
    (owed,) = found.owed
    assert (owed.operation_id, owed.session_id, owed.kind, owed.amount_minor, owed.created_ms, owed.purchase_no) == (
        "T2", "S2", "credit", 100, NOW_MS, 0,
    )  # fmt: skip


def test_a_round_is_void_for_the_reason_of_the_event() -> None:
    assert REASON == "STORE_RECOVERED" == EventCode.STORE_RECOVERED


class Hall(Reads):
    """Three tables. At the second one somebody has a bet that was never fixed."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def session(self, session_id: str) -> Session | None:
        return replace(KEPT, table_id="t-2", reserved_minor=30, version=7) if session_id == "S1" else None

    async def tables(self, after: str, _limit: int) -> list[TableRow]:
        return [new_table(name, "c" * 64, 1) for name in ("t-1", "t-2", "t-3") if name > after]

    async def sittings(self, table_id: str, after: str, _limit: int) -> list[Sitting]:
        if after:
            return []
        self.requested.append(table_id)
        bet = Sitting("t-2", "S1", "op-1", "anna", "Anna", bets=(("ante", 30),), reserved_minor=30, version=4)
        return [bet] if table_id == "t-2" else []


async def test_each_table_of_the_store_is_finished_once_and_a_bet_of_no_round_returns() -> None:
    hall = Hall()
    reads: Any = hall
    found = await plan_import(reads, [missing("event", "i-1", 47, code="SWITCH_CHANGED")])
    assert hall.requested == ["t-1", "t-2", "t-3"]
    session, sitting = found.sessions["S1"], found.sittings["S1"]
    assert (session.reserved_minor, session.version) == (0, 8)
    assert (sitting.reserved_minor, sitting.bets, sitting.version) == (0, (), 5)


async def test_an_end_of_a_seat_that_nothing_opened_is_refused_with_its_place() -> None:
    class NoSeats(Reads):
        async def seat(self, _session_id: str, _round_id: str) -> None:
            """The store has none either."""

    reads: Any = NoSeats()
    final = missing("seat_final", "i-1", 42, round_id="R9", seat_no="2", session_id="S1")
    with pytest.raises(ValueError, match="the log ends seat 2 of round R9, which nothing has opened"):
        await TableImport(Import(), reads, GameCatalog()).end_seat(final)


async def test_a_kind_that_recovery_does_not_know_is_told_with_the_place() -> None:
    with pytest.raises(UnhandledKindError, match=r"kind unheard is not handled in rgs.service.admin.recovery._count:"):
        await planned(missing("unheard", "i-1", 42))
