"""Planted faults: the lies of `lies`, and those that need a whole story of their own. Each names the check that must
see it.

Used twice: `certify replay` must name the check, and the independent verifier must come to the same last line.
"""

from __future__ import annotations

from functools import partial

from rgs.core.rounds import rules_object
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS
from tests.support.records.betting import bet_by_bet
from tests.support.records.factory import Body
from tests.support.records.lies import KEYED, SMALL, Planted, add, drop, lie_at, put, swap
from tests.support.records.lying import (
    NOBODY,
    both_bets,
    ended_twice,
    key_gone,
    key_twice,
    limits,
    lines_but,
    order,
    other_deck,
    played,
    private_changed,
    private_where_none_is,
    repeated_key,
    round_id_of_a_failed_round,
    round_id_thrice,
    round_id_twice,
    same_code,
    sealed,
    second_purchase,
    settled_early,
    signature_flipped,
    signed_by,
    spaced,
    stakes,
    start_goes_back,
    statement_after_the_end,
    table_of_three,
    two_folds,
    two_instances,
    two_rounds,
    uncovered,
    unsorted,
    void_and_round,
    windowed,
)
from tests.support.records.planted_cuts import CUTS
from tests.support.records.planted_demo import SECOND
from tests.support.records.planted_grants import GRANTS
from tests.support.records.planted_ids import BOOTS, DRAWS, IDS, PARTIES, TIMES
from tests.support.records.planted_voids import VOIDS
from tests.support.records.ready_made import small_factory

STRANGE = "01K4ZQ7M2J8T5V9X3B6C1D0EFG"


def one_transaction(kind: str, _number: int, body: Body) -> None:
    """Every transfer is told under one id."""
    if kind == "transfer":
        body["transaction_id"] = STRANGE


ROUND = (
    Planted("another deck, the old commitment", "12 commitment", other_deck),
    Planted("a byte too many", "13 transcript", partial(played, bend=lambda drawn: drawn + b"\x00")),
    Planted("a byte too few", "13 transcript", partial(played, bend=lambda drawn: drawn[:-1])),
    Planted(
        "a byte rejected that was none to reject", "13 transcript", partial(played, bend=lambda drawn: b"\x07" + drawn)
    ),
    Planted(
        "a byte taken that was to be rejected", "13 transcript", partial(played, bend=lambda drawn: b"\xff" + drawn[1:])
    ),
    Planted("ante below the least", "10 stakes", partial(stakes, put("bets", 0, "amount_minor", value="8"))),
    Planted("blind is not the ante", "10 stakes", partial(stakes, put("bets", 1, "amount_minor", value="98"))),
    Planted("bets in another order", "10 stakes", partial(stakes, swap("bets", 0, 1))),
    Planted("no blind", "10 stakes", partial(stakes, drop("bets", 1))),
    Planted("no ante", "10 stakes", partial(stakes, drop("bets", 0))),
    Planted(
        "an ante off the step",
        "10 stakes",
        partial(stakes, both_bets("101")),
    ),
    Planted(
        "an ante above the most",
        "10 stakes",
        partial(stakes, both_bets("100002")),
    ),
    Planted(
        "a bet of another game",
        "10 stakes",
        partial(stakes, lambda seat: seat["bets"].append({"amount_minor": "10", "bet": "aa"})),
    ),
    Planted(
        "a bet twice",
        "10 stakes",
        partial(stakes, lambda seat: seat["bets"].append({"amount_minor": "10", "bet": "ante"})),
    ),
    Planted(
        "trips beside casino hold'em",
        "10 stakes",
        partial(stakes, lambda seat: seat["bets"].append({"amount_minor": "10", "bet": "trips"}), "casino-holdem"),
    ),
    Planted("a play bet without funds", "15 actions", uncovered),
    Planted(
        "flop hand missing",
        "16 hands",
        partial(played, "casino-holdem", "call", lie=lie_at("round_final", 1, drop("outcome", "flop_hand"))),
    ),
    Planted(
        "flop hand of another",
        "16 hands",
        partial(
            played,
            "casino-holdem",
            "call",
            lie=lie_at("round_final", 1, put("outcome", "flop_hand", "category", value="quads")),
        ),
    ),
    Planted("settled before the showdown", "15 actions", settled_early),
    Planted("round id twice", "9 deal", round_id_twice),
    Planted("round id thrice", "9 deal", round_id_thrice),
    Planted("round id of a failed round", "9 deal", round_id_of_a_failed_round),
    Planted("code twice in a second", "9 deal", same_code),
    Planted("start goes back", "7 session", start_goes_back),
    Planted("too early for the jurisdiction", "8 rules", partial(two_rounds, jurisdiction="gb-ukgc", passed_ms=100)),
    Planted("an opening above the loss limit", "8 rules", partial(played, lie=limits(loss_minor="199"))),
    Planted("an opening above the stake limit", "8 rules", partial(played, lie=limits(stake_minor="199"))),
    Planted("a decision above the loss limit", "15 actions", partial(played, lie=limits(loss_minor="599"))),
    Planted("a decision above the stake limit", "15 actions", partial(played, lie=limits(stake_minor="599"))),
    Planted("a second opening above the stake limit", "8 rules", partial(two_rounds, limits(stake_minor="799"))),
    Planted("a second decision above the stake limit", "15 actions", partial(two_rounds, limits(stake_minor="1199"))),
    Planted("a second opening above the loss limit", "8 rules", partial(two_folds, limits(loss_minor="399"))),
    Planted("started when the time was up", "8 rules", partial(played, lie=limits(duration_ms="5700"))),
    Planted("a void does not give stake back", "8 rules", partial(void_and_round, limits(stake_minor="399"))),
    Planted(
        "another ruleset than the session's",
        "8 rules",
        partial(
            played,
            lie=lie_at(
                "round_opening", 1, lambda body: body["deal"].update(ruleset=rules_object(load_ruleset("uth-lugano")))
            ),
        ),
    ),
    Planted(
        "draw twice", "20 draws", partial(two_rounds, lie_at("round_opening", 2, put("deal", "draw_no", value="1")))
    ),
    Planted(
        "reseed counter does not rise",
        "20 draws",
        partial(two_rounds, lie_at("round_opening", 2, put("deal", "reseed_counter", value="1"))),
    ),
    Planted(
        "second participation",
        "7 session",
        partial(second_purchase, put("participation_id", value="01K4ZQ7M2J8T5V9X3B6C1D0EFG")),
    ),
    Planted("purchases above the cap", "8 rules", partial(second_purchase, None, (100_000, 2))),
    Planted("bought in all", "18 balance", partial(second_purchase, add("bought_minor", by=1))),
)
"""Faults of one round or account."""

