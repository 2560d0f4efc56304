"""The test regulator gives each id once, answers repeats as the first time, serves no jurisdiction that forbids it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.core.errors import (
    IdempotencyConflictError,
    InvalidFieldError,
    JurisdictionError,
    ParticipationOpenError,
    RegulatorRefusedError,
    RegulatorUnavailableError,
)
from rgs.core.times import format_time
from rgs.ports.regulator import (
    DayAlignment,
    ParticipationEnd,
    RegulatorParticipation,
    RegulatorReceipt,
    SessionClose,
    StageReport,
    check_regulator_id,
)
from rgs.store.regulator import RegulatorStore
from tests.support.adapters.books import (
    NOTHING,
    NOW_MS,
    Numbers,
    Played,
    make_regulator,
    modules,
    opening,
    purchase,
    stage,
    ulid,
)

# --- what is legal ----------------------------------------------------------------------------------------------------


async def test_a_whole_life(played: Played) -> None:
    assert (played.session, played.participation) == ("M000000000000001", "N000000000000002")
    again = await played.buy(purchase_no=2, amount_minor=500)  # up to the cap, and the same id
    assert again == RegulatorParticipation(played.participation, test_regulator=True)
    await played.report(played.stage(3, 940, staked_minor=940, returned_minor=940))  # a void round
    assert (await played.end(940, 3)).test_regulator
    assert (await played.close()).test_regulator
    assert [(entry.kind, entry.number) for entry in played.store.entries()] == [
        ("opening", 0),
        ("purchase", 1),
        ("stage", 1),
        ("stage", 2),
        ("purchase", 2),
        ("stage", 3),
        ("end", 0),
        ("closing", 0),
    ]
    number, last = played.store.verify()
    assert (number, last) == (8, [entry.entry_hash for entry in played.store.entries()][-1])
    assert played.store.head() == (number, last)
    assert [entry.entry_no for entry in played.store.entries(after_entry_no=6)] == [7, 8]


async def test_every_answer_and_every_entry_says_test(played: Played) -> None:
    answers = [await played.end(), await played.close()]
    assert all(answer.test_regulator for answer in answers)
    assert all('"test_regulator":true' in entry.body for entry in played.store.entries())


async def test_every_message_has_its_receipt_and_the_file_keeps_the_answer(played: Played) -> None:
    end = await played.end()
    close = await played.close()
    software = await played.regulator.report_modules(modules(played.number()))
    day = DayAlignment(played.number(), "op", "EUR", "2026-01-01", NOTHING)
    assert await played.regulator.align_day(day) == RegulatorReceipt(day.transaction_id, test_regulator=True)
    sent = [ulid(number) for number in range(1, 8)]
    assert [end, close, software] == [RegulatorReceipt(name, test_regulator=True) for name in sent[3:6]]
    with played.store._file.snapshot() as db:
        answers = dict(db.execute("SELECT transaction_id, answer FROM calls"))
    assert answers == dict.fromkeys(sent, "") | {sent[0]: played.session, sent[1]: played.participation}
    requests = [json.loads(entry.body)["request"] for entry in played.store.entries(after_entry_no=6)]
    assert requests[0] == {
        "modules": [
            {"name": "rng", "sha1": "b" * 40, "sha256": "a" * 64, "version": "1.0.0"},
            {"name": "games", "sha1": "", "sha256": "c" * 64, "version": "1.0.0"},
        ],
        "node": "node1",
        "report_time": format_time(NOW_MS),
    }
    totals = dict.fromkeys(asdict(NOTHING), "0")
    assert requests[1] == {"operator": "op", "currency": "EUR", "day": "2026-01-01", "totals": totals}


def test_a_report_of_a_round_has_no_final_until_its_final_is_signed() -> None:
    assert StageReport("s", 1, "M", "N", 1, 1, 1, "ab", NOW_MS).final_hash == ""


async def test_players_share_a_session(played: Played) -> None:
    other = await played.buy(reference="participation-2", player="bert")
    assert other.regulator_participation_id != played.participation
    await played.report(stage(played.session, other.regulator_participation_id, 1, 500), played.stage(3, 440))
    await played.end(410, 3)
    with pytest.raises(ParticipationOpenError):
        await played.close()
    await played.end(470, 1, regulator_participation_id=other.regulator_participation_id)
    await played.close()


async def test_a_session_without_players_can_be_closed(played: Played) -> None:
    empty = await played.regulator.open_session(opening(played.number(), reference="session-2"))
    await played.close(regulator_session_id=empty.regulator_session_id)


async def test_stages_lag_behind_purchases(played: Played) -> None:
    # Stage 3 was played before the second purchase and stage 4 after it, but both are told afterwards.
    await played.buy(purchase_no=2, amount_minor=100)
    await played.buy(purchase_no=3, amount_minor=200)
    await played.report(played.stage(3, 440), played.stage(4, 510), played.stage(5, 680))
    await played.end(650, 5)


async def test_what_was_bought_never_shrinks(played: Played) -> None:
    await played.buy(purchase_no=2, amount_minor=100)
    await played.report(played.stage(3, 540))
    with pytest.raises(RegulatorRefusedError) as refused:  # as if the second purchase had not been made yet
        await played.report(played.stage(4, 410))
    assert refused.value.metadata["rejection"] == "AVAILABLE_MISMATCH"


async def test_told_stages_are_passed_over(played: Played) -> None:
    before = played.state()
    await played.report(played.stage(1, 500), played.stage(2, 470))
    await played.report(played.stage(2, 470))
    assert played.state() == before
    await played.report(played.stage(2, 470), played.stage(3, 440), played.stage(3, 440))
    assert len(played.state()) == len(before) + 1
    await played.end(410, 3)
    await played.report(played.stage(3, 440))  # a late copy, after the end
    await played.close()
    await played.report(played.stage(3, 440))


# --- repeats and conflicts --------------------------------------------------------------------------------------------

Messages = list[tuple[str, Any, dict[str, Any]]]


def messages(played: Played) -> Messages:
    """Every kind of message with its transaction id, and other data for the same id."""
    number = played.number
    number.last = 100
    end = ParticipationEnd(number(), played.session, played.participation, 380, 4, NOW_MS)
    return [
        ("open_session", opening(number(), reference="session-9"), {"reference": "session-8"}),
        ("buy_participation", purchase(number(), played.session, purchase_no=2), {"amount_minor": 499}),
        ("report_stages", (number(), [played.stage(3, 440)]), {"staked_minor": 29}),
        ("report_stages", (number(), [played.stage(4, 910)]), {"end_ms": NOW_MS - 1}),
        ("end_participation", replace(end, final_balance_minor=880), {"rounds": 3}),
        ("close_session", SessionClose(number(), played.session, NOW_MS), {"close_ms": NOW_MS - 1}),
    ]


async def send(played: Played, method: str, message: Any) -> Any:
    call: Callable[..., Awaitable[Any]] = getattr(played.regulator, method)
    return await (call(*message) if isinstance(message, tuple) else call(message))


async def test_a_repeat_is_answered_as_the_first_time(played: Played) -> None:
    sent = messages(played)
    first = [await send(played, method, message) for method, message, _ in sent]
    before = played.state()
    assert [await send(played, method, message) for method, message, _ in reversed(sent)] == first[::-1]
    assert played.state() == before


async def test_other_data_under_the_same_id_is_a_conflict(played: Played) -> None:
    for method, message, other in messages(played):
        await send(played, method, message)
        before = played.state()
        changed = (
            (message[0], [replace(result, **other) for result in message[1]])
            if isinstance(message, tuple)
            else replace(message, **other)
        )
        with pytest.raises(IdempotencyConflictError) as refused:
            await send(played, method, changed)
        assert refused.value.metadata["rejection"] == "TRANSACTION_CONFLICT"
        assert played.state() == before


async def test_an_id_serves_one_method_only(played: Played) -> None:
    transaction_id = (await played.end()).transaction_id
    with pytest.raises(IdempotencyConflictError):
        await played.close(transaction_id=transaction_id)


async def test_a_refused_message_may_be_sent_again(played: Played) -> None:
    early = played.number()
    with pytest.raises(RegulatorRefusedError):
        await played.regulator.report_stages(early, [played.stage(4, 410)])
    await played.report(played.stage(3, 440))
    await played.regulator.report_stages(early, [played.stage(4, 410)])


# --- ids and jurisdictions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [False, None, 1, "true"])
async def test_other_jurisdictions_get_no_session(played: Played, allowed: Any) -> None:
    before = played.state()
    message = replace(opening(played.number(), reference="s-2"), jurisdiction="it-adm", test_regulator_allowed=allowed)
    with pytest.raises(JurisdictionError):
        await played.regulator.open_session(message)
    assert played.state() == before


@pytest.mark.parametrize(
    "made", ["", "M", "m000000000000001", "N000000000000001", "M00000000000001", "M" * 17, "Mé" * 8]
)
async def test_no_id_no_session(tmp_path: Path, made: str) -> None:
    store = RegulatorStore(tmp_path / "regulator.sqlite")
    regulator = EmbeddedRegulator(store, lambda _: made, lambda: NOW_MS)
    with pytest.raises(RegulatorUnavailableError):
        await regulator.open_session(opening(Numbers()()))
    assert store.head()[0] == 0
    await regulator.close()


async def test_an_id_is_never_issued_twice(tmp_path: Path) -> None:
    store, number = RegulatorStore(tmp_path / "regulator.sqlite"), Numbers()
    regulator = EmbeddedRegulator(store, lambda prefix: prefix * 16, lambda: NOW_MS)
    session = (await regulator.open_session(opening(number()))).regulator_session_id
    with pytest.raises(RegulatorUnavailableError):
        await regulator.open_session(opening(number(), reference="s-2"))
    await regulator.buy_participation(purchase(number(), session))
    with pytest.raises(RegulatorUnavailableError):
        await regulator.buy_participation(purchase(number(), session, player="bert", reference="q"))
    assert store.verify()[0] == 2
    await regulator.close()


async def test_a_closed_regulator_is_unavailable(played: Played, tmp_path: Path) -> None:
    regulator, store = make_regulator(tmp_path / "second.sqlite")
    await regulator.close()
    with pytest.raises(RegulatorUnavailableError):
        await regulator.open_session(opening(played.number()))
    with pytest.raises(RegulatorUnavailableError):
        store.head()


def test_a_regulators_id_has_one_form() -> None:
    assert check_regulator_id("M00000000000000Z", "id") == "M00000000000000Z"
    for text in (
        "",
        "M00000000000000z",
        "M00000000000000",
        "M00000000000000ZZ",
        "M0000000000000 Z",
        "M00000000000000Z\n",
    ):
        with pytest.raises(InvalidFieldError):
            check_regulator_id(text, "id")
