"""While a round is open nothing tells what it will be: no file, answer, log line, repr or error."""

from __future__ import annotations

import gc
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from rgs.api.mapping import Encoder
from rgs.core import games
from rgs.core.errors import IdempotencyConflictError, RgsError
from rgs.core.games.types import Seat
from rgs.core.views import RoundView, SessionView
from rgs.node.logging import Log
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.catalog import Catalog
from rgs.service.sealing import Sealer
from rgs.store.changes import Change, Draft
from tests.support.clocks import ManualClock
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness, plain_encode, read_statement
from tests.support.service.leaks import Secret, files, leaks, secret_of
from tests.support.service.oracles import replay, stored_statements, table
from tests.support.service.player import Player

# What is played before the look, and how many cards of the board are open then.
DEALS: list[tuple[str, tuple[str, ...], int]] = [
    ("uth-solo", (), 0),
    ("uth-solo", ("check",), 3),
    ("uth-solo", ("check", "check"), 5),
    ("casino-holdem", (), 3),
]


@dataclass
class MonitoredParts:
    """A server with one round, open, and everything that it said."""

    harness: ServiceHarness
    anna: Player
    shown: int
    drawn: list[tuple[bytes, bytes]]
    """Salt and transcript of every draw."""
    said: list[bytes]
    changes: list[Change] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)

    def secret(self) -> Secret:
        return secret_of(*self.drawn[0], self.shown)

    def leaks(self) -> list[str]:
        """Where the secret of the open round is to be found."""
        ours = [
            value
            for value in gc.get_objects()
            if str(getattr(type(value), "__module__", "")).split(".")[0] in ("rgs", "rng")
        ]
        texts = [text for error in self.errors for text in _texts_of(error)]
        said = [*self.said, *(reply.body + reply.envelope for _, reply in self.anna.sent)]
        places = {
            **files(self.harness.folder),
            "answers": b"\n".join(said),
            "changes": "\n".join(map(_repr_of, self.changes)).encode(),
            "objects": "\n".join(map(_repr_of, ours)).encode(),
            "errors": "\n".join(texts).encode(),
        }
        assert places.keys() >= {"rgs.db", "rgs.db-wal", "wallet.db", "regulator.db", "rgs.log"}
        assert {name for name, data in places.items() if len(data) < 500} <= {"rgs.lock"}, "it looks at something"
        return leaks(self.secret(), places, other_rounds=("objects",))


def _repr_of(value: object) -> str:
    try:
        return f"{value!r} {value}"
    except Exception:  # noqa: BLE001 - objects half made, classes among them
        return ""


def _texts_of(error: BaseException) -> list[str]:
    result = [str(error), repr(error), "".join(traceback.format_exception(error))]
    return [*result, repr(error.metadata)] if isinstance(error, RgsError) else result


@asynccontextmanager
async def watched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, game: str, actions: Sequence[str], shown: int
) -> AsyncIterator[MonitoredParts]:
    """A round in some phase, errors of every kind provoked, the log kept in the same folder."""
    encoder = Encoder(Catalog(GameCatalog()).list())
    said: list[bytes] = []

    def encode(method: str, session: SessionView, round_: RoundView | None) -> bytes:
        said.append(encoder(method, session, round_))  # the contract's own form
        return plain_encode(method, session, round_)

    seal = Sealer.seal
    drawn: list[tuple[bytes, bytes]] = []

    def keep(self: Sealer, instance: str, draw_no: int, core: bytes, salt: bytes, transcript: bytes) -> bytes:
        drawn.append((salt, transcript))
        return seal(self, instance, draw_no, core, salt, transcript)

    monkeypatch.setattr(Sealer, "seal", keep)
    with Log(folder / "rgs.log", "debug", ManualClock(), people=None) as log:
        async with open_harness(folder, encode=encode) as harness:
            anna = Player(harness, game=game)
            seen = MonitoredParts(harness, anna, shown, drawn, said)
            commit = harness.store.commit

            async def watch(change: Change) -> Any:
                seen.changes.append(change)
                structlog.get_logger().info("commit", change=change, text=str(change), seen=repr(change))
                return await commit(change)

            monkeypatch.setattr(harness.store, "commit", watch)
            await anna.sit()
            await anna.start()
            for action in actions:
                await anna.act(action)
            await provoke(seen)
            for error in seen.errors:
                structlog.get_logger().warning("refused", exc_info=error)
            log.flush()
            yield seen


