"""Rounds in words, sentence by sentence, from statements that are written down here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from rgs.core.rulesets import load_ruleset
from rgs.service.support.words import SignedRound, explain

SOLO = load_ruleset("uth-solo")
TIME = "2026-11-21T22:30:00.123Z"
OPENING: dict[str, Any] = {
    "balance_before_minor": "1000",
    "balance_after_minor": "799",
    "seat": {"bets": [{"bet": "ante", "amount_minor": "100"}, {"bet": "blind", "amount_minor": "101"}]},
}
PLAYER = {"category": "pair", "best5": ["As", "Ah", "Kd", "Qc", "9s"]}
DEALER = {"category": "high_card", "best5": ["Kh", "Qd", "9c", "8s", "7h"]}
CARDS = {"hole_cards": ["As", "Ah"], "dealer_cards": ["Kh", "2c"], "board": ["Kd", "Qc", "9s", "8s", "7h"]}
SETTLEMENT = [
    {"bet": "ante", "stake_minor": "100", "returned_minor": "200", "result": "win"},
    {"bet": "blind", "stake_minor": "101", "returned_minor": "101", "result": "push"},
    {"bet": "trips", "stake_minor": "1", "returned_minor": "0", "result": "lose"},
]
ACTIONS = [
    {"action": "check", "phase": "preflop", "amount_minor": "0", "by": "timer", "time": TIME},
    {"action": "play_2x", "phase": "flop", "amount_minor": "1", "by": "player", "time": TIME},
    {"action": "fold", "phase": "river", "amount_minor": "0", "by": "rule", "time": TIME},
]
FINAL: dict[str, Any] = {
    "actions": ACTIONS,
    "cards": CARDS,
    "status": "settled",
    "outcome": {"player_hand": PLAYER, "dealer_hand": DEALER, "dealer_qualifies": False, "outcome": "player"},
    "settlement": SETTLEMENT,
    "staked_minor": "202",
    "returned_minor": "301",
    "balance_after_minor": "1099",
    "time": TIME,
}
VOID = {"reason": "MALFUNCTION", "approvals": [{"party": "admin-1"}, {"party": "admin-2"}]}


def sentences(
    final: dict[str, Any] | None = None,
    shared: dict[str, Any] | None = None,
    *,
    opening: dict[str, Any] | None = None,
    session: dict[str, Any] | None = None,
    malfunction_code: str = "",
    **round_: Any,
) -> list[str]:
    row = {
        "table_id": "", "game_code": "#22:29:00", "start_ms": 1_795_300_140_000, "free_bet": "", "granted_minor": 0,
        "actions": (), **round_,
    }  # fmt: skip
    of = {"currency": "EUR", "is_demo": False, "is_seamless": False, **(session or {})}
    signed = SignedRound(opening or OPENING, final or {}, shared or {})
    return explain(signed, cast(Any, SimpleNamespace(**row)), cast(Any, SimpleNamespace(**of)), SOLO, malfunction_code)


def test_a_settled_round() -> None:
    assert sentences(FINAL)[1:] == [
        "The opening bets were ante 1.00 EUR, blind 1.01 EUR: 2.01 EUR in all.",
        "The balance was 10.00 EUR before the bets, and 7.99 EUR after them.",
        "The timer chose check, before the flop, at 2026-11-21 22:30:00 UTC.",
        "The player chose play 2x for 0.01 EUR, at the flop, at 2026-11-21 22:30:00 UTC.",
        "The rule for interrupted rounds chose fold, at the river, at 2026-11-21 22:30:00 UTC.",
        "The player held As Ah, the dealer Kh 2c; the board was Kd Qc 9s 8s 7h.",
        "The player had a pair (As Ah Kd Qc 9s), the dealer high card (Kh Qd 9c 8s 7h).",
        "The dealer did not qualify.",
        "The player's hand was better.",
        "The bet ante of 1.00 EUR won: 2.00 EUR came back.",
        "The bet blind of 1.01 EUR pushed: 1.01 EUR came back.",
        "The bet trips of 0.01 EUR lost: 0.00 EUR came back.",
        "In all 2.02 EUR were staked and 3.01 EUR returned: the player won 0.99 EUR.",
        "The balance after the round was 10.99 EUR.",
        "The round ended at 2026-11-21 22:30:00 UTC.",
    ]


def test_who_had_the_better_hand_and_what_was_won_or_lost() -> None:
    for outcome, sentence in (
        ("dealer", "The dealer's hand was better."),
        ("tie", "The hands were equal."),
        ("fold", "The player had folded."),
    ):
        lines = sentences(FINAL | {"outcome": FINAL["outcome"] | {"outcome": outcome, "dealer_qualifies": True}})
        assert sentence in lines
        assert "The dealer did not qualify." not in lines
    for returned, sentence in ((203, "won 0.01 EUR"), (202, "neither won nor lost"), (201, "lost 0.01 EUR")):
        assert f"{returned // 100}.{returned % 100:02} EUR returned: the player {sentence}." in " ".join(
            sentences(FINAL | {"returned_minor": str(returned)})
        )


def test_who_paid_is_said() -> None:
    lines = sentences(FINAL, session={"is_seamless": True})
    assert lines[2] == "The wallet was debited for each bet."
    assert not any("balance" in line for line in lines)
    assert "It was played with play money." in sentences(FINAL, session={"is_demo": True})
    assert not any("campaign" in line or "play money" in line for line in sentences(FINAL))


def test_the_stake_of_a_free_bet_is_not_the_player_s() -> None:
    lines = sentences(FINAL, free_bet="spring:grant-1", granted_minor=201)
    assert lines[2] == "The campaign spring paid ante and blind as a free bet."
    assert lines[-4] == "In all 2.02 EUR were staked and 3.01 EUR returned: the player won 0.99 EUR."
    assert lines[-3] == "Of it 2.01 EUR went back to the campaign: the stake of the free bet."
    void = {key: value for key, value in FINAL.items() if key != "settlement"}
    void |= {"status": "void", "void": VOID, "staked_minor": "201", "returned_minor": "201"}
    lines = sentences(void, free_bet="spring:grant-1", granted_minor=201)
    assert lines[-4] == "In all 2.01 EUR were staked and 2.01 EUR returned: the player neither won nor lost."
    assert lines[-3] == "Of it 2.01 EUR went back to the campaign: the stake of the free bet."


def test_a_void_round_names_reason_and_admins_wherever_they_stand() -> None:
    """In solo play in the seat's final, at a table in the final that all seats share."""
    sentence = "The round was made void (MALFUNCTION) by the admins admin-1 and admin-2. Every stake came back."
    would = [{"returned_minor": "150"}, {"returned_minor": "51"}]
    returned = "By the default decisions 2.01 EUR would have returned."
    final = FINAL | {"status": "void"}
    for of_seat, shared in (
        ({"void": VOID}, {}),
        ({}, {"void": VOID}),
    ):
        lines = sentences(final | of_seat, shared)
        assert sentence in lines
        assert returned not in lines
        assert not any("hand was better" in line or "The bet " in line for line in lines)
    assert returned in sentences(final | {"void": VOID, "would_have_been": would})
    assert returned in sentences(final, {"void": VOID | {"would_have_been": would}})


