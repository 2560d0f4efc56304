"""Whole lives of the test regulator, legal and not, against a second implementation of its rules."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import currently_in_test_context, event, example, given, settings
from hypothesis import strategies as st

from rgs.core.errors import RgsError, VerificationError
from rgs.ports.regulator import ParticipationEnd, SessionClose, StageReport
from rgs.store.regulator import RegulatorEntry, verify_chain
from tests.support.adapters.books import NOW_MS, Numbers, make_regulator, opening, purchase, stage

Step = tuple[Any, ...]
"""A method of `Life` and its values."""


@dataclass
class Seat:
    """A participation as the model knows it."""

    session: Session
    reference: str
    player: str
    amounts: list[int]
    regulator_id: str = ""
    stages: list[StageReport] = field(default_factory=list)
    ended: bool = False

    def balance(self) -> int:
        return sum(self.amounts) - sum(s.staked_minor for s in self.stages) + sum(s.returned_minor for s in self.stages)

    def counted(self, number: int, available_minor: int) -> int:
        """What must have been bought when stage `number` (from 0) began with this balance."""
        before = self.stages[:number]
        return available_minor + sum(s.staked_minor for s in before) - sum(s.returned_minor for s in before)

    def could_have(self, available_minor: int) -> bool:
        """Whether some number of purchases, no fewer than for the stage before, leaves this balance."""
        least = self.counted(len(self.stages) - 1, self.stages[-1].available_minor) if self.stages else 0
        counted = self.counted(len(self.stages), available_minor)
        return any(total == counted for total in accumulate(self.amounts) if total >= least)


@dataclass
class Session:
    """A session as the model knows it."""

    regulator_id: str
    cap_minor: int
    closed: bool = False


class Life:
    """A regulator beside the model: every step is sent, and must be refused exactly where the rules demand it."""

    def __init__(self, path: Path) -> None:
        self.regulator, self.store = make_regulator(path)
        self.number = Numbers()
        self.sessions: list[tuple[str, Session]] = []
        self.seats: list[Seat] = []
        self.entries = 0
        self.sent: list[tuple[Callable[[], Awaitable[Any]], Any]] = []

    async def play(self, steps: list[Step]) -> None:
        try:
            await self.open("s-1", 100, 0)
            for method, *values in steps:
                await getattr(self, method)(*values)
                assert self.store.head()[0] == self.entries
            self.store.verify()
            for seat in self.seats:
                assert seat.balance() >= 0
                assert sum(seat.amounts) <= seat.session.cap_minor
        finally:
            await self.regulator.close()

    async def send(self, call: Callable[[], Awaitable[Any]], rules: list[tuple[str, bool]], entries: int = 1) -> Any:
        expected = _first(rules)
        rejection, answer = None, None
        try:
            answer = await call()
        except RgsError as error:
            rejection = error.metadata.get("rejection", error.reason)
        assert rejection == expected
        if currently_in_test_context():
            event(f"{rejection}")
        if answer is not None:
            assert answer.test_regulator
            self.entries += entries
            self.sent.append((call, answer))
        return answer

    async def open(self, reference: str, cap_minor: int, late_ms: int) -> None:
        message = opening(self.number(), reference=reference, cap_minor=cap_minor)
        message = replace(message, open_ms=NOW_MS + late_ms)
        rules = [
            ("DATE_IN_FUTURE", late_ms > 0),
            ("REFERENCE_USED", reference in [known for known, _ in self.sessions]),
        ]
        answer = await self.send(lambda: self.regulator.open_session(message), rules)
        if answer is not None:
            self.sessions.append((reference, Session(answer.regulator_session_id, cap_minor)))

    async def buy(self, which: int, player: str, reference: str, step: int, amount_minor: int) -> None:
        _, session = self.sessions[which % len(self.sessions)]
        seat = next((s for s in self.seats if s.session is session and s.reference == reference), None)
        seated = any(s.session is session and s.player == player for s in self.seats)
        amounts = seat.amounts if seat else []
        message = purchase(
            self.number(),
            session.regulator_id,
            reference=reference,
            player=player,
            purchase_no=max(1, len(amounts) + step),
            amount_minor=amount_minor,
        )
        rules = [
            ("AMOUNT_NOT_POSITIVE", amount_minor == 0),
            ("SESSION_CLOSED", session.closed),
            ("ALREADY_SEATED", seat is None and seated),
            ("REFERENCE_USED", seat is not None and seat.player != player),
            ("PARTICIPATION_ENDED", seat is not None and seat.ended),
            ("PURCHASE_GAP", message.purchase_no != len(amounts) + 1),
            ("ABOVE_MAXIMUM", sum(amounts) + amount_minor > session.cap_minor),
        ]
        answer = await self.send(lambda: self.regulator.buy_participation(message), rules)
        if answer is not None:
            if seat is None:
                seat = Seat(session, reference, player, [], answer.regulator_participation_id)
                self.seats.append(seat)
            seat.amounts.append(amount_minor)
            assert answer.regulator_participation_id == seat.regulator_id

    async def report(self, *played: tuple[int, int, int, int, int]) -> None:
        if not self.seats:
            return
        batch: list[StageReport] = []
        kept = [len(seat.stages) for seat in self.seats]
        rules: list[tuple[str, bool]] = []
        for which, step, off_minor, staked_minor, returned_minor in played:
            seat = self.seats[which % len(self.seats)]
            result = stage(
                seat.session.regulator_id,
                seat.regulator_id,
                max(1, len(seat.stages) + step),
                max(0, seat.balance() + off_minor),
                staked_minor=staked_minor,
                returned_minor=returned_minor,
            )
            batch.append(result)
            known = result.stage_no <= len(seat.stages)
            rules += [
                ("STAGE_CONFLICT", known and result != seat.stages[result.stage_no - 1]),
                ("PARTICIPATION_ENDED", not known and seat.ended),
                ("STAGE_GAP", not known and result.stage_no != len(seat.stages) + 1),
                ("AVAILABLE_MISMATCH", not known and not seat.could_have(result.available_minor)),
                ("STAKE_NOT_COVERED", not known and staked_minor > seat.balance()),
            ]
            if not known:
                seat.stages.append(result)
            if _first(rules):
                break
        new = sum(len(seat.stages) for seat in self.seats) - sum(kept)
        transaction_id = self.number()
        if await self.send(lambda: self.regulator.report_stages(transaction_id, batch), rules, new) is None:
            for seat, stages in zip(self.seats, kept, strict=True):  # all or none
                del seat.stages[stages:]

    async def end(self, which: int, off_minor: int, rounds_off: int, elsewhere: bool) -> None:
        if not self.seats:
            return
        seat = self.seats[which % len(self.seats)]
        others = [session for _, session in self.sessions if session is not seat.session]
        session = others[0] if elsewhere and others else seat.session
        message = ParticipationEnd(
            transaction_id=self.number(),
            regulator_session_id=session.regulator_id,
            regulator_participation_id=seat.regulator_id,
            final_balance_minor=max(0, seat.balance() + off_minor),
            rounds=len(seat.stages) + rounds_off,
            end_ms=NOW_MS,
        )
        rules = [
            ("UNKNOWN_PARTICIPATION", session is not seat.session),
            ("ENDED_TWICE", seat.ended),
            ("ROUNDS_MISMATCH", rounds_off != 0),
            ("BALANCE_MISMATCH", message.final_balance_minor != seat.balance()),
        ]
        if await self.send(lambda: self.regulator.end_participation(message), rules) is not None:
            seat.ended = True

    async def close(self, which: int) -> None:
        _, session = self.sessions[which % len(self.sessions)]
        seated = any(seat.session is session and not seat.ended for seat in self.seats)
        message = SessionClose(self.number(), session.regulator_id, NOW_MS)
        rules = [("SESSION_CLOSED", session.closed), ("SEATED", seated)]
        if await self.send(lambda: self.regulator.close_session(message), rules) is not None:
            session.closed = True

    async def repeat(self, which: int) -> None:
        call, answer = self.sent[which % len(self.sent)]
        assert await call() == answer


def _first(rules: list[tuple[str, bool]]) -> str | None:
    return next((code for code, broken in rules if broken), None)


def check_life(steps: list[Step]) -> None:
    """Play the steps on a regulator of their own."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Life(Path(folder) / "regulator.sqlite").play(steps))


