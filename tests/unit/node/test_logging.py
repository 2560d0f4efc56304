"""The log: one JSON line an event, from one clock, and no secret in it, whatever is handed over."""

from __future__ import annotations

import io
import json
import logging
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import structlog

from rgs.core.errors import InvalidFieldError
from rgs.node.logging import BUFFER_BYTES, FLUSH_AFTER_MS, LIBRARY_LINES_MAX, WITHHELD, Log
from tests.support.clocks import ManualClock

SECRET = "5ec7e7" * 8


@dataclass
class Deal:
    cards: str


class Colour(StrEnum):
    RED = "red"


class Made:
    """A log with its file, its clock and what people saw."""

    def __init__(self, folder: Path, level: str = "info") -> None:
        self.path = folder / "log" / "rgs.log"
        self.clock = ManualClock(1_763_764_200_123)
        self.people = io.StringIO()
        self.log = Log(self.path, level, self.clock, people=self.people)

    def lines(self) -> list[dict[str, Any]]:
        self.log.flush()
        return [json.loads(line) for line in self.path.read_text("ascii").splitlines()]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    made = Made(tmp_path)
    with made.log:
        yield made


def test_an_event_is_one_line_of_ascii_json_with_the_clocks_time(made: Made) -> None:
    structlog.get_logger().info("served", address="127.0.0.1:1", calls=3, slow=False, who=None, text="è\nnewline")
    assert made.lines() == [
        {
            "time": "2025-11-21T22:30:00.123Z",
            "level": "info",
            "event": "served",
            "address": "127.0.0.1:1",
            "calls": 3,
            "slow": False,
            "who": None,
            "text": "è\nnewline",
        }
    ]
    assert list(made.lines()[0])[:3] == ["time", "level", "event"]
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name", ["salt", "transcript", "deck", "seed", "key", "kek", "private", "node_key", "Private-Block", "salts", "KEK"]
)
def test_a_field_with_a_denied_word_is_withheld_at_every_depth(made: Made, name: str) -> None:
    structlog.get_logger().warning("x", **{name: SECRET}, inner={"list": [{name: [SECRET]}]})
    text = made.path.read_text()
    assert SECRET not in text + made.people.getvalue()
    (line,) = made.lines()
    assert line[name] == WITHHELD
    assert line["inner"] == {"list": [{name: WITHHELD}]}


@pytest.mark.parametrize("name", ["keyid", "seat_no", "decking", "round_id", "monkey"])
def test_a_field_that_only_sounds_like_one_is_kept(made: Made, name: str) -> None:
    structlog.get_logger().info("x", **{name: "kept"})
    assert made.lines()[0][name] == "kept"


@pytest.mark.parametrize(
    "value", [SECRET.encode(), bytearray(SECRET.encode()), Deal(SECRET), Exception(SECRET), lambda: SECRET]
)
def test_bytes_and_objects_are_never_rendered(made: Made, value: object) -> None:
    structlog.get_logger().info("x", value=value, several=[value], mapping={"a": value})
    (line,) = made.lines()
    assert line["value"] == line["mapping"]["a"] == WITHHELD
    assert line["several"] == [WITHHELD]
    assert SECRET not in json.dumps(line) + made.people.getvalue()


def test_plain_data_is_rendered(made: Made) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    structlog.get_logger().info(
        "x", path=Path("a/b"), colour=Colour.RED, nan=float("nan"), part=0.5, both=(1, "b"), endless=endless
    )
    (line,) = made.lines()
    assert (line["path"], line["colour"], line["nan"], line["part"], line["both"]) == (
        "a/b",
        "red",
        "nan",
        0.5,
        [1, "b"],
    )
    assert WITHHELD in json.dumps(line["endless"])


