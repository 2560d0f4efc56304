"""The SQL of reconciliation at its limits: one table, one row too many or too few, one value to either side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rgs.core.reconcile.facts import (
    ReceiptRow,
    RegulatorEnd,
    RegulatorSessionRow,
    SeatFact,
    SessionFact,
    SignedTransfer,
    Stage,
    Ticket,
    WalletRow,
)
from rgs.core.reconcile.matching import Terms
from rgs.core.reconcile.rows import NULL
from rgs.store import reconciliation
from rgs.store.reconciliation import ROWS_OF_ONE_KEY, BookComparison

DAY_MS = 86_400_000
FROM_MS, TO_MS = 20_000 * DAY_MS, 20_001 * DAY_MS
NOON_MS = FROM_MS + DAY_MS // 2
TERMS = Terms(
    as_of_ms=TO_MS, from_ms=FROM_MS, to_ms=TO_MS, wallet=True, regulator=True, receipts=True, wallet_until_ms=TO_MS,
    regulator_until_ms=TO_MS, receipts_until_ms=TO_MS,
)  # fmt: skip
TRANSFER = SignedTransfer(
    "T1", "debit", 500, "EUR", "op", "anna", "uth", "S", "P", "P", 1, "M", "A", "purchase", NOON_MS, NOON_MS, "h1", True
)
WALLET = WalletRow("T1", "debit", "anna", "EUR", 500, NOON_MS, "P", "accepted", -1, "op", "book")
SEAT = SeatFact(
    "S", 1, "R1", "o1", "f1", 500, 200, 300, NOON_MS, NOON_MS, NOON_MS, "settled", "EUR", "op", "uth", "anna", "M", "A",
    True,
)  # fmt: skip
STAGE = Stage("M", "A", 1, 500, 200, 300, "o1", "f1", NOON_MS)
SESSION = SessionFact(
    "S", "op", "EUR", "uth", "anna", "M", False, NOON_MS, NOON_MS, NOON_MS, NOON_MS, "P", "A", 500, 200, 300, 600, 1,
    True, True,
)  # fmt: skip
TICKET = Ticket("M", "A", 1, "anna", 500, "T1", NOON_MS)
END = RegulatorEnd("M", "A", 1, 600, NOON_MS)
REGULATOR_SESSION = ("M", "S", "op", "EUR", NOON_MS, "uth", False)
Fact = SignedTransfer | WalletRow | SeatFact | Stage | SessionFact | Ticket | RegulatorEnd | ReceiptRow
TABLE_OF: dict[type, tuple[str, int]] = {
    SignedTransfer: ("transfers", 18), WalletRow: ("wallet", 11), SeatFact: ("seats", 19), Stage: ("r_stages", 9),
    SessionFact: ("sessions", 20), Ticket: ("r_purchases", 7), RegulatorEnd: ("r_ends", 5), ReceiptRow: ("receipts", 4),
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BookComparison]:
    (tmp_path / "work").mkdir()
    files = [tmp_path / name for name in ("w.csv", "w.parquet")]
    opened = BookComparison(tmp_path / "work", memory_mb=256, files=files)
    yield opened
    opened.close()


def put(store: BookComparison, path: Path, table: str, *rows: tuple[Any, ...]) -> None:
    file = path / "work" / f"{table}.tsv"
    texts = [[str(value).lower() if isinstance(value, bool) else str(value) for value in row] for row in rows]
    file.write_text("".join("\t".join(row) + "\n" for row in texts))
    store.load(table, file)


def take(store: BookComparison, path: Path, *facts: Fact) -> None:
    for fact in facts:
        table, columns = TABLE_OF[type(fact)]
        put(store, path, table, astuple(fact)[:columns])


# --- the plain wallet statement ---------------------------------------------------------------------------------------

COLUMNS = "transaction_id,kind,player,currency,amount_minor,time,reference,status,balance_after_minor,operator,book"
PLAIN = {
    "transaction_id": "T1", "kind": "debit", "player": "anna", "currency": "EUR", "amount_minor": "500",
    "time": "2026-11-18T11:06:40.000Z", "reference": "P", "status": "accepted", "balance_after_minor": "7",
    "operator": "op", "book": "main",
}  # fmt: skip
TEXTS = ("transaction_id", "player", "reference", "operator", "book")


def plain_csv(store: BookComparison, path: Path, **changes: str) -> int | None:
    (path / "w.csv").write_text(COLUMNS + "\n" + ",".join((PLAIN | changes).values()) + "\n")
    return store.load_plain_wallet(path / "w.csv", is_parquet=False)


def plain_parquet(store: BookComparison, path: Path, **changes: Any) -> int | None:
    row = PLAIN | {"amount_minor": 500, "balance_after_minor": 7} | changes
    types = {"amount_minor": "BIGINT", "balance_after_minor": "BIGINT"}
    columns = ", ".join(f"${name}::{types.get(name, 'VARCHAR')} AS {name}" for name in row)
    duckdb.execute(f"COPY (SELECT {columns}) TO '{path / 'w.parquet'}' (FORMAT parquet)", row)
    return store.load_plain_wallet(path / "w.parquet", is_parquet=True)


@pytest.mark.parametrize(("name", "length"), list(product(TEXTS, (1, 255, 256, 257))))
def test_the_plain_reader_takes_texts_of_256_characters(
    store: BookComparison, tmp_path: Path, name: str, length: int
) -> None:
    assert plain_csv(store, tmp_path, **{name: "x" * length}) == (1 if length <= 256 else None)
    assert store.counts().wallet == (1 if length <= 256 else 0)


@pytest.mark.parametrize("name", TEXTS)
def test_only_the_id_must_stand_in_a_plain_row(store: BookComparison, tmp_path: Path, name: str) -> None:
    assert plain_csv(store, tmp_path, **{name: ""}) == (None if name == "transaction_id" else 1)


@pytest.mark.parametrize("form", [plain_csv, plain_parquet])
@pytest.mark.parametrize("name", [name for name in PLAIN if name != "balance_after_minor"])
def test_a_plain_row_without_a_value_is_doubtful(store: BookComparison, tmp_path: Path, name: str, form: Any) -> None:
    assert form(store, tmp_path, **{name: NULL if form is plain_csv else None}) is None
    assert store.counts().wallet == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, odd) for name, odd in product(TEXTS, ("a b", "a\x7f"))),
        ("kind", "debits"), ("status", "open"), ("currency", "EURO"), ("currency", "eur"), ("amount_minor", "-1"),
        ("amount_minor", "1" + "0" * 18), ("balance_after_minor", "-1"), ("balance_after_minor", "1" + "0" * 18),
        ("time", "1969-12-31T23:59:59.999Z"), ("time", "2026-11-18 11:06:40.000Z"),
    ],
)  # fmt: skip
def test_one_odd_value_makes_a_plain_row_doubtful(store: BookComparison, tmp_path: Path, name: str, value: str) -> None:
    assert plain_csv(store, tmp_path, **{name: value}) is None


@pytest.mark.parametrize("name", ["amount_minor", "balance_after_minor"])
@pytest.mark.parametrize(("value", "taken"), [(-1, None), (0, 1), (10**18 - 1, 1), (10**18, None)])
def test_a_number_of_a_parquet_file_has_its_limits(
    store: BookComparison, tmp_path: Path, name: str, value: int, taken: int | None
) -> None:
    assert plain_parquet(store, tmp_path, **{name: value}) == taken
    assert store.counts().wallet == (taken or 0)


def test_a_parquet_file_need_not_tell_balances(store: BookComparison, tmp_path: Path) -> None:
    assert plain_parquet(store, tmp_path, balance_after_minor=None) == 1
    assert list(store.accounts()) == []


def test_a_row_of_too_many_fields_is_left_to_the_strict_reader(store: BookComparison, tmp_path: Path) -> None:
    assert plain_csv(store, tmp_path, book="main,more") is None
    assert plain_csv(store, tmp_path) == 1, "nothing of it is left in the way of another"


def test_the_first_moment_is_a_time(store: BookComparison, tmp_path: Path) -> None:
    assert plain_csv(store, tmp_path, time="1970-01-01T00:00:00.000Z") == 1


def test_rows_of_a_parquet_file_by_number_and_column(store: BookComparison, tmp_path: Path) -> None:
    plain_parquet(store, tmp_path)
    ((number, row),) = store.parquet_rows(tmp_path / "w.parquet")
    assert (number, list(row), row["player"], row["amount_minor"]) == (1, COLUMNS.split(","), "anna", 500)


def test_an_extract_of_transfers_takes_the_place_of_the_table(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, TRANSFER, replace(TRANSFER, transaction_id="T2"))
    kept = tmp_path / "work" / "transfers.parquet"
    store.write_transfers(kept)
    take(store, tmp_path, replace(TRANSFER, transaction_id="T3"))
    store.load_transfers(kept)
    assert store.counts().transfers == 2


# --- rounds -----------------------------------------------------------------------------------------------------------


def rounds(store: BookComparison) -> list[tuple[list[SeatFact], list[Stage]]]:
    store.join(TERMS)
    return list(store.rounds())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("available_minor", 501), ("staked_minor", 201), ("returned_minor", 299), ("opening", "o2"), ("final", "f2"),
        ("stage_no", 2), ("regulator_participation_id", "B"), ("regulator_session_id", "N"),
    ],
)  # fmt: skip
def test_one_value_of_a_stage_that_differs_is_looked_at(
    store: BookComparison, tmp_path: Path, name: str, value: Any
) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, SESSION, SEAT, replace(STAGE, **{name: value}))
    found = rounds(store)
    assert [len(seats) + len(stages) for seats, stages in found] in ([2], [1, 1])


@pytest.mark.parametrize("late_ms", [-1, 0, 1])
def test_a_stage_is_reported_before_its_end_by_the_clock_limit_at_most(
    store: BookComparison, tmp_path: Path, late_ms: int
) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, SESSION, SEAT, replace(STAGE, time_ms=NOON_MS - TERMS.clock_limit_ms + late_ms))
    assert len(rounds(store)) == (1 if late_ms < 0 else 0)


def test_an_open_seat_has_no_stage_yet(store: BookComparison, tmp_path: Path) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, SESSION, replace(SEAT, status="open"), replace(SEAT, stage_no=2))
    assert [(seats[0].stage_no, stages) for seats, stages in rounds(store)] == [(2, [])]


def test_a_stage_that_stands_twice_is_looked_at(store: BookComparison, tmp_path: Path) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, SESSION, SEAT, STAGE, STAGE)
    assert [(len(seats), len(stages)) for seats, stages in rounds(store)] == [(1, 2)]


# --- rows of one id, and the order of those that are doubtful ---------------------------------------------------------


def test_one_id_gives_a_thousand_rows_at_most(
    store: BookComparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ROWS_OF_ONE_KEY == 1000
    monkeypatch.setattr(reconciliation, "ROWS_OF_ONE_KEY", 3)
    put(store, tmp_path, "wallet", *[astuple(WALLET)] * 4)
    take(store, tmp_path, TRANSFER)
    store.join(TERMS)
    ((key, transfers, rows, tickets),) = store.money()
    assert (key, transfers, len(rows), tickets) == ("T1", [TRANSFER], 3, [])


def test_a_doubtful_row_stands_where_the_record_first_has_it(store: BookComparison, tmp_path: Path) -> None:
    reported = replace(WALLET, balance_after_minor=1000)
    take(
        store, tmp_path, TRANSFER, replace(TRANSFER, statement="h2", begun_ms=NOON_MS + 90, time_ms=NOON_MS + 90),
        replace(reported, time_ms=NOON_MS + 100), replace(reported, transaction_id="T2", time_ms=NOON_MS + 50),
    )  # fmt: skip
    store.join(TERMS)
    ((*rows,),) = (list(account) for account in store.accounts())
    assert [(row.transaction_id, doubtful) for row, doubtful in rows] == [("T1", True), ("T2", True)]


# --- totals -----------------------------------------------------------------------------------------------------------


def sums(store: BookComparison) -> list[tuple[Any, ...]]:
    return [(row[0] - 20_000, *row[4:]) for row in store.totals(TERMS)]


@pytest.mark.parametrize(
    ("time_ms", "count"), [(FROM_MS - 1, 0), (FROM_MS, 1), (NOON_MS, 1), (TO_MS - 1, 1), (TO_MS, 0), (TO_MS + 1, 0)]
)
def test_totals_are_of_the_period_without_its_end(
    store: BookComparison, tmp_path: Path, time_ms: int, count: int
) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(
        store, tmp_path, replace(TRANSFER, time_ms=time_ms), replace(SEAT, ended_ms=time_ms),
        replace(WALLET, time_ms=time_ms), replace(TICKET, time_ms=time_ms),
        replace(STAGE, time_ms=time_ms), replace(END, time_ms=time_ms),
    )  # fmt: skip
    assert sums(store) == [
        (0, "wallet", 0, 500, 0, 0, 0), (0, "regulator", 1, 500, 600, 200, 300),
        (0, "statements", 1, 500, 0, 200, 300),
    ] * count  # fmt: skip


def test_totals_leave_out_what_is_not_sound_not_over_or_not_accepted(store: BookComparison, tmp_path: Path) -> None:
    take(
        store, tmp_path, replace(TRANSFER, is_sound=False), replace(SEAT, is_sound=False), replace(SEAT, status="open"),
        *(replace(WALLET, status=status) for status in ("refused", "pending", "tombstone")),
    )  # fmt: skip
    assert sums(store) == []


def test_a_rollback_takes_from_what_was_bought(store: BookComparison, tmp_path: Path) -> None:
    for kind, amount in (("debit", 500), ("rollback", 30), ("credit", 7)):
        take(store, tmp_path, replace(TRANSFER, kind=kind, amount_minor=amount))
        take(store, tmp_path, replace(WALLET, kind=kind, amount_minor=amount))
    assert sums(store) == [(0, "wallet", 0, 470, 7, 0, 0), (0, "statements", 0, 470, 7, 0, 0)]


# --- the identity of a participation ----------------------------------------------------------------------------------

CREDIT = replace(WALLET, transaction_id="T2", kind="credit", amount_minor=600)


@pytest.mark.parametrize(
    ("facts", "holds"),
    [
        ([SESSION, WALLET, CREDIT, TICKET, STAGE, END], (1, 1, 1, 1, 1, 1)),
        ([replace(SESSION, ended_ms=0), WALLET, CREDIT, TICKET, STAGE, END], (0, 0, 0, 0, 0, 0)),
        ([replace(SESSION, paid_out_minor=601), WALLET, CREDIT, TICKET, STAGE, END], (1, 0, 1, 0, 1, 0)),
        ([SESSION, TICKET, STAGE, END], (1, 1, 0, 0, 1, 1)),
        ([SESSION, replace(WALLET, amount_minor=499), CREDIT], (1, 1, 1, 0, 0, 0)),
        ([SESSION, WALLET, replace(CREDIT, amount_minor=599)], (1, 1, 1, 0, 0, 0)),
        ([SESSION, WALLET, CREDIT, TICKET, STAGE], (1, 1, 1, 1, 0, 0)),
        ([SESSION, TICKET, STAGE, replace(END, final_balance_minor=601)], (1, 1, 0, 0, 1, 0)),
        ([SESSION, TICKET, replace(STAGE, staked_minor=201), END], (1, 1, 0, 0, 1, 0)),
        ([SESSION, TICKET, replace(STAGE, returned_minor=301), replace(END, final_balance_minor=601)],
         (1, 1, 0, 0, 1, 0)),
        ([replace(SESSION, is_whole=False)], (0, 0, 0, 0, 0, 0)),
        ([replace(SESSION, is_sound=False)], (0, 0, 0, 0, 0, 0)),
        ([replace(SESSION, opened_ms=FROM_MS)], (1, 1, 0, 0, 0, 0)),
        ([replace(SESSION, opened_ms=FROM_MS - 1)], (0, 0, 0, 0, 0, 0)),
        ([replace(SESSION, opened_ms=TO_MS)], (0, 0, 0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_the_identity_is_told_for_each_source(
    store: BookComparison, tmp_path: Path, facts: list[Fact], holds: tuple[int, ...]
) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, *facts)
    store.join(TERMS)
    assert store.identity() == holds


def test_without_a_stage_the_regulator_has_what_was_bought(store: BookComparison, tmp_path: Path) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(
        store, tmp_path, replace(SESSION, staked_minor=0, returned_minor=0, paid_out_minor=500), TICKET,
        replace(END, final_balance_minor=500),
    )  # fmt: skip
    store.join(TERMS)
    assert store.identity() == (1, 1, 0, 0, 1, 1)


def test_what_stands_in_the_regulator_comes_with_its_session(store: BookComparison, tmp_path: Path) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, SESSION, END)
    known = RegulatorSessionRow(*REGULATOR_SESSION, closes=0, closed_ms=0)
    assert list(store.sessions()) == [([SESSION], [known], [END])]


# --- what has lost its own ids ----------------------------------------------------------------------------------------

NAMELESS = replace(TRANSFER, transaction_id="", regulator_session_id="", regulator_participation_id="")
STRANGER = replace(SESSION, regulator_session_id="", regulator_participation_id="")


def reported(store: BookComparison, columns: str, table: str) -> list[tuple[Any, ...]]:
    return store._run(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall()  # noqa: S608 - our own words


def named(store: BookComparison, *, wallet: bool = True) -> set[str]:
    return store.name_nameless(replace(TERMS, wallet=wallet))


def test_where_all_have_their_ids_nothing_is_named(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, TRANSFER, SESSION, WALLET)
    assert named(store) == set()


def test_a_session_that_is_not_whole_asks_for_no_name(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, replace(STRANGER, is_whole=False))
    assert named(store) == set()


def test_a_transfer_takes_the_id_of_the_wallets_row(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, SESSION, NAMELESS, WALLET)
    assert named(store) == set()
    assert reported(store, "transaction_id, regulator_session_id, regulator_participation_id", "transfers") == [
        ("T1", "M", "A")
    ]


def test_a_session_alone_is_nameless_too(store: BookComparison, tmp_path: Path) -> None:
    put(store, tmp_path, "r_sessions", REGULATOR_SESSION)
    take(store, tmp_path, TRANSFER, STRANGER, SEAT, TICKET)
    assert named(store) == set()
    assert reported(store, "regulator_session_id, regulator_participation_id", "sessions") == [("M", "A")]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "credit"}, {"reference": "Q"}, {"reference": ""}, {"status": "refused"}, {"status": "pending"},
        {"kind": "rollback"},
    ],
)  # fmt: skip
def test_a_row_of_another_thing_lends_no_id(store: BookComparison, tmp_path: Path, changes: dict[str, Any]) -> None:
    take(store, tmp_path, SESSION, NAMELESS, replace(WALLET, **changes))
    assert named(store) == {"h1"}
    assert store.counts().transfers == 0


def test_what_names_no_participation_takes_no_id(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, SESSION, replace(NAMELESS, participation_id=""), replace(WALLET, reference=""))
    assert named(store) == {"h1"}


def test_an_id_that_another_transfer_bears_is_not_lent(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, SESSION, NAMELESS, replace(TRANSFER, statement="h2"), WALLET)
    assert named(store) == {"h1"}


def test_a_debit_that_was_rolled_back_lends_no_id(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, SESSION, NAMELESS, WALLET, replace(WALLET, kind="rollback"))
    assert named(store) == {"h1"}


def test_equal_amounts_come_first_and_the_rest_in_order_of_time(store: BookComparison, tmp_path: Path) -> None:
    for n, amount in enumerate((500, 40, 40, 3)):
        take(store, tmp_path, replace(NAMELESS, statement=f"h{n}", amount_minor=amount, time_ms=NOON_MS + n))
    for n, amount in enumerate((40, 500, 40, 2)):
        take(store, tmp_path, replace(WALLET, transaction_id=f"T{n}", amount_minor=amount, time_ms=NOON_MS + n))
    take(store, tmp_path, SESSION)
    assert named(store) == set()
    assert reported(store, "statement, transaction_id", "transfers") == [
        ("h0", "T1"),
        ("h1", "T0"),
        ("h2", "T2"),
        ("h3", "T3"),
    ]


def test_each_session_takes_the_name_that_the_regulator_has_for_it(store: BookComparison, tmp_path: Path) -> None:
    put(
        store, tmp_path, "r_sessions", REGULATOR_SESSION, ("N", "S2", *REGULATOR_SESSION[2:]),
        ("K", "S3", *REGULATOR_SESSION[2:]), ("L", "S3", *REGULATOR_SESSION[2:]), ("Z", "S4", *REGULATOR_SESSION[2:]),
        ("Y", "", *REGULATOR_SESSION[2:]),
    )  # fmt: skip
    take(
        store, tmp_path, STRANGER, replace(STRANGER, session_id="S2"), replace(STRANGER, session_id="S3"),
        replace(SESSION, session_id="S4", regulator_session_id="O"), replace(STRANGER, session_id=""),
    )  # fmt: skip
    assert named(store) == {"S3", ""}
    assert reported(store, "session_id, regulator_session_id", "sessions") == [
        ("", ""), ("S", "M"), ("S2", "N"), ("S3", ""), ("S4", "O"),
    ]  # fmt: skip


def test_a_participation_takes_the_name_that_the_regulator_has_for_its_one(
    store: BookComparison, tmp_path: Path
) -> None:
    lost = replace(SESSION, regulator_participation_id="")
    take(
        store, tmp_path, NAMELESS, lost, replace(lost, session_id="S2", regulator_session_id="N"),
        replace(lost, session_id="S3", regulator_session_id="K", participation_id=""),
        replace(SESSION, session_id="S4", regulator_session_id="L"), TICKET, replace(TICKET, purchase_no=2),
        replace(TICKET, regulator_session_id="N", regulator_participation_id="B"),
        replace(TICKET, regulator_session_id="N", regulator_participation_id="C"),
        replace(TICKET, regulator_session_id="K", regulator_participation_id="D"),
        replace(TICKET, regulator_session_id="L", regulator_participation_id="E"),
    )  # fmt: skip
    named(store)
    assert reported(store, "session_id, regulator_participation_id", "sessions") == [
        ("S", "A"), ("S2", ""), ("S3", ""), ("S4", "A"),
    ]  # fmt: skip


@pytest.mark.parametrize("missing", ["regulator_session_id", "regulator_participation_id"])
def test_seats_and_transfers_take_the_names_of_their_session(
    store: BookComparison, tmp_path: Path, missing: str
) -> None:
    other: dict[str, Any] = {"session_id": "S2", "regulator_session_id": "N", "regulator_participation_id": "B"}
    lost: dict[str, Any] = {missing: ""}
    kept: dict[str, Any] = {"regulator_session_id": "K", "regulator_participation_id": "C"}
    take(
        store, tmp_path, NAMELESS, SESSION, replace(SESSION, **other), replace(SEAT, **lost),
        replace(SEAT, stage_no=2, **kept), replace(TRANSFER, statement="h2", transaction_id="T2", **lost),
        replace(TRANSFER, statement="h3", transaction_id="T3", **kept),
    )  # fmt: skip
    named(store)
    names = "regulator_session_id, regulator_participation_id"
    assert reported(store, f"stage_no, {names}", "seats") == [(1, "M", "A"), (2, "K", "C")]
    assert reported(store, f"statement, {names}", "transfers") == [("h2", "M", "A"), ("h3", "K", "C")]


@pytest.mark.parametrize(
    ("transfer", "ticket", "named_as"),
    [
        ({}, {}, "T1"), ({"transaction_id": "T9"}, {}, "T9"), ({"source": "participation_end"}, {}, ""),
        ({"purchase_no": 2}, {}, ""), ({"regulator_participation_id": "B"}, {}, ""), ({}, {"transaction_id": ""}, ""),
        ({"regulator_participation_id": ""}, {"regulator_participation_id": ""}, ""),
    ],
)  # fmt: skip
def test_a_purchase_takes_the_id_that_the_regulator_was_told(
    store: BookComparison, tmp_path: Path, transfer: dict[str, Any], ticket: dict[str, Any], named_as: str
) -> None:
    lost = replace(TRANSFER, transaction_id="")
    other = replace(lost, statement="h2", purchase_no=7)
    take(store, tmp_path, replace(lost, **transfer), replace(TICKET, **ticket), other)
    left = named(store)
    assert left == ({"h2"} if named_as else {"h1", "h2"})
    assert reported(store, "statement, transaction_id", "transfers") == ([("h1", named_as)] if named_as else [])


def test_without_a_wallet_a_transfer_is_known_by_its_statement(store: BookComparison, tmp_path: Path) -> None:
    take(store, tmp_path, NAMELESS, replace(TRANSFER, statement="h2", transaction_id="T2"), WALLET)
    assert named(store, wallet=False) == {"h1"}
    assert reported(store, "transaction_id", "transfers") == [("T2",), ("statement h1",)]
