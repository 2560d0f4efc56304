"""The operator's token of a session: with every debit of it, never with anything else, and nowhere to be read."""

from __future__ import annotations

import asyncio
import gc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from rgs.api.mapping import Encoder
from rgs.core.errors import RegulatorRefusedError, RgsError, WalletRefusedError, WalletUnavailableError
from rgs.node.logging import Log
from rgs.ports.wallet import Transfer
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.catalog import Catalog
from rgs.service.sealing import Kek, Sealer
from rgs.store.address import PostgresAddress
from rgs.store.sqlite.store import connect
from tests.support.clocks import ManualClock
from tests.support.service.harness import ServiceHarness, open_harness, plain_encode
from tests.support.service.leaks import files
from tests.support.service.oracles import export_lines, table
from tests.support.service.player import Player, refused
from tests.support.service.seamless import FUNDINGS, PACE_MS, Better
from tests.unit.service.money.test_refused import database, living

__all__ = ["database"]

TOKEN = "tok-Zx81\u00e9-6f1de2a90c"  # noqa: S105 - of a test


class Seen:
    """What the wallet is handed, call by call."""

    def __init__(self, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str | None]] = []
        for method in ("debit", "credit", "rollback"):
            monkeypatch.setattr(harness.wallet, method, self._watched(method, getattr(harness.wallet, method)))

    def _watched(self, method: str, genuine: Any) -> Any:
        async def watched(transfer: Transfer, **token: str) -> Any:
            self.calls.append((method, token.get("session_token")))
            return await genuine(transfer, **token)

        return watched


async def open_with(player: Player, token: str = TOKEN) -> None:
    if isinstance(player, Better):
        await player.fill()
    await player.send(replace(player.opening(), session_token=token))


