"""Faults that another check of the same number would hide: what is told is compared word for word."""

from __future__ import annotations

import pytest

from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.replay import KeyBook, Replay
from rgs.core.rounds import rules_object
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import format_canonical, parse_envelope, parse_line, parse_statement
from rgs.core.statements import leaf_hash as statement_hash
from rgs.core.tlog.merkle import leaf_hash
from tests.support.records.betting import bet_by_bet
from tests.support.records.factory import Body, Lie, RecordFactory
from tests.support.records.lies import OTHER_ULID, Change, add, drop, lie_at, put
from tests.support.records.lying import (
    begun,
    ended,
    limits,
    played,
    second_purchase,
    two_instances,
    two_rounds,
    void_factory,
)
from tests.support.records.planted_ids import erased
from tests.support.records.planted_voids import PROPOSED
from tests.support.records.replaying import RULEBOOK, Verdict, planted, replay_lines


def words(factory: RecordFactory) -> list[str]:
    """The failures of the server's lines, in words."""
    return [failure.message for failure in replay_lines(factory).failures]


# --- seats of a round ---


def test_a_seat_that_is_opened_twice_is_named() -> None:
    assert "seat 1 of the round was opened before" in planted("seat twice")


def test_a_seat_of_another_session_is_named_though_the_deal_holds_it() -> None:
    """The server deals the seat to another session, with leaf and root that are right for it."""

    def lie(body: Body) -> None:
        body["seat"]["session_id"] = OTHER_ULID
        body["deal"]["seats_root"] = leaf_hash(format_canonical(body["seat"])).hex()

    (failure, *_) = words(played(lie=lie_at("round_opening", 1, lie)))
    assert failure == "the seat is another session's"


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("stage 2 before 1", "stage 2 comes after 0"),
        ("deal by a ruleset of nobody", "ruleset uth-solo version 1 is not known"),
    ],
)
def test_the_rule_that_an_opening_breaks_is_named(name: str, reported: str) -> None:
    assert planted(name)[0] == reported


# --- what the cards give ---


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("dealer does not qualify", "dealer_qualifies is False, the cards give True"),
        ("who would have won", "outcome is player, the cards give fold"),
    ],
)
def test_the_field_that_is_wrong_is_the_one_that_is_named(name: str, reported: str) -> None:
    assert planted(name) == [reported]


# --- keys and instances ---


def test_a_key_book_knows_the_statements_of_its_bundle() -> None:
    factory = RecordFactory("bundle")
    factory.node("node-1")
    hashes = [statement_hash(envelope) for envelope in factory.bundle]
    assert KeyBook(factory.keys()).statements == {hash_: place for place, hash_ in enumerate(hashes, start=1)}


def test_an_instance_that_shows_more_than_its_loss_told_is_named() -> None:
    factory = two_instances(lie_at("instance_lost", 1, add("lost", "last_statement_no", by=-1)))
    assert "instance rgs-1 shows statement 5, and was lost after 4" in words(factory)


def goes_on(factory: RecordFactory) -> list[str]:
    """The failures of the server's lines as those of a log that goes on."""
    replay = Replay(KeyBook(factory.keys()), RULEBOOK, goes_on=True)
    failures = [failure for line in factory.lines for failure in replay.feed(line)]
    return [failure.message for failure in (*failures, *replay.finish())]


def test_in_a_log_that_goes_on_a_boot_may_have_told_nothing_but_its_start() -> None:
    """It declares the one before lost at once: with its next statement, or nothing excuses it."""
    factory = RecordFactory("goes on")
    one = factory.start("rgs-1")
    two = factory.start("rgs-2", boot_no=2)
    assert goes_on(factory) == []
    factory.event(two, "LARGE_WIN")
    reported = ["instance rgs-2: it names no previous boot, and instance rgs-1 before it was not lost"]
    assert goes_on(factory) == reported
    factory.lose(two, one)
    assert goes_on(factory) == []


@pytest.mark.parametrize("shown", [2, 90])
def test_in_a_log_a_boot_before_that_it_names_has_its_end_or_loss_before_the_next_tells_anything_else(
    shown: int,
) -> None:
    """Others that are lost may be told first. `shown` is what the start says that the boot before came to."""
    factory = RecordFactory("goes on")
    one, other = factory.start("rgs-1"), factory.start("rgs-2", worker=1)
    factory.event(one, "LARGE_WIN")
    named = {**factory.boot(one), "last_statement_no": str(shown)}
    two = factory.start("rgs-3", boot_no=2, previous_boot=named)
    assert goes_on(factory) == []
    factory.lose(two, other)
    assert goes_on(factory) == []
    before = list(factory.lines)
    factory.event(two, "LARGE_WIN")
    assert goes_on(factory) == ["instance rgs-3: the previous boot rgs-1 has no end, and was not lost"]
    factory.lines[:] = before
    two.statement_no -= 1
    one.statement_no = shown
    factory.lose(two, one)
    factory.event(two, "LARGE_WIN")
    reported = ["instance rgs-1 shows statement 2, and was lost after 90"] * (shown == 90)
    assert goes_on(factory) == reported


