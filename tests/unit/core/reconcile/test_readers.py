"""Lines, records, mappings, rows and resolutions of reconciliation: what is read, and what is refused."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, InvalidFieldError, VerificationError
from rgs.core.reconcile.lines import (
    RowRefusedError,
    bounded_lines,
    csv_records,
    escape_cell,
    json_records,
    parse_object,
    split_csv,
)
from rgs.core.reconcile.mapping import Mapping, parse_mapping, parse_rfc3339
from rgs.core.reconcile.report import BreakFindings, Sources, independence, verdict_of
from rgs.core.reconcile.resolutions import HASH_ZERO, Resolution, entry_hash, format_entry, read_resolutions
from rgs.core.reconcile.rows import FieldReader, read_receipt, read_regulator, read_wallet
from rgs.core.statements import format_canonical, leaf_hash

PLAIN = FieldReader(Mapping())
WALLET = {
    "transaction_id": "T",
    "kind": "debit",
    "currency": "EUR",
    "amount_minor": "1",
    "time": "2026-11-18T00:00:00Z",
}


@given(st.lists(st.binary(max_size=30), max_size=30), st.integers(1, 7))
def test_lines_are_those_of_the_bytes_however_they_come(parts: list[bytes], size: int) -> None:
    data = b"\n".join(part.replace(b"\n", b"").replace(b"\r", b"") for part in parts)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    expected = [None if len(line) > 10 else line for line in data.split(b"\n")]
    if expected and expected[-1] == b"":
        expected.pop()
    assert [line for _, line in bounded_lines(chunks, 10)] == expected


def test_a_long_line_is_not_held() -> None:
    chunks = (b"x" * 1000 for _ in range(1000))
    assert list(bounded_lines(chunks, 64)) == [(1, None)]


def test_csv_of_a_byte_order_mark_blank_lines_and_line_ends_of_two() -> None:
    found = list(csv_records([b'\xef\xbb\xbfa,b\r\n1,"2"\r\n\r\n"x ""y""",\r\n']))
    assert found == [(2, {"a": "1", "b": "2"}), (4, {"a": 'x "y"', "b": ""})]
    with pytest.raises(FormatError, match="header cannot be read"):
        list(csv_records([b"a\x00b\n"]))
    with pytest.raises(RowRefusedError, match="at most 256"):
        split_csv("," * 300, ",")


def test_json_lines() -> None:
    assert parse_object('{"a":1,"b":true,"c":false,"d":null,"e":"x"}') == {
        "a": "1", "b": "true", "c": "false", "e": "x",
    }  # fmt: skip
    for text in ('{"a":NaN}', '{"a":' + "9" * 30 + "}", "[" * 100_000, '{"a":[]}'):
        with pytest.raises(RowRefusedError):
            parse_object(text)
    assert [number for number, _ in json_records([b'{}\n\n{"a":1}\n'])] == [1, 3]
    ((_, refused),) = json_records([b"x" * 70_000])
    assert isinstance(refused, RowRefusedError)


def test_cells_are_no_formulas() -> None:
    assert [escape_cell(text) for text in ("=1", "+1", "-1", "@a", "\t", "a=1", "")] == [
        "'=1", "'+1", "'-1", "'@a", "'\t", "a=1", "",
    ]  # fmt: skip


# --- mappings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = ", "not TOML"),
        ("x = 1", "x must be one of"),
        ("columns = 1", "of the type dict"),
        ("[columns]\na = 1", "columns.a must be text"),
        ("[constants]\na = 1", "constants.a must be text"),
        ("[values]\nkind = 1", "values.kind must be a table"),
        ("[values.kind]\na = 1", "values.kind.a must be text"),
        ('encoding = "utf-16"', "encoding must be one of"),
        ('format = "xls"', "format must be one of"),
        ('delimiter = ";;"', "delimiter must be one character"),
        ("[amounts]\nexponent = 5", "exponent must be 0 to 4"),
        ("[amounts]\nexponent = true", "of the type int"),
        ('[amounts]\nexponent = 2\ndecimal = ","\nthousands = ","', "one decimal mark"),
        ('[amounts]\nthousands = ","', "given where thousands is"),
        ("[time]\nx = 1", "time.x must be one of"),
    ],
)
def test_a_mapping_is_a_closed_world(text: str, reason: str) -> None:
    with pytest.raises(InvalidFieldError, match=reason):
        parse_mapping(text.encode(), "m.toml")


def test_a_mapping_renames_and_translates() -> None:
    mapping = parse_mapping(
        b'[columns]\nplayer = "who"\nnone = "x"\n[values.kind]\nBET = "debit"\n[values.gone]\na = "b"', "m"
    )
    assert mapping.rename({"who": "anna", "kind": "BET"}) == {"who": "anna", "player": "anna", "kind": "debit"}
    assert not mapping.is_plain


@pytest.mark.parametrize(
    ("text", "minor"), [("1", 100), ("1.5", 150), ("1.50", 150), ("1.500", 150), ("1,234.00", 123_400), ("0.07", 7)]
)
def test_exact_decimal_amounts(text: str, minor: int) -> None:
    assert Mapping(exponent=2, thousands=",").amount("amount", text) == minor


@pytest.mark.parametrize("text", ["1.005", "1.", ".5", "12,34.00", ",234", "1234,567", "9" * 15, "1e3", "٣"])
def test_amounts_that_are_not_exact(text: str) -> None:
    with pytest.raises(RowRefusedError):
        Mapping(exponent=2, thousands=",").amount("amount", text)


