"""Recorded rounds: their decks through the battery, their returns against the certificates, a server that cheats."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from certification.rtp.certificate import Enumerated
from certification.rtp.strategy import Decisions
from certification.statistics.battery import command, returns, rounds
from certification.statistics.battery.decks import Seeded
from certification.statistics.battery.returns import ReturnTest, exact_figures
from certification.statistics.battery.rounds import SeatPlayed, UnreadableExportError
from rgs.core.rulesets import load_ruleset
from rng.shuffle import transcript_to_deck
from tests.support.records.factory import RecordFactory
from tests.support.records.ready_made import large_factory, small_factory

pytestmark = pytest.mark.slow

Choose = Callable[[str], Decisions]


@pytest.fixture(scope="module")
def best_play(uth: Enumerated, casino: Enumerated) -> Choose:
    """Best play without enumerating again: the Ultimate Texas Hold'em rulesets pay alike."""
    known = {
        name: Decisions.of(one.play)
        for name, one in (("uth-solo", uth), ("uth-seven-box", uth), ("casino-holdem", casino))
    }
    return known.__getitem__


def seats(count: int, seed: str = "seats", **more: object) -> list[SeatPlayed]:
    """Honest rounds of uth-solo in ten sessions."""
    ruleset = load_ruleset("uth-solo")
    ante = ruleset.limits["ante"].min_minor
    one = SeatPlayed(
        deck=(),
        ruleset=ruleset,
        session_id="",
        operator="operator-1",
        node="node-1",
        since_start_ms=3_700_000,
        status="settled",
        seat_no=1,
        seats=1,
        bets={"ante": ante, "blind": ante},
        staked_minor=3 * ante,
        returned_minor=2 * ante,
    )
    made = [replace(one, **more) for _ in range(count)]  # type: ignore[arg-type]
    decks = Seeded(seed.encode()).chunk(0, count).decks.tolist()
    return [
        replace(seat, deck=tuple(deck), session_id=f"S{place % 10}")
        for place, (seat, deck) in enumerate(zip(made, decks, strict=True))
    ]


def judged(played: list[SeatPlayed], best_play: Choose) -> returns.Returned:
    test = ReturnTest(best_play)
    for seat in played:
        test.add(seat)
    return test.judge(0.01)


def test_the_exact_figures_are_those_of_the_certificates() -> None:
    figures = exact_figures("uth-solo")
    assert figures["main"].mean == pytest.approx(-50643648973 / 2317817502000)
    assert figures["main"].deviation == pytest.approx(4.939298891306)
    assert figures["side"].mean == pytest.approx(-233985 / 6689228)
    assert figures["showdown"].mean == 0
    assert 0.95 < figures["showdown"].deviation < 1
    assert exact_figures("casino-holdem")["showdown"] == figures["showdown"]  # the same cards


def test_honest_rounds_pass_in_every_stratum(best_play: Choose) -> None:
    played = seats(1_500)
    found = judged(played, best_play)
    assert (found.word, found.rounds, found.rejected) == ("passed", 1_500, ())
    rows = {(row.stratum, row.figure): row for row in found.rows}
    assert {stratum for stratum, _ in rows} == {
        *(f"session S{number}" for number in range(10)),
        *("all", "stake least ante", "operator operator-1", "node node-1", "since start first day", "status settled"),
    }
    assert rows["session S3", "showdown"].p is not None
    assert rows["session S3", "main"].p is None  # 150 rounds are too few for pay-outs so skewed
    figures = [returns.figures_of(seat, best_play("uth-solo")) for seat in played]
    for figure, exact in exact_figures("uth-solo").items():
        values = np.array([one[figure] for one in figures])
        row = rows["all", figure]
        assert row.measured == pytest.approx(values.mean())
        z = (values.mean() - exact.mean) / exact.deviation * math.sqrt(1_500)
        assert row.z == (pytest.approx(z) if figure == "showdown" else None)
        assert abs(z) < 4
    tested = sum(row.p is not None for row in found.rows)
    assert tested == 16  # the showdown in every stratum
    # two-sided 0.01 / 16 is 3.4205 standard errors, power 0.9 is 1.2816 more
    assert rows["all", "showdown"].smallest_bias == pytest.approx(
        (3.4205 + 1.2816) * exact_figures("uth-solo")["showdown"].deviation / math.sqrt(1_500), rel=1e-4
    )


def test_larger_samples_test_the_pay_outs_too(best_play: Choose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returns, "LEAST", {"showdown": 30, "main": 1_000, "side": 1_000})
    played = seats(1_200, "again")
    assert judged(played, best_play).word == "passed"
    decisions = best_play("uth-solo")
    poor = [seat for seat in seats(3_000, "poor") if returns.figures_of(seat, decisions)["side"] < 0]
    assert "uth-solo, all: side" in judged(poor, best_play).rejected


@pytest.mark.parametrize(
    ("cheated", "stratum"),
    [
        ({"bets": {"ante": 10**6}}, "uth-solo, stake above 19 times: showdown"),
        ({"operator": "operator-2"}, "uth-solo, operator operator-2: showdown"),
        ({"node": "node-2"}, "uth-solo, node node-2: showdown"),
        ({"since_start_ms": 1_000}, "uth-solo, since start first minute: showdown"),
        ({"status": "void"}, "uth-solo, status void: showdown"),
    ],
)
def test_a_server_that_cheats_where_it_pays_is_seen_there(
    cheated: dict[str, object], stratum: str, best_play: Choose
) -> None:
    """Two in three of the players' better hands are dealt anew, in a part of the rounds."""
    rigged = seats(400, "rigged", **cheated)
    decisions = best_play("uth-solo")
    kept = [
        seat
        for place, seat in enumerate(rigged)
        if place % 3 == 0 or returns.figures_of(seat, decisions)["showdown"] <= 0
    ]
    found = judged(seats(1_200) + kept, best_play)
    assert found.word == "failed"
    assert stratum in found.rejected