who = st.sampled_from(
    [("anna", "p-1"), ("bert", "p-2"), ("anna", "p-1"), ("bert", "p-2"), ("anna", "p-2"), ("bert", "p-3")]
)
buys = st.builds(
    lambda which, names, step, amount_minor: ("buy", which, *names, step, amount_minor),
    st.sampled_from([0, 0, 0, 1]),
    who,
    st.sampled_from([1, 1, 1, 1, 0, 2]),
    st.sampled_from([40, 20, 50, 61, 0]),
)
played_stages = st.tuples(
    st.integers(0, 3),  # whose
    st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]),  # step of the stage number
    st.sampled_from([0, 0, 0, 0, 0, 1, -40, -20]),  # the balance told is off by
    st.sampled_from([0, 10, 20, 110]),  # staked
    st.sampled_from([0, 0, 20]),  # returned
)
reports = st.builds(lambda played: ("report", *played), st.lists(played_stages, min_size=1, max_size=3))
ends = st.tuples(
    st.just("end"),
    st.integers(0, 3),
    st.sampled_from([0, 0, 0, 1, -1]),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([False, False, False, True]),
)
opens = st.tuples(st.just("open"), st.sampled_from(["s-1", "s-2"]), st.just(100), st.sampled_from([0, 0, 1]))
closes = st.tuples(st.just("close"), st.integers(0, 1))
repeats = st.tuples(st.just("repeat"), st.integers(0, 50))
step: st.SearchStrategy[Step] = st.one_of(buys, buys, reports, reports, reports, repeats, ends, opens, closes)
lives: st.SearchStrategy[list[Step]] = st.builds(
    lambda first, rest: [first, *rest],
    st.sampled_from([("buy", 0, "anna", "p-1", 1, 40), ("open", "s-2", 100, 0)]),
    st.lists(step, max_size=25),
)