TABLE = (
    Planted(
        "deal core differs between seats",
        "9 deal",
        partial(table_of_three, lie_at("round_opening", 2, put("deal", "game_code", value="#10:00:00"))),
    ),
    Planted(
        "another draw for a seat",
        "9 deal",
        partial(table_of_three, lie_at("round_opening", 2, put("deal", "draw_no", value="2"))),
    ),
    Planted(
        "seat twice", "9 deal", partial(table_of_three, lie_at("round_opening", 2, put("seat", "seat_no", value="1")))
    ),
    Planted(
        "path of another seat",
        "9 deal",
        partial(table_of_three, lie_at("round_opening", 2, lambda body: body["path"].reverse())),
    ),
    Planted(
        "stake of a seat changed after the deal",
        "9 deal",
        partial(table_of_three, lie_at("round_opening", 2, put("seat", "bets", 0, "amount_minor", value="200"))),
    ),
    Planted("path too short", "9 deal", partial(table_of_three, lie_at("round_opening", 1, drop("path", 1)))),
    Planted("seat dealt and never opened", "9 deal", partial(table_of_three, opened=2)),
    Planted(
        "hole cards of another seat",
        "14 cards",
        partial(table_of_three, lie_at("round_final", 2, lambda body: body["cards"]["hole_cards"].reverse())),
    ),
    Planted(
        "table game without a table",
        "8 rules",
        partial(played, lie=lie_at("session_open", 1, put("ruleset", value=rules_object(load_ruleset("uth-online"))))),
    ),
    Planted(
        "test regulator in earnest",
        "8 rules",
        partial(played, jurisdiction="it-adm", lie=lie_at("session_open", 1, put("test_regulator", value=True))),
    ),
)
"""Faults of tables, and of what opens a session."""

ORDERS = tuple(
    Planted(f"order: {steps}", "7 session", partial(order, steps))
    for steps in (
        "credit deal act settle buy end close",
        "end buy close",
        "buy close",
        "buy end buy end close",
        "buy deal buy act settle end close",
        "buy deal end act settle close",
        "buy deal act settle end credit deal act settle close",
        "buy open end close",
        "buy transfer end close",
        "buy deal act deal act settle end close",
        "buy end close buy",
        "buy end close close",
        "buy end close open",
    )
)
"""Sessions whose links come in an order that no session has."""

