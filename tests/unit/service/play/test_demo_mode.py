"""Play money beside money: the same rounds, and nothing of it in a wallet, at a regulator, in a total."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    InvalidFieldError,
    JurisdictionError,
    ParticipationCapError,
    RegulatorRefusedError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
)
from rgs.core.games.types import StakeLimits
from rgs.core.reconcile.extract import Extract
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.sessions import Funding, Mode
from rgs.core.statements import parse_envelope
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.history import RoundsFilter
from rgs.store.interface import TotalsFilter, TotalsKey
from tests.support.service.harness import OPERATOR, ServiceHarness, key_bundle, open_harness, read_statement
from tests.support.service.oracles import export_lines, replay, stored_statements, table, verify_books
from tests.support.service.player import Guest, Player
from tests.support.service.seamless import BRITISH, FUNDINGS

SEAMLESS = Caller("op-sl", Role.OPERATOR, "demo-seamless")


async def test_nobody_outside_hears_of_it(harness: ServiceHarness) -> None:
    for script in (harness.wallet_script, harness.regulator_script):
        for method in ("debit", "credit", "open_session", "buy_participation", "end_participation", "close_session"):
            script.plan(method, RegulatorRefusedError(method, rejection="X"))
    guest = Guest(harness)
    await guest.sit()
    for _ in range(3):
        await guest.play(100)
    await guest.buy(500)
    await guest.leave()
    view = await guest.view()
    assert (view.session.mode, view.session.regulator_session_id, view.session.test_regulator) == (Mode.DEMO, "", False)
    for name in ("totals", "regulator_days", "stage_reports", "large_wins"):
        assert table(harness.folder, f"SELECT * FROM {name}") == []  # noqa: S608 - our own names
    assert replay(harness.folder).rounds_demo == 3
    kinds = [parse_envelope(row.envelope).payload_type for row in stored_statements(harness.folder)]
    assert sum("session-open.v2" in kind for kind in kinds) == 1
    summaries, _ = await harness.history.list_rounds(OPERATOR, RoundsFilter("anna"), 50, "")
    assert [summary.session.mode for summary in summaries] == [Mode.DEMO] * 3


async def test_every_step_goes_on_while_wallet_and_regulator_are_away(harness: ServiceHarness) -> None:
    guest = Guest(harness)
    await guest.open()
    body = read_statement(guest.sent[-1][1].envelope)
    assert (body["mode"], body["test_regulator"], "funding" in body) == ("demo", False, False)
    await guest.buy(1_000)
    assert guest.balance_minor == 1_000
    with pytest.raises(ParticipationCapError):
        await guest.buy(99_001)
    await guest.end()
    await guest.close()
    blocks = table(harness.folder, "SELECT private FROM privates ORDER BY statement_no")
    assert sum(b'"reason":"PLAY_MONEY"' in block for (block,) in blocks) == 2
    assert not any(b"wallet_transaction_id" in block or b"regulator" in block for (block,) in blocks)


async def test_where_the_law_allows_none(harness: ServiceHarness) -> None:
    guest = Guest(harness, caller=BRITISH)
    guest.currency = "GBP"
    with pytest.raises(JurisdictionError, match="gb-ukgc does not allow play money") as caught:
        await guest.open()
    assert caught.value.field == "mode"


async def test_not_at_a_table(harness: ServiceHarness) -> None:
    with pytest.raises(InvalidFieldError, match="no play money at tables") as caught:
        await harness.send(replace(Guest(harness, game="uth-online").opening(), table="uth-online"))
    assert caught.value.field == "mode"


async def test_an_operator_that_is_funded_bet_by_bet_grants_it_too(tmp_path: Path) -> None:
    async with open_harness(tmp_path, fundings={SEAMLESS.party: Funding.SEAMLESS}) as harness:
        guest = Guest(harness, caller=SEAMLESS)
        await guest.sit()
        await guest.play()
        await guest.leave()
        assert (await guest.view()).session.funding is Funding.PARTICIPATION
    assert replay(tmp_path).rounds_demo == 1


async def test_real_play_of_a_seamless_operator_in_the_jurisdiction_for_testing(tmp_path: Path) -> None:
    async with open_harness(tmp_path, fundings={SEAMLESS.party: Funding.SEAMLESS}) as harness:
        better = Guest(harness, caller=SEAMLESS)
        better.mode = None
        await better.open()
        await better.play()
        await better.close()
        assert await harness.balance(operator=SEAMLESS.party) != 0
    assert replay(tmp_path).statements["transfer"] >= 2


# --- limits -----------------------------------------------------------------------------------------------------------


def catalog(**limits: tuple[int, int]) -> GameCatalog:
    ours = tuple((bet, StakeLimits(*pair)) for bet, pair in sorted(limits.items()))
    by_operator = {OPERATOR.party: {"EUR": ours}}
    return GameCatalog(FUNDINGS, currencies={OPERATOR.party: ("EUR", "JPY")}, bet_limits=by_operator)


async def test_an_operators_limits_are_signed_and_kept(tmp_path: Path) -> None:
    async with open_harness(tmp_path, games=catalog(ante=(50, 200), aa=(10, 20))) as harness:
        anna = Player(harness)
        await anna.sit()
        body = read_statement(anna.sent[0][1].envelope)
        assert body["bet_limits"] == [{"bet": "ante", "max_minor": "200", "min_minor": "50"}]
        assert anna.session["largest_ante_minor"] == 200
        with pytest.raises(StakeBelowMinimumError) as below:
            await anna.start(48)
        assert (below.value.field, below.value.metadata["limit"]) == ("bets.ante", "50")
        with pytest.raises(StakeAboveMaximumError):
            await anna.start(202)
        await anna.play(200, trips=10)
        await anna.leave()
        yen = Guest(harness, name="yoko")
        yen.mode, yen.currency = None, "JPY"
        await yen.open()  # the limits of another currency
        assert "bet_limits" not in read_statement(yen.sent[0][1].envelope)
    assert replay(tmp_path).failures == 0


async def test_a_players_limits_lie_inside_the_operators(tmp_path: Path) -> None:
    async with open_harness(tmp_path, games=catalog(ante=(50, 200))) as harness:
        anna = Guest(harness)
        anna.mode, anna.bet_limits = None, (("ante", StakeLimits(40, 100)),)
        with pytest.raises(InvalidFieldError, match=r"40 is outside 50\.\.200, the limits of op-1 and uth-solo"):
            await anna.open()
        anna.bet_limits = (("ante", StakeLimits(60, 100)), ("trips", StakeLimits(10, 10)))
        await anna.sit()
        assert [row["bet"] for row in read_statement(anna.sent[0][1].envelope)["bet_limits"]] == ["ante", "trips"]
        with pytest.raises(StakeAboveMaximumError):
            await anna.start(100, trips=12)
        await anna.play(100, trips=10)
        with pytest.raises(JurisdictionError, match="'CHF' is not one of op-1, which plays in EUR, JPY"):
            await harness.send(replace(anna.opening(), currency="CHF", bet_limits=()))
    assert replay(tmp_path).failures == 0


async def test_an_ante_that_the_balance_does_not_cover_is_not_offered(tmp_path: Path) -> None:
    async with open_harness(tmp_path, games=catalog(ante=(50, 200))) as harness:
        anna = Player(harness)
        await anna.sit(299)  # six antes cover a round: 48 of them, below the least
        assert anna.session["largest_ante_minor"] == 0
        await anna.buy(1)
        assert anna.session["largest_ante_minor"] == 50


# --- beside money -----------------------------------------------------------------------------------------------------


async def played(folder: Path, seed: int, *, demos: bool) -> dict[str, Any]:
    """A day of some players, with demo sessions between theirs or without; what the books of money hold."""
    steps = random.Random(seed)
    async with open_harness(folder) as harness:
        antes: list[tuple[str, int]] = []
        players = [Player(harness, name=f"p-{number}") for number in range(3)]
        guests = [Guest(harness, name=f"p-{number}") for number in range(2)] if demos else []
        for player in players:
            await player.sit(20_000)
        for _ in range(12):
            player, ante = steps.choice(players), steps.choice((20, 100, 200))
            await player.play(ante)
            antes.append((player.name, ante))
            if guests:
                guest = guests[len(player.sent) % 2]
                if not guest.session or guest.session["status"] == "closed":
                    await guest.sit(5_000)
                await guest.play(20)
                if len(guest.sent) > 12:
                    await guest.leave()
        for person in (*players, *guests):
            if person.session and person.session["status"] != "closed":
                await person.leave()
        await harness.settle()
        totals = await harness.store.totals(TotalsFilter("0001-01-01", "9999-12-31"), after=TotalsKey(), limit=99)
        staked = [(row.key.player, row.rounds, row.staked_minor) for row in totals]
    verify_books(folder)
    extract, run = Extract(Rulebook()), Replay(KeyBook(key_bundle()), Rulebook())
    rows = []
    for line in export_lines(folder):
        assert run.feed(line) == []
        if run.statement is not None:
            rows += list(extract.take(run.statement, is_sound=True))
    rows += list(extract.finish())
    return {
        "bought": sorted(table(folder, "SELECT player, bought_minor FROM sessions WHERE mode = 'real'")),
        "rounds": sorted((player, rounds) for player, rounds, _ in staked),
        "antes": sorted(antes),
        "compared": sorted(name for name, _ in rows if name != "play_money"),
        "left out": (extract.demo_sessions, extract.demo_rounds),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_demo_sessions_between_real_ones_change_no_book_of_money(tmp_path: Path, seed: int) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    alone.mkdir()
    beside.mkdir()
    without = await played(alone, seed, demos=False)
    between = await played(beside, seed, demos=True)
    assert without.pop("left out") == (0, 0)
    sessions, rounds = between.pop("left out")
    assert sessions >= 2
    assert rounds == 12
    assert without == between
