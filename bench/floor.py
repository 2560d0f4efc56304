"""The floor: what a played call costs without rules. A call of our message sizes goes through the product's own writer
with real rows and two signatures a round, and nothing else is done for it.

It has a store of its own beside that of the server, with the same writer and settings of SQLite. Three calls are a
round: its start, one decision, the decision that ends it. The first and the third are signed. Rows and statements are
those of one round that was settled by the rules when the floor was made; ids and numbers are each call's own. Such a
store cannot be replayed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench.players import new_request_id
from rgs.core import games
from rgs.core.games.types import Action
from rgs.core.ids import format_ulid
from rgs.core.ledger import Participation
from rgs.core.rounds import (
    Round,
    RoundStatus,
    TakenAction,
    UnsealedDeck,
    deal_core,
    final_body,
    opening_body,
    seat_object,
    seat_of,
)
from rgs.core.rulesets import load_ruleset
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import Ed25519Signer, commitment_of, format_canonical
from rgs.core.times import format_date, format_time
from rgs.core.values import changed
from rgs.ports.regulator import StageReport
from rgs.store.changes import Answer, Change, DayCount, Draft, NewInstance
from rgs.store.opening import create_store, open_store
from rgs.store.sqlite.store import SqliteStore
from rng.shuffle import PROCEDURE, transcript_to_deck

REQUEST_BYTES: Final = 91
RESPONSE_BYTES: Final = 2150
"""What a played call takes and gives, on average (docs/performance.md)."""
BODY_BYTES: Final = 630
"""The answer as it is stored, without its statement."""
INSTANCE: Final = "floor-1-0"
PARTY: Final = "floor"
GAME: Final = "uth-solo"
NOW_MS: Final = 1_790_000_000_000
ANTE_MINOR: Final = 10
BETS: Final = (("ante", ANTE_MINOR), ("blind", ANTE_MINOR))
BOUGHT_MINOR: Final = 10**12
SALT: Final = bytes(32)
TRANSCRIPT: Final = bytes(51)
"""One byte a draw, none of them rejected."""


@dataclass(slots=True)
class _Player:
    session: Session
    round: Round | None = None


class Floor:
    """Answers the calls of numbered players."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._players: dict[int, _Player] = {}
        self._draws = self._ids = 0
        self._round, self._opening, self._taken, self._final = _settled_once()

    @classmethod
    async def open(cls, path: Path) -> Floor:
        """Over a new store."""
        await create_store(path, format_ulid(NOW_MS, bytes(10)))
        store = await open_store(path)
        if not isinstance(store, SqliteStore):
            raise TypeError("the floor is measured over SQLite")
        signer = Ed25519Signer.from_seed(hashlib.sha256(b"floor").digest())
        start = Draft("instance_start", {"draws_in_flight_max": "1000000", "time": format_time(NOW_MS)})
        await store.start_instance(NewInstance(INSTANCE, PARTY, 1, 0, NOW_MS, start, signer, signer))
        return cls(store)

    async def close(self) -> None:
        """Commit what waits."""
        await self._store.close()

    async def call(self, request: bytes) -> bytes:
        """The next call of the player whose number the request begins with."""
        player = await self._player(int.from_bytes(request[:4], "big"))
        if player.round is None:
            change = self._start(player)
        elif not player.round.actions:
            change = self._decide(player)
        else:
            change = self._end(player)
        request_id = new_request_id()
        change.answer = Answer(PARTY, "Act", request_id, request[:32], bytes(BODY_BYTES), NOW_MS)
        await self._store.commit(change)
        if change.session is not None:
            stored = await self._store.session(change.session.session_id, fresh=False)
            player.session = stored or change.session
        return bytes(RESPONSE_BYTES)

    async def _player(self, number: int) -> _Player:
        if number not in self._players:
            session_id = self._new_id()
            session = Session(
                session_id, PARTY, f"player-{number}", session_id, GAME, "demo", "EUR", SessionStatus.OPEN, NOW_MS,
                NOW_MS, version=1, regulator_session_id="M5LMTR76FEP6Y8MH",
                regulator_participation_id="NQTBKNH9KL3G37AZ", participation_id=session_id,
                participation=Participation(BOUGHT_MINOR),
            )  # fmt: skip
            await self._store.commit(Change(session=session))
            self._players[number] = _Player(session)
        return self._players[number]

    def _start(self, player: _Player) -> Change:
        session = player.session
        self._draws += 1
        round_ = player.round = changed(
            self._round, round_id=self._new_id(), session_id=session.session_id, player=session.player,
            round_no=session.round_no + 1, draw_no=self._draws,
        )  # fmt: skip
        after = changed(
            session, version=session.version + 1, participation=session.participation.stake(2 * ANTE_MINOR),
            round_no=round_.round_no, open_round_id=round_.round_id, last_start_ms=NOW_MS,
        )  # fmt: skip
        draft = Draft("round_opening", self._opening, round_id=round_.round_id, seat_no=1)
        return Change(session=after, round=round_, drafts=(draft,), draw_no=round_.draw_no)

    def _decide(self, player: _Player) -> Change:
        session, round_ = player.session, player.round
        after = changed(session, version=session.version + 1)
        player.round = changed(round_, version=2, actions=self._taken)
        return Change(session=after, round=player.round, main=None)

    def _end(self, player: _Player) -> Change:
        session, round_ = player.session, player.round
        ended = changed(
            round_, version=3, actions=self._taken * 2, status=RoundStatus.SETTLED, end_ms=NOW_MS,
            staked_minor=2 * ANTE_MINOR, returned_minor=2 * ANTE_MINOR, sealed=b"",
        )  # fmt: skip
        if ended is None:
            raise TypeError("there is no round to end")
        after = changed(
            session, version=session.version + 1, participation=session.participation.give_back(2 * ANTE_MINOR),
            open_round_id="", rounds=session.rounds + 1,
        )  # fmt: skip
        player.round = None
        draft = Draft("round_final", self._final, round_id=ended.round_id, seat_no=1)
        report = StageReport(
            session.session_id, ended.round_no, session.regulator_session_id, session.regulator_participation_id,
            BOUGHT_MINOR, 2 * ANTE_MINOR, 2 * ANTE_MINOR, "0" * 64, NOW_MS,
        )  # fmt: skip
        day = format_date(NOW_MS)
        counted = DayCount(PARTY, "EUR", day, stages=1, staked_minor=2 * ANTE_MINOR, returned_minor=2 * ANTE_MINOR)
        return Change(session=after, round=ended, drafts=(draft,), report=report, counted=counted)

    def _new_id(self) -> str:
        self._ids += 1
        return format_ulid(NOW_MS + self._ids, hashlib.sha256(b"%d" % self._ids).digest()[:10])