BOUGHT: list[Step] = [("buy", 0, "anna", "p-1", 1, 40)]
PLAYED: list[Step] = [*BOUGHT, ("report", (0, 1, 0, 10, 0), (0, 1, 0, 20, 20))]
LATER_PURCHASES: list[Step] = [  # two purchases; then a stage that began before both, one between them and one after
    *PLAYED,
    ("buy", 0, "anna", "p-1", 1, 20),
    ("buy", 0, "anna", "p-1", 1, 20),
    ("report", (0, 1, -40, 10, 0)),
    ("report", (0, 1, -20, 10, 0), (0, 1, 0, 10, 0), (0, 1, -20, 10, 0)),
    ("report", (0, 1, -20, 10, 0)),
]


@example(steps=LATER_PURCHASES)
@given(steps=lives)
def test_every_step_is_refused_exactly_where_the_rules_demand_it(steps: list[Step]) -> None:
    check_life(steps)


# --- the check above can fail ---------------------------------------------------------------------------------------


class Anything(int):
    """A number that no number differs from."""

    __hash__ = int.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False


STATE = "rgs.store.regulator.ParticipationState."
BOOK = "rgs.store.regulator.RegulatorTransaction."
PLANTED: list[tuple[str, Any, list[Step]]] = [
    # the final balance is not looked at
    (STATE + "balance_minor", property(lambda _: Anything(100)), [*PLAYED, ("end", 0, 1, 0, False)]),
    # who has ended stays seated
    (BOOK + "save_session", lambda *_: None, [*PLAYED, ("end", 0, 0, 0, False), ("close", 0)]),
    # a transaction id is forgotten, or its call is never kept
    (BOOK + "call", lambda _: None, [*PLAYED, ("repeat", 1)]),
    (BOOK + "keep_call", lambda *_: None, [*PLAYED, ("repeat", 1)]),
    # a told stage is not looked up
    (BOOK + "request_of", lambda *_: None, [*PLAYED, ("report", (0, 0, 0, 20, 20))]),
    # a player can sit twice
    (BOOK + "participation_of", lambda *_: None, [*BOUGHT, ("buy", 0, "anna", "p-3", 1, 20)]),
    # any balance before a stage will do
    (BOOK + "purchase_totals", lambda *_: [Anything(0)], [*PLAYED, ("report", (0, 1, 1, 10, 0))]),
    # dates are not looked at
    ("rgs.adapters.embedded.regulator._verify_not_in_future", lambda *_: None, [("open", "s-2", 100, 1)]),
]


@pytest.mark.parametrize(("name", "planted", "steps"), PLANTED, ids=[row[0].rpartition(".")[2] for row in PLANTED])
def test_a_planted_defect_is_caught(name: str, planted: Any, steps: list[Step]) -> None:
    check_life(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name, planted)
        with pytest.raises((AssertionError, RgsError, sqlite3.Error)):
            check_life(steps)


def test_the_search_finds_a_planted_defect() -> None:
    @settings(database=None, max_examples=300, report_multiple_bugs=False)
    @given(steps=lives)
    def search(steps: list[Step]) -> None:
        check_life(steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BOOK + "save_session", lambda *_: None)
        with pytest.raises((AssertionError, VerificationError)):
            search()


@pytest.mark.parametrize("damage", ["change", "drop", "swap", "repeat"])
def test_any_damage_to_an_export_is_seen(damage: str) -> None:
    async def life(path: Path) -> list[RegulatorEntry]:
        regulator, store = make_regulator(path)
        number = Numbers()
        session = (await regulator.open_session(opening(number()))).regulator_session_id
        seat = (await regulator.buy_participation(purchase(number(), session))).regulator_participation_id
        for stage_no in range(1, 6):
            await regulator.report_stages(number(), [stage(session, seat, stage_no, 530 - 30 * stage_no)])
        entries = list(store.entries())
        await regulator.close()
        return entries

    with tempfile.TemporaryDirectory() as folder:
        entries = asyncio.run(life(Path(folder) / "regulator.sqlite"))
    verify_chain(entries)
    for place in range(len(entries) - 1):
        spoilt = list(entries)
        if damage == "change":
            for position, character in enumerate(entries[place].body):
                other = "1" if character != "1" else "2"
                text = entries[place].body[:position] + other + entries[place].body[position + 1 :]
                spoilt[place] = replace(entries[place], body=text)
                with pytest.raises(VerificationError):
                    verify_chain(spoilt)
            continue
        if damage == "drop":
            del spoilt[place]
        elif damage == "swap":
            spoilt[place], spoilt[place + 1] = spoilt[place + 1], spoilt[place]
        else:
            spoilt.insert(place, spoilt[place])
        with pytest.raises(VerificationError):
            verify_chain(spoilt)