# --- orders and sums of a session ---


def test_sums_of_the_end_are_those_of_the_links_also_where_they_agree_with_one_another() -> None:
    def lie(body: Body) -> None:
        for field in ("bought_minor", "staked_minor"):
            body[field] = str(int(body[field]) + 1)

    assert words(played(lie=lie_at("participation_end", 1, lie))) == ["bought_minor is 10001, the links come to 10000"]


def test_bets_that_were_debited_pass() -> None:
    assert words(bet_by_bet()) == []


def test_a_round_that_no_transfer_has_paid_for_is_named() -> None:
    factory = RecordFactory("undebited")
    one = factory.start("rgs-1")
    player = factory.open(one, jurisdiction="gb-ukgc", seamless=True)
    player.bought = 200  # what the opening bets cost, and nothing is signed for it
    factory.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    factory.close(one, player)
    factory.end(one)
    assert words(factory) == [
        "round_opening may not follow session_open",
        "balance 200 before, where the links leave 0",
        "its opening has failed a check",
    ]


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("debit turned round", "a transfer that is not a debit for the open round"),
        ("play transfer of another round", "a transfer that is not a debit for the open round"),
    ],
)
def test_a_transfer_within_a_round_is_a_debit_for_it(name: str, reported: str) -> None:
    assert reported in planted(name)


def in_one_second(lie: Lie | None = None) -> RecordFactory:
    """Three rounds of one session that start in one second."""

    class Quick(RecordFactory):
        def now(self, passed_ms: int = 1) -> str:
            return super().now(min(passed_ms, 1))

    factory = Quick("quick", lie=lie)
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    for _ in range(3):
        factory.play(one, player, {"ante": 100}, ["check", "check", "fold"])
    return ended(factory, one, player)


def test_rounds_of_one_second_have_codes_of_their_own() -> None:
    codes: list[str] = []

    def lie(kind: str, _: int, body: Body) -> None:
        if kind == "round_opening":
            codes.append(body["deal"]["game_code"])

    assert words(in_one_second(lie)) == []
    assert [code[9:] for code in codes] == ["", "-2", "-3"]
    (failure, *_) = words(in_one_second(lie_at("round_opening", 3, put("deal", "game_code", value=codes[0]))))
    assert failure == f"game code {codes[0]} is that of another round of this day and session"


def test_the_same_second_of_another_day_has_the_same_code() -> None:
    codes: list[str] = []

    def lie(kind: str, _: int, body: Body) -> None:
        if kind == "round_opening":
            codes.append(body["deal"]["game_code"])

    factory, one, player = begun(lie=lie)
    for number in range(2):
        began_ms = factory.clock_ms
        factory.play(one, player, {"ante": 100}, ["play_4x"])
        if not number:
            factory.clock_ms = began_ms + 86_400_000
    assert words(ended(factory, one, player)) == []
    assert codes[0] == codes[1]


# --- limits of a session and its jurisdiction ---


@pytest.mark.parametrize(
    ("limit", "most", "reported"),
    [
        ("stake_minor", 200, "staked 200 where the session's stake limit leaves 199"),
        ("loss_minor", 200, "staked 200 where the session's loss limit leaves 199"),
    ],
)
def test_a_limit_may_be_reached(limit: str, most: int, reported: str) -> None:
    assert words(played(actions="check check fold", lie=limits(**{limit: str(most)}))) == []
    assert words(played(actions="check check fold", lie=limits(**{limit: str(most - 1)})))[0] == reported


def test_a_round_may_start_when_the_least_time_between_two_has_passed() -> None:
    interval_ms = load_jurisdiction("gb-ukgc").min_round_interval_ms

    def apart(passed_ms: int) -> list[str]:
        factory, one, player = begun(jurisdiction="gb-ukgc")
        for _ in range(2):
            began_ms = factory.clock_ms
            factory.deal(one, [player], {"ante": 100}, passed_ms=0)
            factory.act(player, ["play_4x"])
            factory.settle(one, player)
            factory.clock_ms = began_ms + passed_ms
        factory.clock_ms += 86_400_000
        return words(ended(factory, one, player))

    assert apart(interval_ms) == []
    assert "too early for gb-ukgc" in apart(interval_ms - 1)[0]


