"""One fault planted in a clean day, one break named: exactly that one and no other, for every class."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.core.reconcile.classes import BreakClass
from rgs.core.times import parse_time
from tests.support.records.factory import RecordFactory
from tests.support.records.parts import SessionRecord
from tests.support.service.reconciling import Day, Row, play_day

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
T0 = "2026-11-18T11:06:40.000Z"


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return play_day(tmp_path_factory.mktemp("unfinished"), is_open=True)


def first(rows: list[Row], kind: str, **wanted: Any) -> Row:
    return next(row for row in rows if row["kind"] == kind and all(row[key] == wanted[key] for key in wanted))


def without(kind: str, which: int = 0) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        gone = [row for row in rows if row["kind"] == kind][which]
        return [row for row in rows if row is not gone]

    return change


def twice(kind: str) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        return [*rows, dict(first(rows, kind))]

    return change


def change_to(kind: str, which: int = 0, /, **values: Any) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        [row for row in rows if row["kind"] == kind][which].update(values)

    return change


def wallet_row(rows: list[Row], **values: Any) -> Row:
    return {**rows[0], "transaction_id": "STRAY", "reference": "", **values}


def stray(*kinds: str, **values: Any) -> Callable[[list[Row]], list[Row]]:
    """Rows of one unknown transaction, a second apart in the order given."""

    def change(rows: list[Row]) -> list[Row]:
        made = []
        for place, said in enumerate(kinds):
            kind, _, status = said.partition(":")
            time = f"2026-11-18T11:07:{place:02d}.000Z"
            made.append(wallet_row(rows, kind=kind, status=status or "accepted", time=time, **values))
        return [*rows, *made]

    return change


def ticket(transaction_id: str = "STRAY") -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        known = first(rows, "purchase")
        return [*rows, {**known, "purchase_no": "9", "transaction_id": transaction_id}]

    return change


def hashed(field: str) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        first(rows, "stage")[field] = "ab" * 32

    return change


def receipt(**values: Any) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        rows[0].update(values)

    return change


WALLET: list[tuple[str, Callable[..., Any], str]] = [
    ("credit gone", without("credit"), BreakClass.MISSING_CREDIT),
    ("credit refused", change_to("credit", status="refused"), BreakClass.MISSING_CREDIT),
    ("debit gone", without("debit"), BreakClass.MISSING_DEBIT),
    ("debit pending", change_to("debit", status="pending"), BreakClass.STATE_DIFFERS),
    ("debit twice", twice("debit"), BreakClass.DUPLICATE),
    ("credit twice", twice("credit"), BreakClass.DUPLICATE),
    ("amount", change_to("debit", amount_minor="10001"), BreakClass.AMOUNT_DIFFERS),
    ("currency", change_to("credit", currency="USD"), BreakClass.CURRENCY_DIFFERS),
    ("player", change_to("credit", player="mallory"), BreakClass.CONTENT_DIFFERS),
    ("other way", change_to("debit", kind="credit"), BreakClass.DIRECTION_DIFFERS),
    ("operator", change_to("credit", operator="op-2"), BreakClass.OPERATOR_DIFFERS),
    ("reference", change_to("credit", reference="X"), BreakClass.CONTENT_DIFFERS),
    ("an hour late", change_to("debit", time="2026-11-18T12:06:40.000Z"), BreakClass.TIME_DIFFERS),
    ("an hour early", change_to("credit", time="2026-11-18T10:07:43.000Z"), BreakClass.TIME_DIFFERS),
    ("a day late", change_to("debit", time="2026-11-19T11:06:40.000Z"), BreakClass.TIME_DIFFERS),
    ("balance", change_to("credit", balance_after_minor="999401"), BreakClass.BALANCE_DIFFERS),
    ("balance in between", change_to("debit", 2, balance_after_minor="1"), BreakClass.BALANCE_DIFFERS),
    ("stray debit", stray("debit"), BreakClass.MISSING_IN_RGS),
    ("stray credit", stray("credit"), BreakClass.MISSING_IN_RGS),
    ("stray pending", stray("debit:pending"), BreakClass.STATE_DIFFERS),
    ("late debit", stray("rollback:tombstone", "debit"), BreakClass.LATE_AFTER_ROLLBACK),
    ("stray debit twice, once back", stray("debit", "debit", "rollback"), BreakClass.DUPLICATE),
]


@pytest.mark.parametrize(("change", "expected"), [row[1:] for row in WALLET], ids=[row[0] for row in WALLET])
def test_fault_in_the_wallet(day: Day, tmp_path: Path, change: Callable[..., Any], expected: str) -> None:
    day.change_wallet(change)
    assert day.breaks(tmp_path / "out") == [expected]


@pytest.mark.parametrize(
    "change",
    [
        stray("debit", "rollback"),
        stray("debit:refused"),
        stray("rollback:tombstone"),
        stray("debit:refused", "rollback:tombstone"),
    ],
    ids=["taken and given back", "refused", "tombstone", "refused and tombstone"],
)
def test_what_moved_nothing_is_no_break(day: Day, tmp_path: Path, change: Callable[..., Any]) -> None:
    day.change_wallet(change)
    assert day.breaks(tmp_path / "out") == []


def test_a_purchase_that_the_wallet_took_back(day: Day, tmp_path: Path) -> None:
    def back(rows: list[Row]) -> list[Row]:
        taken = first(rows, "debit")
        return [*rows, {**taken, "kind": "rollback", "time": "2026-11-18T23:00:00.000Z"}]

    day.change_wallet(back)
    assert day.breaks(tmp_path / "out") == [BreakClass.STATE_DIFFERS]


def test_a_credit_that_the_wallet_took_back_is_owed(day: Day, tmp_path: Path) -> None:
    def back(rows: list[Row]) -> list[Row]:
        given = first(rows, "credit")
        return [*rows, {**given, "kind": "rollback", "time": "2026-11-18T23:00:00.000Z"}]

    day.change_wallet(back)
    done = day.run(tmp_path / "out")
    assert [result["class"] for result in done.document["breaks"]] == [BreakClass.MISSING_CREDIT]
    credit = next(transfer for transfer in day.bodies() if transfer["kind"] == "participation_end")
    assert done.document["owed"] == {"EUR": int(credit["paid_out_minor"])}


REGULATOR: list[tuple[str, Callable[..., Any], str]] = [
    ("purchase gone", without("purchase"), BreakClass.MISSING_AT_REGULATOR),
    ("stage gone", without("stage", 3), BreakClass.MISSING_AT_REGULATOR),
    ("session gone", without("session"), BreakClass.LINK_MISSING),
    ("end gone", without("end"), BreakClass.STATE_DIFFERS),
    ("close gone", without("close"), BreakClass.STATE_DIFFERS),
    ("purchase twice", twice("purchase"), BreakClass.DUPLICATE),
    ("stage twice", twice("stage"), BreakClass.DUPLICATE),
    ("session twice", twice("session"), BreakClass.DUPLICATE),
    ("end twice", twice("end"), BreakClass.DUPLICATE),
    ("opening hash", hashed("opening_hash"), BreakClass.CONTENT_DIFFERS),
    ("final hash", hashed("final_hash"), BreakClass.CONTENT_DIFFERS),
    ("staked", change_to("stage", staked_minor="1"), BreakClass.AMOUNT_DIFFERS),
    ("purchase amount", change_to("purchase", amount_minor="9999"), BreakClass.AMOUNT_DIFFERS),
    ("purchase player", change_to("purchase", player="mallory"), BreakClass.CONTENT_DIFFERS),
    ("final balance", change_to("end", final_balance_minor="3"), BreakClass.AMOUNT_DIFFERS),
    ("rounds", change_to("end", rounds="77"), BreakClass.STATE_DIFFERS),
    ("session currency", change_to("session", currency="USD"), BreakClass.CURRENCY_DIFFERS),
    ("session operator", change_to("session", operator="op-2"), BreakClass.OPERATOR_DIFFERS),
    ("session ruleset", change_to("session", ruleset="casino-holdem"), BreakClass.CONTENT_DIFFERS),
    ("session time", change_to("session", time="2026-11-18T10:06:40.000Z"), BreakClass.TIME_DIFFERS),
    ("purchase time", change_to("purchase", time="2026-11-18T12:06:40.000Z"), BreakClass.TIME_DIFFERS),
    ("purchase session", change_to("purchase", regulator_session_id="X" * 16), BreakClass.CONTENT_DIFFERS),
    ("purchase of another", change_to("purchase", regulator_participation_id="X" * 16), BreakClass.CONTENT_DIFFERS),
    ("purchase transaction", change_to("purchase", transaction_id="X"), BreakClass.CONTENT_DIFFERS),
    ("stage session", change_to("stage", regulator_session_id="X" * 16), BreakClass.CONTENT_DIFFERS),
    ("stage time", change_to("stage", time="2026-11-18T10:07:41.500Z"), BreakClass.TIME_DIFFERS),
    ("end of another", change_to("end", regulator_participation_id="X" * 16), BreakClass.CONTENT_DIFFERS),
    ("end time", change_to("end", time="2026-11-18T12:07:43.000Z"), BreakClass.TIME_DIFFERS),
    ("close time", change_to("close", time="2026-11-18T12:07:43.000Z"), BreakClass.TIME_DIFFERS),
    ("session reference", change_to("session", reference="X"), BreakClass.CONTENT_DIFFERS),
    ("total", change_to("total", bought_minor="1"), BreakClass.AMOUNT_DIFFERS),
    ("ticket", ticket(), BreakClass.ORPHAN_TICKET),
]


@pytest.mark.parametrize(("change", "expected"), [row[1:] for row in REGULATOR], ids=[row[0] for row in REGULATOR])
def test_fault_at_the_regulator(day: Day, tmp_path: Path, change: Callable[..., Any], expected: str) -> None:
    day.change_regulator(change)
    if change.__qualname__.startswith("change_to") and expected == BreakClass.CURRENCY_DIFFERS:
        # the day's total of the other currency would be a second thing that is wrong
        day.change_regulator(lambda rows: [row for row in rows if row["kind"] != "total"])
    assert day.breaks(tmp_path / "out") == [expected]


def test_a_session_of_the_regulator_without_its_link(day: Day, tmp_path: Path) -> None:
    def add(rows: list[Row]) -> list[Row]:
        session, stage, end = first(rows, "session"), first(rows, "stage"), first(rows, "end")
        ids = {"regulator_session_id": "M" + "9" * 15, "regulator_participation_id": "N" + "9" * 15}
        purchase = {**first(rows, "purchase"), **ids, "transaction_id": "UNHEARD"}
        session = {**session, "regulator_session_id": ids["regulator_session_id"], "reference": "UNHEARD"}
        return [*rows, session, purchase, {**stage, **ids}, {**end, **ids}]

    day.change_regulator(add)
    assert day.breaks(tmp_path / "out") == [BreakClass.LINK_MISSING]


def test_a_purchase_with_money_and_ticket_but_no_link(day: Day, tmp_path: Path) -> None:
    day.change_wallet(stray("debit"))
    day.change_regulator(ticket())
    assert day.breaks(tmp_path / "out") == [BreakClass.LINK_MISSING]


def test_a_ticket_whose_money_was_given_back(day: Day, tmp_path: Path) -> None:
    day.change_wallet(stray("debit", "rollback"))
    day.change_regulator(ticket())
    assert day.breaks(tmp_path / "out") == [BreakClass.ORPHAN_TICKET]


def test_a_stage_that_nobody_signed(day: Day, tmp_path: Path) -> None:
    day.change_regulator(lambda rows: [*rows, {**first(rows, "stage"), "stage_no": "99"}])
    assert day.breaks(tmp_path / "out") == [BreakClass.MISSING_IN_RGS]


def test_a_receipt_of_another_opening(day: Day, tmp_path: Path) -> None:
    day.change_receipts(receipt(opening_hash="cd" * 32))
    assert day.breaks(tmp_path / "out") == [BreakClass.CONTENT_DIFFERS]


def test_a_receipt_of_a_round_that_the_record_does_not_show(day: Day, tmp_path: Path) -> None:
    day.change_receipts(lambda rows: [*rows, {**rows[0], "round_no": "99"}])
    assert day.breaks(tmp_path / "out") == [BreakClass.SEAT_MISSING]


def test_a_round_without_receipt(day: Day, tmp_path: Path) -> None:
    day.change_receipts(lambda rows: rows[1:])
    assert day.breaks(tmp_path / "out") == [BreakClass.SEAT_MISSING]


def test_a_receipt_kept_twice_is_no_break(day: Day, tmp_path: Path) -> None:
    day.change_receipts(lambda rows: [*rows, rows[0]])
    assert day.breaks(tmp_path / "out") == []


def test_what_falls_behind_the_cut_off_is_timing(day: Day, tmp_path: Path) -> None:
    day.change_wallet(without("credit", 2))
    assert day.breaks(tmp_path / "out", cut_off_s=600) == [BreakClass.TIMING]
    assert day.breaks(tmp_path / "again", cut_off_s=0) == [BreakClass.MISSING_CREDIT]


def test_what_was_posted_in_another_period_is_timing(day: Day, tmp_path: Path) -> None:
    """As far as clocks may differ; a row that is a day late is no matter of a period."""
    day.change_wallet(change_to("debit", time="2026-11-18T11:06:39.000Z"))
    period = (parse_time("2026-11-18T11:06:39.500Z"), parse_time("2026-11-19T00:00:00.000Z"))
    assert day.breaks(tmp_path / "out", period=period) == [BreakClass.TIMING]
    assert day.breaks(tmp_path / "all") == []
    day.change_wallet(change_to("debit", time="2026-11-19T11:06:40.000Z"))
    assert day.breaks(tmp_path / "late", period=period) == [BreakClass.TIME_DIFFERS]
    assert day.breaks(tmp_path / "next", period=(period[1], period[1] + 86_400_000)) == [BreakClass.TIME_DIFFERS]


def test_references_of_two_rows_that_are_swapped(day: Day, tmp_path: Path) -> None:
    def swap(rows: list[Row]) -> None:
        rows[0]["reference"], rows[2]["reference"] = rows[2]["reference"], rows[0]["reference"]

    day.change_wallet(swap)
    assert day.breaks(tmp_path / "out") == [BreakClass.CONTENT_DIFFERS] * 2


def test_all_times_of_the_wallet_an_hour_off(day: Day, tmp_path: Path) -> None:
    day.change_wallet(lambda rows: [{**row, "time": row["time"].replace("T11:", "T12:")} for row in rows])
    assert day.breaks(tmp_path / "out") == [BreakClass.TIME_DIFFERS] * 7
    assert day.breaks(tmp_path / "within", clock_limit_s=3600) == []
    assert day.breaks(tmp_path / "beyond", clock_limit_s=3599) == [BreakClass.TIME_DIFFERS] * 7


def test_a_book_that_is_anothers(day: Day, tmp_path: Path) -> None:
    """By its own word, with the operator named and without; its other rows are another's indeed."""
    day.change_wallet(lambda rows: [{**row, "operator": "op-2"} for row in rows])
    assert day.breaks(tmp_path / "out") == [BreakClass.OPERATOR_DIFFERS] * 7
    assert day.breaks(tmp_path / "named", operator="op-1") == [BreakClass.OPERATOR_DIFFERS] * 7
    day.change_wallet(lambda rows: [*rows, {**rows[0], "transaction_id": "THEIRS", "player": "zoe"}])
    assert day.breaks(tmp_path / "theirs", operator="op-1") == [BreakClass.OPERATOR_DIFFERS] * 7


