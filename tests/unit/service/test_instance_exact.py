"""An instance at its edges: who follows it, the first failure, a growth that is cancelled; and other small limits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import RngUnavailableError
from rgs.service.instance import Instance
from rgs.service.pages import format_key_token, format_page_token, parse_key_token, parse_page_token
from rgs.service.sealing import Kek, Sealer
from rgs.service.timekeeping import Timekeeping
from rgs.store.interface import InstanceRow
from rng.errors import RngError
from tests.support.clocks import ManualClock

SEALER = Sealer(Kek(1, {1: b"k" * 32}))


class Store:
    """As much of a store as is requested here."""

    def __init__(self, rows: list[InstanceRow] | None = None) -> None:
        self.rows = rows or []
        self.draw_window, self.draws_owed = 2, 0
        self.requested = 0
        self.growth = asyncio.Event()

    async def instances(self, *, alive_only: bool) -> list[InstanceRow]:
        assert alive_only
        return self.rows

    async def commit(self, _change: object) -> None:
        await self.growth.wait()

    async def clock_ms(self) -> int | None:
        self.requested += 1
        return None

    async def meta(self, _key: str) -> str:
        return ""

    async def newest_envelope(self) -> bytes:
        return b""

    async def latches(self, _node: str) -> list[Any]:
        return []


def instance_of(store: Store, **changes: Any) -> Instance:
    return Instance(**{"store": store, "clock": ManualClock(), "sealer": SEALER, "node": "node-1", **changes})


def row(node: str, boot_no: int, worker: int, start_ms: int) -> InstanceRow:
    return InstanceRow(f"{node}-b{boot_no}-w{worker}", node, boot_no, worker, True, 5, 5, start_ms)


# --- who follows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared", "follower"), [(False, "node-2-b1-w0"), (True, "node-1-b3-w0")], ids=["own store", "shared store"]
)
async def test_the_newest_other_follows_or_in_a_shared_store_the_next_boot_of_the_worker(
    shared: bool, follower: str
) -> None:
    rows = [
        row("node-1", 1, 0, 900), row("node-1", 2, 0, 100), row("node-1", 3, 0, 200), row("node-2", 1, 0, 400),
        row("node-1", 3, 1, 300),
    ]  # fmt: skip
    instance = instance_of(Store(rows), shared=shared)
    instance.name = rows[0].instance
    found = await instance.successor()
    assert found is not None
    assert found.instance == follower


async def test_nobody_follows_where_only_the_instance_itself_lives() -> None:
    for shared in (False, True):
        instance = instance_of(Store([row("node-1", 1, 0, 900)]), shared=shared)
        instance.name = "node-1-b1-w0"
        assert await instance.successor() is None
    instance = instance_of(Store([row("node-2", 1, 0, 900), row("node-1", 1, 1, 900)]), shared=True)
    assert (instance.name, instance.boot_no) == ("", 0)
    assert await instance.successor() is None


# --- draws ------------------------------------------------------------------------------------------------------------


async def test_the_first_failure_of_the_generator_is_the_one_that_is_reported() -> None:
    failures = ["REPETITION_COUNT", "GENERATOR_ENDED"]

    def draw() -> Any:
        raise RngError(failures.pop(0), "as the test wants it")

    instance = instance_of(Store())
    instance._generator = SimpleNamespace(draw=draw, selftest=draw, healthy=False)  # type: ignore[assignment]
    assert instance.failure == "GENERATOR_ENDED"
    for fails in (instance.draw, instance.selftest):
        with pytest.raises(RngUnavailableError):
            fails()
        assert instance.failure == "REPETITION_COUNT"
    assert failures == []


async def test_no_more_draws_wait_for_their_commit_than_the_window_holds() -> None:
    draws = iter(range(1, 9))
    instance = instance_of(Store())
    instance._generator = SimpleNamespace(  # type: ignore[assignment]
        draw=lambda: SimpleNamespace(draw_no=next(draws)), healthy=True
    )
    assert [instance.draw().draw_no, instance.draw().draw_no] == [1, 2]
    with pytest.raises(RngUnavailableError) as error:
        instance.draw()
    assert error.value.message == "2 draws wait for their commit, the limit is 2"
    assert error.value.metadata == {"limit": "2", "value": "2"}
    instance.draw_done()
    assert instance.draw().draw_no == 3


async def test_a_growth_that_is_cancelled_with_the_process_is_no_error() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    store = Store()
    store.draws_owed = 2
    instance = instance_of(store)
    waiting = asyncio.create_task(instance.ready())
    await asyncio.sleep(0.01)
    assert instance._growing is not None
    instance._growing.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert reported == []


# --- tokens, keys, the clock ------------------------------------------------------------------------------------------


def test_tokens_of_pages_at_their_limits() -> None:
    assert parse_page_token(format_page_token(1 << 62, 1), 2) == (1 << 62, 1)
    name = "x" * 96
    assert parse_key_token(format_key_token(name, "a-b_c.d:1"), 2) == (name, "a-b_c.d:1")


def test_a_process_keeps_the_ciphers_of_1024_instances() -> None:
    sealer = Sealer(Kek(1, {1: b"k" * 32}))
    sealed = [sealer.seal(f"node-1-b{boot_no}-w0", 1, b"core", b"s" * 32, b"t") for boot_no in range(1024)]
    assert len(sealer._ciphers) == 1024
    sealer.seal("node-1-b1024-w0", 1, b"core", b"s" * 32, b"t")
    assert len(sealer._ciphers) == 1
    assert sealer.unseal("node-1-b0-w0", 1, b"core", sealed[0]) == (b"s" * 32, b"t")


async def test_the_database_is_asked_at_the_start_then_every_ten_seconds_or_at_once_without_trust() -> None:
    store, clock = Store(), ManualClock()
    timekeeping = Timekeeping(store=store, clock=clock, node="node-1")  # type: ignore[arg-type]
    await timekeeping.begin()
    assert store.requested == 1
    await timekeeping.poll()
    requested = [store.requested]
    for passed_ms in (9_999, 1, 9_999):
        clock.tick(passed_ms)
        await timekeeping.poll()
        requested.append(store.requested)
    assert requested == [2, 2, 3, 3]
    clock.distrust("TIME_JUMP")
    await timekeeping.poll()
    await timekeeping.poll()
    assert store.requested == 5
