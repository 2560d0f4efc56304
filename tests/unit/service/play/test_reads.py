"""Reads: sessions, rounds, history, statements, catalog: pages complete and bounded, each party its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import InvalidFieldError, NotFoundError, UnknownRulesetError
from rgs.core.statements import Ed25519Signer, leaf_hash
from rgs.core.texts import load_texts
from rgs.core.times import format_date
from rgs.service.audit.audit import StatementReader
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.pages import PAGE_SIZE_MAX, check_page_size, format_page_token, parse_page_token
from rgs.service.play.catalog import Catalog
from rgs.service.play.history import RoundsFilter
from rgs.service.sealing import DeckSealedError, Kek, Sealer
from rgs.store.interface import StatementRow
from tests.support.service.harness import OPERATOR, ServiceHarness, round_document
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player

AUDITOR, REGULATOR, LAB = (Caller(f"{role}-1", role, "") for role in (Role.AUDITOR, Role.REGULATOR, Role.LAB))
STRANGER = Caller("op-2", Role.OPERATOR, "demo")


# --- pages ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, (1 << 62)), min_size=1, max_size=3))
def test_a_page_token_comes_back(position: list[int]) -> None:
    assert parse_page_token(format_page_token(*position), len(position)) == tuple(position)


@pytest.mark.parametrize(
    "token",
    [
        *("x", "é", "=", "p1.5", format_page_token(5, 6), format_page_token(0), format_page_token(-5)),
        *(format_page_token(5) + "=", format_page_token(5) + "\n", " " + format_page_token(5)),
        format_page_token((1 << 62) + 1),
        format_page_token(10**30),
        "cDEuKzU",  # p1.+5
        "cDEuMDU",  # p1.05
        "cDIuNQ",  # p2.5
        "A" * 10_000,
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        parse_page_token(token, 1)
    assert caught.value.field == "page_token"


def test_page_sizes() -> None:
    assert parse_page_token("", 2) == (0, 0)
    assert [check_page_size(size) for size in (0, 1, 200)] == [50, 1, 200]
    for size in (-1, PAGE_SIZE_MAX + 1):
        with pytest.raises(InvalidFieldError) as caught:
            check_page_size(size)
        assert caught.value.field == "page_size"


async def all_pages(page: Callable[[str], Awaitable[tuple[tuple[Any, ...], str]]]) -> list[Any]:
    """Everything, page by page; a list that goes round in circles is noticed."""
    found: list[Any] = []
    token, seen = "", set()
    while True:
        rows, token = await page(token)
        found += rows
        if not token:
            return found
        assert token not in seen, "the list goes round in circles"
        seen.add(token)


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_sessions_are_listed_newest_first(harness: ServiceHarness) -> None:
    players = [Player(harness, name=name) for name in ("anna", "bert", "anna", "carl", "anna")]
    for player in players:
        await player.open()
    await players[2].close()
    made = [player.session_id for player in players]

    async def listed(
        player: str = "", *, open_only: bool = False, caller: Caller = OPERATOR, size: int = 2
    ) -> list[str]:
        views = await all_pages(lambda token: harness.sessions.list(caller, player, open_only, size, token))
        return [view.session.session_id for view in views]

    assert await listed() == made[::-1]
    assert await listed(size=5) == made[::-1]
    assert await listed("anna") == [made[4], made[2], made[0]]
    assert await listed("anna", open_only=True) == [made[4], made[0]]
    assert await listed(caller=STRANGER) == []
    with pytest.raises(InvalidFieldError):
        await harness.sessions.list(OPERATOR, "no such name", False, 0, "")


async def test_a_client_that_lost_everything_goes_on_from_get(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    view, opening = await harness.sessions.get(OPERATOR, anna.session_id)
    assert (view.open_round, opening) == (None, b"")
    started = await anna.start()
    await anna.act("check")
    for caller in (OPERATOR, AUDITOR, REGULATOR):
        view, opening = await harness.sessions.get(caller, anna.session_id)
        assert view.open_round is not None
        assert round_document(view.open_round) == anna.round
        assert opening == started.envelope
    harness.clock.tick(90)
    view, _ = await harness.sessions.get(OPERATOR, anna.session_id)
    assert view.elapsed_ms == 90
    with pytest.raises(InvalidFieldError):
        await harness.sessions.get(OPERATOR, "x")


async def test_an_open_round_that_is_not_in_the_store(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    harness.store._db.execute("DELETE FROM rounds")
    harness.store._memory._fresh.clear()
    with pytest.raises(NotFoundError):
        await harness.sessions.get(OPERATOR, anna.session_id)


async def test_a_round_reads_the_same_from_row_and_from_final(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    started = await anna.start()
    view, opening, final, _ = await harness.play.get_round(OPERATOR, anna.session_id, anna.round["round_id"])
    assert (round_document(view), opening, final) == (anna.round, started.envelope, b"")
    settled = await anna.finish_round()
    view, opening, final, _ = await harness.play.get_round(OPERATOR, anna.session_id, anna.round["round_id"])
    assert (round_document(view), opening, final) == (anna.round, started.envelope, settled.envelope)
    for round_id in ("0" * 26, anna.session_id):
        with pytest.raises(NotFoundError):
            await harness.play.get_round(OPERATOR, anna.session_id, round_id)


# --- history (RULEBOOK R-5) -------------------------------------------------------------------------------------------


async def test_history_is_that_of_the_whole_account(harness: ServiceHarness) -> None:
    ended: list[str] = []
    for game in ("uth-solo", "casino-holdem"):
        player = Player(harness, game=game)
        await player.sit()
        for _ in range(3):
            await player.play()
            ended.append(player.round["round_id"])
        await player.start()
    stranger = Player(harness, caller=STRANGER)
    await stranger.sit()
    await stranger.play()

    async def listed(caller: Caller, player: str, size: int) -> list[str]:
        rows = await all_pages(lambda token: harness.history.list_rounds(caller, RoundsFilter(player), size, token))
        assert all(row.session.session_id == row.round.session_id for row in rows)
        return [row.round.round_id for row in rows]

    for size in (1, 2, 6, 50):
        assert await listed(OPERATOR, "anna", size) == ended[::-1]
    assert await listed(OPERATOR, "bert", 2) == []
    assert await listed(STRANGER, "anna", 2) == [stranger.round["round_id"]]
    with pytest.raises(InvalidFieldError):
        await harness.history.list_rounds(OPERATOR, RoundsFilter(""), 2, "")


async def test_a_record_is_found_by_id_and_by_date_and_code(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    harness.clock.tick(1500)
    finals = []
    for _ in range(3):  # in one second: the codes get suffixes
        await anna.start()
        finals.append(await anna.finish_round())
    date = format_date(harness.clock.now_ms())
    second = anna.round["game_code"].removesuffix("-3")
    bert = Player(harness, name="bert")
    await bert.sit()
    await bert.play()
    for code, final in zip((second, second + "-2", second + "-3"), finals, strict=True):
        (record,) = await harness.history.get_records(OPERATOR, round_id="", player="anna", date=date, game_code=code)
        assert record.final == final.envelope
        assert record.summary.round.game_code == code
        assert record.view.settlement is not None
        by_id = await harness.history.get_records(
            OPERATOR, round_id=record.summary.round.round_id, player="", date="", game_code=""
        )
        assert by_id == (record,)
    await anna.start()
    (record,) = await harness.history.get_records(
        AUDITOR, round_id=anna.round["round_id"], player="", date="", game_code=""
    )
    assert (record.final, record.view.status.value) == (b"", "open")
    assert record.view.dealer_cards == ()


NO_RECORDS = [
    ("anna", "2026-11-21", "#00:00:00", NotFoundError),
    ("anna", "2026-11-21", "#00:00:00-x", InvalidFieldError),
    ("anna", "2026-11-21", "00:00:00", InvalidFieldError),
    ("anna", "2026-11-21", "#24:00:00", InvalidFieldError),
    ("anna", "2026-11-21", "#00:60:00", InvalidFieldError),
    ("anna", "2026-11-21", "#00:00:60", InvalidFieldError),
    ("anna", "2026-11-21", "#0:0:0", InvalidFieldError),
    ("anna", "2026-11-21", "#00:00", InvalidFieldError),
    ("anna", "2026-11-21", "#\uff10\uff10:00:00", InvalidFieldError),
    ("anna", "21.11.2026", "#00:00:00", InvalidFieldError),
    ("anna", "", "#00:00:00", InvalidFieldError),
    ("", "2026-11-21", "#00:00:00", InvalidFieldError),
]


@pytest.mark.parametrize(("player", "date", "code", "error"), NO_RECORDS)
async def test_records_that_are_not_there(
    harness: ServiceHarness, player: str, date: str, code: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await harness.history.get_records(OPERATOR, round_id="", player=player, date=date, game_code=code)


async def test_a_round_without_its_session_is_not_shown(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    harness.store._db.execute("UPDATE rounds SET session_id = 'x'")
    harness.store._memory._fresh.clear()
    with pytest.raises(NotFoundError):
        await harness.history.list_rounds(OPERATOR, RoundsFilter("anna"), 0, "")


# --- audit ------------------------------------------------------------------------------------------------------------


async def test_statements_are_read_by_hash_and_by_number(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    rows = stored_statements(tmp_path)
    for row in rows:
        for found in (
            await harness.audit.get_statement(AUDITOR, hash=leaf_hash(row.envelope), instance="", statement_no=0),
            await harness.audit.get_statement(AUDITOR, hash=b"", instance=row.instance, statement_no=row.statement_no),
        ):
            assert found == row
    with pytest.raises(InvalidFieldError) as caught:
        await harness.audit.get_statement(AUDITOR, hash=b"x" * 31, instance="", statement_no=0)
    assert caught.value.field == "hash"
    with pytest.raises(InvalidFieldError):
        await harness.audit.get_statement(AUDITOR, hash=b"", instance="", statement_no=1)
    for number in (0, -1, len(rows) + 1):
        with pytest.raises(NotFoundError):
            await harness.audit.get_statement(AUDITOR, hash=b"", instance=harness.instance.name, statement_no=number)
    with pytest.raises(NotFoundError):
        await harness.audit.get_statement(AUDITOR, hash=b"x" * 32, instance="", statement_no=0)


async def listed(harness: ServiceHarness, caller: Caller, size: int = 2, **which: Any) -> list[StatementRow]:
    arguments = {"session_id": "", "round_id": "", "instance": "", "first_no": 0, "last_no": 0, **which}
    return await all_pages(
        lambda token: harness.audit.list_statements(caller, page_size=size, page_token=token, **arguments)
    )


@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_statements_are_listed_by_session_round_and_instance(
    tmp_path: Path, harness: ServiceHarness, anna: Player, size: int
) -> None:
    await anna.sit()
    await anna.play()
    await anna.play()
    rows = stored_statements(tmp_path)
    linked = [row for row in rows if row.session_id == anna.session_id]
    assert await listed(harness, AUDITOR, size, session_id=anna.session_id) == linked
    of_round = [row for row in rows if row.round_id == anna.round["round_id"]]
    assert len(of_round) == 2
    assert await listed(harness, AUDITOR, size, round_id=anna.round["round_id"]) == of_round
    assert await listed(harness, AUDITOR, size, instance=harness.instance.name) == rows
    assert await listed(harness, AUDITOR, size, instance=harness.instance.name, first_no=3, last_no=5) == rows[2:5]


async def test_exactly_one_of_session_round_and_instance(harness: ServiceHarness, anna: Player) -> None:
    await anna.open()
    choices: list[dict[str, Any]] = [
        {},
        {"session_id": anna.session_id, "instance": "x"},
        {"round_id": "0" * 26, "instance": "x"},
    ]
    for which in choices:
        with pytest.raises(InvalidFieldError):
            await listed(harness, AUDITOR, **which)


async def test_every_party_sees_what_is_for_it(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    await anna.leave()
    stranger = Player(harness, caller=STRANGER)
    await stranger.sit()
    rows = stored_statements(tmp_path)
    instance = harness.instance.name
    for caller in (AUDITOR, REGULATOR):
        assert await listed(harness, caller, instance=instance) == rows
    for_lab = await listed(harness, LAB, instance=instance)
    assert [row.envelope for row in for_lab] == [row.envelope for row in rows]
    assert not any(row.private for row in for_lab)
    assert sum(bool(row.private) for row in rows) == 5
    own = await listed(harness, OPERATOR, instance=instance)
    assert {row.session_id for row in own} == {"", anna.session_id}
    assert [row for row in own if row.session_id] == [row for row in rows if row.session_id == anna.session_id]
    assert {row.kind for row in own if not row.session_id} == {"instance_start", "artifact"}
    final = next(row for row in rows if row.kind == "round_final")
    with pytest.raises(NotFoundError):
        await harness.audit.get_statement(STRANGER, hash=final.hash, instance="", statement_no=0)
    assert await listed(harness, STRANGER, round_id=final.round_id) == []


def test_the_key_path_is_given_as_it_is(harness: ServiceHarness) -> None:
    assert StatementReader(store=harness.store, key_statements=[b"a", b"b"]).key_statements() == (b"a", b"b")


# --- catalog ----------------------------------------------------------------------------------------------------------

ENGLISH = load_texts("en")


def test_the_catalog_tells_every_game_from_its_ruleset() -> None:
    books = GameCatalog()
    catalog = Catalog(books)
    assert {entry.ruleset.id for entry in catalog.list()} == set(books.rulesets)
    for entry in catalog.list():
        assert catalog.get(entry.ruleset.id) is entry
        assert not any("{" in rule for rule in entry.rules_in(ENGLISH))
        assert [figure.basis for figure in entry.returns] == ["certified"] * 3
    figures = {(row.bet, row.per): row.basis_points for row in catalog.get("uth-solo").returns}
    # U-12.
    assert figures == {("main", "initial stake"): 9782, ("main", "total stake"): 9947, ("trips", "initial stake"): 9650}
    assert [catalog.get(name).dealer_qualifies_with for name in ("uth-solo", "casino-holdem")] == ["pair", "pair:4"]
    assert "lost" in catalog.get("uth-lugano").rules_in(ENGLISH)[-1]
    assert "paid" in catalog.get("uth-solo").rules_in(ENGLISH)[-1]
    with pytest.raises(UnknownRulesetError, match=f"^no game {'poker' * 8}$") as unknown:
        catalog.get("poker" * 20)
    assert (unknown.value.field, unknown.value.metadata) == ("ruleset_id", {"value": "poker" * 8})


def test_the_floor_of_the_dealer_in_words() -> None:
    catalog = Catalog(GameCatalog())
    (qualifies,) = (rule for rule in catalog.get("uth-solo").rules_in(ENGLISH) if "qualifies with" in rule)
    assert qualifies.endswith("The dealer qualifies with a pair or better.")
    assert any(
        "qualifies with a pair of fours or better" in rule for rule in catalog.get("casino-holdem").rules_in(ENGLISH)
    )


def test_the_catalog_shows_what_is_published_until_there_is_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.core.returns.certified.load_certified_returns", lambda _: None)
    catalog = Catalog(GameCatalog())
    assert {figure.basis for entry in catalog.list() for figure in entry.returns} == {"published"}
    assert catalog.list("it-adm") == ()  # and offers nothing


def test_the_catalog_lists_what_the_jurisdiction_lets_be_offered() -> None:
    books = GameCatalog()
    assert len(Catalog(books).list("it-adm")) == len(books.rulesets)
    strict = replace(books.jurisdictions["it-adm"], return_floor_basis_points=9_400)
    books.jurisdictions = {**books.jurisdictions, "it-adm": strict}
    listed = {entry.ruleset.id for entry in Catalog(books).list("it-adm")}
    assert listed == set(books.rulesets) - {"casino-holdem"}  # AA returns 93.74 %


# --- sealing (ARCHITECTURE 2.9) ---------------------------------------------------------------------------------------

SALT, TRANSCRIPT, CORE = b"s" * 32, b"transcript", b'{"deal":"core"}'
NODE = "node-1-b1-w0"
OF_SCHEMA_13 = bytes.fromhex(
    "01f7678ba1e1b09b8b2d0aea1b487e5e11e9f93d95b32a64ee1f15de4add6c8c5834b3fad3abe9532b018a8b55413f5d4e9b3ef0345abdf0ce"
    "11bd"
)
"""What the software of schema 13 made of these, draw 5 and the key of `sealer`."""
EITHER_FORM = pytest.mark.parametrize("beside_older", [False, True], ids=["", "beside-older"])


def sealer(current: int = 1, *, beside_older: bool = False, **keys: bytes) -> Sealer:
    kek = Kek(current, {int(epoch[1:]): key for epoch, key in (keys or {"e1": b"k" * 32}).items()})
    return Sealer(kek, beside_older=beside_older)


@EITHER_FORM
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=1, max_size=200), st.integers(1, 1 << 62), st.binary())
def test_what_is_sealed_comes_back(
    beside_older: bool, salt: bytes, transcript: bytes, draw_no: int, core: bytes
) -> None:
    sealed = sealer(beside_older=beside_older).seal(NODE, draw_no, core, salt, transcript)
    for opens in (sealer(), sealer(beside_older=True)):
        assert opens.unseal(NODE, draw_no, core, sealed) == (salt, transcript)
    assert transcript not in sealed or len(transcript) < 8


@EITHER_FORM
def test_nothing_else_opens_it(beside_older: bool) -> None:
    sealed = sealer(beside_older=beside_older).seal(NODE, 5, CORE, SALT, TRANSCRIPT)
    attempts: list[tuple[Sealer, str, int, bytes, bytes]] = [
        (sealer(e1=b"x" * 32), NODE, 5, CORE, sealed),
        (sealer(2, e2=b"k" * 32), NODE, 5, CORE, sealed),
        (sealer(), NODE, 5, CORE + b" ", sealed),
        (sealer(), NODE, 5, CORE, b""),
        (sealer(), NODE, 5, CORE, sealed[:1]),
        (sealer(), NODE, 5, CORE, sealed[:-1]),
        *((sealer(), NODE, 5, CORE, sealed[:n] + bytes([sealed[n] ^ 1]) + sealed[n + 1 :]) for n in range(3)),
    ]
    if beside_older:  # otherwise the deal core says both
        attempts += [(sealer(), "node-1-b2-w0", 5, CORE, sealed), (sealer(), NODE, 6, CORE, sealed)]
    for opener, instance, draw_no, core, data in attempts:
        with pytest.raises(DeckSealedError) as caught:
            opener.unseal(instance, draw_no, core, data)
        assert TRANSCRIPT.decode() not in str(caught.value)
        assert caught.value.__cause__ is None


def test_the_software_of_schema_13_and_this_one_open_the_decks_of_each_other() -> None:
    assert sealer(beside_older=True).seal(NODE, 5, CORE, SALT, TRANSCRIPT) == OF_SCHEMA_13
    assert sealer().unseal(NODE, 5, CORE, OF_SCHEMA_13) == (SALT, TRANSCRIPT)


def test_a_name_that_begins_again_repeats_no_key() -> None:
    """A store that was put back without its log names instances anew, and counts their draws from 1."""
    first, second = (sealer().seal(NODE, 5, core, SALT, TRANSCRIPT) for core in (CORE, b'{"deal":"other"}'))
    assert len(first) == len(second)
    # Under one key and nonce the same text gives the same bytes, and two texts give each other away.
    assert not any(first[at : at + 8] == second[at : at + 8] for at in range(1, len(first) - 8))


def test_keys_are_those_of_hkdf() -> None:
    """RFC 5869 as `cryptography` has it, one text under each key."""
    sealed = sealer().seal(NODE, 5, CORE, SALT, TRANSCRIPT)
    info = b"rgs/seal-deck/v1|" + hashlib.sha256(CORE).digest()
    key = HKDF(SHA256(), 32, salt=None, info=info).derive(b"k" * 32)
    assert AESGCM(key).decrypt(bytes(12), sealed[1:], None) == SALT + TRANSCRIPT


@EITHER_FORM
def test_new_rounds_are_sealed_under_the_current_epoch_and_old_ones_open(beside_older: bool) -> None:
    old = sealer(beside_older=beside_older).seal(NODE, 5, CORE, SALT, TRANSCRIPT)
    both = sealer(2, beside_older=beside_older, e1=b"k" * 32, e2=b"l" * 32)
    new = both.seal(NODE, 5, CORE, SALT, TRANSCRIPT)
    assert (old[0], new[0]) == (1, 2)
    for sealed in (old, new):
        assert both.unseal(NODE, 5, CORE, sealed) == (SALT, TRANSCRIPT)
    assert repr(Kek(2, {1: b"k" * 32, 2: b"l" * 32})) == "Kek(current=2)"


async def test_a_deck_that_does_not_open_stops_its_round_and_no_other(harness: ServiceHarness, anna: Player) -> None:
    bert = Player(harness, name="bert")
    for player in (anna, bert):
        await player.sit()
        await player.start()
    harness.store._db.execute("UPDATE rounds SET sealed = substr(sealed, 1, 40) WHERE player = 'anna'")
    harness.store._memory._fresh.clear()
    with pytest.raises(DeckSealedError):
        await anna.act("check")
    with pytest.raises(DeckSealedError):
        await harness.sessions.get(OPERATOR, anna.session_id)
    await bert.finish_round()


async def test_a_deck_that_opens_to_another_commitment_is_refused(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    harness.store._db.execute("UPDATE rounds SET commitment = zeroblob(32)")
    harness.store._memory._fresh.clear()
    with pytest.raises(DeckSealedError, match="commitment"):
        await anna.act("check")


def test_a_signer_shows_its_name_only() -> None:
    signer = Ed25519Signer.from_seed(b"s" * 32)
    assert repr(signer) == f"Ed25519Signer(keyid={signer.keyid})"
    assert json.dumps(signer.keyid)
