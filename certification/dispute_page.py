"""One round as a page for a person who complains: cards, decisions, every pay-out with its rule, in three languages.

It shows only what was signed, or is computed from that. The page stands alone: no script, nothing is loaded. The
template engine escapes every value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from certification.pages import template
from rgs.core.amounts import format_money
from rgs.core.cards import parse_card
from rgs.core.errors import FormatError
from rgs.core.games import FAMILIES
from rgs.core.games.paytables import Paytable
from rgs.core.games.types import Outcome
from rgs.core.hands import evaluate
from rgs.core.money import format_odds
from rgs.core.rulesets import Ruleset
from rgs.core.texts import Texts, load_texts

WORDS: Final = Path(__file__).parent / "dispute_words.toml"
_SUITS: Final = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_CLAUSES: Final = {
    # game, bet or what settles it -> RULEBOOK
    ("ultimate_texas_holdem", "main"): "U-5",
    ("ultimate_texas_holdem", "table"): "U-6",
    ("ultimate_texas_holdem", "side"): "U-7",
    ("ultimate_texas_holdem", "side_fold"): "U-8",
    ("casino_holdem", "main"): "C-3, C-4",
    ("casino_holdem", "table"): "C-5",
    ("casino_holdem", "side"): "C-6",
    ("casino_holdem", "side_fold"): "C-7",
}
REGULATOR_IDS: Final = ("regulator_session_id", "regulator_participation_id")
_MARKS: Final = str.maketrans(",.", ".,")
Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dispute:
    """One seat's round: the bodies of its opening and final, and those of the session's other links with their private
    blocks. A seat at a table is in the form of solo play (`rgs.core.tables.joined`).
    """

    opening: Mapping[str, Any]
    final: Mapping[str, Any]
    ruleset: Ruleset
    currency: str
    transfers: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]
    verdict: Sequence[str]
    is_good: bool
    is_anchored: bool
    is_demo: bool = False
    """Played with play money."""


@lru_cache(maxsize=1)
def languages() -> dict[str, dict[str, Any]]:
    """The words, by language: the page's own, and those that players know from the game (`rgs.core.texts`)."""
    own = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    return {code: {**words, **_of_the_game(load_texts(code))} for code, words in own.items()}


def _of_the_game(texts: Texts) -> dict[str, Any]:
    """The words for bets and decisions of each game, phases, results and hands, by the codes of statements."""
    bets = {family: texts.table(f"game.{family}.bet").items() for family in FAMILIES}
    actions = {family: texts.table(f"game.{family}.action").items() for family in FAMILIES}
    return {
        "bet": {family: {bet: f"{text[0].upper()}{text[1:]}" for bet, text in rows} for family, rows in bets.items()},
        "action": {family: {name.lower(): text for name, text in rows} for family, rows in actions.items()},
        "phase": {name.lower(): text for name, text in texts.table("phase").items()},
        "result": {name.lower(): text for name, text in texts.table("result").items()},
        "hand": texts.table("row"),
        "malfunction": texts.table("malfunction"),
    }


def render_dispute(dispute: Dispute) -> str:
    """The page. FormatError where a round that does not verify says what no page has words for."""
    try:
        pages = [_page(code, words, dispute) for code, words in languages().items()]
    except (KeyError, ValueError) as error:
        raise FormatError(f"the round cannot be shown as a page: {error!r}", field="final") from None
    page = template(__file__, "dispute.html.j2", face=_face)
    places = {"player": "hole_cards", "dealer": "dealer_cards", "board": "board"}
    cards = {who: dispute.final.get("cards", {}).get(place, []) for who, place in places.items()}
    return page.render(dispute=dispute, pages=pages, cards=cards, suits=_SUITS)


def _page(code: str, words: Words, dispute: Dispute) -> dict[str, Any]:
    return {
        "code": code,
        "words": words,
        "facts": list(_facts(words, dispute)),
        "decisions": list(_decisions(words, dispute)),
        "payouts": list(_payouts(words, dispute)),
        "sums": list(_sums(words, dispute)),
        "transfers": list(_transfers(words, dispute)),
        "steps": [*words["steps"], *([words["table_step"]] if "table_final" in dispute.final else [])],
        "lead": words["failed" if not dispute.is_good else "verified" if dispute.is_anchored else "unanchored"],
    }


def _amount(words: Words, dispute: Dispute, minor: str) -> str:
    """`1,012.50 EUR` of `101250`, with the marks of the language; nothing of nothing."""
    reported = format_money(int(minor), dispute.currency) if minor else ""
    return reported.translate(_MARKS) if words["decimal"] == "," else reported


