"""An instance at its edges: who follows it, the first failure, a growth that is cancelled; and other small limits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, RngUnavailableError
from rgs.observe.traces import CURRENT, Span, SpanKind, TraceContext
from rgs.service.instance import Instance
from rgs.service.pages import encode_token, format_key_token, format_page_token, parse_key_token, parse_page_token
from rgs.service.sealing import Kek, Sealer
from rgs.service.timekeeping import Timekeeping
from rgs.store.changes import StoreError
from rgs.store.interface import InstanceRow
from rng.errors import RngError
from tests.support.clocks import ManualClock
from tests.support.service.harness import NODE_KEY

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


# --- who is declared lost ---------------------------------------------------------------------------------------------


class Lapsed(Store):
    """Three instances without a valid lease: the last boot of this worker, its neighbour's, and another node's."""

    def __init__(self) -> None:
        super().__init__([row("node-1", 1, 0, 100), row("node-1", 1, 1, 100), row("node-2", 1, 0, 100)])
        self.alive: set[str] = set()
        """Those that have renewed their lease since."""
        self.lost: list[str] = []

    async def lapsed_instances(self) -> list[InstanceRow]:
        return self.rows

    async def previous_boot(self, _node: str, _worker: int) -> InstanceRow:
        return self.rows[0]

    async def start_instance(self, _new: object) -> None: ...

    async def commit(self, change: Any) -> None:
        lost = [draft.body["lost"]["instance"] for draft in change.drafts if draft.kind == "instance_lost"]
        if self.alive & set(lost):
            raise StoreError("it has renewed its lease")
        self.lost += lost


@pytest.mark.parametrize(
    ("shared", "recovers", "lost"),
    [
        (False, False, ["node-1-b1-w0", "node-1-b1-w1", "node-2-b1-w0"]),
        (True, False, ["node-1-b1-w0"]),
        (True, True, ["node-1-b1-w0", "node-1-b1-w1", "node-2-b1-w0"]),
    ],
    ids=["own-store", "shared-store", "recovery-of-a-shared-store"],
)
async def test_a_start_in_a_shared_store_leaves_other_workers_to_the_leader(
    shared: bool, recovers: bool, lost: list[str]
) -> None:
    store = Lapsed()
    instance = instance_of(store, shared=shared)
    await instance.start(NODE_KEY, manifest_sha256="0" * 64, software_version="0.1.0", artifacts=(), recovers=recovers)
    assert store.lost == lost


async def test_it_is_told_how_many_were_declared_lost() -> None:
    store = Lapsed()
    store.alive = {"node-1-b1-w1"}
    instance = instance_of(store, shared=True)
    instance.boot_no = 2
    assert await instance.report_lost() == 2
    assert store.lost == ["node-1-b1-w0", "node-2-b1-w0"]
    store.rows = []
    assert await instance.report_lost() == 0


# --- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("draw", "selftest"), ("selftest", "draw")])
async def test_the_first_failure_of_the_generator_is_the_one_that_is_reported(order: tuple[str, str]) -> None:
    failures = ["REPETITION_COUNT", "GENERATOR_ENDED"]

    async def draw() -> Any:
        raise RngError(failures.pop(0), "as the test wants it")

    instance = instance_of(Store())
    instance._generator = SimpleNamespace(draw=draw, selftest=draw, failure="GENERATOR_ENDED")
    assert instance.failure == "GENERATOR_ENDED"
    for name in order:
        with pytest.raises(RngUnavailableError):
            await getattr(instance, name)()
        assert instance.failure == "REPETITION_COUNT"
    assert failures == []


async def test_no_more_draws_wait_for_their_commit_than_the_window_holds() -> None:
    draws = iter(range(1, 9))
    instance = instance_of(Store())

    async def draw() -> Any:
        return SimpleNamespace(draw_no=next(draws))

    instance._generator = SimpleNamespace(draw=draw, failure="")
    assert [(await instance.draw()).draw_no, (await instance.draw()).draw_no] == [1, 2]
    with pytest.raises(RngUnavailableError) as error:
        await instance.draw()
    assert error.value.message == "2 draws wait for their commit, the limit is 2"
    assert error.value.metadata == {"limit": "2", "value": "2"}
    instance.draw_done()
    assert (await instance.draw()).draw_no == 3


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


async def test_what_is_done_for_all_draws_runs_in_the_name_of_no_call() -> None:
    store, seen = Store(), []
    store.draws_owed = 2

    async def commit(_change: object) -> None:
        seen.append(CURRENT.get())
        store.draw_window = 4

    store.commit = commit  # type: ignore[method-assign]
    CURRENT.set(Span(TraceContext("a" * 32, "b" * 16), "", SpanKind.SERVER, "", 0, 0.0))
    await instance_of(store).ready()
    assert seen == [None]


# --- tokens, keys, the clock ------------------------------------------------------------------------------------------


def test_tokens_of_pages_at_their_limits() -> None:
    assert parse_page_token(format_page_token(1 << 62, 1), 2) == (1 << 62, 1)
    name = "x" * 96
    assert parse_key_token(format_key_token(name, "a-b_c.d:1"), 2) == (name, "a-b_c.d:1")


@pytest.mark.parametrize(
    "token", [format_key_token("a"), format_key_token("a", "b", "c"), format_page_token(1, 2), encode_token("x/a/b")]
)
def test_the_token_of_another_list_is_refused(token: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse_key_token(token, 2)
    assert refused.value.field == "page_token"
    for other in (format_page_token(1), format_page_token(1, 2, 3), format_key_token("1", "2"), encode_token("x.1.2")):
        with pytest.raises(InvalidFieldError):
            parse_page_token(other, 2)


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
