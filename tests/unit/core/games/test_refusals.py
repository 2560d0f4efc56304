"""Every refusal of the rules tells which field, which value and which rule, word for word: callers act on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rgs.core import games
from rgs.core.cards import FULL_DECK, format_card, format_rank, parse_card, parse_cards, parse_rank, verify_deck
from rgs.core.errors import RgsError
from rgs.core.games.dealing import deal_again, parse_deal_procedure
from rgs.core.games.decisions import apply_again
from rgs.core.games.paytables import parse_floor, parse_paytable
from rgs.core.games.types import Action, ActionTaken, Phase, Seat, SeatStakes
from rgs.core.hands import Category, evaluate, parse_category
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.money import MAX_STAKE_MINOR, parse_currency, parse_odds, verify_amount
from rgs.core.rulesets import load_ruleset, parse_canonical_ruleset, parse_document

SOLO = load_ruleset("uth-solo")
LUGANO = load_ruleset("uth-lugano")
ROWS = {category.text: "push" for category in Category}


def seat(ruleset_id: str = "uth-solo", *, seat_no: int = 1, funds_minor: int = 1_000) -> Seat:
    ruleset = load_ruleset(ruleset_id)
    (dealt,) = games.deal(ruleset, FULL_DECK, [SeatStakes(seat_no, {"ante": 100}, funds_minor)])
    return dealt


def finished() -> Seat:
    return games.apply(seat(), Action.PLAY_4X)


def deal(*stakes: SeatStakes) -> object:
    return games.deal(LUGANO, FULL_DECK, stakes)


def again(*taken: ActionTaken) -> object:
    return apply_again(deal_again(SOLO, FULL_DECK, 1, (("ante", 100), ("blind", 100)), 1_000), taken)


REFUSALS: list[tuple[Callable[[], object], str, str | None, dict[str, str]]] = [
    (lambda: parse_card("Xs"), "MALFORMED", "card", {"value": "Xs", "rule": "H-1"}),
    (lambda: format_card(52), "MALFORMED", "card", {"value": "52", "rule": "H-1"}),
    (lambda: parse_cards(["As", "As"]), "MALFORMED", "cards", {"value": "As As", "rule": "H-1"}),
    (lambda: parse_rank("1"), "MALFORMED", "rank", {"value": "1", "rule": "H-2"}),
    (lambda: format_rank(15), "MALFORMED", "rank", {"value": "15", "rule": "H-2"}),
    (lambda: verify_deck([]), "MALFORMED", "deck", {"count": "0", "rule": "H-1"}),
    (lambda: parse_category("pears"), "MALFORMED", "category", {"value": "pears", "rule": "H-2"}),
    (lambda: evaluate(FULL_DECK[:4]), "INVALID_FIELD", "cards", {"value": "[0, 1, 2, 3]", "rule": "H-5"}),
    (
        lambda: evaluate((*FULL_DECK[:4], FULL_DECK[0])),
        "INVALID_FIELD",
        "cards",
        {"value": "[0, 1, 2, 3, 0]", "rule": "H-1"},
    ),
    (lambda: parse_currency("eur"), "MALFORMED", "currency", {"value": "eur"}),
    (lambda: verify_amount(-1, "ante"), "INVALID_FIELD", "ante", {"value": "-1"}),
    (lambda: parse_odds("six"), "MALFORMED", "odds", {"value": "six"}),
    (lambda: parse_odds("6:4"), "MALFORMED", "odds", {"value": "6:4"}),
    (lambda: parse_floor("pair:2"), "MALFORMED", "floor", {"value": "pair:2"}),
    (lambda: parse_paytable("trips", {}), "RULESET_REFUSED", "trips.high_card", {}),
    (lambda: parse_paytable("trips", ROWS | {"pair": "lost"}), "RULESET_REFUSED", "trips.pair", {}),
    (lambda: parse_deal_procedure(["x:1"]), "RULESET_REFUSED", "deal_procedure", {}),
    (lambda: parse_deal_procedure([]), "RULESET_REFUSED", "deal_procedure", {}),
    (deal, "INVALID_FIELD", "seats", {"value": "[]", "rule": "U-1"}),
    (lambda: deal(SeatStakes(0, {}, 0)), "INVALID_FIELD", "seats", {"value": "[0]", "rule": "U-1"}),
    (
        lambda: deal(SeatStakes(1, {}, 0), SeatStakes(8, {}, 0)),
        "INVALID_FIELD",
        "seats",
        {"value": "8", "limit": "7", "rule": "T-5"},
    ),
    (
        lambda: deal(SeatStakes(1, {"ante": 100}, -1)),
        "INVALID_FIELD",
        "funds_minor",
        {"value": "-1", "rule": "U-11"},
    ),
    (lambda: games.check_stakes(SOLO, {}), "INVALID_FIELD", "bets.ante", {"rule": "U-10"}),
    (
        lambda: games.check_stakes(SOLO, {"ante": 3, "trips": 0}, enforce_limits=False),
        "INVALID_FIELD",
        "bets.trips",
        {"rule": "U-10"},
    ),
    (
        lambda: games.check_stakes(SOLO, {"ante": 100, "blind": 100}),
        "UNKNOWN_BET",
        "bets.blind",
        {"bet": "blind", "rule": "U-10"},
    ),
    (lambda: games.largest_ante(SOLO, -1, {}), "INVALID_FIELD", "balance_minor", {"value": "-1"}),
    (
        lambda: games.apply(seat(), Action.FOLD),
        "ILLEGAL_ACTION",
        "action",
        {"action": "fold", "phase": "preflop", "legal": "check play_4x play_3x", "rule": "U-2"},
    ),
    (
        lambda: games.apply(seat(funds_minor=1), Action.PLAY_4X),
        "INSUFFICIENT_BALANCE",
        "action",
        {"action": "play_4x", "value": "400", "limit": "1", "rule": "U-11"},
    ),
    (
        lambda: again(ActionTaken(Phase.PREFLOP, Action.FOLD, 0)),
        "ILLEGAL_ACTION",
        "action",
        {"action": "fold", "phase": "preflop", "rule": "U-2"},
    ),
    (
        lambda: games.default_action(finished()),
        "ILLEGAL_ACTION",
        "action",
        {"phase": "showdown", "rule": "U-2"},
    ),
    (lambda: games.view(seat("uth-lugano")), "INVALID_FIELD", "shown_phase", {"rule": "U-1"}),
    (lambda: games.settle(seat()), "ILLEGAL_ACTION", "phase", {"phase": "preflop", "rule": "U-2"}),
    (lambda: parse_document("#" * 65_537), "RULESET_REFUSED", None, {"limit": "65536"}),
    (lambda: parse_canonical_ruleset(b""), "MALFORMED", "ruleset", {}),
    (lambda: parse_canonical_ruleset(b"[]"), "MALFORMED", "ruleset", {}),
    (lambda: load_ruleset("uth"), "UNKNOWN_RULESET", "ruleset_id", {"ruleset_id": "uth"}),
    (lambda: load_jurisdiction("it"), "JURISDICTION_REFUSES", "jurisdiction", {"jurisdiction": "it"}),
]


@pytest.mark.parametrize(("refused", "reason", "field", "metadata"), REFUSALS)
def test_a_refusal_names_field_value_and_rule(
    refused: Callable[[], object], reason: str, field: str | None, metadata: dict[str, str]
) -> None:
    with pytest.raises(RgsError) as caught:
        refused()
    assert (caught.value.reason, caught.value.field, caught.value.metadata) == (reason, field, metadata)


def test_a_document_of_the_greatest_length_is_read() -> None:
    assert parse_document("#" * 65_536) == {}


def test_no_stake_is_above_ten_million_of_a_currency_with_cents() -> None:
    assert MAX_STAKE_MINOR == 10**9