def test_a_start_behind_its_opening_is_named_so() -> None:
    assert planted("start after the opening")[0] == "starts at 2099-12-31T23:59:59.999Z, after its opening"


# --- sessions of which the files hold a part ---


def cut(factory: RecordFactory, *ranges: tuple[int, int]) -> Verdict:
    """The links of these ranges of the only session."""
    bodies = [parse_statement(parse_envelope(parse_line(line).envelope))[1] for line in factory.lines]
    wanted = [any(first <= int(body.get("link_no", "0")) <= last for first, last in ranges) for body in bodies]
    session_id = next(body["session_id"] for body in bodies if "session_id" in body)
    named = [{"first": str(first), "last": str(last), "session_id": session_id} for first, last in ranges]
    scope = factory.scope(sessions=named)
    kept = [line for line, is_wanted in zip(factory.lines[1:], wanted[1:], strict=True) if is_wanted]
    return replay_lines(factory, [scope, factory.lines[0], *kept])


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (
            put("deal", "ruleset", value=rules_object(load_ruleset("uth-lugano"))),
            "the deal names another ruleset than the session",
        ),
        (put("deal", "table", value="table-2"), "table table-2 is not the session's"),
    ],
)
def test_where_the_opening_of_a_session_is_cut_off_its_first_deal_tells_what_is_played(
    change: Change, reported: str
) -> None:
    """Links: 1 open, 2 purchase, 3 to 6 rounds, 7 end, 8 close."""
    assert cut(two_rounds(), (3, 8)).failures == []
    verdict = cut(two_rounds(lie_at("round_opening", 2, change)), (3, 8))
    assert reported in [failure.message for failure in verdict.failures]
    assert verdict.rounds == (1, 1, 0)


def test_a_session_may_be_cut_to_its_end() -> None:
    assert cut(two_rounds(), (7, 8)).failures == []


@pytest.mark.parametrize("ranges", [((1, 6), (8, 10)), ((1, 6), (10, 10)), ((8, 10),), ((10, 10),), ((1, 10),)])
def test_bets_may_be_cut_wherever_a_round_is_not_cut_in_two(ranges: tuple[tuple[int, int], ...]) -> None:
    """Links: 1 open; 2 debit, 3 opening, 4 debit, 5 final, 6 credit; 7 debit, 8 opening, 9 final, 10 credit; more."""
    assert cut(bet_by_bet(), *ranges).failures == []


@pytest.mark.parametrize("ranges", [((8, 10),), ((1, 6), (8, 10))])
def test_a_credit_is_for_the_round_before_it_also_where_its_debit_is_cut_off(
    ranges: tuple[tuple[int, int], ...],
) -> None:
    strange = bet_by_bet(lie_at("transfer", 5, put("round_id", value=OTHER_ULID)))
    reported = ["a credit that is not for the round before it"]
    assert [failure.message for failure in cut(strange, *ranges).failures] == reported


def test_more_is_never_bought_at_once_than_in_all() -> None:
    """Also where what was bought before is cut off."""
    assert cut(second_purchase(), (3, 7)).failures == []
    verdict = cut(second_purchase(put("bought_minor", value="99")), (3, 7))
    assert any(failure.message.startswith("bought 99, ") for failure in verdict.failures)


# --- voids and private blocks ---


def test_a_proposal_need_not_name_the_session() -> None:
    assert words(void_factory(lie_at("event", PROPOSED, drop("session_id")))) == []


@pytest.mark.parametrize(("reason", "hidden"), [("MALFUNCTION", 0), ("DECK_UNRECOVERABLE", 1)])
def test_a_deck_that_nobody_saw_is_counted_as_exposure(reason: str, hidden: int) -> None:
    verdict = replay_lines(void_factory(reason=reason))
    summary = verdict.summary
    assert verdict.failures == []
    assert (summary.seats_void, summary.seats_unrecoverable, summary.draws_exposed) == (1, hidden, hidden)


@pytest.mark.parametrize(("jurisdiction", "absent"), [("it-adm", 3), ("demo", 3), ("gb-ukgc", 0)])
def test_erased_blocks_that_must_hold_ids_are_counted(jurisdiction: str, absent: int) -> None:
    factory = played(jurisdiction=jurisdiction)
    lines = [erased(line) for line in factory.lines]
    verdict = replay_lines(factory, lines)
    assert (verdict.failures, verdict.summary.ids_absent) == ([], absent)
