"""A store of tables is restored from an older backup: the log brings it back at any cut through an evening, and the
table goes on (docs/keys.md 5).
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from rgs.cli import recover as command
from rgs.core.rounds import DECK_UNRECOVERABLE
from rgs.core.tables.machine import State
from rgs.node.clock import wall_ms
from rgs.service.admin.recovery import REASON
from rgs.store.changes import StoreRefusedError
from tests.support.clocks import ManualClock
from tests.support.service.harness import read_statement
from tests.support.service.oracles import verify_books
from tests.support.service.places import Place, sequence
from tests.support.service.table_cuts import NAMES, Kept, evening_of, kept_evening, rows
from tests.support.service.table_restored import Restored, reach
from tests.support.service.tables import ALWAYS, Evening

TABLES = ("uth-online", "uth-seven-box")
SHORT = {"betting_ms": 3_000, "amber_ms": 500, "decision_ms": 3_000, "result_ms": 1_000}
SAMPLE = 12
"""Pairs of a backup and a cut that each test of a sample takes."""


@pytest.fixture(scope="module", params=TABLES)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return asyncio.run(kept_evening(tmp_path_factory.mktemp(request.param), request.param))


COMPARED = {
    "sessions": "session_id, operator, player, status, participation_id, bought_minor, returned_minor, paid_out_minor,"
    " ended, purchase_no, round_no, rounds, open_round_id, link_no, link_hash, table_id, regulator_session_id",
    "rounds": "round_id, seat_no, session_id, operator, player, ruleset_id, round_no, game_code, instance, draw_no,"
    " commitment, bets, balance_before_minor, start_ms, status, end_ms, staked_minor, returned_minor, opening_hash,"
    " funds_minor, table_id",
    "table_rounds": "round_id, table_id, table_round_no, game_code, ruleset_id, jurisdiction_id, config, seats, hands,"
    " salt, seats_root, betting_open_ms, betting_close_ms, table_round, instance, draw_no, core, commitment, deal,"
    " deal_ms, final, status, end_ms, seats_ms",
    "totals": "*",
    "regulator_days": "operator, day, currency, stages, staked_minor, returned_minor, purchases, bought_minor",
    "table_configs": "*",
    "statements": "instance, statement_no, kind, session_id, link_no, seat_no, hash, envelope",
    "instances": "instance, statement_no, draw_no, alive",
    "tables": "table_id, round_no, head, is_shut",
}


def verify_restored(kept: Kept, place: Place, cut: int) -> None:
    """The store has again what the lost one had behind the same statement."""
    truth = kept.truth(cut)
    if truth is None:
        return
    assert isinstance(place.store, Path)
    for table, columns in COMPARED.items():
        where = " WHERE link_no > 0" if table == "sessions" else ""  # nothing is signed yet of the others
        query = f"SELECT {columns} FROM {table}{where}"  # noqa: S608 - names of the test
        assert sorted(rows(place.store, query)) == sorted(rows(kept.copy_of(truth), query)), table
    ended = "SELECT round_id, seat_no, actions, phase, path FROM rounds WHERE status <> 'open' ORDER BY 1, 2"
    assert rows(place.store, ended) == rows(kept.copy_of(truth), ended)
    running = "SELECT round_id, seat_no, path FROM rounds WHERE path <> x''"
    assert set(rows(place.store, running)) <= set(rows(kept.copy_of(truth), running))


async def recovered(kept: Kept, folder: Path, backup: int, cut: int) -> Restored:
    """The backup beside the log up to the cut: recovered, gone on with, replayed; the books agree."""
    place = await kept.lost(folder, backup, cut)
    one = Restored(place, kept.table_id, kept.sessions, kept.time_ms)
    await one.import_all()
    verify_restored(kept, place, cut)
    await one.sign()
    await one.go_on()
    if not await one.verify():
        verify_books(folder)
    return one


def pairs(kept: Kept) -> list[tuple[int, int]]:
    """Every cut from the first purchase on, with every backup before it."""
    first = kept.kinds.index("purchase") + 1
    return [(backup, cut) for cut in range(first, len(kept.kinds) + 1) for backup in kept.backups(cut)]


def behind(kept: Kept, kind: str, nth: int) -> int:
    """How many statements there are up to the `nth` one of a kind, from 1."""
    return [number for number, name in enumerate(kept.kinds, 1) if name == kind][nth - 1]


def copy_before(kept: Kept, kind: str, nth: int) -> int:
    """The last copy of the store without the `nth` statement of a kind."""
    return kept.backups(behind(kept, kind, nth))[-1]


async def test_any_cut_is_recovered_over_any_backup(kept: Kept, tmp_path: Path) -> None:
    for number, (backup, cut) in enumerate(random.Random(20).sample(pairs(kept), SAMPLE)):
        await recovered(kept, tmp_path / str(number), backup, cut)


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("part", range(8))
async def test_every_eighth_pair_is_recovered(kept: Kept, tmp_path: Path, part: int) -> None:
    for backup, cut in pairs(kept)[8 * part :: 64]:
        folder = tmp_path / f"{backup}-{cut}"
        await recovered(kept, folder, backup, cut)
        shutil.rmtree(folder)


async def test_a_round_that_ended_in_the_gap_is_there_again(kept: Kept, tmp_path: Path) -> None:
    one = await recovered(kept, tmp_path / "one", copy_before(kept, "table_round", 1), behind(kept, "seat_final", 3))
    assert (one.recovered.tables, one.recovered.undecided, one.planned.silent) == ((), (), [])


async def test_a_round_that_was_only_fixed_is_made_void(kept: Kept, tmp_path: Path) -> None:
    """Its bets return, those aside of which nothing was signed: nobody drew for them."""
    one = await recovered(kept, tmp_path / "one", copy_before(kept, "table_round", 1), behind(kept, "table_seats", 1))
    ((reason, fault),) = [(table.reason, table.fault) for table in one.recovered.tables]
    assert (reason, fault) == (REASON, "")


async def test_bets_that_are_those_of_a_dealt_round_get_their_openings(kept: Kept, tmp_path: Path) -> None:
    """The backup has the bets as they were cut: with one opening of the gap they give the root."""
    backup, cut = copy_before(kept, "table_round", 1), behind(kept, "seat_opening", 1)
    assert rows(kept.copy_of(backup), "SELECT state FROM tables") == [("closed",)]
    one = await recovered(kept, tmp_path / "one", backup, cut)
    ((reason, fault),) = [(table.reason, table.fault) for table in one.recovered.tables]
    assert (reason, fault) == (DECK_UNRECOVERABLE, "")
    void = rows(tmp_path / "one" / "rgs.db", "SELECT seat_no FROM rounds WHERE status = 'void' ORDER BY seat_no")
    assert len(void) == len(NAMES)
    ((event,),) = rows(tmp_path / "one" / "rgs.db", "SELECT envelope FROM statements WHERE code = 'STORE_RECOVERED'")
    assert read_statement(event)["subject"] == "rounds open: 0 with their deck, 1 without"
    assert {len(path) for (path,) in rows(tmp_path / "one" / "rgs.db", "SELECT path FROM rounds")} == {6 * 32}


async def test_seats_that_only_the_root_tells_of_are_reported(kept: Kept, tmp_path: Path) -> None:
    """The backup is older than the bets. Their stakes never left the balance; that the seats are missing shows."""
    backup, cut = copy_before(kept, "session_open", 3), behind(kept, "seat_opening", 1)
    one = await recovered(kept, tmp_path / "one", backup, cut)
    ((reason, fault),) = [(table.reason, table.fault) for table in one.recovered.tables]
    assert (reason, fault) == (DECK_UNRECOVERABLE, "SEATS_LOST 2")
    assert await one.verify() == ["28 seats: 3 seats were dealt, 1 opened"]
    events = [
        body["after"]
        for (envelope,) in rows(
            tmp_path / "one" / "rgs.db", "SELECT envelope FROM statements WHERE code = 'MALFUNCTION'"
        )
        for body in [read_statement(envelope)]
    ]
    assert events == ["SEATS_LOST 2"]


async def test_a_deck_that_was_in_the_backup_is_shown_by_the_void(kept: Kept, tmp_path: Path) -> None:
    backup = copy_before(kept, "seat_opening", 4)
    assert rows(kept.copy_of(backup), "SELECT state FROM tables") == [("opening",)]
    one = await recovered(kept, tmp_path / "one", backup, behind(kept, "seat_opening", 7))
    assert [(table.reason, table.fault) for table in one.recovered.tables] == [(REASON, "")]
    ((event,),) = rows(tmp_path / "one" / "rgs.db", "SELECT envelope FROM statements WHERE code = 'STORE_RECOVERED'")
    assert read_statement(event)["subject"] == "rounds open: 1 with their deck, 0 without"
    finals = rows(tmp_path / "one" / "rgs.db", "SELECT envelope FROM statements WHERE kind = 'table_final' ORDER BY id")
    assert [len(read_statement(envelope)["deck"]) for (envelope,) in finals] == [52] * 3


async def test_lost_decisions_of_a_settled_round_are_void_only_if_that_is_asked_for(kept: Kept, tmp_path: Path) -> None:
    """All had decided: the windows ended early, and no default may take the place of a decision."""
    place = await kept.lost(tmp_path / "one", copy_before(kept, "table_round", 1), behind(kept, "seat_final", 1))
    one = Restored(place, kept.table_id, kept.sessions, kept.time_ms)
    await one.import_all()
    assert [seat.seat_no for seat in one.planned.undecided] == [2, 3]
    with pytest.raises(StoreRefusedError, match="2 seats of settled rounds had decided"):
        await one.sign(void_undecided=False)
    await one.sign()
    assert {seat.seat_no for seat in one.recovered.undecided} == {2, 3}
    await one.go_on()
    failures = await one.verify()
    assert len(failures) == 2
    assert all("status is void, that of opening and table is settled" in failure for failure in failures)


async def test_the_command_names_what_admins_must_do_and_what_is_lost(
    kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, cut = copy_before(kept, "session_open", 3), behind(kept, "seat_opening", 1)
    one = await recovered(kept, tmp_path / "one", first, cut)
    command._print_recovered(one.recovered, one.planned)
    ((round_id,),) = rows(
        kept.copy_of(len(kept.counts) - 1), "SELECT round_id FROM table_rounds WHERE table_round_no = 1"
    )
    said = capsys.readouterr().out
    assert f"two admins must void round {round_id} of table {kept.table_id}, reason {DECK_UNRECOVERABLE}\n" in said
    assert "  replay will report this round: SEATS_LOST 2\n" in said
    two = await recovered(kept, tmp_path / "two", copy_before(kept, "table_final", 1), behind(kept, "table_final", 1))
    command._print_recovered(two.recovered, two.planned)
    assert capsys.readouterr().out.count("is void, because its decisions are lost: replay will report it\n") == len(
        two.recovered.undecided
    )
    three = await recovered(
        kept, tmp_path / "three", copy_before(kept, "table_final", 2), behind(kept, "table_final", 2)
    )
    command._print_gap(three.planned)
    assert (
        capsys.readouterr().out.count(" counts as silent: no decision of it is known") == len(three.planned.silent) > 0
    )


async def test_who_was_silent_for_all_that_is_known_has_the_defaults(kept: Kept, tmp_path: Path) -> None:
    """Windows that ran out: the ruleset decides, and the seats are named, so that somebody compares."""
    one = await recovered(kept, tmp_path / "one", copy_before(kept, "table_final", 2), behind(kept, "table_final", 2))
    assert one.recovered.undecided == ()
    assert one.planned.silent
    assert await one.verify() == []


async def test_bets_of_which_nothing_is_signed_return(kept: Kept, tmp_path: Path) -> None:
    """They may have been taken back since the backup: they are not played."""
    cut = [
        number
        for number, kind in enumerate(kept.kinds, 1)
        if kind == "event" and number < behind(kept, "table_round", 4)
    ]
    backup = kept.backups(cut[-1])[-1]
    reserved = "SELECT count(*) FROM sittings WHERE reserved_minor > 0"
    assert rows(kept.copy_of(backup), reserved) == [(3,)]
    place = await kept.lost(tmp_path / "one", backup, cut[-1])
    one = Restored(place, kept.table_id, kept.sessions, kept.time_ms)
    await one.import_all()
    store = tmp_path / "one" / "rgs.db"
    assert rows(store, reserved) == rows(store, "SELECT count(*) FROM sessions WHERE reserved_minor > 0") == [(0,)]
    assert rows(store, "SELECT state, round_id FROM tables") == [("idle", "")]
    await one.sign()
    await one.go_on()
    assert await one.verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("ends", [State.DECIDING, State.RESULT])
async def test_tables_are_recovered_in_either_store(place: Place, ends: State) -> None:
    """The backup has bets; in the gap the round is played, and another one is dealt, or played too."""
    clock = ManualClock(wall_ms())
    harness = await place.harness(clock)
    await harness.start()
    evening = await Evening(harness, "uth-seven-box", hours=ALWAYS, timers=SHORT).open()
    sitters = await evening.seated(*NAMES)
    for sitter in sitters:
        await sitter.bet(ante=1_000)
    await harness.settle()
    await sequence(harness, place.log)
    await harness.stop(ended=False)
    place.back_up()
    again = await place.harness(clock)
    await again.start()
    evening = evening_of(again, "uth-seven-box")
    for sitter in sitters:
        sitter.evening = evening
    await reach(evening, State.RESULT)
    await reach(evening, State.BETTING)
    for sitter in sitters[1:]:
        await sitter.look()
        await sitter.bet(ante=2_000)
    await reach(evening, State.DECIDING)
    await sitters[1].decide("play_3x")
    if ends is State.RESULT:
        await sitters[2].decide("play_3x")
    await reach(evening, ends)
    await sequence(again, place.log)
    await again.stop(ended=False)
    place.restore()
    await place.lapse()
    one = Restored(place, "uth-seven-box", {sitter.name: sitter.session_id for sitter in sitters}, clock.time_ms)
    await one.import_all()
    await one.sign()
    lost = [DECK_UNRECOVERABLE] if ends is State.DECIDING else []
    assert [table.reason for table in one.recovered.tables] == lost
    await one.go_on()
    assert await one.verify() == []