def test_a_session_of_the_regulator_that_is_anothers_by_its_own_word(day: Day, tmp_path: Path) -> None:
    day.change_regulator(change_to("session", operator="op-2"))
    assert day.breaks(tmp_path / "named", operator="op-1") == [BreakClass.OPERATOR_DIFFERS]


def test_rows_of_one_moment_are_taken_in_the_order_that_fits(day: Day, tmp_path: Path) -> None:
    """Bert's second debit and his credit bear one time; a file has no order."""
    day.change_wallet(lambda rows: list(reversed(rows)))
    assert day.breaks(tmp_path / "out") == []


def test_balances_that_are_not_told_are_not_compared(day: Day, tmp_path: Path) -> None:
    def forget(rows: list[Row]) -> None:
        rows[1]["balance_after_minor"], rows[3]["balance_after_minor"] = "", ""

    day.change_wallet(forget)
    assert day.breaks(tmp_path / "out") == []


def test_a_day_that_the_period_covers_in_part_has_no_total(day: Day, tmp_path: Path) -> None:
    """What the regulator says of a whole day is compared with whole days only, and that is said."""
    at = parse_time("2026-11-18T11:09:00.000Z")
    for number, period in enumerate(((at, at + 86_400_000), (at - 86_400_000, at))):
        done = day.run(tmp_path / f"part-{number}", period=period)
        assert (done.verdict, done.document["days_in_part"]) == ("clean", ["2026-11-18"])
        assert "2026-11-18" in (tmp_path / f"part-{number}" / "report.html").read_text()
    midnight = parse_time("2026-11-18T00:00:00.000Z")
    done = day.run(tmp_path / "whole", period=(midnight, midnight + 86_400_000))
    assert (done.verdict, done.document["days_in_part"]) == ("clean", [])
    done = day.run(tmp_path / "other", period=(midnight + 86_400_000, midnight + 2 * 86_400_000))
    assert (done.verdict, done.document["days_in_part"]) == ("clean", [])
    day.change_regulator(change_to("total", bought_minor="1"))
    assert day.breaks(tmp_path / "wrong", period=(midnight, midnight + 86_400_000)) == [BreakClass.AMOUNT_DIFFERS]