def test_times() -> None:
    assert parse_rfc3339("2026-11-18T01:00:00.1239+01:00") == parse_rfc3339("2026-11-18t00:00:00.123z")
    for text in ("2026-11-18", "2026-11-18T25:00:00Z", "1969-12-31T23:59:59Z"):
        with pytest.raises(RowRefusedError):
            parse_rfc3339(text)
    local = Mapping(time_format="%Y-%m-%d %H:%M:%S", zone="Europe/Rome")
    rome = ZoneInfo("Europe/Rome")
    assert local.time_ms("2026-07-01 02:00:00", rome) == parse_rfc3339("2026-07-01T00:00:00Z")
    for text in ("2026-10-25 02:30:00", "2026-03-29 02:30:00", "x"):
        with pytest.raises(RowRefusedError):
            local.time_ms(text, rome)
    zoned = Mapping(time_format="%Y-%m-%d %H:%M:%S %z")
    assert zoned.time_ms("2026-07-01 02:00:00 +0200", None) == parse_rfc3339("2026-07-01T00:00:00Z")


# --- rows -----------------------------------------------------------------------------------------------------------


def test_a_row_of_the_wallet() -> None:
    table, row = read_wallet({**WALLET, "balance_after_minor": "7", "other": "passed over"}, PLAIN)
    assert (table, row[:5], row[7:9]) == ("wallet", ("T", "debit", "", "EUR", "1"), ("accepted", "7"))
    for field, value in (("player", "x" * 300), ("player", "\\N"), ("time", "9999-12-31T23:59:59.999-01:00")):
        with pytest.raises(RowRefusedError, match=field):
            read_wallet({**WALLET, field: value}, PLAIN)


def test_a_receipt_with_its_envelope() -> None:
    envelope = '{"payload":""}'
    row = {"session_id": "S", "round_no": "1", "opening_hash": leaf_hash(envelope.encode()).hex()}
    assert read_receipt({**row, "envelope": envelope}, PLAIN)[1][3] == "0"
    with pytest.raises(RowRefusedError, match="does not hash"):
        read_receipt({**row, "envelope": "x"}, PLAIN)
    with pytest.raises(RowRefusedError, match="not a number"):
        read_receipt({**row, "round_no": "x"}, PLAIN)
    with pytest.raises(RowRefusedError, match="hex"):
        read_receipt({**row, "opening_hash": "x"}, PLAIN)


def test_a_total_of_a_day_that_does_not_exist() -> None:
    total = dict.fromkeys(("rounds", "bought_minor", "staked_minor", "returned_minor", "paid_out_minor"), "1")
    assert read_regulator({**total, "kind": "total", "date": "2026-11-18", "currency": "EUR"}, PLAIN)[0] == "r_totals"
    with pytest.raises(RowRefusedError, match="not a date"):
        read_regulator({**total, "kind": "total", "date": "2026-02-30", "currency": "EUR"}, PLAIN)


# --- resolutions and report -----------------------------------------------------------------------------------------

RESOLUTION = Resolution("a" * 32, "RESENT", "ticket 7", "anna", "bert", "2026-11-18T00:00:00.000Z")


def test_resolutions_are_a_chain() -> None:
    first = format_entry(RESOLUTION, 1, HASH_ZERO)
    second = format_entry(RESOLUTION, 2, entry_hash(first))
    assert read_resolutions([first, second]) == ({"a" * 32: RESOLUTION}, 2, entry_hash(second))
    assert read_resolutions([]) == ({}, 0, HASH_ZERO)
    for lines in ([second], [first, first], [second, first]):
        with pytest.raises(VerificationError, match="does not follow"):
            read_resolutions(lines)


def test_a_resolution_needs_two_people_and_its_fields() -> None:
    for field, value in (("reason", "free text"), ("evidence", ""), ("approved_by", "anna"), ("break_id", "x")):
        with pytest.raises(InvalidFieldError) as refused:
            format_entry(Resolution(**{**vars_of(RESOLUTION), field: value}), 1, HASH_ZERO)
        assert refused.value.field == field
    one = {**vars_of(RESOLUTION), "approved_by": "anna", "entry_no": "1", "previous": HASH_ZERO}
    with pytest.raises(VerificationError, match="one person twice"):
        read_resolutions([format_canonical(one)])


def vars_of(resolution: Resolution) -> dict[str, Any]:
    return {name: getattr(resolution, name) for name in resolution.__slots__}


def test_what_is_independent_is_said_as_it_is() -> None:
    real = independence(Sources(True, True, True, True, True, False, False))
    assert [check["independent"] for check in real] == [True, True, True, True, False, True]
    embedded = independence(Sources(True, True, True, True, False, True, True))
    assert [check["independent"] for check in embedded] == [False, False, True, False, False, True]
    assert not any(check["independent"] for check in independence(Sources(*[False] * 7)))


def test_verdicts() -> None:
    assert [verdict_of(*row, allow_rejects=allow) for row in ((0, 0), (1, 0), (1, 1)) for allow in (True, False)] == [
        "clean", "clean", "breaks", "breaks", "breaks", "incomplete",
    ]  # fmt: skip


def test_the_report_lists_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.core.reconcile.report.LISTED_MAX", 2)
    findings = BreakFindings(1000)
    for number in range(3):
        result = {"class": "timing", "break_id": str(number), "time_ms": 0, "currency": "EUR", "amount_minor": 1}
        findings.add({**result, "owed": False}, is_known=bool(number))
    assert (len(findings.listed), findings.total, findings.new, findings.still) == (2, 3, 1, 2)
