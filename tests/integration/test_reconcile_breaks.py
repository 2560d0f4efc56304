"""One fault planted in a clean day, one break named: exactly that one and no other, for every class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.core.reconcile.classes import BreakClass
from tests.factory import House as PaperHouse
from tests.factory import Player as PaperPlayer
from tests.reconciling import Day, Row, play_day

T0 = "2026-11-18T11:06:40.000Z"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return play_day(tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return play_day(tmp_path_factory.mktemp("unfinished"), is_open=True)


@pytest.fixture
def day(clean: Day, tmp_path: Path) -> Day:
    return clean.copy(tmp_path / "day")


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


def change_to(kind: str, /, **values: Any) -> Callable[[list[Row]], None]:
    def change(rows: list[Row]) -> None:
        first(rows, kind).update(values)

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
    ("other way", change_to("debit", kind="credit"), BreakClass.AMOUNT_DIFFERS),
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
    assert [told["class"] for told in done.document["breaks"]] == [BreakClass.MISSING_CREDIT]
    credit = next(leg for leg in day.bodies() if leg["kind"] == "participation_end")
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
    day.change_receipts(lambda rows: [*rows, {**rows[0], "stage_no": "99"}])
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
    day.change_wallet(change_to("debit", time="2026-11-20T00:00:00.000Z"))
    midnight = 1_795_046_400_000
    assert day.breaks(tmp_path / "out", period=(midnight - 86_400_000 * 3, midnight)) == [BreakClass.TIMING]
    assert day.breaks(tmp_path / "all") == []


def test_an_open_round_is_overdue_after_the_time_of_its_jurisdiction(unfinished: Day, tmp_path: Path) -> None:
    scoped = unfinished.copy(tmp_path / "day")
    done = scoped.run(tmp_path / "out")
    classes = [told["class"] for told in done.document["breaks"]]
    # A whole export that stops in a session is not whole: the replay says so, and the round is overdue besides.
    assert BreakClass.OVERDUE_OPENING in classes
    assert set(classes) == {BreakClass.OVERDUE_OPENING, BreakClass.CONTENT_DIFFERS}
    later = scoped.run(tmp_path / "later", overdue_s=10_000_000)
    assert BreakClass.OVERDUE_OPENING not in [told["class"] for told in later.document["breaks"]]


# --- statements that do not verify ----------------------------------------------------------------------------------


def paper(tmp_path: Path, house: PaperHouse) -> Day:
    day = Day(tmp_path / "paper")
    day.folder.mkdir()
    day.statements.write_bytes(house.export())
    day.keys.write_bytes(house.keys())
    day.receipts.write_bytes(b"")
    return day


def test_a_lie_in_a_final_is_one_break(tmp_path: Path) -> None:
    def lie(kind: str, count: int, body: dict[str, Any]) -> None:
        if kind == "round_final" and count == 2:
            body["settlement"][0]["result"] = "push"

    house = PaperHouse(lie=lie)
    one = house.start("node-1-b1-w0")
    player = house.open(one)
    house.buy(one, player, 10_000)
    for _ in range(3):
        house.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    house.end_participation(one, player)
    house.close(one, player)
    house.end(one)
    day = paper(tmp_path, house)
    receipts = [
        {"session_id": player.session_id, "stage_no": str(place), "opening_hash": opening}
        for place, opening in enumerate(openings(house), 1)
    ]
    day.receipts.write_text("")
    day.change_receipts(lambda _: receipts)
    done = day.run(tmp_path / "out", wallet=None, regulator=None, root=None, allow_rejects=True)
    assert [told["class"] for told in done.document["breaks"]] == [BreakClass.CONTENT_DIFFERS]
    assert done.document["verification"]["rounds_failed"] == 1
    assert not done.document["key_path"]["anchored"]


def openings(house: PaperHouse) -> list[str]:
    return [hash_ for line, hash_ in zip(house.lines, house.hashes, strict=True) if b"round-opening" in line]


def test_a_seat_that_was_dealt_and_not_opened(tmp_path: Path) -> None:
    house = PaperHouse()
    one = house.start("node-1-b1-w0")
    opened = house.open(one, "uth-lugano", table="t-1")
    house.buy(one, opened, 50_000)
    unseen = PaperPlayer(house.ulid(), opened.ruleset, opened.table, house.ulid(), bought=50_000)
    players = [opened, unseen]
    house.deal(one, players, {"ante": 500}, opened=1)
    house.act(players[0], ["check", "check", "fold"])
    house.settle(one, players[0])
    house.end_participation(one, opened)
    house.close(one, opened)
    house.end(one)
    day = paper(tmp_path, house)
    (opening,) = openings(house)
    receipt_ = {"session_id": players[0].session_id, "stage_no": "1", "opening_hash": opening}
    day.receipts.write_text("")
    day.change_receipts(lambda _: [receipt_])
    done = day.run(tmp_path / "out", wallet=None, regulator=None, root=None, allow_rejects=True)
    assert [told["class"] for told in done.document["breaks"]] == [BreakClass.SEAT_MISSING]


def test_every_class_is_planted_here() -> None:
    planted = {expected for _, _, expected in (*WALLET, *REGULATOR)}
    told_apart = {BreakClass.TIMING, BreakClass.SEAT_MISSING, BreakClass.OVERDUE_OPENING}
    assert planted | told_apart == set(BreakClass)
