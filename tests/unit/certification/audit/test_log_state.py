"""What `certify log` remembers between its runs: read back as it was, and refused where it is of no use."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from certification.memory import format_replay, format_state, parse_replay, parse_state
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.rulesets import Ruleset
from rgs.core.statements import Kind
from tests.support.records.audited import Case
from tests.unit.certification.audit.test_log import case

__all__ = ["case"]


def file_of(document: dict[str, Any]) -> bytes:
    return b"".join(format_state(document))


def kept(value: Any) -> Any:
    """All that an object holds, with its types."""
    match value:
        case KeyBook() | Rulebook() | Ruleset() | Kind():
            return type(value).__name__
        case dict():
            return type(value), {key: kept(one) for key, one in value.items()}
        case list() | tuple():
            return type(value), [kept(one) for one in value]
        case Exception():
            return type(value), value.args, vars(value)
        case _ if is_dataclass(value):
            return type(value), {one.name: kept(getattr(value, one.name)) for one in fields(value)}
        case _ if hasattr(value, "__dict__") and type(value).__module__.startswith("rgs."):
            return type(value), {name: kept(one) for name, one in vars(value).items() if name != "statement"}
    return value


def test_a_state_is_read_back_as_it_was(case: Case) -> None:
    """Every field of the replay, at every place of a log with voids, losses and open rounds."""
    factory, keys = case.factory, case.factory.keys()
    book = KeyBook(keys)
    replay = Replay(book, Rulebook(), goes_on=True)
    seen: dict[str, Any] = {}
    for line in [*factory.lines, *factory.lines[-3:], *factory.lines[5:7]]:
        replay.feed(line)
        document = parse_state(file_of({"replay": format_replay(replay, book)}))["replay"]
        seen = document["state"]
        assert kept(parse_replay(document, KeyBook(keys), Rulebook())) == kept(replay)
    assert all(
        seen["voids"][name] for name in ("admins", "approvals", "malfunctions", "parties", "paused", "proposals")
    )
    assert seen["instances"]["lost"]
    assert seen["deals"]["failed"]
    assert seen["deals"]["deals"]
    assert any(row["seat"] for row in seen["chains"])


def test_states_that_are_of_no_use(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.audit() == 0
    good = case.state.read_bytes()
    document = parse_state(good)
    state = document["replay"]["state"]
    for bad in (
        b"",
        good[:-9] + b"x" + good[-8:],
        file_of({**document, "format": "rgs/audit-state/v1"}),
        file_of({**document, "root_key": "0" * 64}),
        file_of({**document, "levels": [["00" * 32]]}),
        file_of({**document, "levels": [["00" * 32] * 35]}),
        file_of({**document, "checkpoint": {}}),
        file_of({**document, "replay": {"keys": [], "state": {}}}),
        file_of({**document, "replay": {"keys": [["x", "00", "unknown"]], "state": {}}}),
        file_of({**document, "replay": {**document["replay"], "keys": []}}),
        file_of({**document, "replay": {**document["replay"], "state": {**state, "chains": [{}]}}}),
        file_of({**document, "replay": {**document["replay"], "state": {**state, "deals": 7}}}),
        file_of({**document, "checkpoint": {**document["checkpoint"], "size": "-5"}}),
        file_of({name: one for name, one in document.items() if name != "root_key"}),
        file_of({**document, "failed": "x"}),
        file_of({**document, "failures": 7}),
        file_of({**document, "findings": {}}),
        file_of({**document, "findings": {**document["findings"], "open": 3}}),
        file_of({**document, "findings": {**document["findings"], "more": {}}}),
        *(hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n" for text in (b"[1]", b"{", b"[" * 99_999)),
    ):
        case.state.write_bytes(bad)
        assert case.audit() == 2, bad[:200]
        assert case.state.read_bytes() == bad
    (case.folder / "state.part").write_bytes(b"nonsense")
    case.state.write_bytes(good)
    assert case.audit() == 0
    capsys.readouterr()
