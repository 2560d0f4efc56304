"""Sessions of the second version of `session_open`: play money and limits on bets, honest and with faults."""

from __future__ import annotations

from functools import partial
from typing import Any

from rgs.core.statements import SESSION_OPEN_2, Ed25519Signer, seal_envelope
from tests.support.records.factory import Body, Lie, RecordFactory
from tests.support.records.lies import Change, Planted, drop, lie_at, put
from tests.support.records.lying import ended

ANTE, TRIPS = ({"bet": bet, "max_minor": "200", "min_minor": "50"} for bet in ("ante", "trips"))
_REGULATOR = {"player": "p-1", "regulator": "regulator", "regulator_session_id": "M1795999999AAAAA"}


def second_versions(lie: Lie | None = None, **more: Any) -> RecordFactory:
    """A session with play money between two with money, one of which has limits on its bets."""
    factory = RecordFactory("second", lie=lie, law_version=None, **more)
    one = factory.start("rgs-1")
    first = factory.open(one)
    factory.buy(one, first, 5_000)
    demo = factory.open(one, demo=True, bet_limits=[ANTE])
    factory.buy(one, demo, 8_000)
    factory.play(one, first, {"ante": 100}, ["play_4x"])
    factory.play(one, demo, {"ante": 200}, ["play_4x"])
    factory.deal(one, [demo], {"ante": 50, "trips": 20})
    factory.void(one, demo)
    limited = factory.open(one, bet_limits=[ANTE, TRIPS])
    factory.buy(one, limited, 5_000)
    factory.play(one, limited, {"ante": 50, "trips": 200}, ["check", "play_2x"])
    return ended(factory, one, first, demo, limited)


def _always_second(payload_type: str, payload: bytes, signer: Ed25519Signer) -> bytes:
    """Every session_open as version 2, whatever it says."""
    is_open = b'"kind":"session_open"' in payload
    return seal_envelope(SESSION_OPEN_2.payload_type if is_open else payload_type, payload, signer)


def _money(body: Body) -> None:
    """The block of a purchase or an end as it stands beside money."""
    del body["reason"]
    body |= {"regulator_participation_id": "N1795999999AAAAA", "wallet_transaction_id": "W1795999999AAAAA"}


_OPEN, _BLOCK = "session_open", "session_open block"
_FAULTS: tuple[tuple[str, str, str, int, Change], ...] = (
    ("bet below the signed limit", "10 stakes", _OPEN, 3, put("bet_limits", 0, "min_minor", value="60")),
    ("bet above the signed limit", "10 stakes", _OPEN, 2, put("bet_limits", 0, "max_minor", value="198")),
    ("side bet above the signed limit", "10 stakes", _OPEN, 3, put("bet_limits", 1, "max_minor", value="198")),
    ("bet limit above the ruleset's", "8 rules", _OPEN, 3, put("bet_limits", 0, "max_minor", value="100002")),
    ("bet limit below the ruleset's", "8 rules", _OPEN, 3, put("bet_limits", 0, "min_minor", value="8")),
    ("bet limit off the step", "8 rules", _OPEN, 3, put("bet_limits", 0, "min_minor", value="49")),
    ("bet limit turned round", "8 rules", _OPEN, 2, put("bet_limits", 0, "min_minor", value="202")),
    ("limit of a bet that the system places", "8 rules", _OPEN, 2, put("bet_limits", 0, "bet", value="blind")),
    ("limit of another game's bet", "8 rules", _OPEN, 2, put("bet_limits", 0, "bet", value="aa")),
    ("bet limits in another order", "8 rules", _OPEN, 3, put("bet_limits", value=[TRIPS, ANTE])),
    ("one bet limited twice", "8 rules", _OPEN, 3, put("bet_limits", value=[ANTE, ANTE, TRIPS])),
    ("no bet limit", "8 rules", _OPEN, 2, put("bet_limits", value=[])),
    ("play money of the test regulator", "8 rules", _OPEN, 2, put("test_regulator", value=True)),
    ("play money funded bet by bet", "8 rules", _OPEN, 2, put("funding", value="seamless")),
    ("play money at a table", "8 rules", _OPEN, 2, put("table", value="t-1")),
    ("play money with the regulator's ids", "23 ids", _BLOCK, 2, lambda body: body.update(_REGULATOR)),
    ("play money with a reason", "23 ids", _BLOCK, 2, put("reason", value="PLAY_MONEY")),
    ("play money bought at the wallet", "23 ids", "purchase block", 2, _money),
    ("play money bought without a reason", "23 ids", "purchase block", 2, drop("reason")),
    ("play money paid out at the wallet", "23 ids", "participation_end block", 2, _money),
    ("money in a session opened for play money", "23 ids", _BLOCK, 1, put("reason", value="PLAY_MONEY")),
    ("money bought as play money", "23 ids", "purchase block", 1, put("reason", value="PLAY_MONEY")),
    ("demo counted as real", "23 ids", _OPEN, 2, drop("mode")),
    ("real counted as demo", "23 ids", _OPEN, 3, put("mode", value="demo")),
)


def _without_play_money() -> RecordFactory:
    """Play money under a law that allows none."""
    factory = RecordFactory("second", law_version=None)
    one = factory.start("rgs-1")
    player = factory.open(one, jurisdiction="gb-ukgc", demo=True)
    factory.buy(one, player, 8_000)
    return ended(factory, one, player)


SECOND = (
    *(
        Planted(name, check, partial(second_versions, lie_at(kind, nth, lie)))
        for name, check, kind, nth, lie in _FAULTS
    ),
    Planted("version 2 that says what version 1 says", "8 rules", partial(second_versions, sealing=_always_second)),
    Planted("play money where none is allowed", "8 rules", _without_play_money),
)
"""Faults of play money and of limits on bets."""
