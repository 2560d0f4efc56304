"""Views of real rounds for the tests of the api: played through the games on a deck of our choice; no store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rgs.api.mapping import Encoder
from rgs.core import games
from rgs.core.games.types import Action, Seat, SeatStakes
from rgs.core.ledger import Participation
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Session, SessionStatus
from rgs.core.views import RoundView, SessionView, round_view
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.catalog import Catalog

BOOKS = GameCatalog()
CATALOG = Catalog(BOOKS)
ENCODER = Encoder(CATALOG.list())
START_MS = 1_795_000_000_123
SESSION_ID = "01" + "S" * 24
ROUND_ID = "01" + "R" * 24
REQUEST_ID = "00000000-0000-4000-8000-000000000001"


def session(**changes: object) -> Session:
    held = Session(
        session_id=SESSION_ID,
        operator="op1",
        player="player-1",
        operator_reference="ref-1",
        ruleset_id="uth-solo",
        jurisdiction_id="demo",
        currency="EUR",
        status=SessionStatus.OPEN,
        open_ms=START_MS,
        last_ms=START_MS + 5_000,
        version=3,
        regulator_session_id="M00000000000000S",
        test_regulator=True,
        participation_id="01" + "P" * 24,
        regulator_participation_id="N00000000000000P",
        participation=Participation(bought_minor=50_000, staked_minor=700, returned_minor=400),
        purchase_no=2,
        round_no=4,
    )
    return replace(held, **changes)  # type: ignore[arg-type]


def session_view(open_round: RoundView | None = None, **changes: object) -> SessionView:
    return BOOKS.view(session(**changes), START_MS + 9_000, open_round)


def played(ruleset_id: str, deck: Sequence[int], actions: Sequence[Action], side_bet: str = "") -> tuple[Round, Seat]:
    """A round with a minimum ante after these actions; `settled` or `open` as they leave it."""
    ruleset = BOOKS.rulesets[ruleset_id]
    placed = {bet: ruleset.limits[bet].min_minor for bet in ("ante", side_bet) if bet}
    bets = games.check_stakes(ruleset, placed)
    (seat,) = games.deal(ruleset, deck, [SeatStakes(1, placed, 100_000)])
    taken = []
    for nth, action in enumerate(actions):
        phase = seat.phase
        seat = games.apply(seat, action)
        cost = seat.actions[-1].amount_minor
        taken.append(
            TakenAction(
                phase.value, action.value, cost, START_MS + nth + 1, ("player", "timer", "rule")[nth % 3], "op1", "00"
            )
        )
    round_ = Round(
        round_id=ROUND_ID,
        session_id=SESSION_ID,
        operator="op1",
        player="player-1",
        ruleset_id=ruleset_id,
        round_no=5,
        seat_no=1,
        game_code="#10:11:12",
        instance="node1-b1-w0",
        draw_no=7,
        deal=b"{}",
        commitment=bytes(range(32)),
        bets=bets,
        balance_before_minor=49_700,
        start_ms=START_MS,
        version=1 + len(taken),
        actions=tuple(taken),
    )
    return round_, seat


def view_of(round_: Round, seat: Seat) -> RoundView:
    """What the player may see of it."""
    if games.legal_actions(seat):
        return round_view(round_, seat, actions_hash=bytes(32))
    ended = replace(round_, status=RoundStatus.SETTLED, end_ms=START_MS + 60_001)
    return round_view(ended, seat, actions_hash=bytes(32), settlement=games.settle(seat))