async def provoke(seen: MonitoredParts) -> None:
    """Errors around an open round."""
    harness, anna = seen.harness, seen.anna
    act = anna.decision("check")
    calls: list[Any] = [
        anna.start(),
        anna.end(),
        anna.act("play_1x" if anna.round["phase"] != "river" else "check"),
        harness.send(replace(act, request_id=harness.request_id(), round_version=9)),
        harness.send(replace(act, request_id="x")),
        harness.play.get_round(OPERATOR, anna.session_id, "0" * 26),
    ]
    for call in calls:
        with pytest.raises(RgsError) as caught:
            await call
        seen.errors.append(caught.value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rgs.service.play.decks.commitment_of", lambda *_: bytes(32))
        with pytest.raises(RgsError) as caught:
            await harness.sessions.get(OPERATOR, anna.session_id)
        seen.errors.append(caught.value)


@pytest.mark.parametrize(("game", "actions", "shown"), DEALS)
async def test_nothing_tells_what_an_open_round_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: str, actions: tuple[str, ...], shown: int
) -> None:
    async with watched(tmp_path, monkeypatch, game, actions, shown) as seen:
        assert seen.leaks() == []
        # The end reveals salt and transcript in the signed final, and there only.
        await seen.anna.finish_round()
        salt, transcript = seen.drawn[0]
        rows = stored_statements(tmp_path)
        for secret in (salt, transcript):
            assert [row.kind for row in rows if secret.hex() in str(read_statement(row.envelope))] == ["round_final"]
        long = replace(seen.secret(), hidden=())
        columns = {
            (name, number)
            for name in ("sessions", "rounds", "answers", "operations", "stage_reports", "privates", "instances")
            for row in table(tmp_path, f"SELECT * FROM {name}")  # noqa: S608 - our own names
            for number, value in enumerate(row)
            if leaks(long, {"": _as_bytes(value)}, other_rounds=("",))
        }
        assert columns == set()
        beside = {name: data for name, data in files(tmp_path).items() if name.startswith(("wallet", "regulator"))}
        assert leaks(long, beside, other_rounds=beside) == []
        assert table(tmp_path, "SELECT sealed FROM rounds") == [(b"",)]
        await seen.anna.leave()
    replay(tmp_path)


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


async def test_a_discarded_draw_tells_its_transcript_in_its_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched(tmp_path, monkeypatch, *DEALS[0]) as seen:
        first = seen.anna.sent[2][0]
        await seen.anna.finish_round()
        with pytest.raises(IdempotencyConflictError):
            await seen.harness.send(replace(seen.anna.starting(), request_id=first.request_id))
        (row,) = [row for row in stored_statements(tmp_path) if row.kind == "discarded_draw"]
        body = read_statement(row.envelope)
        assert (body["draw_no"], body["transcript"]) == ("2", seen.drawn[1][1].hex())
        assert "salt" not in body


# --- the oracle sees it -----------------------------------------------------------------------------------------------


async def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The places in which the oracle finds something."""
    async with watched(tmp_path, monkeypatch, *DEALS[1]) as seen:
        return {leak.split(":")[0] for leak in seen.leaks()}


async def test_the_oracle_sees_a_deck_that_is_not_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seal(_self: Sealer, _instance: str, _draw_no: int, _core: bytes, salt: bytes, transcript: bytes) -> bytes:
        return b"\x01" + salt + transcript

    def unseal(_self: Sealer, _instance: str, _draw_no: int, _core: bytes, sealed: bytes) -> tuple[bytes, bytes]:
        return sealed[1:33], sealed[33:]

    monkeypatch.setattr(Sealer, "seal", seal)
    monkeypatch.setattr(Sealer, "unseal", unseal)
    assert await planted(tmp_path, monkeypatch) >= {"rgs.db-wal", "changes"}


async def test_the_oracle_sees_a_view_of_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = games.view

    def careless(seat: Seat) -> Any:
        return genuine(seat)._replace(dealer_cards=seat.dealer_cards)

    monkeypatch.setattr(games, "view", careless)
    assert await planted(tmp_path, monkeypatch) >= {"rgs.db-wal", "answers"}


async def test_the_oracle_sees_a_repr_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "__repr__", lambda self: f"Draft({self.kind}, {self.body})")
    assert await planted(tmp_path, monkeypatch) >= {"changes", "rgs.log"}


async def test_the_oracle_sees_an_error_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unseal = Sealer.unseal

    def careless(self: Sealer, *what: Any) -> tuple[bytes, bytes]:
        _salt, transcript = unseal(self, *what)
        raise RgsError(f"cannot play {transcript!r}")

    async with watched(tmp_path, monkeypatch, *DEALS[1]) as seen:
        monkeypatch.setattr(Sealer, "unseal", careless)
        with pytest.raises(RgsError) as caught:
            await seen.anna.act("check")
        seen.errors.append(caught.value)
        assert {leak.split(":")[0] for leak in seen.leaks()} >= {"errors"}
