"""What the report of `certify log` tells beside failures: each boot's draws, seats, the participation identity, voids
by session and by admin, keys; and that the page holds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.times import format_time
from tests.support.log.logs import ORIGIN
from tests.support.records.audited import SEEN_S, Case, a_round
from tests.support.records.factory import RecordFactory
from tests.support.records.parts import SessionRecord, Worker


def opened(
    harness: RecordFactory, name: str, node: str = "node-1", boot_no: int = 1, **more: Any
) -> tuple[Worker, SessionRecord]:
    worker = harness.start(name, node, boot_no, **more)
    player = harness.open(worker)
    harness.buy(worker, player, 50_000)
    return worker, player


def audited(folder: Path, factory: RecordFactory, status: int = 0) -> Case:
    case = Case(folder, factory)
    case.publish()
    assert case.audit("--html", str(folder / "report.html")) == status, case.report["failures"]
    return case


def test_every_boot_has_its_account_of_draws(tmp_path: Path) -> None:
    harness = RecordFactory("boots")
    worker, player = opened(harness, "node-1-b1-w0")
    a_round(harness, worker, player)
    harness.discard(worker)
    harness.end_participation(worker, player)
    harness.close(worker, player)
    harness.end(worker)
    lost, player = opened(harness, "node-2-b1-w0", "node-2")
    a_round(harness, lost, player)
    running, _ = opened(harness, "node-1-b2-w0", boot_no=2, previous_boot=harness.boot(worker))
    harness.lose(running, lost)
    case = audited(tmp_path, harness)
    result = {row["instance"]: row for row in case.report["instances"]}
    assert [result[name]["state"] for name in ("node-1-b1-w0", "node-2-b1-w0", "node-1-b2-w0")] == [
        "ended",
        "lost",
        "running",
    ]
    assert [result[name]["draws_accounted"] for name in result] == [2, 1, 0]
    assert [result[name]["draws_unknown_at_most"] for name in result] == [0, 8, 0]
    assert case.report["exposure"] == [{"node": "node-2", "day": case.report["newest_statement"][:10], "draws": 8}]
    page = (tmp_path / "report.html").read_text()
    assert "node-1-b2-w0" in page
    assert "1 running, 1 ended, 1 lost" in page


def test_what_was_bought_and_won_is_paid_out_or_in_play(tmp_path: Path) -> None:
    harness = RecordFactory("money")
    worker, one = opened(harness, "node-1-b1-w0")
    other = harness.open(worker)
    harness.buy(worker, other, 20_000)
    for player in (one, other):
        a_round(harness, worker, player)
    harness.end_participation(worker, one)
    case = audited(tmp_path, harness)
    (row,) = case.report["money"]
    assert row["bought_minor"] == 70_000
    assert row["in_play_minor"] == other.balance
    assert row["paid_out_minor"] == 70_000 - row["staked_minor"] + row["returned_minor"] - other.balance
    assert one.balance == 0 != other.balance


def test_a_seat_that_was_dealt_and_never_opened_is_caught_once_the_others_are_settled(tmp_path: Path) -> None:
    factory = RecordFactory("seats")
    worker = factory.start("node-1-b1-w0")
    players = [factory.open(worker, "uth-online", table="table-1") for _ in range(2)]
    for player in players:
        factory.buy(worker, player, 50_000)
    factory.deal(worker, players, {"ante": 100}, opened=1)
    case = audited(tmp_path, factory)  # the other may come yet
    factory.act(players[0], ["check", "check", "fold"])
    factory.settle(worker, players[0])
    case.publish()
    assert case.audit() == 1
    assert case.checks == {"9 deal"}
    assert "2 seats were dealt, 1 opened" in case.report["failures"][0]["message"]
    assert case.report["summary"]["rounds_failed"] == 1


def test_voids_are_summed_by_session_and_by_admin(tmp_path: Path) -> None:
    harness = RecordFactory("voids")
    worker, player = opened(harness, "node-1-b1-w0")
    for ante, reason in ((100, "MALFUNCTION"), (200, "MALFUNCTION"), (300, "DECK_UNRECOVERABLE")):
        harness.deal(worker, [player], {"ante": ante})
        harness.void(worker, player, reason)
    case = audited(tmp_path, harness)
    voids = case.report["voids"]
    would_have = sum(int(row["would_have_returned_minor"]) for row in voids[:2])
    assert voids[2]["would_have_returned_minor"] == "unknown"
    sums = {"currency": "EUR", "voids": 3, "staked_minor": 1_200, "would_have_returned_minor": would_have, "unknown": 1}
    assert case.report["voids_by_session"] == [{"session_id": player.session_id, **sums}]
    assert case.report["voids_by_admin"] == [{"approved_by": f"admin-{nth}", **sums} for nth in (1, 2)]
    page = (tmp_path / "report.html").read_text()
    assert page.count(player.session_id) == 4  # three voids, one sum
    assert "DECK_UNRECOVERABLE" in page
    assert "12.00 EUR" in page
    assert "1200" not in page


@pytest.mark.parametrize(
    ("kind", "more", "state"),
    [
        ("revocation", {"reason": "STOLEN"}, "counts for nothing"),
        ("revocation", {"reason": "STOLEN", "origin": ORIGIN, "size": "3"}, f"counts below entry 3 of {ORIGIN}"),
        ("key_end", {"reason": "RETIRED"}, "ended "),
    ],
)
def test_keys_are_told_with_their_state(tmp_path: Path, kind: str, more: dict[str, Any], state: str) -> None:
    harness = RecordFactory("keys")
    opened(harness, "node-1-b1-w0")
    harness.node("node-2")
    time = format_time(SEEN_S * 1000)
    harness.key_statement(harness.root, kind, {"key": harness.nodes["node-2"].keyid, "time": time, **more})
    case = audited(tmp_path, harness)
    result = {row["name"]: row["state"] for row in case.report["keys"]}
    assert (result[""], result["node-1"]) == ("in force", "in force")
    assert state in result["node-2"]
    assert time in result["node-2"]
    assert state in (tmp_path / "report.html").read_text()
