"""Edges of what reconciliation reads: where each limit lies, and what a faulty statement leaves of its session."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.reconcile.classes import BUCKET_NAMES, OLDEST, BreakClass
from rgs.core.reconcile.extract import SEATS, SESSIONS, TRANSFERS, Extract
from rgs.core.reconcile.facts import Break
from rgs.core.reconcile.lines import RowRefusedError, csv_records, parse_object, split_csv
from rgs.core.reconcile.mapping import Mapping, parse_mapping
from rgs.core.reconcile.report import BreakFindings, Input, break_document
from rgs.core.reconcile.resolutions import Resolution, entry_hash
from rgs.core.reconcile.rows import NULL, FieldReader, Row, read_receipt, read_regulator, read_wallet
from rgs.core.replay import Rulebook
from rgs.core.replay.reading import Statement
from rgs.core.times import format_time
from tests.unit.core.reconcile.test_balances import Move, account, named
from tests.unit.core.reconcile.test_extract import opened, statement
from tests.unit.core.reconcile.test_readers import WALLET

# --- breaks ---


def test_the_id_of_a_break_is_the_hash_of_what_is_said_in_its_one_form() -> None:
    """A resolution binds to it across releases."""
    found = Break(
        BreakClass.DUPLICATE, "transaction T", (("wallet", "x"),), 5, operator="op", player="anna", currency="EUR"
    )
    form = (
        b'{"class":"duplicate","currency":"EUR","found":[["wallet","x"]],'
        b'"operator":"op","player":"anna","subject":"transaction T"}'
    )
    assert found.break_id == hashlib.sha256(b"rgs/break/v1\x00" + form).hexdigest()[:32]


def test_the_hash_of_an_entry_has_a_domain_of_its_own() -> None:
    assert entry_hash(b"x") == hashlib.sha256(b"rgs/resolution/v1\x00x").hexdigest()


def test_a_file_in_our_own_layout_has_no_mapping() -> None:
    assert Input("wallet", "w.csv", "0" * 64, 1, 0).mapping_sha256 == ""


def test_breaks_are_counted_by_class_age_and_currency() -> None:
    """Those that are resolved count apart, and nothing of them is owed any more."""
    day_ms = 86_400_000
    settled = Resolution("b" * 32, "RESENT", "ticket 7", "anna", "bert", "2026-11-18T00:00:00.000Z")
    findings = BreakFindings(10 * day_ms, {"b" * 32: settled})
    credit = Break(BreakClass.MISSING_CREDIT, "transaction T", (), 0, amount_minor=5, currency="EUR", is_owed=True)
    for break_id, passed_ms in (("a" * 32, 10 * day_ms), ("b" * 32, 0), ("c" * 32, 0), ("d" * 32, 0)):
        document = break_document(replace(credit, time_ms=10 * day_ms - passed_ms))
        findings.add({**document, "break_id": break_id}, is_known=break_id[0] == "c")
    (row,) = [row for row in findings.classes() if row["class"] == credit.kind]
    assert {name: row[name] for name in ("amounts", "open", "owed", "resolved")} == {
        "amounts": {"EUR": 15},
        "open": 3,
        "owed": 3,
        "resolved": 1,
    }
    assert row["ages"] == {**dict.fromkeys(BUCKET_NAMES, 0), BUCKET_NAMES[0]: 2, OLDEST: 1}
    assert (findings.owed, findings.total, findings.new, findings.still) == ({"EUR": 15}, 4, 3, 1)
    assert [result["age"] for result in findings.listed] == [OLDEST, *[BUCKET_NAMES[0]] * 3]
    assert [result["resolved"] is None for result in findings.listed] == [True, False, True, True]
    assert not any(
        row["open"] or any(row["ages"].values()) for row in findings.classes() if row["class"] != credit.kind
    )


# --- lines ---


def test_an_empty_file_has_no_header() -> None:
    with pytest.raises(FormatError, match="there is no header"):
        list(csv_records([]))


def test_a_byte_order_mark_counts_in_the_first_line_only() -> None:
    assert list(csv_records([b"a\n\xef\xbb\xbfx\n"])) == [(2, {"a": "\ufeffx"})]


@pytest.mark.parametrize("text", ['"a', '"a"b', '"a""'])
def test_quotes_that_are_not_doubled_or_not_closed(text: str) -> None:
    with pytest.raises(RowRefusedError, match="a quoted field does not end in its line"):
        split_csv(text, ",")


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_of_eighteen_digits_are_taken(sign: str) -> None:
    assert parse_object(f'{{"a":{sign}{"9" * 18}}}') == {"a": f"{sign}{'9' * 18}"}
    with pytest.raises(RowRefusedError, match="more than 18 digits"):
        parse_object(f'{{"a":{sign}{"9" * 19}}}')


# --- mappings ---


def test_minor_units_have_eighteen_digits_at_most() -> None:
    assert Mapping().amount("amount_minor", "9" * 18) == 10**18 - 1
    with pytest.raises(RowRefusedError, match="at most 18 digits"):
        Mapping().amount("amount_minor", "9" * 19)


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_the_formats_that_a_mapping_may_name(name: str) -> None:
    assert parse_mapping(f'format = "{name}"'.encode(), "m.toml").format == name


def test_a_local_time_without_a_zone_is_utc() -> None:
    assert Mapping(time_format="%Y-%m-%d %H:%M").time_ms("1970-01-02 00:00", None) == 86_400_000


@pytest.mark.parametrize(
    ("text", "field"),
    [("x = 1", "x"), ("[time]\nx = 1", "time.x"), ('[amounts]\nexponent = 2\nthousands = "::"', "amounts")],
)
def test_a_mapping_that_is_refused_names_the_key(text: str, field: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_mapping(text.encode(), "m.toml")
    assert refused.value.field == field


# --- rows ---


@pytest.mark.parametrize(
    ("field", "most", "more"),
    [
        ("player", "x" * 256, "x" * 257),
        ("amount_minor", "9" * 18, "9" * 19),
        ("currency", "EUR", "EURO"),
        ("time", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999-00:01"),
    ],
)
def test_the_limits_of_a_field_are_exact(field: str, most: str, more: str) -> None:
    assert read_wallet({**WALLET, field: most}, FieldReader(Mapping()))[0] == "wallet"
    with pytest.raises(RowRefusedError, match=field):
        read_wallet({**WALLET, field: more}, FieldReader(Mapping()))


def test_the_first_moment_of_1970_is_a_time() -> None:
    local = FieldReader(Mapping(time_format="%Y-%m-%d %H:%M"))
    assert read_wallet({**WALLET, "time": "1970-01-01 00:00"}, local)[1][5] == "0"
    with pytest.raises(RowRefusedError, match=r"time .* is outside 1970\.\.9999"):
        read_wallet({**WALLET, "time": "1969-12-31 23:59"}, local)


def test_a_word_outside_the_vocabulary_is_named_with_the_words_that_are_known() -> None:
    with pytest.raises(RowRefusedError, match="kind 'refund' is not one of debit, credit, rollback"):
        read_wallet({**WALLET, "kind": "refund"}, FieldReader(Mapping()))


def test_a_row_that_tells_only_what_is_needed() -> None:
    result = ("T", "debit", "", "EUR", "1", "1794960000000", "", "accepted", NULL, "", "")
    assert read_wallet(WALLET, FieldReader(Mapping())) == ("wallet", result)


IDS = {"regulator_session_id": "M", "regulator_participation_id": "N"}
AT = {"time": "1970-01-01T00:00:00.005Z"}
SUMS = {"bought_minor": "1", "staked_minor": "2", "returned_minor": "3", "paid_out_minor": "4"}


@pytest.mark.parametrize(
    ("record", "table", "row"),
    [
        (
            {"kind": "session", "regulator_session_id": "M", "currency": "EUR", **AT},
            "r_sessions",
            ("M", "", "", "EUR", "5", "", "false"),
        ),
        (
            {"kind": "purchase", **IDS, "purchase_no": "1", "amount_minor": "7", **AT},
            "r_purchases",
            ("M", "N", "1", "", "7", "", "5"),
        ),
        (
            {
                "kind": "stage", **IDS, "stage_no": "1", "opening_hash": "0" * 64, "final_hash": "1" * 64, **AT,
                "available_minor": "9", "staked_minor": "8", "returned_minor": "7",
            },
            "r_stages",
            ("M", "N", "1", "9", "8", "7", "0" * 64, "1" * 64, "5"),
        ),
        (
            {"kind": "end", **IDS, "rounds": "2", "final_balance_minor": "6", **AT},
            "r_ends",
            ("M", "N", "2", "6", "5"),
        ),
        ({"kind": "close", "regulator_session_id": "M", **AT}, "r_closes", ("M", "5")),
        (
            {"kind": "total", "date": "2026-11-18", "currency": "EUR", "rounds": "9", **SUMS},
            "r_totals",
            ("2026-11-18", "", "EUR", "9", "1", "2", "3", "4"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_row_of_the_regulator_that_tells_only_what_is_needed(record: dict[str, str], table: str, row: Row) -> None:
    assert read_regulator(record, FieldReader(Mapping())) == (table, row)
    for name in record:
        with pytest.raises(RowRefusedError, match=f"{name} is missing"):
            read_regulator({**record, name: ""}, FieldReader(Mapping()))


def test_a_number_has_nine_digits_at_most() -> None:
    receipt = {"session_id": "S", "opening_hash": "0" * 64}
    assert read_receipt({**receipt, "round_no": "9" * 9}, FieldReader(Mapping()))[1][1] == "9" * 9
    for text in ("9" * 10, "\u0663"):
        with pytest.raises(RowRefusedError, match="round_no"):
            read_receipt({**receipt, "round_no": text}, FieldReader(Mapping()))


# --- balances ---


def test_of_rows_of_one_moment_that_go_round_in_a_circle_the_first_is_named() -> None:
    moves: list[Move] = [("debit", 10), ("credit", 10)]
    before = account([("credit", 5)], begin=1_000)
    circle = [replace(row, time_ms=500) for row in account(moves, begin=500)]
    assert named([*before, *circle]) == ["T0"]
    renamed = [replace(circle[1], transaction_id="T9"), circle[0]]
    assert named([*before, *renamed]) == ["T9"]


# --- what one statement leaves of its session ---

OPENING: dict[str, Any] = {
    "round_no": "1",
    "balance_before_minor": "9",
    "seat": {"bets": [{"amount_minor": "1", "bet": "ante"}]},
}
FINAL = {"opening": "hash of round_opening", "staked_minor": "1", "returned_minor": "0", "status": "settled"}
BOUGHT = {"participation_id": "P", "bought_minor": "5", "amount_minor": "5", "purchase_no": "1"}
END = {
    "participation_id": "P", "bought_minor": "5", "staked_minor": "1", "returned_minor": "0", "paid_out_minor": "4",
    "rounds": "1",
}  # fmt: skip


def a_session() -> list[Statement]:
    """A whole session of one round, a second from link to link."""
    result = [
        opened(),
        statement("purchase", BOUGHT, {"wallet_transaction_id": "T1", "regulator_participation_id": "N"}),
        statement("round_opening", OPENING),
        statement("round_final", FINAL),
        statement("participation_end", END, {"wallet_transaction_id": "T2", "regulator_participation_id": "N"}),
        statement("session_close", {}),
    ]
    for second, one in enumerate(result):
        one.body["time"] = format_time(1_795_000_000_000 + 1000 * second)
    return result


def rows_of(statements: list[Statement], unsound: str = "") -> dict[str, list[Row]]:
    """The rows of each table, where a check failed on the statement of this kind."""
    extract = Extract(Rulebook())
    found: dict[str, list[Row]] = {TRANSFERS: [], SEATS: [], SESSIONS: []}
    for one in statements:
        for table, row in extract.take(one, is_sound=one.kind.name != unsound):
            found[table].append(row)
    for table, row in extract.finish():
        found[table].append(row)
    return found


@pytest.mark.parametrize(
    ("unsound", "transfers", "seat", "session"),
    [
        ("", ("true", "true"), "true", "true"),
        ("session_open", ("true", "true"), "true", "false"),
        ("purchase", ("false", "true"), "true", "true"),
        ("round_opening", ("true", "true"), "false", "true"),
        ("round_final", ("true", "true"), "false", "true"),
        ("participation_end", ("true", "false"), "true", "false"),
        ("session_close", ("true", "true"), "true", "false"),
    ],
)
def test_a_statement_that_failed_a_check_is_marked_where_it_counts(
    unsound: str, transfers: tuple[str, str], seat: str, session: str
) -> None:
    rows = rows_of(a_session(), unsound)
    assert tuple(row[-1] for row in rows[TRANSFERS]) == transfers
    assert [row[-1] for row in rows[SEATS]] == [seat]
    assert [row[-1] for row in rows[SESSIONS]] == [session]


def test_of_a_session_whose_opening_is_cut_off_nothing_is_made_up() -> None:
    (row,) = rows_of(a_session()[5:])[SESSIONS]
    closed = str(1_795_000_005_000)
    nothing = ("S", "", "", "", "", "", "false", "0", closed, "0", "0", "", "", "0", "0", "0", "0", "0")
    assert row == (*nothing, "false", "true")


def test_one_session_of_a_test_regulator_makes_the_record_one() -> None:
    earnest = opened(test_regulator=False)
    for order in ([opened(), earnest], [earnest, opened()]):
        extract = Extract(Rulebook())
        for number, one in enumerate(order):
            one.body["session_id"] = f"S{number}"
            list(extract.take(one, is_sound=True))
        assert extract.test_regulator
    extract = Extract(Rulebook())
    list(extract.take(earnest, is_sound=True))
    assert not extract.test_regulator


def test_a_whole_session_row_by_row() -> None:
    rows = rows_of(a_session())
    at = [str(1_795_000_000_000 + 1000 * second) for second in range(6)]
    game, session_id = "uth-solo", "M" * 16
    assert rows[TRANSFERS] == [
        (
            "T1", "debit", "5", "EUR", "op-1", "anna", game, "S", "P", "P", "1", session_id, "N", "purchase",
            at[1], at[1], "hash of purchase", "true",
        ),
        (
            "T2", "credit", "4", "EUR", "op-1", "anna", game, "S", "P", "P", "0", session_id, "N", "participation_end",
            at[4], at[4], "hash of participation_end", "true",
        ),
    ]  # fmt: skip
    due = str(1_795_000_002_000 + 1000 * load_jurisdiction("demo").finish_after_s)
    assert rows[SEATS] == [
        (
            "S", "1", "R", "hash of round_opening", "hash of round_final", "9", "1", "0", at[2], at[3], due, "settled",
            "EUR", "op-1", game, "anna", session_id, "N", "true",
        )
    ]  # fmt: skip
    assert rows[SESSIONS] == [
        (
            "S", "op-1", "EUR", game, "anna", session_id, "true", at[0], at[5], at[4], at[4], "P", "N",
            "5", "1", "0", "4", "1", "true", "true",
        )
    ]  # fmt: skip


# --- files ---


def test_a_file_that_cannot_be_read_is_refused_in_words() -> None:
    with pytest.raises(FormatError, match="UTF-16: convert the file to UTF-8"):
        list(csv_records(["\ufeffa,b\n".encode("utf-16-le")]))
    with pytest.raises(FormatError, match="the header names a more than once"):
        list(csv_records([b"a,b,a\n"]))


def test_an_object_is_flat_and_names_each_key_once() -> None:
    for text, why in (("[]", "not a JSON object"), ('{"a":1,"a":1}', "a key is repeated"), ("{", "not JSON")):
        with pytest.raises(RowRefusedError, match=why):
            parse_object(text)


def test_rows_are_counted_by_their_lines() -> None:
    """An empty line counts, and a row of too few fields is refused."""
    rows = list(csv_records([b"a,b\n\nx,y\nz\n"]))
    assert [number for number, _ in rows] == [3, 4]
    assert rows[0][1] == {"a": "x", "b": "y"}
    assert str(rows[1][1]) == "1 fields, the header names 2"
