"""Key statements in the log: once, in the order of the bundle, and what `certify log` says where they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.core.times import format_time
from tests.support.log.logs import ORIGIN
from tests.support.records.audited import SEEN_S, Case, a_round, entries_of
from tests.support.records.factory import RecordFactory
from tests.unit.certification.audit.test_omission import DAY_MS, omitted


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A factory of two nodes that plays; nothing published yet."""
    factory = RecordFactory("keys logged")
    worker = factory.start("node-1-b1-w0")
    factory.start("node-2-b1-w0", "node-2")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    a_round(factory, worker, player)
    return Case(tmp_path, factory)


def reported(case: Case) -> tuple[int, int]:
    return case.report["key_statements"]["in_log"], case.report["key_statements"]["in_bundle"]


def test_key_statements_of_a_log_are_accepted_and_counted(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    entries, bundle = entries_of(case.factory), case.factory.bundle
    assert len(bundle) == 3
    case.publish([*bundle[:2], *entries[:4]])
    assert case.audit() == 0
    assert reported(case) == (2, 3), "that the log has not come to the last one is no failure"
    assert "2 of 3 statements are in the log" in capsys.readouterr().out
    # The next run knows how far it came.
    case.publish([*bundle[:2], *entries[:4], bundle[2], *entries[4:]])
    assert case.audit() == 0
    assert reported(case) == (3, 3)
    assert case.report["statements"]["node_key"] == 2
    case.publish([*bundle[:2], *entries[:4], bundle[2], *entries[4:], bundle[1]])
    assert case.audit() == 1
    assert case.report["failures"][-1]["message"] == "statement 2 of the key bundle stands in the log before"


def test_a_log_from_before_has_none_and_is_good(case: Case) -> None:
    case.publish()
    assert case.audit() == 0
    assert reported(case) == (0, 3)


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
    case.publish(arrange(case.factory.bundle, entries_of(case.factory)))
    assert case.audit() == 1
    assert case.checks == {"3 key"}
    assert message in case.report["failures"][0]["message"]


def test_one_that_is_not_in_the_bundle_fails(case: Case) -> None:
    factory = case.factory
    stranger = factory.seal(factory.root, "revocation", {"key": "0" * 64, "reason": "STOLEN"})
    case.publish([*factory.bundle, stranger, *entries_of(factory)])
    assert case.audit() == 1
    assert "is not in the key bundle" in case.report["failures"][0]["message"]


def test_a_root_s_clock_makes_nothing_overdue(case: Case) -> None:
    """A key statement of next year, by an offline machine whose clock is wrong: no round and no receipt is late."""
    factory = case.factory
    late = factory.clock_ms + 400 * DAY_MS
    before, factory.clock_ms = factory.clock_ms, late
    factory.node("node-9")
    factory.clock_ms = before
    entries = entries_of(factory)
    case.publish([*entries[:5], *factory.bundle])
    assert case.audit() == 1
    assert case.checks == {"log times"}
    assert (case.report["newest_statement"] < "2027", case.report["overdue"]) == (True, [])
    assert omitted(case, entries[5], more=("--delay-s", str(30 * 86_400))) == 3


def test_the_logged_revocation_of_a_root_makes_nothing_fall_that_was_seen_before(case: Case) -> None:
    factory = case.factory
    entries = entries_of(factory)
    case.publish([*factory.bundle, *entries])
    assert case.audit() == 0
    where = {"origin": ORIGIN, "size": str(len(entries) + len(factory.bundle))}
    time = format_time((SEEN_S + 60) * 1000)
    factory.key_statement(
        factory.root, "revocation", {"key": factory.root.keyid, "reason": "STOLEN", "time": time, **where}
    )
    case.publish([*factory.bundle[:3], *entries, factory.bundle[3]])
    for _ in range(2):  # the second run begins behind the revocation
        assert case.audit() == 0
        assert case.report["read_again"] == ""
        assert reported(case) == (4, 4)
