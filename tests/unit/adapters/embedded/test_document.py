"""docs/embedded-books.md says what the files hold: its program runs on one, its names are those of the rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from rgs.ports.regulator import Rejection
from rgs.store.regulator import APPLICATION_ID as REGULATOR_ID
from rgs.store.wallet import APPLICATION_ID as WALLET_ID
from tests.support.adapters.books import Played, make_wallet, move

DOCUMENT = (Path(__file__).resolve().parents[4] / "docs" / "embedded-books.md").read_text("utf-8")


def names_of(heading: str) -> list[str]:
    """The names in the first column of the first table after a heading."""
    lines = DOCUMENT.split(heading, 1)[1].split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    rows = lines[start + 1 :]
    table = rows[: next(number for number, line in enumerate(rows) if not line.startswith("|"))]
    return [name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])]


async def test_its_program_runs_on_a_regulator_and_agrees(played: Played, tmp_path: Path) -> None:
    await played.end()
    (program,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    run = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    number, last = played.store.head()
    assert run.stdout == f"{number} {last.hex()}\n"


def test_its_codes_are_the_codes() -> None:
    assert sorted(names_of("### What the regulator refuses")) == sorted(Rejection)


async def test_its_rows_are_the_rows(played: Played, tmp_path: Path) -> None:
    await played.end()
    await played.close()
    with played.store._file.snapshot() as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(journal)")]
    assert names_of("### `journal`") == columns
    result = {}
    for entry in played.store.entries():
        body = json.loads(entry.body)
        assert set(body) == {
            *("entry_no", "kind", "subject", "number", "recorded_time", "transaction_id", "test_regulator", "request")
        }
        result[entry.kind] = set(body["request"])
    tables = re.findall(r"^\| `(\w+)` \| (`.*) \|$", DOCUMENT, re.MULTILINE)
    described = {kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in tables}
    assert {kind: described[kind] for kind in result} == result

    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=100)
    await wallet.debit(move(1))
    with store._file.snapshot() as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(transactions)")]
    assert names_of("### `transactions`") == columns
    await wallet.close()


def test_its_headers_are_the_headers() -> None:
    for number, name in ((REGULATOR_ID, "RGSR"), (WALLET_ID, "RGSW")):
        assert number.to_bytes(4, "big").decode() == name
        assert f"{number} (`{name}`)" in DOCUMENT
