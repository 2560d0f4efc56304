"""A table knows its columns by the type of its rows, and refuses names that are none of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from rgs.store.changes import (
    Answer,
    Draft,
    InstanceHandover,
    InstanceLostError,
    RequestSeenError,
    SessionRaceError,
    StoreError,
    StoreRefusedError,
    StoreUnknownError,
)
from rgs.store.table_records import ChatMessage
from rgs.store.tables import Table
from tests.support.store.shelf import report

ERRORS = (StoreError, StoreUnknownError, InstanceLostError, StoreRefusedError, SessionRaceError, RequestSeenError)


@dataclass(frozen=True, slots=True)
class Kept:
    """A row of three columns."""

    name: str
    place: str
    count: int


@pytest.mark.parametrize("given", ["key", "fixed", "beside"])
def test_a_column_that_is_none_is_refused_when_the_table_is_made(given: str) -> None:
    wrong: dict[str, Any] = {given: ("place", "plaice")}
    with pytest.raises(ValueError, match=r"^table kept has no column plaice$"):
        Table("kept", Kept, **wrong)


def test_what_never_changes_is_in_no_update() -> None:
    table = Table("kept", Kept, key=("name",), fixed=("place",))
    assert table.update() == "UPDATE kept SET count = ?1 WHERE name = ?2"
    assert table.change(Kept("a", "b", 3)) == (3, "a")
    assert table.insert == "INSERT INTO kept (name, place, count) VALUES (?, ?, ?)"


def test_neither_a_transcript_nor_a_key_nor_what_a_player_says_stands_in_a_repr() -> None:
    said = ChatMessage("01", "table-1", 1000, "op-1", "player-1", "Anna", "secret", "")
    assert repr(said).startswith("ChatMessage(message_id='01'")
    assert "secret" not in repr(said)
    assert repr(Draft("event", {"transcript": "secret"})).startswith("Draft(kind='event'")
    assert "secret" not in repr(Draft("event", {"transcript": "secret"}))
    hidden = {name for name, one in InstanceHandover.__dataclass_fields__.items() if not one.repr}
    assert "signer" in hidden


def test_the_errors_of_the_store_have_their_reasons() -> None:
    assert [error("x").reason for error in ERRORS] == [
        *("STORE_UNAVAILABLE", "STORE_OUTCOME_UNKNOWN", "INSTANCE_LOST", "STORE_REFUSED", "SESSION_CHANGED"),
        "REQUEST_SEEN",
    ]


def test_an_answer_row_is_an_answer() -> None:
    """The columns of the query stand in the order of the fields."""
    names = [field.name for field in fields(Answer)]
    assert names == ["party", "method", "request_id", "digest", "body", "time_ms", "envelope"]
    assert [field.name for field in fields(type(report("", 1)))][:3] == [
        "session_id", "stage_no", "regulator_session_id",
    ]  # fmt: skip