def _facts(words: Words, dispute: Dispute) -> Iterator[tuple[str, str]]:
    named, final, deal = words["fact"], dispute.final, dispute.opening["deal"]
    yield named["round_id"], final["round_id"]
    yield named["session_id"], final["session_id"]
    for name in REGULATOR_IDS:  # RULEBOOK R-1: both are shown wherever a round is
        for given in {private[name]: None for _, private in dispute.transfers if private.get(name)}:
            yield named[name], given
    yield named["game_code"], deal["game_code"]
    if deal["table"]:
        yield named["table"], deal["table"]
        yield named["seat_no"], final["seat_no"]
    yield named["ruleset"], f"{deal['ruleset']['id']} {deal['ruleset']['version']}, {deal['ruleset']['sha256']}"
    yield named["start_time"], deal["start_time"]
    yield named["commitment"], dispute.opening["commitment"]
    yield named["status"], words["status"][final["status"]]
    if "void" in final:
        code = final["void"]["reason"]  # an admin's code has no text
        known = words["malfunction"].get(code)
        yield named["reason"], f"{known} ({code})" if known else code
    outcome = final.get("outcome") or final.get("void", {}).get("would_have_outcome")
    if outcome is not None:
        yield named["outcome"], words["outcome"][outcome["outcome"]]
        for hand in ("player_hand", "dealer_hand"):
            held = outcome[hand]
            yield named[hand], f"{words['hand'][held['category']]}: {' '.join(map(card_text, held['best5']))}"
        yield named["qualifies"], words["yes" if outcome["dealer_qualifies"] else "no"]


def _decisions(words: Words, dispute: Dispute) -> Iterator[tuple[str, ...]]:
    for action in dispute.final["actions"]:
        phase, by = (words[name][action[name]] for name in ("phase", "by"))
        taken = words["action"][dispute.ruleset.family][action["action"]]
        yield action["time"], phase, taken, by, _amount(words, dispute, action["amount_minor"])


def _payouts(words: Words, dispute: Dispute) -> Iterator[tuple[str, ...]]:
    for row in dispute.final.get("settlement", ()):
        result = words["result"][row["result"]]
        stake, returned = (_amount(words, dispute, row[name]) for name in ("stake_minor", "returned_minor"))
        yield (
            words["bet"][dispute.ruleset.family][row["bet"]],
            result,
            _rule(words, dispute, row["bet"]),
            stake,
            returned,
        )


def _rule(words: Words, dispute: Dispute, bet: str) -> str:
    """Why the bet was settled as it was, and the clause."""
    rule, final, ruleset = words["rule"], dispute.final, dispute.ruleset
    if "outcome" not in final:
        return str(rule["void"])
    outcome, rules = final["outcome"], ruleset.rules
    game = rules.name
    qualifies = rule["qualified" if outcome["dealer_qualifies"] else "unqualified"]
    if bet == rules.side_bet:
        if outcome["outcome"] == "fold" and not ruleset.side_bet_survives_fold:
            return f"{rule['side_fold']} ({_CLAUSES[game, 'side_fold']})"
        hand = outcome.get("flop_hand", outcome["player_hand"])
        return f"{_paid(words, ruleset.paytables[bet], hand)} ({_CLAUSES[game, 'side']})"
    how = rules.settlement[outcome["dealer_qualifies"], Outcome(outcome["outcome"])][bet].value
    text = _paid(words, ruleset.paytables[bet], outcome["player_hand"]) if how == "table" else rule[how]
    clause = _CLAUSES[game, "table" if how == "table" else "main"]
    return f"{qualifies}, {words['outcome'][outcome['outcome']]}: {text} ({clause})"


def _paid(words: Words, table: Paytable, hand: Mapping[str, Any]) -> str:
    odds = format_odds(table.odds_for(evaluate([parse_card(card) for card in hand["best5"]])))
    return str(words["rule"]["table"].format(hand=words["hand"][hand["category"]], odds=words["odds"].get(odds, odds)))


def _sums(words: Words, dispute: Dispute) -> Iterator[tuple[str, str]]:
    final, named = dispute.final, words["sums"]
    for name, field in (
        ("before", "balance_before_minor"),
        ("staked", "staked_minor"),
        ("returned", "returned_minor"),
        ("after", "balance_after_minor"),
    ):
        yield named[name], _amount(words, dispute, final[field])
    would_have = final.get("void", {}).get("would_have_been")
    if would_have is not None:
        returned = sum(int(row["returned_minor"]) for row in would_have)
        yield named["would_have"], _amount(words, dispute, str(returned))


def _transfers(words: Words, dispute: Dispute) -> Iterator[tuple[str, str, str, str]]:
    for body, private in dispute.transfers:
        amount = body.get("amount_minor") or body.get("paid_out_minor", "")
        # A stake debited by itself has no private block: the wallet's id stands in the statement.
        named = {**private, "wallet_transaction_id": body["transaction_id"]} if "transaction_id" in body else private
        ids = ", ".join(f"{words['id'].get(name, name)} {value}" for name, value in sorted(named.items()))
        what = body.get("direction", body["kind"])
        what = f"free_bet_{what}" if "grant_id" in body else what
        yield body["time"], words["transfer"][what], ids, _amount(words, dispute, amount)


def card_text(card: str) -> str:
    """`10♥` of `Th`."""
    return f"{_face(card)}{_SUITS[card[1]]}"


def _face(card: str) -> str:
    return card[0].replace("T", "10")
