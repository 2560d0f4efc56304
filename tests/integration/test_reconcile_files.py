"""Reconciliation of files from strangers: the same bytes for the same inputs, broken rows named, nothing trusted."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from rgs.cli import run
from rgs.cli.options import run_app
from rgs.cli.reconcile import app
from rgs.core.errors import InvalidFieldError, RgsError, VerificationError
from rgs.core.reconcile.classes import BreakClass
from rgs.store.reconciliation import BookComparison, ReconciliationStoreError
from tests.support.process.commands import MANIFEST
from tests.support.service.harness import NODE_KEY, ROOT_KEY
from tests.support.service.reconciling import Day, Row


def rejects(out: Path) -> list[list[str]]:
    with (out / "rejects.csv").open(newline="") as file:
        return list(csv.reader(file))[1:]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- the same bytes -------------------------------------------------------------------------------------------------


def test_the_same_inputs_give_the_same_bytes(day: Day, tmp_path: Path) -> None:
    day.change_wallet(lambda rows: rows[2:])
    for name in ("one", "two"):
        day.run(tmp_path / name)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert "report.jsonl" in contents(tmp_path / "one")


def test_rows_in_another_order_give_the_same_breaks(day: Day, tmp_path: Path) -> None:
    day.change_wallet(lambda rows: [row for row in rows if row["kind"] != "credit"])
    day.change_regulator(lambda rows: [row for row in rows if row["kind"] != "stage"])
    first = day.run(tmp_path / "one").document["breaks"]
    day.change_wallet(lambda rows: random.Random(7).sample(rows, len(rows)))
    day.change_regulator(lambda rows: random.Random(8).sample(rows, len(rows)))
    day.change_receipts(lambda rows: random.Random(9).sample(rows, len(rows)))
    assert day.run(tmp_path / "two").document["breaks"] == first
    assert len(first) == 12


def test_the_strict_reader_and_the_plain_one_say_the_same(day: Day, tmp_path: Path) -> None:
    day.change_wallet(lambda rows: rows[1:])
    plain = day.run(tmp_path / "plain").document
    day.wallet.write_text(day.wallet.read_text() + "\n")  # a blank line: the strict reader
    strict = day.run(tmp_path / "strict").document
    assert (plain["breaks"], plain["totals"], plain["compared"]) == (
        strict["breaks"], strict["totals"], strict["compared"],
    )  # fmt: skip


# --- rejects --------------------------------------------------------------------------------------------------------


BAD_ROWS: list[tuple[str, bytes, str]] = [
    ("NUL", b"T\x00,debit,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,", "NUL"),
    ("long", b"T," + b"x" * 70_000, "longer than 65536 bytes"),
    ("not UTF-8", b"T\xff,debit,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,", "not utf-8 at byte 1"),
    ("float", b"T,debit,anna,EUR,1.5,2026-11-18T11:06:40.000Z,,accepted,,,", "not a whole number"),
    ("thousands", b'T,debit,anna,EUR,"1,500",2026-11-18T11:06:40.000Z,,accepted,,,', "not a whole number"),
    ("negative", b"T,debit,anna,EUR,-1,2026-11-18T11:06:40.000Z,,accepted,,,", "not a whole number"),
    ("local time", b"T,debit,anna,EUR,1,2026-11-18T11:06:40,,accepted,,,", "RFC 3339"),
    ("no such day", b"T,debit,anna,EUR,1,2026-02-30T11:06:40.000Z,,accepted,,,", "does not exist"),
    ("kind", b"T,bet,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,", "not one of debit"),
    ("currency", b"T,debit,anna,eur,1,2026-11-18T11:06:40.000Z,,accepted,,,", "three capital letters"),
    ("no id", b",debit,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,", "transaction_id is missing"),
    ("fields", b"T,debit", "2 fields"),
    ("open quote", b'T,"debit,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,', "quoted field"),
    ("control", b"T\x01,debit,anna,EUR,1,2026-11-18T11:06:40.000Z,,accepted,,,", "not printable"),
]


@pytest.mark.parametrize(("row", "reason"), [row[1:] for row in BAD_ROWS], ids=[row[0] for row in BAD_ROWS])
@pytest.mark.slow
def test_a_broken_row_is_named_and_the_run_is_incomplete(day: Day, tmp_path: Path, row: bytes, reason: str) -> None:
    lines = day.wallet.read_bytes().splitlines(keepends=True)
    day.wallet.write_bytes(b"".join([*lines[:3], row + b"\n", *lines[3:]]))
    done = day.run(tmp_path / "out")
    (found,) = rejects(tmp_path / "out")
    assert found[:2] == ["wallet", "4"]
    assert reason in found[2]
    assert (done.verdict, done.open_breaks) == ("incomplete", 0)
    assert day.run(tmp_path / "allowed", allow_rejects=True).verdict == "clean"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\n", "no header"),
        (b"kind,kind\n", "kind more than once"),
        (b"\xff\xfek\x00i\x00", "UTF-16"),
    ],
)
def test_a_file_that_cannot_be_used_at_all(day: Day, tmp_path: Path, content: bytes, reason: str) -> None:
    day.wallet.write_bytes(content)
    with pytest.raises(InvalidFieldError, match=reason):
        day.run(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".*"))


def test_json_lines_of_the_regulator_are_read_strictly(day: Day, tmp_path: Path) -> None:
    bad = ['{"kind":"stage","kind":"end"}', "[1]", '{"kind":"end","rounds":1.5}', "x", '{"kind":{}}', '{"kind":"?"}']
    day.regulator.write_text(day.regulator.read_text() + "\n".join(bad) + "\n")
    assert day.run(tmp_path / "out").rejected == len(bad)
    said = " ".join(row[2] for row in rejects(tmp_path / "out"))
    for reason in ("a key is repeated", "not a JSON object", "1.5 is not an integer", "not JSON", "neither text"):
        assert reason in said


def test_whose_private_block_is_erased_is_found_by_the_ids_that_are_signed(day: Day, tmp_path: Path) -> None:
    """The wallet names the participation, the regulator the session: what is in neither makes the run incomplete."""
    lines = day.statements.read_bytes().splitlines()
    place = next(at for at, line in enumerate(lines) if b"application/vnd.rgs.purchase" in line)
    lines[place] = lines[place][: lines[place].index(b',"private":')] + b',"private":null}'
    day.statements.write_bytes(b"".join(line + b"\n" for line in lines))
    assert day.run(tmp_path / "found").verdict == "clean"
    day.change_wallet(lambda rows: [{**row, "reference": ""} for row in rows])
    assert day.run(tmp_path / "regulator").verdict == "clean"  # it names transactions, too
    done = day.run(tmp_path / "out", regulator=None, allow_rejects=True)
    assert "private block is absent" in rejects(tmp_path / "out")[0][2]
    assert [result["class"] for result in done.document["breaks"]] == [BreakClass.MISSING_IN_RGS]
    assert day.run(tmp_path / "incomplete", regulator=None).verdict == "incomplete"
    assert day.run(tmp_path / "alone", wallet=None).verdict == "clean"


def test_whole_sessions_without_private_blocks_are_found_too(day: Day, tmp_path: Path) -> None:
    lines = day.statements.read_bytes().splitlines()
    day.statements.write_bytes(b"".join(line[: line.index(b',"private":')] + b',"private":null}\n' for line in lines))
    assert day.run(tmp_path / "found").verdict == "clean"
    assert day.run(tmp_path / "alone", wallet=None).verdict == "clean"
    day.change_wallet(lambda rows: [{**row, "amount_minor": "9"} if row["kind"] == "credit" else row for row in rows])
    result = day.run(tmp_path / "short").document["breaks"]
    assert [(one["class"], one["owed"]) for one in result] == [(BreakClass.AMOUNT_DIFFERS, True)] * 3
    day.regulator.write_text("\n".join(day.regulator.read_text().splitlines()[-1:]) + "\n")  # the total alone
    assert day.run(tmp_path / "nowhere").rejected == 3


# --- other layouts --------------------------------------------------------------------------------------------------

MAPPING = """
format = "csv"
encoding = "cp1252"
delimiter = ";"
[columns]
transaction_id = "TxId"
kind = "Art"
player = "Spieler"
amount_minor = "Betrag"
time = "Zeit"
reference = "Ref"
[constants]
currency = "EUR"
[values.kind]
BUCHUNG = "debit"
GUTSCHRIFT = "credit"
[amounts]
exponent = 2
decimal = ","
thousands = "."
[time]
format = "%d.%m.%Y %H:%M:%S"
zone = "Europe/Rome"
"""


def german(day: Day, tmp_path: Path, *, extra: str = "") -> Path:
    """The wallet statement as another server would write it."""
    words = {"debit": "BUCHUNG", "credit": "GUTSCHRIFT"}
    out = ["TxId;Art;Spieler;Betrag;Zeit;Ref;Bemerkung"]
    for row in csv.DictReader(day.wallet.read_text().splitlines()):
        minor = int(row["amount_minor"])
        amount = f"{minor // 100:,}".replace(",", ".") + f",{minor % 100:02d}"
        out.append(
            ";".join(
                (row["transaction_id"], words[row["kind"]], row["player"], amount, f"18.11.2026 12{row['time'][13:19]}",
                 row["reference"], "Gebühr")
            )
        )  # fmt: skip
    path = tmp_path / "german.csv"
    path.write_bytes(("\r\n".join(out) + "\r\n" + extra).encode("cp1252"))
    return path


def test_another_layout_with_a_mapping(day: Day, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(MAPPING)
    done = day.run(tmp_path / "out", wallet=german(day, tmp_path), mappings={"wallet": mapping})
    assert done.verdict == "clean"
    wallet = next(row for row in done.document["inputs"] if row["source"] == "wallet")
    assert len(wallet["mapping_sha256"]) == 64
    assert wallet["rows"] == 7


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("T;BUCHUNG;a;1.5,00;18.11.2026 12:30:00;;", "thousands separators"),
        ("T;BUCHUNG;a;1,005;18.11.2026 12:30:00;;", "not exact"),
        ("T;BUCHUNG;a;x;18.11.2026 12:30:00;;", "not a decimal amount"),
        ("T;BUCHUNG;a;1,00;25.10.2026 02:30:00;;", "twice or never"),
        ("T;BUCHUNG;a;1,00;2026-11-18;;", "not of the form"),
    ],
)
def test_what_a_mapping_would_have_to_guess_is_refused(day: Day, tmp_path: Path, row: str, reason: str) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(MAPPING)
    wallet = german(day, tmp_path, extra=row + "\r\n")
    day.run(tmp_path / "out", wallet=wallet, mappings={"wallet": mapping})
    assert reason in rejects(tmp_path / "out")[0][2]


def test_a_wallet_statement_in_parquet_and_in_json_lines(day: Day, tmp_path: Path) -> None:
    rows = list(csv.DictReader(day.wallet.read_text().splitlines()))
    lines = tmp_path / "wallet.jsonl"
    lines.write_text("".join(json.dumps({**row, "amount_minor": int(row["amount_minor"])}) + "\n" for row in rows))
    assert day.run(tmp_path / "lines", wallet=lines).verdict == "clean"
    # The extract of our own transfers is a Parquet file of other columns: with a mapping it is a wallet statement.
    done = day.run(tmp_path / "kept", keep_extract=True)
    assert done.verdict == "clean"
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('format = "parquet"\n[columns]\nreference = "participation_id"\n[time]\nformat = "x"\n')
    assert day.run(
        tmp_path / "parquet", wallet=tmp_path / "kept" / "transfers.parquet", mappings={"wallet": mapping}
    ).rejected == len(rows)


# --- hostile content ------------------------------------------------------------------------------------------------


def test_names_that_look_like_code_are_text(day: Day, tmp_path: Path) -> None:
    hostile = "'); DROP TABLE transfers; --"

    def add(rows: list[Row]) -> list[Row]:
        times = {"time": "2026-11-18T11:07:00.000Z"}
        return [
            *rows,
            {**rows[0], **times, "transaction_id": "=HYPERLINK(1)", "player": "<script>alert(1)</script>"},
            {**rows[0], **times, "transaction_id": hostile, "player": "@SUM(A1)"},
        ]

    day.change_wallet(add)
    done = day.run(tmp_path / "out")
    assert [result["class"] for result in done.document["breaks"]] == [BreakClass.MISSING_IN_RGS] * 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    with (tmp_path / "out" / "breaks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["player"] for row in rows} == {"<script>alert(1)</script>", "'@SUM(A1)"}
    assert all(not cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())


def test_the_store_reads_named_files_only(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    other = tmp_path / "other.tsv"
    other.write_text("x\n")
    store = BookComparison(tmp_path / "work", memory_mb=256)
    try:
        with pytest.raises(ReconciliationStoreError, match="file system operations are disabled"):
            store.load("r_closes", other)
        with pytest.raises(ReconciliationStoreError, match="locked"):
            store._run("SET enable_external_access = true")
        assert store._one("SELECT current_setting('memory_limit')")[0] == "183.1 MiB"
    finally:
        store.close()


# --- what cannot be run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"root": "0" * 64}, VerificationError),
        ({"memory_mb": 1}, InvalidFieldError),
        ({"period": (5, 5)}, InvalidFieldError),
        ({"wallet": None, "receipts": None, "regulator": None}, InvalidFieldError),
        ({"keys": Path("/nonexistent")}, InvalidFieldError),
        ({"statements": Path("/nonexistent")}, InvalidFieldError),
        ({"earlier": Path("/nonexistent")}, InvalidFieldError),
        ({"resolutions": Path("/nonexistent")}, InvalidFieldError),
    ],
)
def test_refusals_leave_nothing(day: Day, tmp_path: Path, changes: dict[str, Any], error: type[RgsError]) -> None:
    with pytest.raises(error):
        day.run(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_folder_with_something_in_it_is_left_alone(day: Day, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(InvalidFieldError, match="not an empty folder"):
        day.run(tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "mine"


# --- the command ----------------------------------------------------------------------------------------------------


def arguments(day: Day, out: Path, *more: str) -> list[str]:
    return [
        "--statements", str(day.statements), "--keys", str(day.keys), "--root", ROOT_KEY.keyid, "--receipts",
        str(day.receipts), "--wallet", str(day.wallet), "--regulator", str(day.regulator), "--out", str(out),
        "--memory-mb", "512", *more,
    ]  # fmt: skip


def reconcile(arguments: list[str]) -> int:
    return run_app(app, "reconcile", arguments)


def test_exit_statuses(day: Day, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reconcile(arguments(day, tmp_path / "clean")) == 0
    assert "clean: 0 open breaks" in capsys.readouterr().out
    day.change_wallet(lambda rows: [row for row in rows if row["kind"] != "credit"])
    assert reconcile(arguments(day, tmp_path / "breaks")) == 2
    said = capsys.readouterr()
    assert "3 open       0 resolved  Missing credit in the wallet" in said.out
    assert "owed to players: " in said.out
    assert "not signed" in said.err
    day.wallet.write_text(day.wallet.read_text() + "x\n")
    assert reconcile(arguments(day, tmp_path / "incomplete")) == 1
    assert run(["reconcile", *arguments(day, tmp_path / "usage", "--nonsense")], MANIFEST) == 1


def test_an_earlier_report_and_resolutions(day: Day, tmp_path: Path) -> None:
    whole = day.wallet.read_text()
    day.change_wallet(lambda rows: [row for row in rows if row["kind"] != "credit"])
    earlier = day.run(tmp_path / "earlier").document["breaks"]
    day.wallet.write_text(whole)
    day.change_wallet(lambda rows: [row for row in rows if row["transaction_id"] != rows[-1]["transaction_id"]])
    log = tmp_path / "resolutions.jsonl"
    late = day.run(tmp_path / "late", earlier=tmp_path / "earlier").document
    assert (late["difference"]["new"], late["difference"]["still"], late["difference"]["gone_total"]) == (0, 1, 2)
    said = ["--file", str(log), "--reason", "RESENT", "--evidence", "ticket 7", "--by", "anna"]
    for result in earlier:
        assert reconcile(["resolve", *said, "--break", result["break_id"], "--approved-by", "bert"]) == 0
    with pytest.raises(InvalidFieldError, match="two different people"):
        reconcile(["resolve", *said, "--break", earlier[0]["break_id"], "--approved-by", "anna"])
    done = day.run(tmp_path / "resolved", resolutions=log)
    assert (done.verdict, done.open_breaks, done.resolved_breaks) == ("clean", 0, 1)
    assert done.document["breaks"][0]["resolved"]["approved_by"] == "bert"
    assert "resolved by anna and bert" in (tmp_path / "resolved" / "report.html").read_text()
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[1:]))
    with pytest.raises(VerificationError, match="does not follow"):
        day.run(tmp_path / "cut", resolutions=log)


def test_an_earlier_report_that_was_changed_is_refused(day: Day, tmp_path: Path) -> None:
    day.run(tmp_path / "earlier")
    with (tmp_path / "earlier" / "breaks.csv").open("a") as file:
        file.write("more\n")
    with pytest.raises(VerificationError, match="not the one it names"):
        day.run(tmp_path / "out", earlier=tmp_path / "earlier")


def key_file(path: Path, seed: bytes) -> Path:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    from rgs.node.keyring import format_private_key  # noqa: PLC0415

    path.write_bytes(format_private_key(Ed25519PrivateKey.from_private_bytes(seed)))
    path.chmod(0o600)
    return path


def test_signed_countersigned_and_verified(day: Day, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    node, operator = (
        key_file(tmp_path / "node.pem", b"the node of a test server: 32 by"),
        key_file(tmp_path / "operator.pem", b"the operator " + bytes(19)),
    )
    assert reconcile(arguments(day, out, "--signing-key", str(node))) == 0
    assert reconcile(["countersign", str(out), "--signing-key", str(operator), "--party", "casino-lugano"]) == 0
    keyid = capsys.readouterr().out.split()[-1]
    verify = ["verify", str(out), "--keys", str(day.keys), "--root", ROOT_KEY.keyid]
    assert reconcile([*verify, "--countersigner", keyid]) == 0
    said = capsys.readouterr().out
    assert "signed by node node-1, ANCHORED" in said
    assert "countersigned by casino-lugano" in said
    with pytest.raises(VerificationError, match="no countersignature of"):
        reconcile([*verify, "--countersigner", NODE_KEY.keyid])
    with (out / "totals.csv").open("a") as file:
        file.write("more\n")
    with pytest.raises(VerificationError, match=r"totals\.csv is not the file"):
        reconcile(verify)
    with pytest.raises(VerificationError, match=r"totals\.csv is not the file"):
        reconcile(["countersign", str(out), "--signing-key", str(operator), "--party", "casino-lugano"])


@pytest.mark.slow
def test_one_id_without_end_is_one_duplicate(day: Day, tmp_path: Path) -> None:
    day.change_wallet(lambda rows: [*rows, *[rows[0]] * 5000])
    (result,) = day.run(tmp_path / "out").document["breaks"]
    assert result["class"] == BreakClass.DUPLICATE
    assert dict(result["found"])["wallet"].endswith("; and more")


def test_what_names_another_operator_is_not_compared(day: Day, tmp_path: Path) -> None:
    stray = {"transaction_id": "STRAY", "operator": "op-2"}
    day.change_wallet(lambda rows: [*rows, {**rows[0], **stray}])
    other = {"operator": "op-2", "regulator_session_id": "M" + "9" * 15}

    def change(rows: list[Row]) -> list[Row]:
        session = next(row for row in rows if row["kind"] == "session")
        stage = next(row for row in rows if row["kind"] == "stage")
        total = next(row for row in rows if row["kind"] == "total")
        return [*rows, {**session, **other}, {**stage, **other, "stage_no": "9"}, {**total, "operator": "op-2"}]

    day.change_regulator(change)
    assert day.breaks(tmp_path / "one", operator="op-1") == []
    assert set(day.breaks(tmp_path / "all")) >= {BreakClass.MISSING_IN_RGS, BreakClass.LINK_MISSING}
    with pytest.raises(InvalidFieldError, match="none is of op-2"):  # and not: clean, for nothing was compared
        day.run(tmp_path / "none", operator="op-2")


def test_the_plain_reader_takes_no_time_that_the_strict_one_refuses(day: Day, tmp_path: Path) -> None:
    for number, time in enumerate(("2026-11-18T24:00:00.000Z", " 2026-11-8T11:00:00.000Z", "2026-11-18T11:06:60.000Z")):
        copied = day.copy(tmp_path / f"day-{number}")
        copied.wallet.write_text(copied.wallet.read_text().replace("2026-11-18T11:06:40.000Z", time, 1))
        done = copied.run(tmp_path / f"out-{number}", allow_rejects=True)
        assert done.rejected == 1
