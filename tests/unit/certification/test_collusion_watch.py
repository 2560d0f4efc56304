"""`certify collusion watch`: who knows the cards of others is found, and nobody else, however badly he plays."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certification.__main__ import main
from certification.collusion.outs import effects, renaming_of
from certification.collusion.rounds import HandReader, SeatDecisions, TableHands, read_hands
from certification.collusion.values import (
    BET,
    FLOPS_OF_BOARD,
    LAST,
    Own,
    game_of,
    new_memo,
    sum_flops,
    unseen_of,
)
from certification.collusion.watch import (
    CLOSE,
    EVERYBODY,
    RESAMPLES,
    PlayerWatch,
    Scorer,
    Series,
    Weight,
    could_have_held,
)
from certification.rtp.enumeration import hole_numbers
from certification.rtp.strategy import Strategy
from rgs.core.cards import Card, format_card, parse_cards
from rgs.core.games.types import Phase
from rgs.core.statements import ExportLine, format_line, parse_envelope, parse_line, parse_statement
from tests.support.log.logs import make_log
from tests.support.records.audited import entries_of
from tests.support.records.table_day import STAKES, TableDay, seated, table_day
from tests.support.service.monitored import fair, seeded
from tests.unit.certification.conftest import Strategies

pytestmark = pytest.mark.slow

SEATS = 7
WORTH_OF_OUT = 0.2
"""What our colluders take off before the flop for each dead card of their ranks, above what is to be expected."""
NOBODY = np.zeros((1, 0), np.int64)
Cards = Sequence[Card]
Plays = Callable[[Phase, float], bool]


@pytest.fixture(scope="module")
def scorer(strategies: Strategies) -> Scorer:
    return Scorer(strategies["uth-seven-box", False])


def best(_: Phase, margin: float) -> bool:
    return margin > 0


def loose(_: Phase, margin: float) -> bool:
    return margin > -0.3


def tight(_: Phase, margin: float) -> bool:
    return margin > 0.3


def perverse(_: Phase, margin: float) -> bool:
    return margin < 0


def decisions(scorer: Scorer, hole: Cards, board: Cards, known: Cards, plays: Plays) -> dict[Phase, bool]:
    """What a player decides who knows these cards. Before the flop he counts the dead cards of his ranks, as people
    do; later he has all the time and a computer.
    """
    bets: dict[Phase, bool] = {}
    own, shown, dead = np.array(hole), np.array(board), np.array(known, np.int64)[None]
    for phase in (Phase.PREFLOP, Phase.FLOP, Phase.RIVER):
        if phase is Phase.PREFLOP:
            margin = float(scorer.margins(phase, own, shown, NOBODY)[0])
            ranks = [card % 13 for card in hole]
            outs = 6 if len(set(ranks)) == 2 else 2
            margin -= WORTH_OF_OUT * (sum(card % 13 in ranks for card in known) - outs * len(known) / 50)
        else:
            margin = float(scorer.margins(phase, own, shown, dead)[0])
        bets[phase] = plays(phase, margin)
        if bets[phase]:
            break
    return bets


def one_player(
    scorer: Scorer, seed: str, rounds: int, plays: Plays = best, *, knows: int = 0, alpha: float = 0.001
) -> tuple[PlayerWatch, int]:
    """The watch over one player at a full table, whose file has his seat only; and the round of the first alarm."""
    chance, watch, found = seeded(seed), PlayerWatch(alpha), 0
    for number in range(rounds):
        deck = [Card(card) for card in fair(chance)]
        holes = tuple((deck[2 * seat], deck[2 * seat + 1]) for seat in range(SEATS))
        board = tuple(deck[2 * SEATS : 2 * SEATS + 5])
        bets = decisions(scorer, holes[0], board, deck[2 : 2 + 2 * knows], plays)
        name = hashlib.sha256(f"{seed} {number}".encode()).hexdigest()
        watch.add(scorer.weigh(TableHands("uth-seven-box", name, holes, board, (SeatDecisions(0, "player-1", bets),))))
        if watch.alarming and not found:
            found = number + 1
    return watch, found


# --- it finds, and it does not accuse ---------------------------------------------------------------------------------


def test_who_knows_all_cards_is_found_within_two_hundred_rounds(scorer: Scorer) -> None:
    watch, found = one_player(scorer, "knows all", 200, knows=SEATS - 1)
    assert 0 < found <= 200
    (series,) = watch.series.values()
    assert (series.player, series.whom) == ("player-1", EVERYBODY)
    assert series.followed > 2 * series.against
    assert series.ratio(0.05) == (series.followed - series.against) * math.log(19)


@pytest.mark.parametrize("plays", [best, loose, tight, perverse])
def test_who_knows_his_own_cards_is_not_however_he_plays(scorer: Scorer, plays: Plays) -> None:
    watch, found = one_player(scorer, "honest", 80, plays)
    (series,) = watch.series.values()
    assert found == 0
    assert series.decisions > 30
    assert series.bets[0] < 0
    assert series.highest < 3


@pytest.mark.parametrize("resamples", [1, RESAMPLES])
@pytest.mark.parametrize("plays", [best, loose, perverse])
def test_the_mean_evidence_of_the_honest_is_one(
    monkeypatch: pytest.MonkeyPatch, scorer: Scorer, plays: Plays, resamples: int
) -> None:
    """Close decisions of one hole and board, with the neighbours dealt anew: the claim that bounds false alarms. It
    holds for any number of sets that are drawn, because what the neighbours held is one of those compared.
    """
    monkeypatch.setattr("certification.collusion.watch.RESAMPLES", resamples)
    chance, sums = seeded("mean"), []
    hole, board = parse_cards(["Kd", "5c"]), parse_cards(["Qh", "9s", "7d", "3c", "2s"])
    bets = {
        phase: plays(phase, float(scorer.margins(phase, np.array(hole), np.array(board), NOBODY)[0]))
        for phase in (Phase.PREFLOP, Phase.RIVER)
    }
    for number in range(400):
        left = [Card(card) for card in fair(chance) if card not in {*hole, *board}]
        holes = (hole, *((left[2 * seat], left[2 * seat + 1]) for seat in range(SEATS - 1)))
        hands = TableHands("uth-seven-box", f"{number:x}", holes, board, (SeatDecisions(0, "player-1", bets),))
        (weight,) = scorer.weigh(hands)
        sums.append(math.exp(weight.evidence))
    error = np.std(sums) / math.sqrt(len(sums))
    assert error > 0.005  # it says something each time
    assert abs(np.mean(sums) - 1) < 4 * error


def test_false_alarms_are_as_rare_as_stated(scorer: Scorer) -> None:
    """120 honest players, watched after every round: at alpha 0.1 twelve of them might alarm, at most."""
    alarms = [
        one_player(scorer, f"stream {number}", 40, (best, loose, tight)[number % 3], alpha=0.2)[1]
        for number in range(120)
    ]
    # Half of alpha goes to pairs, of which there are none here.
    assert sum(map(bool, alarms)) <= 12 + 3 * math.sqrt(120 * 0.1 * 0.9)


def test_who_knows_one_neighbour_is_found_and_named(scorer: Scorer) -> None:
    chance, watch = seeded("pair"), PlayerWatch(0.001)
    for number in range(800):
        deck = [Card(card) for card in fair(chance)]
        holes = tuple((deck[2 * seat], deck[2 * seat + 1]) for seat in range(SEATS))
        board = tuple(deck[2 * SEATS : 2 * SEATS + 5])
        seats = tuple(
            SeatDecisions(
                seat,
                f"player-{seat + 1}",
                decisions(scorer, holes[seat], board, holes[1 - seat] if seat < 2 else (), best),
            )
            for seat in range(3)
        )
        watch.add(scorer.weigh(TableHands("uth-seven-box", f"{number:x}", holes, board, seats)))
    named = {(one.player, one.whom) for one in watch.alarming}
    assert named
    assert named <= {("player-1", "player-2"), ("player-2", "player-1")}


def test_what_neighbours_could_have_held_is_neither_his_nor_on_the_board() -> None:
    deck = fair(seeded("drawn"))
    holes = tuple((Card(deck[2 * seat]), Card(deck[2 * seat + 1])) for seat in range(SEATS))
    hands = TableHands("uth-seven-box", "ab", holes, tuple(map(Card, deck[14:19])), ())
    drawn = could_have_held(hands, 2)
    assert drawn.shape == (RESAMPLES, 2 * (SEATS - 1))
    assert all(len(set(row)) == len(row) for row in drawn.tolist())
    assert {int(card) for card in drawn.flat} == {*range(52)} - {*holes[2], *hands.board}
    assert (drawn == could_have_held(hands, 2)).all()
    assert (drawn != could_have_held(hands, 3)).any()
    assert (drawn != could_have_held(replace(hands, name="ac"), 2)).any()


# --- how it weighs ----------------------------------------------------------------------------------------------------


def test_a_decision_that_is_not_close_does_not_count(scorer: Scorer) -> None:
    holes = (parse_cards(["As", "Ah"]), parse_cards(["2c", "7d"]))
    board = parse_cards(["Ac", "Ad", "Ks", "Kh", "3d"])
    seats = (SeatDecisions(0, "player-1", {Phase.PREFLOP: True}),)
    assert scorer.weigh(TableHands("uth-seven-box", "1", holes, board, seats)) == []
    watch = PlayerWatch(0.001)
    watch.add([])
    assert (watch.rounds, watch.series, watch.alarming) == (1, {}, [])


def test_the_same_round_weighs_the_same_in_every_run(scorer: Scorer, strategies: Strategies) -> None:
    first, _ = one_player(scorer, "again", 12, knows=6)
    again, _ = one_player(Scorer(strategies["uth-seven-box", False]), "again", 12, knows=6)
    assert {key: one.evidence for key, one in first.series.items()} == {
        key: one.evidence for key, one in again.series.items()
    }


def test_the_first_decision_is_weighed_as_exact_values_would(strategies: Strategies, scorer: Scorer) -> None:
    """The straight line of effects against exact values, for a close hole and twelve dead cards."""
    strategy: Strategy = strategies["uth-seven-box", False]
    game, own, memo, chance = game_of(strategy.payments), Own.of(strategy.decisions), new_memo(), seeded("line")
    hole = np.array(parse_cards(["9s", "8s"]), np.int64)
    assert abs(scorer.preflop[hole_numbers()[hole[0], hole[1]]]) < CLOSE[Phase.PREFLOP]
    exact, line = [], []
    for _ in range(10):
        dead = np.array([card for card in fair(chance) if card not in hole][:12], np.int64)
        memo.now[0] += 1
        sums, opened, decided = sum_flops(game, own, memo, hole[0], hole[1], unseen_of(hole[0], hole[1], dead))
        raised = FLOPS_OF_BOARD * (opened + game.preflop_multiple * decided)
        unit = FLOPS_OF_BOARD * math.comb(38, 5) * math.comb(33, 2) * strategy.payments.scale
        exact.append((raised - np.maximum(sums[:, BET], sums[:, LAST]).sum()) / unit)
        line.append(float(scorer.margins(Phase.PREFLOP, hole, hole, dead[None])[0]))
    assert np.corrcoef(exact, line)[0, 1] > 0.9
    assert abs(np.mean(np.array(exact) - np.array(line))) < 0.1


def test_holes_that_differ_in_the_names_of_suits_share_their_effects() -> None:
    for text in ("Kd5c", "5cKd", "9s9h", "Th8h"):
        one, other = parse_cards([text[:2], text[2:]])
        renamed = renaming_of(one, other)
        assert sorted(renamed) == list(range(52))
        assert [card % 13 for card in renamed] == [card % 13 for card in range(52)]
        assert {int(renamed[one]) // 13, int(renamed[other]) // 13} == ({0} if one // 13 == other // 13 else {0, 1})
    assert format_card(int(renaming_of(*parse_cards(["5c", "Kd"]))[parse_cards(["Kd"])[0]])) == "Kc"


def test_cards_that_make_the_hand_worse_by_being_out_have_the_largest_effect(strategies: Strategies) -> None:
    strategy: Strategy = strategies["uth-seven-box", False]
    one, other = parse_cards(["Kd", "5c"])
    moved = effects(game_of(strategy.payments), Own.of(strategy.decisions), one, other, deals=100_000)
    worst = [format_card(int(card))[0] for card in np.argsort(moved)[:6]]
    assert sorted(worst) == ["5", "5", "5", "K", "K", "K"]


def test_evidence_is_bounded_and_a_share_of_it_recovers(scorer: Scorer) -> None:
    series = Series("player-1", EVERYBODY)
    most = math.log(1 + RESAMPLES)
    for _ in range(10):
        series.add(Weight("player-1", EVERYBODY, -3.0, 1, 0, 1))
    assert -10 < series.evidence < 0  # not -30: the smallest share has lost little
    for _ in range(10):
        series.add(Weight("player-1", EVERYBODY, 2.0, 1, 1, 0))
    assert series.highest == series.evidence > 0
    watch, _ = one_player(scorer, "bounded", 30, knows=6)
    assert all(one.evidence <= most * one.rounds for one in watch.series.values())


def test_each_sort_of_series_shares_half_of_alpha() -> None:
    watch = PlayerWatch(0.01)
    pairs = [("a", "b"), ("b", "a"), ("a", "c")]
    watch.add([Weight(*pair, 0.0, 1, 0, 0) for pair in [("a", EVERYBODY), *pairs]])
    assert watch.limit(watch.series["a", EVERYBODY]) == pytest.approx(math.log(2 / 0.01))
    assert watch.limit(watch.series["a", "c"]) == pytest.approx(math.log(2 * 3 / 0.01))
    watch.add([Weight("a", "c", math.log(2000), 1, 1, 0)])
    watch.add([Weight("a", "c", -50.0, 1, 0, 1)])
    (alarm,) = watch.alarming  # what was reached once stays reached
    assert (alarm.player, alarm.whom, alarm.evidence < alarm.highest) == ("a", "c", True)


# --- records ----------------------------------------------------------------------------------------------------------


def written(folder: Path, lines: list[bytes], name: str = "export.jsonl") -> str:
    path = folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def named(lines: list[bytes]) -> list[bytes]:
    """Each session_open with a pseudonym of its own: the factory gives all the same."""
    renamed: list[bytes] = []
    numbers = itertools.count(1)
    for line in lines:
        one = parse_line(line)
        if one.private and "regulator_session_id" in one.private["block"]:
            block = {**one.private["block"], "player": f"p-{next(numbers)}"}
            renamed.append(format_line(ExportLine(one.envelope, {**one.private, "block": block}, one.path)))
        else:
            renamed.append(line)
    return renamed


def shared_rounds(scorer: Scorer, rounds: int, *, players: int = 4, knowing: bool = True) -> TableDay:
    """A table at which everybody knows all cards, or nobody."""
    day = seated("uth-seven-box", players, seed="shared")
    for player in day.players:
        day.factory.buy(day.workers[0], player, 5_000_000)
    for _ in range(rounds):
        table, worker = day.table, day.workers[0]
        table.fix(worker, day.stakes)
        table.deal(worker)
        table.open_seats(worker)
        holes = [one.seat.hole_cards for one in table.seats]
        plans = []
        for place, one in enumerate(table.seats):
            known = [card for other, hole in enumerate(holes) if other != place for card in hole] if knowing else []
            plans.append(decisions(scorer, holes[place], one.seat.board, known, best))
        for phase, bet, other in (
            (Phase.PREFLOP, "play_4x", "check"), (Phase.FLOP, "play_2x", "check"), (Phase.RIVER, "play_1x", "fold")
        ):  # fmt: skip
            table.window(
                phase.value,
                {place: bet if plan[phase] else other for place, plan in enumerate(plans, 1) if phase in plan},
            )
        table.reveal(worker)
        table.end_seats(worker)
    day.end()
    return day


def test_a_record_is_read_as_it_was_played(tmp_path: Path, scorer: Scorer) -> None:
    day = shared_rounds(scorer, 2)
    reader = HandReader()
    rounds = list(read_hands([written(tmp_path, day.factory.lines)], reader))
    assert len(rounds) == 2
    last = rounds[-1]
    assert last.ruleset_id == "uth-seven-box"
    assert list(last.holes) == [one.seat.hole_cards for one in day.table.seats]
    assert last.board == day.table.seats[0].seat.board
    for seat, one in zip(last.seats, day.table.seats, strict=True):
        taken = {Phase(action.phase): action.action.startswith("play") for action in one.actions}
        assert seat.bets == taken
        assert seat.player == one.player.session_id  # the factory's pseudonym is the same for all: it names nobody
    make_log(tmp_path / "log", entries_of(day.factory))
    assert list(read_hands([str(tmp_path / "log")], HandReader())) == rounds
    of_names = list(read_hands([written(tmp_path, named(day.factory.lines), "named")], HandReader()))
    assert [seat.player for seat in of_names[0].seats] == [f"operator-1 p-{number}" for number in (1, 2, 3, 4)]


def test_the_file_of_one_player_shows_the_cards_of_all(tmp_path: Path, scorer: Scorer) -> None:
    day = shared_rounds(scorer, 1)
    others = [player.session_id for player in day.players[1:]]
    lines = [
        line
        for line in day.factory.lines
        if parse_statement(parse_envelope(parse_line(line).envelope))[1].get("session_id") not in others
    ]
    (hands,) = read_hands([written(tmp_path, lines)], HandReader())
    assert [seat.hand for seat in hands.seats] == [0]
    assert list(hands.holes) == [one.seat.hole_cards for one in day.table.seats]


def test_silence_voids_and_shared_hands_do_not_count(tmp_path: Path) -> None:
    reader = HandReader()
    boxes, shared = table_day("uth-seven-box"), table_day("uth-online", seed="online")
    places = [written(tmp_path, day.factory.lines, name) for name, day in (("boxes", boxes), ("shared", shared))]
    rounds = list(read_hands(places, reader))
    assert [[seat.bets for seat in hands.seats] for hands in rounds] == [
        [{Phase.PREFLOP: True}, {Phase.FLOP: True}, {}],
        [{Phase.PREFLOP: False}, {Phase.RIVER: True}, {}],
    ]
    assert reader.unread["void rounds"] == 2
    assert reader.unread["rounds of uth-online, where one hand is open to all"] == 4


def test_rounds_of_one_player_and_of_another_version_do_not_count(tmp_path: Path) -> None:
    day = seated("uth-seven-box", 1)
    day.table.play(day.workers[0], day.stakes, {"preflop": {1: "play_4x"}})
    reader = HandReader()
    assert list(read_hands([written(tmp_path, day.factory.lines)], reader)) == []
    assert reader.unread == {"rounds with one player": 1}
    assert STAKES["ante"] == 100


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_finds_nothing_in_an_honest_record(
    tmp_path: Path, scorer: Scorer, capsys: pytest.CaptureFixture[str]
) -> None:
    export = written(tmp_path, named(shared_rounds(scorer, 6, players=3, knowing=False).factory.lines))
    assert main(["collusion", "watch", export, "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("6 rounds, ")
    assert lines[-1] == "nothing found"
    assert any(line.startswith("operator-1 p-1 ") and EVERYBODY in line for line in lines)
    assert main(["collusion", "watch", "--json", export, "--workers", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["rounds"], document["alpha"]) == ("nothing found", 6, 0.001)
    assert not any(one["alarm"] for one in document["series"])


def test_the_command_finds_a_table_that_shares_its_cards(
    tmp_path: Path, scorer: Scorer, capsys: pytest.CaptureFixture[str]
) -> None:
    day = shared_rounds(scorer, 160, players=7)
    export = written(tmp_path, named(day.factory.lines))
    assert main(["collusion", "watch", export, "--workers", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = [line for line in lines if line.startswith("ALARM: operator-1 p-")]
    assert len([line for line in found if line.endswith(f"knows {EVERYBODY}")]) >= 4
    assert lines[-1] == "alarm"
    assert main(["collusion", "watch", export, "--json", "--workers", "1"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "alarm"


def test_nothing_to_judge_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = written(tmp_path, table_day("uth-online").factory.lines)
    assert main(["collusion", "watch", export]) == 2
    reported = capsys.readouterr().out
    assert reported.endswith("nothing to judge\n")
    assert "not counted: 4 rounds of uth-online, where one hand is open to all" in reported


def test_a_place_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"{}\n")
    for place, why in ((str(tmp_path / "none"), "No such file"), (str(bad), "line 1: not an export line")):
        assert main(["collusion", "watch", place, "--workers", "1"]) == 2
        reported = capsys.readouterr().err
        assert reported.startswith(f"certify collusion watch: {place}")
        assert why in reported


@pytest.mark.parametrize("options", [["--error", "0.5"], ["--error", "0"], ["--alpha", "1"], ["--alpha", "x"], []])
def test_bad_options_are_usage_errors(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["collusion", "watch", *(["place"] if options else []), *options])
    assert ended.value.code == 2
