"""Which rounds count as verified, failed and open, and what a fault leaves of the count."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rgs.core.replay import KeyBook, Replay
from tests.support.records.factory import Body, Lie, RecordFactory
from tests.support.records.lies import Planted, lie_at, put
from tests.support.records.lying import begun, ended, table_of_three, two_rounds
from tests.support.records.planted import PLANTED
from tests.support.records.replaying import RULEBOOK, Verdict, replay_file, replay_lines, words

NO_RULES = {"id": "uth-solo", "sha256": "0" * 64, "version": "1"}


def planted(name: str) -> Verdict:
    one: Planted = next(each for each in PLANTED if each.name == name)
    factory = one.build()
    return replay_file(one.exporting(factory), factory.keys())


def named(verdict: Verdict) -> int:
    """How many rounds the failures name."""
    return len({failure.metadata["round_id"] for failure in verdict.failures if "round_id" in failure.metadata})


# --- one id, one round ---


def again(change: Body) -> RecordFactory:
    """Two rounds, the second with the id of the first; this, too, is changed in its deal."""
    rounds: list[str] = []

    def lie(kind: str, count: int, body: Body) -> None:
        if kind == "round_opening":
            rounds.append(body["deal"]["round_id"])
            body["deal"].update({"round_id": rounds[0]}, **(change if count == 2 else {}))

    return two_rounds(lie)


@pytest.mark.parametrize("change", [{}, {"table": "table-1"}], ids=["the id alone", "another table"])
def test_a_round_whose_id_is_used_again_no_longer_counts(change: Body) -> None:
    verdict = replay_lines(again(change))
    assert "the round id was used before" in words(verdict)
    assert verdict.rounds == (0, named(verdict), 0)


@pytest.mark.parametrize("name", ["round id twice", "round id thrice", "round id of a failed round"])
def test_a_round_id_that_comes_again_leaves_nothing_verified(name: str) -> None:
    verdict = planted(name)
    assert "the round id was used before" in words(verdict)
    assert verdict.rounds == (0, named(verdict), 0)


def test_a_round_that_is_ended_again_no_longer_counts() -> None:
    reported: Body = {}
    factory, one, player = begun(lie=lie_at("round_final", 1, reported.update))
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    for field in ("instance", "statement_no", "link_no", "previous", "session_id", "time"):
        del reported[field]
    factory.link(one, player, "round_final", reported)
    verdict = replay_lines(ended(factory, one, player))
    assert "its opening is missing" in words(verdict)
    assert verdict.rounds == (1, 1, 0)


# --- the seats of a round ---


def table(
    seats: int, *, opened: int | None = None, settled: int | None = None, lie: Lie | None = None
) -> RecordFactory:
    """A round of so many seats, of which the first ones are opened and settled."""
    factory = RecordFactory("table", lie=lie)
    one = factory.start("rgs-1")
    players = [factory.open(one, "uth-seven-box", table="box") for _ in range(seats)]
    for player in players:
        factory.buy(one, player, 10_000)
    factory.deal(one, players, {"ante": 100}, opened=opened)
    for player in players[: seats if settled is None else settled]:
        factory.act(player, ["play_4x"])
        factory.settle(one, player)
    return factory if settled is not None else ended(factory, one, *players)


def test_another_draw_of_a_later_seat_is_a_draw() -> None:
    verdict = planted("another draw for a seat")
    assert "instance rgs-1 accounts for draws up to 2, and ends with draw 1" in words(verdict)
    assert verdict.summary.draws_in_rounds == 2
    assert replay_lines(table_of_three()).summary.draws_in_rounds == 1


@pytest.mark.parametrize("seats", [2, 3])
def test_the_root_is_made_again_of_all_seats(seats: int) -> None:
    """Beside the seat's own path: by the last seat that comes. Of one seat its path has told it."""
    reported = "the seats of the round do not have the deal's seats_root"
    assert replay_lines(table(seats)).failures == []
    changed = lie_at("round_opening", 2, put("seat", "bets", 0, "amount_minor", value="200"))
    assert reported in words(replay_lines(table(seats, lie=changed)))
    assert reported not in words(planted("seats root of nothing"))


def test_a_game_by_unknown_rules_is_counted_as_such() -> None:
    factory = two_rounds(lie_at("round_opening", 2, put("deal", "ruleset", value=NO_RULES)))
    assert replay_lines(factory).summary.games == {"ultimate_texas_holdem": 1, "unknown": 1}


# --- where it stops ---


def log(factory: RecordFactory) -> Verdict:
    """The server's lines as a log that goes on."""
    replay = Replay(KeyBook(factory.keys()), RULEBOOK, goes_on=True)
    failures = [failure for line in factory.lines for failure in replay.feed(line)]
    return Verdict([*failures, *replay.finish()], replay.summary)


@pytest.mark.parametrize(
    ("settled", "opened", "rounds", "reported"),
    [
        (3, 3, (1, 0, 0), []),
        (2, 3, (0, 0, 1), []),
        (0, 3, (0, 0, 1), []),
        (1, 2, (0, 0, 1), []),
        (2, 2, (0, 1, 0), ["3 seats were dealt, 2 opened"]),
    ],
)
def test_in_a_log_that_goes_on_a_round_may_be_open(
    settled: int, opened: int, rounds: tuple[int, int, int], reported: list[str]
) -> None:
    """But not settled before all its seats were opened: the openings are one commit."""
    verdict = log(table(3, opened=opened, settled=settled))
    assert (words(verdict), verdict.rounds) == (reported, rounds)


Ending = Callable[[RecordFactory], Verdict]


@pytest.mark.parametrize(("ending", "rounds"), [(log, (0, 0, 1)), (replay_lines, (0, 1, 0))])
def test_a_round_without_its_final_is_open_in_a_log_and_failed_in_a_file(
    ending: Ending, rounds: tuple[int, int, int]
) -> None:
    factory, one, player = begun()
    factory.deal(one, [player], {"ante": 100})
    assert ending(factory).rounds == rounds
