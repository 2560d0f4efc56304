"""One deal with a known end, as a round of either game: the player's aces beat the dealer's kings."""

from __future__ import annotations

from rgs.core import games
from rgs.core.cards import FULL_DECK, parse_cards
from rgs.core.games.types import Action, Seat
from rgs.core.rounds import Round, TakenAction, deal_core, seat_object, seat_of
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import commitment_of, format_canonical
from rng.shuffle import PROCEDURE

START_MS = 1_795_000_000_000
TOP = parse_cards(["As", "Ac", "Kd", "Kh", "Ah", "7c", "2d", "9s", "4h"])
DECK = (*TOP, *(card for card in FULL_DECK if card not in TOP))
SALT, TRANSCRIPT = bytes(range(32)), bytes(range(51))
SIDE_BET = {"uth-solo": "trips", "casino-holdem": "aa"}


def make_round(game: str, side_minor: int = 20) -> Round:
    """A round just dealt: ante 100, the side bet beside it, 1000 on the account before."""
    ruleset = load_ruleset(game)
    bets = games.check_stakes(ruleset, {"ante": 100, SIDE_BET[game]: side_minor})
    seat = seat_object(1, "0" * 25 + "S", bets)
    core = format_canonical(
        deal_core(
            round_id="0" * 25 + "R",
            game_code="#12:00:00",
            ruleset=ruleset,
            shuffle=PROCEDURE,
            instance="node-1-b1-w0",
            draw_no=7,
            reseed_counter=7,
            seats=[seat],
            start_ms=START_MS,
        )
    )
    return Round(
        round_id="0" * 25 + "R",
        session_id="0" * 25 + "S",
        operator="op-1",
        player="anna",
        ruleset_id=game,
        round_no=3,
        seat_no=1,
        game_code="#12:00:00",
        instance="node-1-b1-w0",
        draw_no=7,
        deal=core,
        commitment=commitment_of(core, SALT, TRANSCRIPT),
        bets=bets,
        balance_before_minor=1000,
        funds_minor=1000 - sum(amount for _, amount in bets),
        start_ms=START_MS,
        opening_hash="ab" * 32,
    )


def taken(round_: Round, *actions: Action) -> tuple[TakenAction, ...]:
    """The actions as they are recorded, one a second."""
    ruleset = load_ruleset(round_.ruleset_id)
    seat = seat_of(round_, ruleset, DECK)
    recorded = []
    for number, action in enumerate(actions, start=1):
        seat = games.apply(seat, action)
        phase, _, cost_minor = seat.actions[-1]
        recorded.append(
            TakenAction(phase.value, action.value, cost_minor, START_MS + 1000 * number, "player", "op-1", "cd" * 32)
        )
    return tuple(recorded)


def seat_after(round_: Round) -> Seat:
    """The seat of the round on the known deck."""
    return seat_of(round_, load_ruleset(round_.ruleset_id), DECK)