def test_an_open_round_is_overdue_after_the_time_of_its_jurisdiction(unfinished: Day, tmp_path: Path) -> None:
    scoped = unfinished.copy(tmp_path / "day")
    done = scoped.run(tmp_path / "out")
    classes = [result["class"] for result in done.document["breaks"]]
    # A whole export that stops in a session is not whole: the replay says so, and the round is overdue besides.
    assert BreakClass.OVERDUE_OPENING in classes
    assert set(classes) == {BreakClass.OVERDUE_OPENING, BreakClass.CONTENT_DIFFERS}
    later = scoped.run(tmp_path / "later", overdue_s=10_000_000)
    assert BreakClass.OVERDUE_OPENING not in [result["class"] for result in later.document["breaks"]]


# --- statements that do not verify ----------------------------------------------------------------------------------


def paper(tmp_path: Path, factory: RecordFactory) -> Day:
    day = Day(tmp_path / "paper")
    day.folder.mkdir()
    day.statements.write_bytes(factory.export())
    day.keys.write_bytes(factory.keys())
    day.receipts.write_bytes(b"")
    return day


def test_a_lie_in_a_final_is_one_break(tmp_path: Path) -> None:
    def lie(kind: str, count: int, body: dict[str, Any]) -> None:
        if kind == "round_final" and count == 2:
            body["settlement"][0]["result"] = "push"

    factory = RecordFactory(lie=lie)
    one = factory.start("node-1-b1-w0")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    for _ in range(3):
        factory.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    day = paper(tmp_path, factory)
    receipts = [
        {"session_id": player.session_id, "round_no": str(place), "opening_hash": opening}
        for place, opening in enumerate(openings(factory), 1)
    ]
    day.receipts.write_text("")
    day.change_receipts(lambda _: receipts)
    done = day.run(tmp_path / "out", wallet=None, regulator=None, root=None, allow_rejects=True)
    assert [result["class"] for result in done.document["breaks"]] == [BreakClass.CONTENT_DIFFERS]
    assert done.document["verification"]["rounds_failed"] == 1
    assert not done.document["key_path"]["anchored"]