def test_one_cheated_player_is_seen_in_her_session(best_play: Choose) -> None:
    unlucky = [replace(seat, session_id="unlucky") for seat in seats(200, "unlucky")]
    decisions = best_play("uth-solo")
    kept = [seat for seat in unlucky if returns.figures_of(seat, decisions)["showdown"] < 0]
    found = judged(seats(1_200) + kept[:40], best_play)
    assert "uth-solo, session unlucky: showdown" in found.rejected


def test_further_seats_of_a_deal_count_in_their_session_only(best_play: Choose) -> None:
    ruleset = load_ruleset("uth-seven-box")
    (one,) = seats(1)
    second = replace(one, ruleset=ruleset, seat_no=2, seats=3)
    assert list(returns.strata_of(second)) == ["session S0"]
    first = replace(second, seat_no=1)
    hands = [returns.dealt_seat(replace(second, seat_no=number)).hole_cards for number in (1, 2, 3)]
    assert len({card for hand in hands for card in hand}) == 6
    assert returns.figures_of(first, best_play("uth-seven-box")) != {}
    assert "since start unknown" in set(returns.strata_of(replace(first, since_start_ms=None)))
    assert judged([], best_play).word == "not applicable"


def played_factory(count: int) -> RecordFactory:
    """Rounds of two players, dealt one after the other and settled the other way round."""
    factory = RecordFactory("recorded")
    one = factory.start("rgs-1")
    players = [factory.open(one), factory.open(one)]
    for player in players:
        factory.buy(one, player, 100_000)
    for _ in range(count):
        for player in players:
            factory.deal(one, [player], {"ante": 10})
            factory.act(player, ["check", "check", "fold"])
        for player in reversed(players):
            factory.settle(one, player)
    return factory


def test_an_export_gives_its_deals_in_the_order_of_drawing(tmp_path: Path) -> None:
    factory = played_factory(20)
    path = tmp_path / "export"
    path.write_bytes(factory.export())
    taken: list[SeatPlayed] = []
    recorded = rounds.read([path], taken.append)
    assert len(recorded.transcripts) == len(taken) == 40
    assert recorded.unread == {}
    assert {(seat.operator, seat.node, seat.status, seat.seats) for seat in taken} == {
        ("operator-1", "node-1", "settled", 1)
    }
    assert [seat.staked_minor for seat in taken] == [20] * 40
    first = [seat.session_id for seat in taken[:4]]
    assert first == [first[0], first[1]] * 2
    # settled the other way round, drawn in the order of the statements of opening
    settled = [seat.deck for seat in taken]
    drawn = [transcript_to_deck(transcript) for transcript in recorded.transcripts]
    assert drawn == [deck for pair in zip(settled[1::2], settled[::2], strict=True) for deck in pair]
    since = [seat.since_start_ms for seat in taken]
    assert all(0 < (passed or 0) < 3_600_000 for passed in since)


def test_what_cannot_be_used_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "export"
    lines = large_factory().export().splitlines(keepends=True)
    path.write_bytes(b"".join(lines))
    taken: list[SeatPlayed] = []
    recorded = rounds.read([path], taken.append)
    assert recorded.unread == {"voids that reveal no transcript": 1}
    assert {seat.status for seat in taken} == {"settled", "void"}
    assert len(recorded.transcripts) < len(taken)  # a deal of three seats is one draw
    result = len(taken)
    assert rounds.read([path, path], taken.append).transcripts == recorded.transcripts
    assert len(taken) == 2 * result  # each round once, though the file comes twice
    path.write_bytes(b"".join(line for line in small_factory().export().splitlines(keepends=True)[4:]))
    assert rounds.read([path], taken.append).unread == {"finals without their opening": 1}

    def cut(kind: str, _count: int, body: dict[str, object]) -> None:
        if kind == "round_final":
            body["transcript"] = str(body["transcript"])[:-2]

    path.write_bytes(small_factory(cut).export())
    assert rounds.read([path], taken.append).unread == {"transcripts that are not one shuffle's": 1}

    def rename(kind: str, _count: int, body: dict[str, dict[str, dict[str, str]]]) -> None:
        if kind == "round_opening":
            body["deal"]["ruleset"]["sha256"] = "00" * 32

    path.write_bytes(small_factory(rename).export())
    recorded = rounds.read([path], taken.append)
    assert recorded.unread == {"returns of rulesets that are not shipped": 1}
    assert len(recorded.transcripts) == 1
    path.write_bytes(lines[0] + b"{}\n")
    with pytest.raises(UnreadableExportError, match="export, line 2: not an export line"):
        rounds.read([path], taken.append)


def test_the_command_on_an_export(
    tmp_path: Path, best_play: Choose, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(returns, "enumerated_decisions", best_play)
    path = tmp_path / "export"
    path.write_bytes(played_factory(140).export())
    assert command.main(["--statements", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("280 decks from 280 deals of export\n")
    assert "uth-solo: 0.000% of what was really staked came back" in out
    assert "no signature was verified" in out
    assert out.endswith("both together: passed\n")
    path.write_bytes(played_factory(2).export())
    assert command.main(["--statements", str(path), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["returns"]["word"]) == ("not applicable", "not applicable")
    path.write_bytes(b"{}\n")
    assert command.main(["--statements", str(path)]) == 2
    assert command.main(["--statements", str(tmp_path / "none")]) == 2
