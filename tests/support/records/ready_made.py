"""Ready-made factories: exports that tests replay, bend and break."""

from __future__ import annotations

from typing import Any

from tests.support.records.factory import Lie, RecordFactory


def small_factory(lie: Lie | None = None, seed: str = "small-135", **more: Any) -> RecordFactory:
    """One instance, one session, one round of Ultimate Texas Hold'em with trips:

    The smallest whole export with a round.
    """
    factory = RecordFactory(seed, lie=lie, **more)
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100, "trips": 50}, ["check", "play_2x"])
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    return factory


def large_factory(lie: Lie | None = None, seed: str = "large") -> RecordFactory:
    """Two nodes, three instances, one lost;

    Two games, a table of three, a shared hand; a discarded draw, a void, rules' decisions.
    """
    factory = RecordFactory(seed, lie=lie)
    one = factory.start("rgs-1", "node-1")
    two = factory.start("rgs-2", "node-2")
    anna = factory.open(one)
    factory.buy(one, anna, 20_000)
    factory.play(one, anna, {"ante": 100}, ["play_4x"])
    bert = factory.open(two, "casino-holdem", jurisdiction="it-adm")
    factory.buy(two, bert, 5_000)
    factory.buy(two, bert, 2_500)
    factory.play(two, bert, {"ante": 200, "aa": 10}, ["call"])
    factory.play(two, bert, {"ante": 10}, ["fold"])
    factory.discard(one)
    table = [factory.open(one, "uth-seven-box", table="box-table") for _ in range(3)]
    for player in table:
        factory.buy(one, player, 30_000)
    factory.deal(one, table, {"ante": 60, "trips": 10})
    for player, actions in zip(table, (["play_3x"], ["check", "play_2x"], ["check", "check", "fold"]), strict=True):
        factory.act(player, actions, by="player")
    for player in table:
        factory.settle(one, player)
    # The first instance is lost with a round open; the second goes on with its sessions.
    factory.deal(one, [anna], {"ante": 20, "trips": 20})
    factory.lose(two, one)
    factory.act(anna, ["check", "check", "fold"], by="rule")
    factory.settle(two, anna)
    three = factory.start("rgs-3", "node-1", 2, previous_boot=factory.boot(one))
    crowd = [factory.open(three, "uth-online", table="open-table") for _ in range(2)]
    for player in crowd:
        factory.buy(three, player, 10_000)
    factory.deal(three, crowd, {"ante": 10})
    for player in crowd:
        factory.act(player, ["check", "check", "play_1x"])
        factory.settle(three, player)
    factory.deal(two, [anna], {"ante": 30})
    factory.act(anna, ["check"])
    factory.void(two, anna, paused_by=three)
    factory.deal(two, [anna], {"ante": 30})
    factory.void(three, anna, "DECK_UNRECOVERABLE")
    lugano = factory.open(two, "uth-lugano", table="lugano-1")
    factory.buy(two, lugano, 1_000)
    factory.deal(two, [lugano], {"ante": 10, "trips": 10})
    factory.act(lugano, ["check", "check", "fold"], by="timer")
    factory.settle(two, lugano)
    for player in (anna, bert, lugano, *table, *crowd):
        factory.end_participation(three, player)
        factory.close(three, player)
    factory.close(two, factory.open(two))
    factory.end(two)
    factory.end(three)
    return factory