def openings(factory: RecordFactory) -> list[str]:
    return [hash_ for line, hash_ in zip(factory.lines, factory.hashes, strict=True) if b"round-opening" in line]


def test_a_seat_that_was_dealt_and_not_opened(tmp_path: Path) -> None:
    factory = RecordFactory()
    one = factory.start("node-1-b1-w0")
    opened = factory.open(one, "uth-lugano", table="t-1")
    factory.buy(one, opened, 50_000)
    unseen = SessionRecord(factory.ulid(), opened.ruleset, opened.table, factory.ulid(), bought=50_000)
    players = [opened, unseen]
    factory.deal(one, players, {"ante": 500}, opened=1)
    factory.act(players[0], ["check", "check", "fold"])
    factory.settle(one, players[0])
    factory.end_participation(one, opened)
    factory.close(one, opened)
    factory.end(one)
    day = paper(tmp_path, factory)
    (opening,) = openings(factory)
    receipt_ = {"session_id": players[0].session_id, "round_no": "1", "opening_hash": opening}
    day.receipts.write_text("")
    day.change_receipts(lambda _: [receipt_])
    done = day.run(tmp_path / "out", wallet=None, regulator=None, root=None, allow_rejects=True)
    assert [result["class"] for result in done.document["breaks"]] == [BreakClass.SEAT_MISSING]