def test_an_exception_tells_its_type_and_place_and_its_message_only_if_it_is_ours(made: Made) -> None:
    def fail(error: Exception) -> None:
        raise error

    for error in (ValueError(SECRET), InvalidFieldError("amount is 3", field="amount")):
        try:
            fail(error)
        except (ValueError, InvalidFieldError):
            structlog.get_logger().exception("failed")
    foreign, ours = made.lines()
    assert foreign["error"] == "ValueError"
    assert "message" not in foreign
    assert foreign["frames"][-1].startswith("test_logging.py:")
    assert foreign["frames"][-1].endswith(" fail")
    assert (ours["error"], ours["reason"], ours["message"]) == ("InvalidFieldError", "INVALID_FIELD", "amount is 3")
    assert SECRET not in made.path.read_text()


def test_libraries_are_heard_without_their_values(made: Made) -> None:
    logger = logging.getLogger("some.library")
    logger.info("not heard")
    logger.warning("sent %s", SECRET)
    try:
        raise KeyError(SECRET)
    except KeyError:
        logger.exception("broken\n%s", SECRET)
    logger.error(Deal(SECRET))
    lines = made.lines()
    assert [(line["level"], line["library"], line["template"]) for line in lines] == [
        ("warning", "some.library", "sent %s"),
        ("error", "some.library", "broken"),
        ("error", "some.library", WITHHELD),
    ]
    assert lines[1]["error"] == "KeyError"
    assert SECRET not in made.path.read_text()


def test_libraries_that_say_too_much_are_told_by_their_number(made: Made) -> None:
    for _ in range(1_000):
        logging.getLogger("some.library").error("a client has gone")
    made.log.flush()
    made.log.flush()
    logging.getLogger("some.library").error("another")
    lines = made.lines()
    assert [line["event"] for line in lines] == ["library"] * LIBRARY_LINES_MAX + ["library_lines_left_out", "library"]
    assert lines[LIBRARY_LINES_MAX]["count"] == 1_000 - LIBRARY_LINES_MAX


def test_the_level_is_the_least_that_is_kept(tmp_path: Path) -> None:
    made = Made(tmp_path, "warning")
    with made.log:
        logger = structlog.get_logger()
        logger.info("low")
        logger.warning("high")
        assert [line["event"] for line in made.lines()] == ["high"]


def test_lines_wait_in_the_buffer_until_a_warning_or_a_second_has_passed(made: Made) -> None:
    logger = structlog.get_logger()
    logger.info("zero")
    assert made.path.read_text().count("\n") == 1, "at the start every line is written at once"
    made.log.quiet()
    logger.info("one")
    assert made.path.read_text().count("\n") == 1
    logger.warning("two")
    assert made.path.read_text().count("\n") == 3
    made.clock.time_ms += FLUSH_AFTER_MS - 1
    logger.info("three")
    assert made.path.read_text().count("\n") == 3
    made.clock.time_ms += 1
    logger.info("four")
    assert made.path.read_text().count("\n") == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_does_not_stop_the_game() -> None:
    with Log(Path("/dev/full"), "info", ManualClock(1_763_764_200_123), people=None):
        logger = structlog.get_logger()
        for _ in range(3):
            logger.warning("lost", text="x" * BUFFER_BYTES)


def test_people_hear_the_start_only_and_no_control_characters(made: Made) -> None:
    logger = structlog.get_logger()
    logger.info("listening", address="127.0.0.1:1", odd="a\x1b[2Jb")
    made.log.quiet()
    logger.info("later")
    assert made.people.getvalue() == 'rgs: listening address=127.0.0.1:1 odd="a\\u001b[2Jb"\n'
    assert len(made.lines()) == 2


def test_after_the_end_nothing_is_written_and_the_standard_logging_is_as_before(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    made = Made(tmp_path)
    logger = structlog.get_logger()
    logger.info("kept")
    bound = logger.bind()
    made.log.close()
    bound.info("dropped")
    made.log.close()
    assert [line["event"] for line in made.lines()] == ["kept"]
    assert (root.level, list(root.handlers)) == before