def _settled_once() -> tuple[Round, dict[str, Any], tuple[TakenAction, ...], dict[str, Any]]:
    """(a round as it begins, the body of its opening, one decision, the body of its final), by the rules."""
    ruleset = load_ruleset(GAME)
    an_id = format_ulid(NOW_MS, bytes(10))
    seat_body = seat_object(1, an_id, BETS)
    deal = deal_core(
        round_id=an_id, game_code="#00:00:00", ruleset=ruleset, shuffle=PROCEDURE, instance=INSTANCE, draw_no=1,
        reseed_counter=1, seats=[seat_body], start_ms=NOW_MS,
    )  # fmt: skip
    core = format_canonical(deal)
    round_ = Round(
        round_id=an_id, session_id=an_id, operator=PARTY, player="", ruleset_id=GAME, round_no=1, seat_no=1,
        game_code=deal["game_code"], instance=INSTANCE, draw_no=1, deal=core,
        commitment=commitment_of(core, SALT, TRANSCRIPT), bets=BETS, balance_before_minor=BOUGHT_MINOR, start_ms=NOW_MS,
        sealed=bytes(112), funds_minor=BOUGHT_MINOR,
    )  # fmt: skip
    deck = transcript_to_deck(TRANSCRIPT)
    seat = games.apply(seat_of(round_, ruleset, deck), Action.PLAY_4X)
    phase, action, cost = seat.actions[-1]
    taken = TakenAction(phase.value, action.value, cost, NOW_MS, "player", PARTY, "0" * 64)
    settlement = games.settle(seat)
    ended = replace(round_, actions=(taken,), opening_hash="0" * 64)
    unsealed = UnsealedDeck(seat, deck, SALT, TRANSCRIPT)
    time = {"time": format_time(NOW_MS)}
    final = final_body(ended, unsealed, settlement, actions_hash=ended.actions_hash())
    return round_, {**opening_body(round_, deal, seat_body), **time}, (taken,), {**final, **time}
