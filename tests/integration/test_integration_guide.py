"""docs/integration.md does what it says: its Python runs against a real server, its words are those of the contract."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest

from examples import minimal_client
from rgs.api.errors import ERRORS
from rgs.core.statements import parse_envelope, parse_statement
from rgs.v1 import audit_pb2, catalog_pb2, common_pb2, history_pb2, play_pb2, report_pb2, session_pb2
from tests.support.process.served import Served, serving

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "integration.md"
TEXT = GUIDE.read_text("utf-8")
ADDRESS = "localhost:50551"
SERVICES = [
    service
    for module in (audit_pb2, catalog_pb2, history_pb2, play_pb2, report_pb2, session_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("guide")) as one:
        yield one


def pieces() -> list[tuple[int, str]]:
    """The Python pieces of the page, each with the number of the line before it."""
    found = re.finditer(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [(TEXT.count("\n", 0, piece.start(1)), piece[1]) for piece in found]


def test_the_guide_runs(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file, name in zip(served.identity, ("ca.pem", "operator.pem", "operator.key"), strict=True):
        shutil.copy(file, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert TEXT.count(ADDRESS) == 1
    names: dict[str, Any] = {}
    for line, source in pieces():
        code = "\n" * line + source.replace(ADDRESS, served.address)
        exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102 - our own page
    assert names["closed"].session.status == common_pb2.SESSION_STATUS_CLOSED
    assert capsys.readouterr().out.startswith("ante 200 BET_RESULT_")


def test_the_pieces_are_found() -> None:
    assert len(pieces()) == TEXT.count("```python") >= 10
    # Before them: what to type, and a client in Node, which tests/sdk/test_guide.py runs.
    typed, python = TEXT.count("```sh"), TEXT.index("```python")
    assert TEXT.count("```js") == 1
    assert TEXT.count("```") == 2 * (len(pieces()) + typed + 1)
    assert max(TEXT.rindex("```sh"), TEXT.index("```js")) < python


def test_what_is_to_be_typed_names_what_is_there() -> None:
    typed = "".join(re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^make (?:-C \S+ )?([a-z]+)", typed, re.MULTILINE)
    assert targets == ["sandbox", "contract", "sdk"]
    assert [target for target in targets if f"\n{target}: " not in makefile] == []
    files = re.findall(r"\$RGS/([\w./]+)", typed)
    assert len(files) == 4
    assert [file for file in files if not (ROOT / file).exists()] == []
    service, method = re.findall(r"localhost:50651 rgs\.v1\.(\w+)/(\w+)$", typed, re.MULTILINE)[0]
    assert (service, method) in {(row.containing_service.name, row.name) for one in SERVICES for row in one.methods}


def test_every_call_of_the_contract_is_told_of() -> None:
    calls = {method.name for service in SERVICES for method in service.methods}
    assert len(calls) == 27
    assert {call for call in calls if f"`{call}`" not in TEXT} == set()


def test_reasons_and_codes_are_real() -> None:
    codes = {code.name for code in grpc.StatusCode}
    others = {"NOT_SERVING", "UNANCHORED"}
    named = set(re.findall(r"`([A-Z]{2,}(?:_[A-Z]+)*)`", TEXT))
    assert named >= {"REQUEST_SEEN", "OPERATION_PENDING", "UNAVAILABLE"}
    assert named - set(ERRORS) - codes - others == set()


def test_fields_are_real() -> None:
    messages = [
        message for module in (common_pb2, play_pb2) for message in module.DESCRIPTOR.message_types_by_name.values()
    ]
    fields = {field.name for message in messages for field in message.fields}
    result = {
        name for row in re.findall(r"^\| (`[a-z_`, ]+`) \|", TEXT, re.MULTILINE) for name in re.findall(r"[a-z_]+", row)
    }
    assert len(result) > 10
    assert result - fields == set()


def test_links_lead_somewhere() -> None:
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)\)", prose)
    assert len(links) >= 3
    assert [link for link in links if not (GUIDE.parent / link).is_file()] == []


def test_the_minimal_client_plays(served: Served, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "minimal_client.py"), served.address, *map(str, served.identity)]
    done = subprocess.run([*command, "3"], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["session", "round", "round", "round", "closed,", "10"]
    won = sum(Decimal(line.rsplit(" ", 2)[1]) for line in lines[1:4])
    assert lines[4] == f"closed, {50 + won:.2f} EUR paid out"
    without = subprocess.run(command[:3], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert without.returncode == 2
    assert "HOST:PORT" in without.stderr


def test_the_minimal_client_keeps_every_statement(served: Served) -> None:
    with minimal_client.connect(served.address, *map(str, served.identity)) as channel:
        statements = minimal_client.play_session(channel, 2)
    kinds = [parse_statement(parse_envelope(statement))[0].name for statement in statements]
    assert kinds == [
        "session_open",
        "purchase",
        *["round_opening", "round_final"] * 2,
        "participation_end",
        "session_close",
    ]
