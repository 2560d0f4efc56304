"""What support staff finds, by every name that a player or an operator may give, and what it never gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.tables.machine import State
from rgs.core.times import format_date
from rgs.service.admin.orders import order_of
from rgs.service.callers import Caller, Role
from rgs.service.money.transfers import transaction_of
from rgs.service.support.lookup import MatchKind, Wanted
from rgs.store.interface import PartyRow
from rgs.store.sqlite.store import connect
from tests.support.service.admins import AdminOf
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player
from tests.support.service.seamless import Better, opened
from tests.support.service.tables import ADMIN, ALWAYS, Evening

ALL = Caller("helpdesk", Role.SUPPORT, "")
MINE = Caller("helpdesk-1", Role.SUPPORT, "", OPERATOR.party)
OTHERS = Caller("helpdesk-2", Role.SUPPORT, "", "op-2")
NOBODY = "01K4ZQ7M2J8T5V9X3B6C1D0EFZ"


async def known_operators(harness: ServiceHarness, *names: str) -> None:
    for number, name in enumerate(names):
        await harness.parties.add(PartyRow(f"{number:064x}", name, Role.OPERATOR, "demo", 1, None, 2))


async def found(harness: ServiceHarness, caller: Caller, text: str, **given: str) -> list[tuple[MatchKind, str, str]]:
    matches, token = await harness.services.support.find(caller, Wanted(text, **given), 0, "")
    assert token == ""
    return [(match.kind, match.session_id, match.round_id) for match in matches]


async def test_every_name_of_a_session_and_its_rounds_is_found(harness: ServiceHarness, anna: Player) -> None:
    await known_operators(harness, OPERATOR.party, "op-2")
    await anna.sit()
    await anna.play()
    await anna.start()
    session_id, playing = anna.session_id, str(anna.round["round_id"])
    session = await harness.store.session(session_id)
    assert session is not None
    ended = (await harness.store.rounds_of_session(session_id, before_no=2, limit=1))[0][1]
    day = format_date(ended.start_ms)
    in_play = await harness.store.round(playing)
    assert in_play is not None
    names: list[tuple[str, dict[str, str], MatchKind, str, str]] = [
        (anna.name, {}, MatchKind.PLAYER, "", ""),
        (session_id, {}, MatchKind.SESSION_ID, session_id, ""),
        (ended.round_id, {}, MatchKind.ROUND_ID, session_id, ended.round_id),
        (session.operator_reference, {}, MatchKind.OPERATOR_REFERENCE, session_id, ""),
        (session.regulator_session_id, {}, MatchKind.REGULATOR_SESSION_ID, session_id, ""),
        (session.regulator_participation_id, {}, MatchKind.REGULATOR_PARTICIPATION_ID, session_id, ""),
        (ended.game_code, {"date": day, "operator": "op-1"}, MatchKind.GAME_CODE, session_id, ended.round_id),
        (in_play.game_code, {"date": day, "operator": "op-1"}, MatchKind.GAME_CODE, session_id, playing),
    ]
    for text, given, *expected in names:
        for caller in (ALL, MINE):
            assert tuple(expected) in await found(harness, caller, text, **given), text
        if "operator" not in given:
            assert await found(harness, OTHERS, text) == [], text
        else:
            assert await found(harness, OTHERS, text, date=day) == [], text
    assert await found(harness, ALL, anna.name, operator="op-2") == []
    assert await found(harness, ALL, NOBODY) == []
    next_day = format_date(ended.start_ms + 86_400_000)
    assert await found(harness, MINE, ended.game_code, date=next_day) == []


async def test_each_transaction_of_a_participation_is_found(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    await anna.leave()
    with connect(harness.folder / "rgs.db", read_only=True) as db:
        rows = db.execute(
            "SELECT kind, operation_id, detail FROM operations WHERE kind IN ('purchase', 'end')"
        ).fetchall()
    assert sorted(row[0] for row in rows) == ["end", "purchase"]
    for _, operation_id, _ in rows:
        operation = await harness.store.operation(operation_id)
        assert operation is not None
        text = transaction_of(operation)
        assert await found(harness, MINE, text) == [(MatchKind.TRANSACTION_ID, anna.session_id, "")]
        assert await found(harness, OTHERS, text) == []
        if operation.kind == "end":  # its own id is no transaction's
            assert operation_id != text
            assert await found(harness, ALL, operation_id) == []
    (seen, token) = await harness.services.support.session(MINE, anna.session_id, 0, "")
    assert ([one.kind for one in seen.transfers], token) == (["purchase", "payout"], "")
    assert {one.transaction_id for one in seen.transfers} == {
        transaction_of(one) for row in rows if (one := await harness.store.operation(row[1])) is not None
    }
    assert seen.wait is None


async def test_debits_and_credits_of_a_session_funded_bet_by_bet(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        anna = Better(harness)
        await anna.open()
        harness.wallet_script.plan("credit", "before", "before")
        await anna.play(100)
        support = harness.services.support
        caller = Caller("helpdesk-1", Role.SUPPORT, "", anna.caller.party)
        seen, _ = await support.session(caller, anna.session_id, 0, "")
        assert [one.kind for one in seen.transfers][:: len(seen.transfers) - 1] == ["debit", "credit"]
        assert seen.wait is not None
        assert (seen.wait.kind, transaction_of(seen.wait)) == ("credit", seen.transfers[-1].transaction_id)
        for one in seen.transfers:
            (match,) = (await support.find(caller, Wanted(one.transaction_id), 0, ""))[0]
            assert (match.kind, match.session_id, match.round_id) == (
                MatchKind.TRANSACTION_ID, anna.session_id, one.round_id,
            )  # fmt: skip
        pages: list[Any] = []
        token = ""
        while not pages or token:
            page, token = await support.session(caller, anna.session_id, 1, token)
            pages += page.transfers
        assert pages == list(seen.transfers)


async def test_pages_of_a_shared_name_have_each_match_once(harness: ServiceHarness) -> None:
    """Sessions may share a session id of the regulator, and rounds a game code."""
    players = [Player(harness, name=f"player-{number}") for number in range(5)]
    for player in players:
        await player.sit()
        await player.start()
    for player in players[:3]:
        await player.finish_round()
    first = await harness.store.session(players[0].session_id)
    assert first is not None
    with connect(harness.folder / "rgs.db") as db:
        shared = (first.regulator_session_id,) * 2  # one text in two lists
        db.execute("UPDATE sessions SET regulator_session_id = ?, regulator_participation_id = ?", shared)
    round_ = await harness.store.round(str(players[0].round["round_id"]))
    assert round_ is not None
    code = Wanted(round_.game_code, date=format_date(round_.start_ms))
    for wanted, of, count in ((Wanted(first.regulator_session_id), "session_id", 10), (code, "round_id", 5)):
        whole, _ = await harness.services.support.find(MINE, wanted, 0, "")
        assert len({(match.kind, getattr(match, of)) for match in whole}) == len(whole) == count
        for size in (1, 2, 3, 5):
            pages: list[Any] = []
            token = ""
            while not pages or token:
                page, token = await harness.services.support.find(MINE, wanted, size, token)
                assert len(page) <= size
                pages += page
            assert pages == list(whole), size


async def test_a_player_with_what_keeps_him_from_starting(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    support, admin = harness.services.support, harness.services.admin
    caller = Caller("admin-1", Role.ADMIN, "")
    for scope, subject in (("player", "op-1/anna"), ("player", "op-1/annabel"), ("operator", "op-2")):
        order = order_of(caller, "SetSwitch", harness.request_id(), scope=scope, subject=subject)
        await admin.set_switch(order, scope, subject, enabled=False, reason="CHECKED")
    bars, sessions = await support.player(MINE, "", "anna")
    assert [(bar.scope, bar.reason) for bar in bars] == [("player", "CHECKED")]
    assert [session.session_id for session in sessions] == [anna.session_id]
    with pytest.raises(NotFoundError):
        await support.player(OTHERS, "", "anna")
    with pytest.raises(InvalidFieldError, match="looks up players of op-2 only"):
        await support.player(OTHERS, "op-1", "anna")
    with pytest.raises(InvalidFieldError, match="operator"):
        await support.player(ALL, "", "anna")


async def test_lists_of_a_player_and_of_a_session(harness: ServiceHarness, anna: Player) -> None:
    support = harness.services.support
    await anna.sit()
    for _ in range(3):
        await anna.play()
    await anna.start()
    of_session = {"session_id": anna.session_id, "operator": "", "player": ""}
    of_player = {"session_id": "", "operator": "", "player": "anna"}
    for named, expected in ((of_session, [4, 3, 2, 1]), (of_player, [3, 2, 1])):
        numbers: list[int] = []
        token = ""
        while not numbers or token:
            page, token = await support.rounds(MINE, **named, page_size=2, page_token=token)
            numbers += [summary.round.round_no for summary in page]
        assert numbers == expected
    with pytest.raises(NotFoundError):
        await support.rounds(OTHERS, **of_session, page_size=0, page_token="")
    assert await support.rounds(OTHERS, **of_player, page_size=0, page_token="") == ((), "")
    with pytest.raises(InvalidFieldError, match="either session_id or player"):
        await support.rounds(MINE, **{**of_session, "player": "anna"}, page_size=0, page_token="")
    sessions, _ = await support.sessions(MINE, "", "anna", open_only=True, page_size=0, page_token="")
    assert [session.session_id for session in sessions] == [anna.session_id]


@pytest.mark.parametrize("text", ["", "x" * 97, "ann\u00e0", "a\nb"])
async def test_a_text_that_is_no_name(harness: ServiceHarness, text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        await harness.services.support.find(ALL, Wanted(text), 0, "")
    assert (caught.value.field, caught.value.metadata["limit"]) == ("text", "96")


async def test_a_game_code_needs_operator_and_date(harness: ServiceHarness) -> None:
    for caller, given, field in ((ALL, {"date": "2026-11-21"}, "operator"), (MINE, {}, "date")):
        with pytest.raises(InvalidFieldError) as caught:
            await harness.services.support.find(caller, Wanted("#21:10:10", **given), 0, "")
        assert caught.value.field == field


# --- rounds in words --------------------------------------------------------------------------------------------------


async def test_a_round_in_words_says_what_was_signed(harness: ServiceHarness, anna: Player) -> None:
    support = harness.services.support
    await anna.sit()
    await anna.start(100)
    round_id = str(anna.round["round_id"])
    held = set(anna.round["hole_cards"])
    explained = await support.explain(MINE, round_id, "")
    text = " ".join(explained.sentences)
    assert "The opening bets were ante 1.00 EUR, blind 1.00 EUR: 2.00 EUR in all." in explained.sentences
    assert (
        explained.sentences[-1] == "The round is in play. Its cards are not shown here before its final reveals them."
    )
    assert explained.final == b""
    assert held.isdisjoint(text.replace(",", " ").split())
    await anna.finish_round(lambda legal: "play_4x" if "play_4x" in legal else "fold")
    explained = await support.explain(ALL, round_id, anna.session_id)
    text = " ".join(explained.sentences)
    assert "The player chose play 4x for 4.00 EUR, before the flop, at " in text
    assert "In all 6.00 EUR were staked and " in text
    for card in held:
        assert card in text
    net = int(anna.round["returned_minor"]) - 600 if "returned_minor" in anna.round else None
    assert net is None or (f"won {net // 100}.{net % 100:02} EUR" in text) == (net > 0)
    for caller, session_id in ((OTHERS, ""), (ALL, NOBODY)):
        with pytest.raises(NotFoundError):
            await support.explain(caller, round_id, session_id)


async def test_a_paused_and_a_void_round(harness: ServiceHarness, anna: Player) -> None:
    support = harness.services.support
    await anna.sit()
    await anna.start(100)
    round_id = str(anna.round["round_id"])
    await AdminOf(harness).pause(round_id, "CARDS_SHOWN")
    explained = await support.explain(MINE, round_id, "")
    assert "paused since a malfunction was logged (CARDS_SHOWN)" in explained.sentences[-1]
    two = AdminOf(harness, "admin-2")
    await AdminOf(harness).propose(round_id)
    await two.approve(round_id)
    explained = await support.explain(MINE, round_id, "")
    text = " ".join(explained.sentences)
    assert "by the admins admin-1 and admin-2. Every stake came back." in text
    assert "In all 2.00 EUR were staked and 2.00 EUR returned: the player neither won nor lost." in text
    assert "would have returned" in text


@pytest.mark.parametrize("table_id", ["uth-online", "uth-seven-box"])
async def test_a_seat_at_a_table(tmp_path: Path, table_id: str) -> None:
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, table_id, hours=ALWAYS).open()
        sitters = await evening.seated("player-0", "player-1")
        for sitter in sitters:
            await sitter.bet(ante=1_000)
        await evening.until(State.DECIDING)
        support = harness.services.support
        opening = next(row for row in stored_statements(harness.folder) if row.kind == "seat_opening")
        explained = await support.explain(MINE, opening.round_id, "")
        assert "The round is in play." in explained.sentences[-1]
        assert len(explained.session_ids) == 2
        admin = harness.tables.admin
        await admin.pause(ADMIN, harness.request_id(), table_id, "CARD_READER")
        explained = await support.explain(MINE, opening.round_id, "")
        assert "Its table is paused since a malfunction was logged (CARD_READER)" in explained.sentences[-1]
        await admin.resume(ADMIN, harness.request_id(), table_id, "REPAIRED")
        await evening.until(State.RESULT)
        for session_id in explained.session_ids:
            seat = await support.explain(MINE, opening.round_id, session_id)
            text = " ".join(seat.sentences)
            assert f" at table {table_id} began at " in text
            assert "The timer chose check, before the flop" in text
            assert "The player held " in text
            assert "The player had folded." in text
        assert await found(harness, MINE, opening.round_id) != []
        assert await found(harness, OTHERS, opening.round_id) == []
        with pytest.raises(NotFoundError):
            await support.explain(OTHERS, opening.round_id, explained.session_ids[0])