def test_every_class_is_planted_here() -> None:
    planted = {expected for _, _, expected in (*WALLET, *REGULATOR)}
    kept_apart = {BreakClass.TIMING, BreakClass.SEAT_MISSING, BreakClass.OVERDUE_OPENING}
    assert planted | kept_apart == set(BreakClass)


def test_the_page_names_for_every_class_a_test_that_is_there_and_names_it() -> None:
    """docs/reconciliation.md, both tables."""
    text = (ROOT / "docs/reconciliation.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| `(test_\w+\.py::test_\w+)` \|$", text, re.MULTILINE))
    assert set(table) == {kind.value for kind in BreakClass}
    for kind, place in table.items():
        assert text.count(f"\n| `{kind}` |") == 2, kind
        file, name = place.split("::")
        source = (ROOT / "tests/integration" / file).read_text()
        assert f"def {name}(" in source, place
        assert f"BreakClass.{BreakClass(kind).name}" in source, place


def test_people_read_major_units_and_machines_minor_ones(day: Day, tmp_path: Path) -> None:
    """Planted: 250.00 EUR that the wallet took of nobody's round; once told as 25,000 EUR."""
    day.change_wallet(stray("debit", amount_minor="25000", balance_after_minor="", player="eve"))
    done = day.run(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text().replace("\u00a0", " ")
    assert "250.00 EUR" in page
    assert "25,000" not in page
    assert "25000" not in page
    assert done.document["owed"] == {"EUR": 25000}
    (result,) = done.document["breaks"]
    assert (result["amount_minor"], result["found"][1][1].split(" accepted")[0]) == (25000, "debit 250.00 EUR")