INSTANCES = (
    Planted(
        "last number of a lost instance",
        "21 instance",
        partial(two_instances, lie_at("instance_lost", 1, add("lost", "last_statement_no", by=1))),
    ),
    Planted(
        "lost before its last statement",
        "21 instance",
        partial(two_instances, lie_at("instance_lost", 1, add("lost", "last_statement_no", by=-1))),
    ),
    Planted(
        "last draw of a lost instance",
        "20 draws",
        partial(two_instances, lie_at("instance_lost", 1, add("lost", "last_draw_no", by=1))),
    ),
    Planted(
        "no draw of a lost instance",
        "20 draws",
        partial(two_instances, lie_at("instance_lost", 1, put("lost", "last_draw_no", value="0"))),
    ),
    Planted(
        "lost itself",
        "21 instance",
        partial(two_instances, lie_at("instance_lost", 1, put("lost", "instance", value="rgs-2"))),
    ),
    Planted(
        "lost is nobody",
        "21 instance",
        partial(two_instances, lie_at("instance_lost", 1, put("lost", "instance", value="rgs-9"))),
    ),
    Planted("lost twice", "21 instance", partial(two_instances, ends="twice")),
    Planted("ended and lost", "21 instance", partial(two_instances, ends="both")),
    Planted("neither ended nor lost", "22 scope", partial(two_instances, ends="neither")),
    Planted("named by the next boot, neither ended nor lost", "21 instance", partial(two_instances, ends="neither")),
    Planted(
        "lost by another store",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 2, put("store_epoch", value="01K4ZQ7M2J8T5V9X3B6C1D0EFG"))),
    ),
    Planted(
        "previous boot ended elsewhere",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 3, add("previous_boot", "last_draw_no", by=1))),
    ),
    Planted(
        "previous boot of another node",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 3, put("previous_boot", "instance", value="rgs-2"))),
    ),
    Planted(
        "previous boot missing",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 3, put("previous_boot", "instance", value="rgs-9"))),
    ),
    Planted(
        "boot number twice",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 3, put("boot_no", value="1"))),
    ),
    Planted("statement after the end", "21 instance", statement_after_the_end),
    Planted(
        "name of an instance twice",
        "21 instance",
        partial(two_instances, lie_at("instance_start", 3, put("instance", value="rgs-1"))),
    ),
    Planted("key of another instance", "3 key", key_twice),
    Planted("a draw window that shrinks", "20 draws", partial(windowed, 16, 12)),
    Planted("a draw window that stays", "20 draws", partial(windowed, 8)),
    Planted("draws beyond the window", "20 draws", partial(windowed, 12, 0)),
    Planted("a window told behind its first draw", "20 draws", partial(windowed, 0, 16)),
)
"""Faults of instances among each other."""