def test_the_cards_of_a_seat_at_a_table_stand_in_two_statements() -> None:
    shared = {
        "cards": {"dealer_cards": ["2c", "3c"], "board": ["4c", "5c", "6c", "7c", "8c"]},
        "hands": {"dealer_hand": DEALER},
    }
    seat = {**FINAL, "hole_cards": ["As", "Ah"], "outcome": {**FINAL["outcome"], "dealer_hand": DEALER}}
    del seat["cards"], seat["outcome"]["dealer_hand"]
    lines = sentences(seat, shared, table_id="t-1")
    assert " at table t-1 began at " in lines[0]
    assert "The player held As Ah, the dealer 2c 3c; the board was 4c 5c 6c 7c 8c." in lines
    assert "The player had a pair (As Ah Kd Qc 9s), the dealer high card (Kh Qd 9c 8s 7h)." in lines
    del seat["hole_cards"]
    assert "The dealer held 2c 3c; the board was 4c 5c 6c 7c 8c." in sentences(seat, shared, table_id="t-1")
    assert "No card was revealed." in sentences({**FINAL, "cards": {}})


def test_a_round_in_play_shows_its_decisions_and_why_it_is_paused() -> None:
    taken = SimpleNamespace(body=lambda: ACTIONS[0])
    lines = sentences(actions=(taken,))
    assert lines[-2] == "The timer chose check, before the flop, at 2026-11-21 22:30:00 UTC."
    assert lines[-1] == "The round is in play. Its cards are not shown here before its final reveals them."
    paused = "is paused since a malfunction was logged (CARDS_SHOWN): an admin resumes it, or two admins make the round"
    assert sentences(malfunction_code="CARDS_SHOWN")[-1] == f"It {paused} void."
    assert sentences(malfunction_code="CARDS_SHOWN", table_id="t-1")[-1] == f"Its table {paused} void."
