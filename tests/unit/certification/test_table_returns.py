"""Measured returns and the battery over rounds of tables: a draw counts once, money by the seat, and no seat counts as
an independent round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from certification import monitor
from certification.statistics.battery import rounds
from certification.statistics.battery.returns import dealt_seat, strata_of
from certification.statistics.battery.rounds import SeatPlayed
from rgs.core.cards import Card, format_card
from rgs.core.returns.distributions import load_laws
from rgs.core.returns.evidence import bound_evidence
from rgs.core.returns.figures import MEANS_PER_ANTE, keys_of, played, played_at_table
from rgs.core.returns.tally import ReturnTally, format_tally
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.tables.joined import joined_final, joined_opening
from tests.support.log.logs import make_log
from tests.support.records.audited import entries_of
from tests.support.records.table_day import STAKES, TableDay, seated, table_day
from tests.support.service.monitored import UTH, fair, final_of, opening_of, played_seat, raising, seeded

RULESETS = ("uth-online", "uth-seven-box", "uth-lugano")


def written(folder: Path, lines: list[bytes], name: str = "export.jsonl") -> str:
    path = folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def lines_of(day: TableDay, *numbers: int) -> list[bytes]:
    """Everything but the links of players other than these (from 1)."""
    others = [player.session_id for nth, player in enumerate(day.players, 1) if nth not in numbers]
    kept = []
    for line in day.factory.lines:
        _, body = parse_statement(parse_envelope(parse_line(line).envelope))
        if body.get("session_id") not in others:
            kept.append(line)
    return kept


def tally_of(*places: str, ruleset: str = "uth-online") -> ReturnTally:
    watch = monitor.run(places)
    assert watch.finish() == 0
    return watch.rulesets[load_ruleset(ruleset).sha256].tally


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_round_of_a_table_counts_once_and_its_money_by_the_seat(tmp_path: Path, ruleset: str) -> None:
    day = table_day(ruleset)
    tally = tally_of(written(tmp_path, day.factory.lines), ruleset=ruleset)
    assert tally.life.rounds == 3  # two settled, and the void that showed its deck; none for the one never dealt
    assert (tally.voids, tally.unseen) == (6, 3)
    counts = tally.life.counts
    assert [sum(counts[figure].values()) for figure in ("showdown", "dealer", "hand", "trips", "main", "cards")] == [
        3, 3, 3, 3, 3, 27
    ]  # fmt: skip
    money = tally.money["EUR"]
    assert money["ante"][0] == money["blind"][0] == 2 * 3 * STAKES["ante"]
    assert money["trips"][0] == 2 * 3 * STAKES["trips"]
    assert sum(staked for staked, _ in money.values()) + 6 * 220 == sum(player.staked for player in day.players)
    assert sum(returned for _, returned in money.values()) + 6 * 220 == sum(player.returned for player in day.players)


def test_the_main_bets_count_with_the_mean_of_the_seats(tmp_path: Path) -> None:
    day = seated()
    day.table.play(day.workers[0], day.stakes, {"preflop": {1: "play_4x"}, "flop": {2: "play_2x"}})
    tally = tally_of(written(tmp_path, day.factory.lines))
    nets = [Fraction(0)] * 3
    for line in day.factory.lines:
        kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
        if kind.name == "seat_final":
            nets[int(body["seat_no"]) - 1] = Fraction(
                sum(int(row["returned_minor"]) - int(row["stake_minor"]) for row in body["settlement"]
                    if row["bet"] != "trips"), STAKES["ante"]
            )  # fmt: skip
    assert len(set(nets)) == 3
    (key,) = tally.life.counts["main"]
    mean = sum(nets, Fraction(0)) / 3
    assert Fraction(key) <= mean < Fraction(key) + Fraction(1, MEANS_PER_ANTE)


@pytest.mark.parametrize("ruleset", ["uth-online", "uth-seven-box"])
def test_an_export_and_a_log_count_alike(tmp_path: Path, ruleset: str) -> None:
    day = table_day(ruleset)
    make_log(tmp_path / "log", entries_of(day.factory))
    of_export = tally_of(written(tmp_path, day.factory.lines), ruleset=ruleset)
    assert format_tally(tally_of(str(tmp_path / "log"), ruleset=ruleset)) == format_tally(of_export)


def test_files_of_two_operators_and_files_twice_count_each_draw_once_and_each_seat_once(tmp_path: Path) -> None:
    day = table_day()
    whole = written(tmp_path, day.factory.lines)
    first, others = written(tmp_path, lines_of(day, 1), "one"), written(tmp_path, lines_of(day, 2, 3), "others")
    expected = tally_of(whole)
    both = tally_of(first, others)
    assert both.life.rounds == expected.life.rounds == 3
    assert both.money == expected.money
    assert both.voids == expected.voids
    figures = ("showdown", "dealer", "hand", "cards", "trips")
    assert {figure: both.life.counts[figure] for figure in figures} == {
        figure: expected.life.counts[figure] for figure in figures
    }
    watch = monitor.run([whole, whole])
    assert watch.finish() == 0
    assert format_tally(watch.rulesets[load_ruleset("uth-online").sha256].tally) == format_tally(expected)
    assert watch.unread == {"rounds that came before": 12}


def test_a_table_waits_for_its_seats_and_others_wait_for_it(tmp_path: Path) -> None:
    day = seated()
    for phase in (0, 1):
        day.table.fix(day.workers[0], day.stakes)
        day.table.deal(day.workers[0])
        day.table.open_seats(day.workers[0])
        for name in ("preflop", "flop", "river"):
            day.table.window(name, {})
        if phase == 0:
            day.table.reveal(day.workers[1])
            day.table.end_seats(day.workers[1])
    watch = monitor.run([written(tmp_path, day.factory.lines)])
    assert watch.finish() == 1
    (counted,) = watch.rulesets.values()
    assert counted.tally.life.rounds == 1
    day.table.reveal(day.workers[1])
    for seat in day.table.seats[:2]:
        day.table.end_seat(day.workers[1], seat)
    assert monitor.run([written(tmp_path, day.factory.lines)]).finish() == 1
    day.table.end_seat(day.workers[1], day.table.seats[2])
    assert tally_of(written(tmp_path, day.factory.lines)).life.rounds == 2


def test_finals_without_their_table_are_said(tmp_path: Path) -> None:
    day = table_day()
    cut = [line for line in day.factory.lines if b"table-deal" not in line]
    watch = monitor.run([written(tmp_path, cut)])
    assert (watch.finish(), watch.rulesets) == (0, {})
    assert watch.unread == {"finals without their opening": 12}
    cut = [line for line in day.factory.lines if b"table-final" not in line]
    watch = monitor.run([written(tmp_path, cut)])
    assert watch.unread == {"seats without the table_final of their round": 12}
    assert watch.rulesets == {}


# --- what is not independent ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_seats_of_one_hand_raise_no_false_alarm() -> None:
    """Planted: each seat as a round of its own. In fair streams of a full table that alarms; one round a hand does
    not.
    """
    laws = load_laws(UTH)
    assert laws is not None
    limit, seats, alone, together = ReturnTally().life.limit(6), 120, 0, 0
    for stream in range(30):
        chance = seeded(f"table {stream}")
        apart, table = ReturnTally(), ReturnTally()
        for _ in range(8):
            seat = played_seat(UTH, fair(chance), raising)
            opening, final = opening_of(seat, 0), final_of(seat)
            for _ in range(seats):
                apart.add(played(UTH, opening, final), "EUR")
            table.add(
                played_at_table(UTH, [(opening, final_of(seat, seat_no=nth)) for nth in range(1, seats + 1)]), "EUR"
            )
        assert table.life.rounds == 8
        alone += bound_evidence(laws.main, apart.life.counts["main"]) >= limit
        together += bool(table.alarms(laws))
    assert (alone > 3, together) == (True, 0)


def test_a_mean_is_rounded_down_and_one_seat_is_exact() -> None:
    chance = seeded("mean")
    pairs = []
    for nth in range(1, 8):
        seat = played_seat(UTH, fair(chance), raising, ante=700)
        pairs.append((opening_of(seat, 0), final_of(seat, seat_no=nth)))
        one = played_at_table(UTH, pairs[-1:])
        assert one.keys == keys_of(UTH, *pairs[-1])
        nets = [Fraction(keys_of(UTH, *pair)["main"][0]) for pair in pairs]
        mean = Fraction(played_at_table(UTH, pairs).keys["main"][0])
        exact = sum(nets, Fraction(0)) / nth
        assert mean <= exact < mean + Fraction(1, MEANS_PER_ANTE)
        assert mean == (exact if nth == 1 else Fraction(math.floor(100 * exact), 100))


def test_the_side_bet_of_the_first_seat_that_made_it_counts() -> None:
    chance = seeded("side")
    pairs = []
    for nth, side in ((1, 0), (2, 50), (3, 50)):
        seat = played_seat(UTH, fair(chance), raising, side=side)
        pairs.append((opening_of(seat, 0), final_of(seat, seat_no=nth)))
    keys = played_at_table(UTH, list(reversed(pairs))).keys
    assert keys["trips"] == keys_of(UTH, *pairs[1])["trips"]
    assert keys["cards"] == keys_of(UTH, *pairs[0])["cards"]
    again = played_at_table(UTH, pairs, is_counted=True)
    assert (again.keys, again.unseen) == ({}, 3)
    assert again.money["trips"][0] == 100


def test_a_void_that_does_not_tell_what_would_have_been_gives_no_figures() -> None:
    seat = played_seat(UTH, fair(seeded("void")), raising)
    final = final_of(seat, void=True)
    assert played_at_table(UTH, [(opening_of(seat, 0), final)]).unseen == 0
    bare = {**final, "void": {}}
    assert played_at_table(UTH, [(opening_of(seat, 0), bare)]).unseen == 1


# --- the form of solo play --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_seat_is_joined_with_its_table(ruleset: str) -> None:
    day = table_day(ruleset)
    bodies = {}
    for line, hash_ in zip(day.factory.lines, day.factory.hashes, strict=True):
        kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
        bodies[hash_] = (kind.name, body)
    finals = [body for kind, body in bodies.values() if kind == "seat_final"]
    assert len(finals) == 12
    shown = 0
    for final in finals:
        table_final, opening = bodies[final["table_final"]][1], bodies[final["opening"]][1]
        deal = bodies[opening["deal"]][1]
        table_round = bodies[deal["deal"]["table_round"]][1]
        first, last = joined_opening(table_round, deal, opening), joined_final(table_final, final)
        assert first["commitment"] == deal["commitment"]
        assert first["deal"]["ruleset"]["id"] == ruleset
        outcome = last.get("outcome") or last["void"].get("would_have_outcome")
        assert ("cards" in last) == (outcome is not None)
        if outcome is not None:
            shown += 1
            assert {"dealer_hand", "dealer_qualifies", "outcome", "player_hand"} <= outcome.keys()
            assert last["cards"].keys() == {"board", "burns", "dealer_cards", "hole_cards"}
        assert "would_have_been" not in last
        if last["status"] == "void":
            assert [one["party"] for one in last["void"]["approvals"]] == ["admin-1", "admin-2"]
    assert shown == 9


# --- the battery ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruleset", RULESETS)
def test_the_battery_takes_each_draw_of_a_table_once(tmp_path: Path, ruleset: str) -> None:
    day = table_day(ruleset)
    path = Path(written(tmp_path, day.factory.lines))
    taken: list[SeatPlayed] = []
    recorded = rounds.read([path], taken.append)
    assert recorded.unread == {"voids that reveal no transcript": 1}
    assert len(recorded.transcripts) == 3
    assert [seat.seat_no for seat in taken] == [1, 2, 3] * 3
    assert [seat.status for seat in taken] == ["settled"] * 6 + ["void"] * 3
    assert {seat.node for seat in taken} == {"node-1", "node-2"}
    assert sum("all" in set(strata_of(seat)) for seat in taken) == 3
    for nth in range(0, 9, 3):
        hands = {dealt_seat(seat).hole_cards for seat in taken[nth : nth + 3]}
        assert len(hands) == (1 if ruleset == "uth-online" else 3)
    finals = [body for kind, body in map(parsed, day.factory.lines) if kind == "table_final" and "cards" in body]
    for seat, final in zip(taken[::3], finals, strict=True):
        assert final["cards"]["board"] == faces(dealt_seat(seat).board)
    again: list[SeatPlayed] = []
    recorded = rounds.read([path, path], again.append)
    assert len(again) == 9
    assert recorded.unread["rounds that came before"] == 12


def test_the_battery_takes_a_draw_once_from_the_files_of_two_operators(tmp_path: Path) -> None:
    day = table_day()
    taken: list[SeatPlayed] = []
    files = [Path(written(tmp_path, lines_of(day, *numbers), name)) for name, numbers in (("a", (3,)), ("b", (1, 2)))]
    assert len(rounds.read(files, taken.append).transcripts) == 3
    assert len(taken) == 9
    assert sum("all" in set(strata_of(seat)) for seat in taken) == 3


def parsed(line: bytes) -> tuple[str, dict[str, Any]]:
    kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
    return kind.name, body


def faces(cards: Sequence[Card]) -> list[str]:
    return [format_card(card) for card in cards]