async def test_every_bet_carries_it_and_no_credit_and_no_rollback(
    tmp_path: Path, database: PostgresAddress | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeats that recovery makes, too, in the next life of the server."""
    clock = ManualClock()
    async with living(tmp_path, database, clock, ended=False) as harness:
        seen = Seen(harness, monkeypatch)
        anna, bert = Better(harness), Better(harness, name="bert")
        await open_with(anna)
        await bert.open()
        await anna.start(100)
        await anna.act("play_4x")
        await bert.start(100)
        assert seen.calls == [("debit", TOKEN), ("debit", TOKEN), ("credit", None), ("debit", "")]
        harness.wallet_script.plan("debit", "before")
        clock.tick(PACE_MS)
        request = anna.starting(100)
        with pytest.raises(WalletUnavailableError):
            await anna.send(request)
    async with living(tmp_path, database, clock) as harness:
        anna.harness, seen = harness, Seen(harness, monkeypatch)
        await harness.sessions.recover()
        await anna.send(request)
        assert seen.calls == [("debit", TOKEN)]
        seen.calls.clear()
        harness.wallet_script.plan("debit", "after")
        decision = anna.decision("play_4x")
        with pytest.raises(WalletUnavailableError):
            await anna.send(decision)
        clock.tick(3 * 86_400_000)
        await harness.services.interruptions.finish_due()
        await harness.settle()
        assert seen.calls[0] == ("debit", TOKEN)
        assert ("rollback", None) in seen.calls
        assert all(token is None for method, token in seen.calls if method != "debit")
        await anna.close()
        assert await harness.store.session_token(anna.session_id) == b""


async def test_every_purchase_carries_it(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(harness, monkeypatch)
    await open_with(anna)
    await anna.buy()
    await anna.play()
    await anna.buy(700)
    await anna.leave()
    assert seen.calls == [("debit", TOKEN), ("debit", TOKEN), ("credit", None)]


async def test_it_is_no_part_of_what_a_repeat_repeats(harness: ServiceHarness, anna: Player) -> None:
    request = anna.opening()
    first = await anna.send(replace(request, session_token=TOKEN))
    for token in ("", "another"):
        assert await harness.send(replace(request, session_token=token)) == first
    assert len(table(harness.folder, "SELECT * FROM session_tokens")) == 1


async def test_it_goes_when_the_session_is_closed(harness: ServiceHarness, anna: Player) -> None:
    await open_with(anna)
    assert len(table(harness.folder, "SELECT * FROM session_tokens")) == 1
    await anna.close()
    assert table(harness.folder, "SELECT * FROM session_tokens") == []
    harness.regulator_script.plan("open_session", RegulatorRefusedError("no", rejection="X"))
    with pytest.raises(RegulatorRefusedError):
        await open_with(Player(harness, name="bert"))
    assert table(harness.folder, "SELECT * FROM session_tokens") == []


async def test_no_debit_leaves_where_it_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await open_with(anna)
    async with open_harness(tmp_path, kek=Kek(2, {2: bytes(32)})) as harness:
        anna.harness, seen = harness, Seen(harness, monkeypatch)
        with pytest.raises(WalletUnavailableError, match="cannot be opened") as result:
            await anna.buy()
        assert TOKEN not in str(result.value)
        assert seen.calls == []
        harness.clock.tick(300_000)  # nobody waits for it any more
        await harness.settle()
        assert [method for method, _ in seen.calls] == ["rollback"]
        await anna.close()


async def test_it_is_nowhere_to_be_read(tmp_path: Path) -> None:
    """Logs, statements, exports, errors, answers, reprs, the bytes of the store: sealed, or not there."""
    said: list[bytes] = []
    encoder = Encoder(Catalog(GameCatalog()).list())
    errors: list[RgsError] = []

    def encode(method: str, *views: Any) -> bytes:
        said.append(encoder(method, *views))
        return plain_encode(method, *views)

    with Log(tmp_path / "rgs.log", "debug", ManualClock(), people=None):
        async with open_harness(tmp_path, encode=encode, fundings=FUNDINGS) as harness:
            commit = harness.store.commit

            async def watch(change: Any) -> Any:
                structlog.get_logger().info("commit", change=change, seen=repr(change), text=str(change))
                return await commit(change)

            harness.store.commit = watch  # type: ignore[method-assign]
            anna, bert = Player(harness), Better(harness, name="bert")
            for player in (anna, bert):
                await open_with(player)
            request = replace(anna.opening(), session_token=TOKEN)
            structlog.get_logger().info("request", request=request, seen=repr(request))
            harness.wallet_script.plan("debit", WalletRefusedError("no", refusal="TOKEN_EXPIRED"))
            errors.append(await refused(harness, anna, anna.purchase(5_000)))
            await anna.buy()
            await anna.play()
            await bert.play()
            ours = [
                repr(value)
                for value in gc.get_objects()
                if str(getattr(type(value), "__module__", "")).split(".")[0] == "rgs" and not isinstance(value, type)
            ]
            places = {
                **files(tmp_path),
                "said": b"\n".join(said),
                "reprs": "\n".join(ours).encode("utf-8", "replace"),
                "errors": "\n".join(f"{error!r} {error} {error.metadata}" for error in errors).encode(),
            }
            sealed = table(tmp_path, "SELECT sealed FROM session_tokens")
    places |= {f"{name} at the end": data for name, data in files(tmp_path).items()}
    places["export"] = b"\n".join(export_lines(tmp_path))
    assert len(sealed) == 2
    assert places.keys() >= {"rgs.db", "rgs.db-wal", "wallet.db", "regulator.db", "rgs.log", "export"}
    result = [TOKEN.encode(form) for form in ("utf-8", "latin-1", "utf-16-le")]
    result += [TOKEN.encode().hex().encode(), TOKEN[4:].encode("unicode_escape"), TOKEN[8:].encode()]
    found = [(name, form) for name, data in places.items() for form in result if form in data]
    assert found == []


def test_the_search_finds_what_is_not_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the token is kept as it is."""
    monkeypatch.setattr(Sealer, "seal_token", lambda _self, _session_id, token: b"\x01" + token.encode("utf-8"))
    monkeypatch.setattr(Sealer, "unseal_token", lambda _self, _session_id, sealed: sealed[1:].decode("utf-8"))
    with pytest.raises(AssertionError):
        asyncio.run(test_it_is_nowhere_to_be_read(tmp_path))


async def test_a_token_is_sealed_for_its_session_alone(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await open_with(anna)
    with closing(connect(tmp_path / "rgs.db", read_only=True)) as connection:
        ((session_id, sealed),) = connection.execute("SELECT session_id, sealed FROM session_tokens").fetchall()
    sealer = harness.instance.sealer
    assert sealer.unseal_token(session_id, sealed) == TOKEN
    for wrong in (("01K4ZQ6A0B1C2D3E4F5G6H7J81", sealed), (session_id, sealed[:-1] + b"?"), (session_id, b"")):
        with pytest.raises(WalletUnavailableError, match="cannot be opened"):
            sealer.unseal_token(*wrong)
