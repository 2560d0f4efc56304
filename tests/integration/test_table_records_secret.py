"""While a table plays, no export, receipt, record or list says more of its cards than the table has shown.

All bytes that these give are searched for salt and transcript of the draw, the dealer's cards and the stock, and for
the cards of boxes that are not the caller's.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rgs.api.audit import audit_methods
from rgs.api.calls import Unary
from rgs.api.history import history_methods
from rgs.cli import export
from rgs.cli.dispute import command as dispute_export
from rgs.cli.receipt import command as receipt
from rgs.cli.reconcile_job import JobInputs, _export
from rgs.core.cards import format_cards
from rgs.core.errors import NotFoundError
from rgs.core.statements.lines import parse_key_bundle
from rgs.core.tables.bodies import RevealedDeal
from rgs.core.tables.machine import State
from rgs.service.audit.log import PublicLog
from rgs.service.callers import Caller, Role
from tests.support.service.harness import NODE_KEY, OPERATOR, ServiceHarness, key_bundle, open_harness
from tests.support.service.leaks import Secret, leaks
from tests.support.service.oracles import stored_statements
from tests.support.service.places import sequence
from tests.support.service.table_records import AUDITOR, OTHER, REGULATOR, SharedEvening, make_home
from tests.support.service.tables import ADMIN

CALLERS = (OPERATOR, OTHER, AUDITOR, REGULATOR)
Answers = dict[str, bytes]


async def deal_of(evening: SharedEvening) -> RevealedDeal:
    decks = evening.harness.tables.views.decks
    return decks.open(await decks.round_of((await evening.row()).table.round_id))


def secret_of(deal: RevealedDeal, shown: int) -> Secret:
    """What the table has not shown while `shown` cards of its board lie open."""
    dealt = deal.dealt
    open_cards = {*(card for hand in dealt.hands for card in hand), *dealt.board[:shown]}
    stock = [card for card in deal.deck if card not in open_cards and card not in dealt.dealer_cards]
    return Secret(deal.salt, deal.transcript, (*map(int, dealt.dealer_cards), *map(int, stock)))


async def answers_of(harness: ServiceHarness, log: Path, round_id: str, sessions: list[str]) -> Answers:
    """What every call of AuditService and HistoryService answers, in bytes, by party and call."""
    public = PublicLog(audit=harness.audit, folder=log, vkey_of=lambda _: "")
    methods = {**audit_methods(harness.audit, public), **history_methods(harness.history)}
    found: Answers = {}

    async def ask(caller: Caller, name: str, **request: Any) -> None:
        method = methods[name]
        assert isinstance(method, Unary)
        try:
            answer = await method.answer(caller, method.kind(**request))
        except NotFoundError:
            return
        found[f"{caller.party} {name} {len(found)}"] = answer

    rows = stored_statements(harness.folder)
    for caller in CALLERS:
        for row in rows:
            await ask(caller, "GetStatement", hash=row.hash)
            await ask(caller, "GetRecord", hash=row.hash)
        await ask(caller, "ListStatements", instance=rows[0].instance, page_size=200)
        await ask(caller, "ListStatements", round_id=round_id, page_size=200)
        await ask(caller, "GetRoundRecord", round_id=round_id)
        for session in sessions:
            await ask(caller, "ListStatements", session_id=session, page_size=200)
            await ask(caller, "GetRoundRecord", round_id=round_id, session_id=session)
        operator = "" if caller.role is Role.OPERATOR else OPERATOR.party
        await ask(caller, "ListRounds", player="player-1", operator=operator)
    return found


def commanded(home: Path, out: Path, round_id: str, sessions: list[str]) -> Answers:
    """What the commands write."""
    out.mkdir()
    export.command(out=str(out / "all.jsonl"), home=home)
    for session in sessions:
        export.command(out=str(out / f"{session}.jsonl"), session=[session], home=home)
        (out / f"of-{session}").mkdir()
        receipt(round_id, home=home, opening=True, session=session, output=out / f"of-{session}")
        with pytest.raises(NotFoundError, match="no final"):
            receipt(round_id, home=home, session=session, output=out)
        with pytest.raises(NotFoundError, match="no final"):
            dispute_export(round_id, out / "complaint.zip", home=home, session=session)
    for operator in (OPERATOR.party, OTHER.party):
        inputs = JobInputs(home / "store/rgs.db", home / "store/regulator.db", key_bundle(), NODE_KEY, 1, 512)
        asyncio.run(_export(inputs, operator, out / f"{operator}.jsonl"))
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def boxes_of(deal: RevealedDeal, stock: Secret, hidden: list[int]) -> list[Secret]:
    """The cards of boxes that a caller must not see."""
    hands = deal.dealt.hands
    return [Secret(stock.salt, stock.transcript, (*map(int, hands[number]), *stock.hidden[2:])) for number in hidden]


@pytest.mark.parametrize("table_id", ["uth-online", "uth-seven-box"])
async def test_records_of_a_round_in_play_show_nothing_more_than_the_table(tmp_path: Path, table_id: str) -> None:
    home = tmp_path / "home"
    (home / "store").mkdir(parents=True)
    async with open_harness(home / "store", ended=False) as harness:
        harness.audit.take_key_statements(parse_key_bundle(key_bundle()))
        make_home(home)
        evening = await SharedEvening(harness, table_id).gather()
        await evening.bet()
        await evening.until(State.DECIDING)
        round_id = (await evening.row()).table.round_id
        sessions = [sitter.session_id for sitter in evening.everybody]
        deal, boards = await deal_of(evening), []
        for look in range(4):
            if look == 3:
                await harness.tables.admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
            view = await evening.view()
            assert view.table_final == b""
            boards.append(len(view.board))
            await sequence(harness, home / "translog")
            secret = secret_of(deal, len(view.board))
            answers = await answers_of(harness, home / "translog", round_id, sessions)
            answers |= await asyncio.to_thread(commanded, home, tmp_path / f"out-{look}", round_id, sessions)
            assert len(answers) > 60
            assert leaks(secret, answers) == []
            await verify_boxes(harness, deal, secret, answers, round_id)
            if look < 2:
                await evening.pass_time()
        assert boards == [0, 3, 5, 5]
        assert leaks(
            secret_of(deal, 5), {"shown": b" ".join(text.encode() for text in format_cards(deal.dealt.dealer_cards))}
        )


async def verify_boxes(
    harness: ServiceHarness, deal: RevealedDeal, secret: Secret, answers: Answers, round_id: str
) -> None:
    """An operator gets the cards of its own boxes, nobody else any."""
    if deal.is_shared:
        return
    rounds = await harness.store.seats_of_round(round_id, 0, 10)
    for caller in CALLERS:
        others = [seat.seat_no - 1 for seat in rounds if seat.operator != caller.party]
        of_caller = {name: answer for name, answer in answers.items() if name.startswith(caller.party)}
        for box in boxes_of(deal, secret, others):
            assert leaks(box, of_caller) == []
        if caller.role is Role.OPERATOR:
            found = await harness.history.get_records(caller, round_id=round_id, player="", date="", game_code="")
            for record in found:
                hand = deal.dealt.hands[record.summary.round.seat_no - 1]
                assert record.view.hole_cards == format_cards(hand)
