"""The metadata of all errors has one scheme: whatever raises one names things by the keys of the table in the docs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.rpc.error_details_pb2 import ErrorInfo

from rgs.api.errors import ENUMS, ERRORS, FAULT_NUMBERS, status_of
from rgs.api.errors_page import METADATA
from rgs.core.errors import (
    ChatClosedError,
    IllegalActionError,
    ReportNotDoneError,
    RgsError,
    TableChangedError,
    TableStateError,
)
from rgs.core.games.types import Action, Phase
from rgs.core.rounds import RoundStatus
from rgs.service.reconciliation import runs
from rgs.v1 import admin_pb2, common_pb2, reconciliation_pb2
from tests.unit.api.test_errors import CLASSES, REACHES_CALLERS

ROOT = Path(__file__).resolve().parents[3]
ROOMS = (*REACHES_CALLERS, "rgs.tlog")
"""What a call reaches; the log's files are read for it too."""
NO_KEYS = {"field", "message"}
"""Named parameters of what makes errors; `field` stands in the metadata under its own name."""


@cache
def makers() -> dict[str, set[str]]:
    """Names that make an error of keys of their caller's choice -> their own named parameters: the classes but those
    whose metadata is never told, and functions that pass keys on.
    """
    found = {
        cls.__name__: NO_KEYS | {"session", "round_"}
        for cls in CLASSES
        if ERRORS[cls.reason].code.value[0] not in FAULT_NUMBERS
    }
    for _, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None and node.args.kwarg.arg == "metadata":
                if node.returns is not None and ast.unparse(node.returns) == "VerificationError":
                    continue
                named = [*node.args.args, *node.args.kwonlyargs]
                found[node.name] = NO_KEYS | {argument.arg for argument in named}
    return found


@cache
def sources() -> list[tuple[Path, ast.Module]]:
    paths = [path for room in ROOMS for path in sorted((ROOT / room.replace(".", "/")).rglob("*.py"))]
    return [(path, ast.parse(path.read_text("utf-8"))) for path in paths]


@cache
def used() -> list[tuple[str, str]]:
    """(key, place) of all metadata that is given to an error."""
    return [(key, f"{path.relative_to(ROOT)}:{line}") for path, tree in sources() for key, line in used_in(tree)]


def used_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(key, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for keyword in node.keywords if name in makers() and name != "__init__" else ():
                if keyword.arg is not None and keyword.arg not in makers()[name]:
                    yield keyword.arg, node.lineno
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and getattr(target.value, "attr", "") == "metadata":
                    yield ast.literal_eval(target.slice), node.lineno


def test_every_key_of_every_error_stands_in_the_table() -> None:
    found = used()
    assert len(found) > 150, "the scan has gone blind"
    assert [f"{place}: {key}" for key, place in found if key not in METADATA] == []


def test_every_row_of_the_table_is_used() -> None:
    result = {"field", "incident", "truncated"}  # put in by `rgs.api.errors` itself
    result |= {"contradiction"}  # by `rgs.adapters.grpc.peer`, through a function of its own
    assert set(METADATA) - result - {key for key, _ in used()} == set()


def test_one_thing_has_one_key() -> None:
    """A bound is `limit` and what breaks it `value`, whatever they are of."""
    synonyms = {"least", "most", "minimum", "maximum", "expected", "limit_minor", "stake_minor", "cost_minor", "actual"}
    assert not synonyms & set(METADATA)


# --- words that the contract has enums for ----------------------------------------------------------------------------

WORDS: dict[str, tuple[Any, list[str]]] = {
    "ACTION": (common_pb2.Action, [action.value for action in Action]),
    "PHASE": (common_pb2.Phase, [phase.value for phase in Phase]),
    "ROUND_STATUS": (common_pb2.RoundStatus, [status.value for status in RoundStatus]),
    "SWITCH_SCOPE": (admin_pb2.SwitchScope, ["play", "operator", "game", "player"]),
    "REPORT_STATE": (
        reconciliation_pb2.ReportState,
        [runs.RUNNING, runs.DONE, runs.FAILED_STATE, runs.INTERRUPTED],
    ),
}


def info_of(error: RgsError) -> ErrorInfo:
    info = ErrorInfo()
    status_of(error, method="m", request_id="", now_ms=1).details[0].Unpack(info)
    return info


@pytest.mark.parametrize("key", ENUMS)
def test_a_word_of_an_enum_is_told_by_its_name(key: str) -> None:
    enum, words = WORDS[ENUMS[key]]
    kind = ReportNotDoneError if key == "state" else IllegalActionError
    for word in words:
        result = info_of(kind("no", **{key: word})).metadata[key]
        assert result in enum.keys(), (key, word)  # noqa: SIM118 - a wrapper of an enum is no mapping


def test_the_state_of_a_table_stays_in_words() -> None:
    for kind in (TableStateError, TableChangedError, ChatClosedError):
        assert info_of(kind("no", state="paused from deciding flop")).metadata["state"] == "paused from deciding flop"


def test_several_words_are_several_names() -> None:
    error = IllegalActionError("no", legal="check play_4x", action=Action.FOLD, phase=Phase.PREFLOP)
    result = info_of(error).metadata
    assert (result["legal"], result["action"], result["phase"]) == (
        "ACTION_CHECK ACTION_PLAY_4X",
        "ACTION_FOLD",
        "PHASE_PREFLOP",
    )
