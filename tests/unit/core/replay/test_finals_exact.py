"""Finals, discarded draws and seats by the word: the rule that refuses is the one that is named."""

from __future__ import annotations

import pytest

from tests.support.records.factory import Body, RecordFactory
from tests.support.records.lies import lie_at, put
from tests.support.records.lying import played, table_of_three, void_factory
from tests.support.records.replaying import planted, replay_lines
from tests.unit.core.replay.test_keys_exact import Instant


def words(factory: RecordFactory) -> list[str]:
    return [failure.message for failure in replay_lines(factory).failures]


@pytest.mark.parametrize("change", [lambda drawn: drawn[:-1], lambda drawn: drawn + b"\x00"], ids=["less", "more"])
def test_the_transcript_of_a_discarded_draw_is_that_of_one_shuffle(change: object) -> None:
    """Whatever it was discarded for: else a server could hide what it drew."""

    def discarded(bend: object = bytes) -> RecordFactory:
        factory = RecordFactory("discarded")
        one = factory.start("rgs-1")
        draw_no, reseeds, transcript = factory.draw(one)
        factory.discard(one, (draw_no, reseeds, bend(transcript)))  # type: ignore[operator]
        factory.end(one)
        return factory

    assert replay_lines(discarded()).failures == []
    assert replay_lines(discarded(change)).checks == ["13 transcript"]


@pytest.mark.parametrize(("table", "most"), [(False, 1), (True, 7)])
def test_no_more_seats_are_dealt_than_the_game_has(table: bool, most: int) -> None:
    def lie(kind: str, _: int, body: Body) -> None:
        if kind == "round_opening":
            body["deal"]["seats"] = str(most + 1)

    reported = f"{most + 1} seats where at most {most} may be dealt"
    assert reported in words(table_of_three(lie) if table else played(lie=lie))


def test_a_void_whose_deck_is_lost_has_no_outcome() -> None:
    outcomes: list[Body] = []
    played(lie=lie_at("round_final", 1, lambda body: outcomes.append(body["outcome"])))
    factory = void_factory(lie_at("round_final", 1, put("outcome", value=outcomes[0])), "DECK_UNRECOVERABLE")
    assert words(factory) == ["outcome does not belong into this final of status void"]


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("blind is not the ante", "bets ante 100, blind 98 where ante 100, blind 100 are due"),
        ("play bet not debited", "staked 150, debited 60"),
        ("action in another phase", "action 1 is taken at river, the round is at preflop"),
        ("action out of time", "action 2 at 2001-01-01T00:00:00.000Z is out of order"),
        ("action after the final", "action 2 at 2099-12-31T23:59:59.999Z is out of order"),
        ("action underpriced", "action 2 is priced 199, play_2x costs 200"),
        ("check with a price", "action 1 is priced 1, check costs 0"),
        ("staked more", "staked 451, the bets come to 450"),
        ("returned less", "returned 1449, the bets return 1450"),
        ("bet returns less", "blind: blind 100 win 399 where blind 100 win 400 is due"),
        ("timer's decision sent by operator-1", "action 1 by timer is sent by operator-1"),
    ],
)
def test_the_rule_that_is_broken_is_named(name: str, reported: str) -> None:
    assert planted(name)[0] == reported


@pytest.mark.parametrize("by", ["timer", "rule"])
def test_who_is_no_player_takes_the_default_decision_only(by: str) -> None:
    factory = RecordFactory("default")
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.deal(one, [player], {"ante": 100})
    factory.act(player, ["play_4x"], by=by)
    factory.settle(one, player)
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    assert words(factory) == [f"action 1 by {by} is not the ruleset's default"]


def test_a_void_may_be_signed_in_the_millisecond_of_its_last_approval() -> None:
    factory = Instant("instant")
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player)
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    assert words(factory) == []
