"""Key statements in the log: once, in the order of the bundle, and what `certify log` says where they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.core.times import format_time
from tests.audited import SEEN_S, Case, a_round, entries_of
from tests.factory import House
from tests.logs import ORIGIN
from tests.unit.certification.audit.test_certify_omission import DAY_MS, omitted


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A house of two nodes that plays; nothing published yet."""
    house = House("keys logged")
    worker = house.start("node-1-b1-w0")
    house.start("node-2-b1-w0", "node-2")
    player = house.open(worker)
    house.buy(worker, player, 50_000)
    a_round(house, worker, player)
    return Case(tmp_path, house)


def told(case: Case) -> tuple[int, int]:
    return case.report["key_statements"]["in_log"], case.report["key_statements"]["in_bundle"]


def test_key_statements_of_a_log_are_accepted_and_counted(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    entries, bundle = entries_of(case.house), case.house.bundle
    assert len(bundle) == 3
    case.publish([*bundle[:2], *entries[:4]])
    assert case.audit() == 0
    assert told(case) == (2, 3), "that the log has not come to the last one is no failure"
    assert "2 of 3 statements are in the log" in capsys.readouterr().out
    # The next run knows how far it came.
    case.publish([*bundle[:2], *entries[:4], bundle[2], *entries[4:]])
    assert case.audit() == 0
    assert told(case) == (3, 3)
    assert case.report["statements"]["node_key"] == 2
    case.publish([*bundle[:2], *entries[:4], bundle[2], *entries[4:], bundle[1]])
    assert case.audit() == 1
    assert case.report["failures"][-1]["message"] == "statement 2 of the key bundle stands in the log before"


def test_a_log_from_before_has_none_and_is_good(case: Case) -> None:
    case.publish()
    assert case.audit() == 0
    assert told(case) == (0, 3)


Arrange = Callable[[list[bytes], list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("arrange", "message"),
    [
        (lambda keys, rest: [keys[0], keys[2], *rest], "statement 3 of the key bundle is in the log, and 2 is not"),
        (lambda keys, rest: [keys[1], *rest], "statement 2 of the key bundle is in the log, and 1 is not"),
        (lambda keys, rest: [keys[0], keys[0], *rest], "statement 1 of the key bundle stands in the log before"),
        (lambda keys, rest: [keys[0], keys[2], keys[1], *rest], "statement 3 of the key bundle is in the log"),
    ],
)
def test_one_that_is_left_out_or_comes_twice_fails(case: Case, arrange: Arrange, message: str) -> None:
    case.publish(arrange(case.house.bundle, entries_of(case.house)))
    assert case.audit() == 1
    assert case.checks == {"3 key"}
    assert message in case.report["failures"][0]["message"]


def test_one_that_is_not_in_the_bundle_fails(case: Case) -> None:
    house = case.house
    stranger = house.seal(house.root, "revocation", {"key": "0" * 64, "reason": "STOLEN"})
    case.publish([*house.bundle, stranger, *entries_of(house)])
    assert case.audit() == 1
    assert "is not in the key bundle" in case.report["failures"][0]["message"]


def test_a_root_s_clock_makes_nothing_overdue(case: Case) -> None:
    """A key statement of next year, by an offline machine whose clock is wrong: no round and no receipt is late."""
    house = case.house
    late = house.clock_ms + 400 * DAY_MS
    before, house.clock_ms = house.clock_ms, late
    house.node("node-9")
    house.clock_ms = before
    entries = entries_of(house)
    case.publish([*entries[:5], *house.bundle])
    assert case.audit() == 1
    assert case.checks == {"log times"}
    assert (case.report["newest_statement"] < "2027", case.report["overdue"]) == (True, [])
    assert omitted(case, entries[5], more=("--delay-s", str(30 * 86_400))) == 3


def test_the_logged_revocation_of_a_root_makes_nothing_fall_that_was_seen_before(case: Case) -> None:
    house = case.house
    entries = entries_of(house)
    case.publish([*house.bundle, *entries])
    assert case.audit() == 0
    where = {"origin": ORIGIN, "size": str(len(entries) + len(house.bundle))}
    time = format_time((SEEN_S + 60) * 1000)
    house.key_statement(house.root, "revocation", {"key": house.root.keyid, "reason": "STOLEN", "time": time, **where})
    case.publish([*house.bundle[:3], *entries, house.bundle[3]])
    for _ in range(2):  # the second run begins behind the revocation
        assert case.audit() == 0
        assert case.report["read_again"] == ""
        assert told(case) == (4, 4)