KEYS = (
    Planted("signed by the root", "3 key", partial(signed_by, "round_final", None)),
    Planted("signed by nobody", "3 key", partial(signed_by, "round_final", NOBODY)),
    Planted("start signed by nobody", "3 key", partial(signed_by, "instance_start", NOBODY)),
    Planted("root revoked", "3 key", partial(key_gone, "revocation", "root")),
    Planted("node key revoked", "3 key", partial(key_gone, "revocation", "node")),
    Planted("instance key revoked", "3 key", partial(key_gone, "revocation", "instance")),
    Planted(
        "node key revoked from a place of the log on",
        "3 key",
        partial(key_gone, "revocation", "node", origin="rgs.example/rounds/2026h2", size="70000"),
    ),
    Planted("node key ended before", "3 key", partial(key_gone, "key_end", "node", time=KEYED)),
    Planted(
        "node key ended with an earlier number of its last instance",
        "3 key",
        partial(key_gone, "key_end", "node", instance="rgs-1", last_statement_no="7"),
    ),
    Planted(
        "node key ended before, whatever number it names",
        "3 key",
        partial(key_gone, "key_end", "node", time=KEYED, instance="rgs-1", last_statement_no="8"),
    ),
    Planted(
        "node key ended without a number of its last instance",
        "3 key",
        partial(key_gone, "key_end", "node", instance="rgs-1", last_statement_no="0"),
    ),
    Planted(
        "instance key ended before",
        "3 key",
        partial(key_gone, "key_end", "instance", instance="rgs-1", last_statement_no="5"),
    ),
    Planted("instance key ended twice, the second time later", "3 key", partial(ended_twice, "instance", "5", "8")),
    Planted("node key ended twice, the second time later", "3 key", partial(ended_twice, "node", "7", "8")),
    Planted(
        "instance key ended as that of another",
        "3 key",
        partial(key_gone, "key_end", "instance", instance="rgs-9", last_statement_no="8"),
    ),
    Planted(
        "payload type unknown", "3 key", partial(sealed, "round_final", lambda _, payload: ("application/x", payload))
    ),
    Planted("payload with spaces", "4 schema", partial(sealed, "round_final", spaced)),
    Planted("payload with keys unsorted", "4 schema", partial(sealed, "round_final", unsorted)),
    Planted("payload with every key twice", "4 schema", partial(sealed, "round_final", repeated_key)),
    Planted(
        "payload that is no JSON",
        "4 schema",
        partial(sealed, "round_final", lambda kind, payload: (kind, payload[:-1])),
    ),
    Planted(
        "payload of another kind",
        "4 schema",
        partial(sealed, "round_final", lambda _, payload: (KINDS["purchase"].payload_type, payload)),
    ),
    Planted("private block changed", "5 private", small_factory, partial(lines_but, change=private_changed)),
    Planted(
        "private block where none is", "5 private", small_factory, partial(lines_but, change=private_where_none_is)
    ),
    Planted("signature changed", "3 key", small_factory, partial(lines_but, change=signature_flipped)),
    Planted(
        "line with a space",
        "1 line",
        small_factory,
        partial(lines_but, change=lambda lines: [*lines[:4], lines[4] + b" ", *lines[5:]]),
    ),
    Planted(
        "line empty", "1 line", small_factory, partial(lines_but, change=lambda lines: [*lines[:4], b"", *lines[4:]])
    ),
    Planted(
        "envelope with a space",
        "2 envelope",
        small_factory,
        partial(
            lines_but,
            change=lambda lines: [
                line.replace(b'"payloadType":', b'"payloadType": ') if b"round-final" in line else line
                for line in lines
            ],
        ),
    ),
    Planted("line cut off", "1 line", small_factory, lambda factory: factory.export()[:-1]),
    Planted(
        "line too long",
        "1 line",
        small_factory,
        partial(lines_but, change=lambda lines: [*lines[:7], lines[7] + b" " * 80_000]),
    ),
)
"""Faults of keys, envelopes and lines."""

_TRANSFERS = (
    ("bet debited less", "18 balance", 1, add("amount_minor", by=-1)),
    ("play bet debited more", "18 balance", 2, add("amount_minor", by=1)),
    ("credited more", "18 balance", 11, add("amount_minor", by=1)),
    ("credited though lost", "18 balance", 3, add("amount_minor", by=1)),
    ("credited nothing", "18 balance", 11, put("amount_minor", value="0")),
    ("debit turned round", "7 session", 2, put("direction", value="credit")),
    ("transfer of another round", "7 session", 1, put("round_id", value=STRANGE)),
    ("play transfer of another round", "7 session", 2, put("round_id", value=STRANGE)),
    ("credit of another round", "7 session", 11, put("round_id", value=STRANGE)),
    ("credit of nothing of another round", "7 session", 3, put("round_id", value=STRANGE)),
)
BETS = (
    *(Planted(name, check, partial(bet_by_bet, lie_at("transfer", nth, lie))) for name, check, nth, lie in _TRANSFERS),
    Planted("bet not debited", "7 session", partial(bet_by_bet, skip=[1])),
    Planted("play bet not debited", "18 balance", partial(bet_by_bet, skip=[10])),
    Planted("not credited", "18 balance", partial(bet_by_bet, skip=[11])),
    Planted("not credited before the next bet", "18 balance", partial(bet_by_bet, skip=[11], goes_on=True)),
    Planted("told twice that a round has ended", "7 session", partial(bet_by_bet, nothing="credit")),
    Planted("debit of nothing", "18 balance", partial(bet_by_bet, nothing="debit")),
    Planted("transaction twice", "23 ids", partial(bet_by_bet, one_transaction)),
    Planted("bet by bet where a participation is due", "8 rules", partial(bet_by_bet, jurisdiction="it-adm")),
    Planted("transfers beside a participation", "7 session", partial(bet_by_bet, is_seamless=False)),
)
"""Faults of bets that are debited one by one."""

PLANTED = (
    *(Planted(name, check, partial(small_factory, lie_at(kind, nth, lie))) for name, check, kind, nth, lie in SMALL),
    *ROUND, *TABLE, *VOIDS, *ORDERS, *INSTANCES, *KEYS, *BETS, *IDS, *PARTIES, *TIMES, *BOOTS, *DRAWS, *GRANTS, *SECOND,
    *CUTS,
)  # fmt: skip
"""Every planted fault."""
