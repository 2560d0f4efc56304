"""Planted faults of ids, parties, keys' dates, boots and counters: what a server can say under its own keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rgs.core.statements import first_actions_hash, next_actions_hash
from tests.support.records.betting import Bettor
from tests.support.records.factory import Body, Lie, RecordFactory, join
from tests.support.records.lies import EARLY, Change, Planted, drop, lie_at, put
from tests.support.records.lying import begun, ended, played, two_instances
from tests.support.records.ready_made import small_factory

# --- ids ---


def seats(*tables: str, lie: Lie | None = None, jurisdiction: str = "demo", game: str = "uth-online") -> RecordFactory:
    """A session for each table, of that game, and solo play where it is empty, with one participation each."""
    factory = RecordFactory("ids", lie=lie)
    one = factory.start("rgs-1")
    players = []
    for table in tables:
        ruleset = game if table else "uth-solo"
        players.append(factory.open(one, ruleset, table=table, jurisdiction=jurisdiction))
        factory.buy(one, players[-1], 1_000)
    factory.play(one, players[0], {"ante": 100}, ["play_4x"])
    return ended(factory, one, *players)


def same(kind: str, field: str, places: Sequence[int] = (1, 2)) -> Lie:
    """These bodies or blocks of a kind, or of several, hold what the first one holds."""
    first: list[str] = []

    def lie(reported: str, number: int, body: Body) -> None:
        if reported in kind.split(", ") and number in places and field in body:
            first.append(body[field])
            body[field] = first[0]

    return lie


def unnamed(body: Body) -> None:
    """A session that no regulator knows."""
    del body["regulator"], body["regulator_session_id"]


def of_the_test_regulator(body: Body) -> None:
    body["regulator"] = "test-regulator"


STRANGE_ID = "N9999999999ZZZZZ"
_SESSION, _PURCHASE, _END = "session_open block", "purchase block", "participation_end block"


def two_bettors(lie: Lie | None = None) -> RecordFactory:
    """Two seamless sessions of one round each."""
    factory = RecordFactory("bets-7", lie=lie)
    one = factory.start("rgs-1")
    for _ in range(2):
        player = factory.open(one, jurisdiction="gb-ukgc", seamless=True)
        Bettor(factory, one, player, ()).play(100, ["play_4x"])
        factory.close(one, player)
    factory.end(one)
    return factory


def bought_twice(lie: Lie, jurisdiction: str = "demo") -> RecordFactory:
    factory, one, player = begun(jurisdiction=jurisdiction, lie=lie)
    factory.buy(one, player, 100)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


def other_end() -> RecordFactory:
    """The end of the second participation names the id of the first one."""
    first: list[str] = []

    def lie(kind: str, number: int, body: Body) -> None:
        if (kind, number) == (_PURCHASE, 1):
            first.append(body["regulator_participation_id"])
        if (kind, number) == (_END, 2):
            body["regulator_participation_id"] = first[0]

    return seats("", "", lie=lie)


def purchases_erased(factory: RecordFactory) -> bytes:
    """The blocks of purchases are gone, as erasure leaves them."""
    lines = (line if b"vnd.rgs.purchase" not in line else erased(line) for line in factory.lines[4:])
    return join([*factory.lines[:4], *lines])


def erased(line: bytes) -> bytes:
    return line[: line.index(b',"private":')] + b',"private":null}'


_BLOCKS = tuple(
    Planted(name, "23 ids", build)
    for name, build in (
        ("session without an id of the regulator", partial(small_factory, lie_at(_SESSION, 1, unnamed))),
        (
            "session in earnest without an id",
            partial(seats, "", lie=lie_at(_SESSION, 1, unnamed), jurisdiction="it-adm"),
        ),
        (
            "participation without an id",
            partial(small_factory, lie_at(_PURCHASE, 1, drop("regulator_participation_id"))),
        ),
        ("id of a session by nobody", partial(small_factory, lie_at(_SESSION, 1, drop("regulator")))),
        (
            "regulator without an id of the session",
            partial(seats, "", lie=lie_at(_SESSION, 1, drop("regulator_session_id")), jurisdiction="gb-ukgc"),
        ),
        ("one id for two sessions", partial(seats, "", "", lie=same(_SESSION, "regulator_session_id"))),
        ("one id at two tables", partial(seats, "t-1", "t-2", lie=same(_SESSION, "regulator_session_id"))),
        ("one id at a table and alone", partial(seats, "t-1", "", lie=same(_SESSION, "regulator_session_id"))),
        ("one id alone and at a table", partial(seats, "", "t-1", lie=same(_SESSION, "regulator_session_id"))),
        ("one id at the table of a solo game", partial(seats, "t-1", "t-1", game="uth-solo")),
        ("one id for two participations", partial(seats, "", "", lie=same(_PURCHASE, "regulator_participation_id"))),
        (
            "one id for two participations in Britain",
            partial(seats, "", "", lie=same(_PURCHASE, "regulator_participation_id"), jurisdiction="gb-ukgc"),
        ),
        (
            "one participation in two sessions",
            partial(seats, "", "", lie=same("purchase, participation_end", "participation_id")),
        ),
        (
            "second purchase of another participation",
            partial(bought_twice, lie_at(_PURCHASE, 2, put("regulator_participation_id", value=STRANGE_ID))),
        ),
        (
            "second purchase of no participation in Britain",
            partial(bought_twice, lie_at(_PURCHASE, 2, drop("regulator_participation_id")), "gb-ukgc"),
        ),
        (
            "end names another participation",
            partial(small_factory, lie_at(_END, 1, put("regulator_participation_id", value=STRANGE_ID))),
        ),
        ("end names no participation", partial(small_factory, lie_at(_END, 1, drop("regulator_participation_id")))),
        ("end names the participation of another", other_end),
        (
            "test regulator that is none",
            partial(small_factory, lie_at(_SESSION, 1, put("regulator", value="regulator"))),
        ),
        (
            "test regulator that is not told",
            partial(seats, "", lie=lie_at(_SESSION, 1, of_the_test_regulator), jurisdiction="it-adm"),
        ),
        ("purchase without a transaction", partial(small_factory, lie_at(_PURCHASE, 1, drop("wallet_transaction_id")))),
        ("end without a transaction", partial(small_factory, lie_at(_END, 1, drop("wallet_transaction_id")))),
        ("one transaction for two purchases", partial(bought_twice, same(_PURCHASE, "wallet_transaction_id"))),
        ("one transaction for two sessions", partial(seats, "", "", lie=same(_PURCHASE, "wallet_transaction_id"))),
        ("one transaction in and out", partial(small_factory, same(f"{_PURCHASE}, {_END}", "wallet_transaction_id"))),
        (
            "one transaction for the bets of two sessions",
            partial(two_bettors, same("transfer", "transaction_id", (1, 4))),
        ),
    )
)
IDS = (
    *_BLOCKS,
    # What a purchase named is erased: the end names what another participation was.
    Planted("end names the participation of another, its own erased", "23 ids", other_end, purchases_erased),
)
"""Faults of the ids by which others know sessions, participations and transfers of money."""

# --- parties ---


def sent_by(by: str, party: str, actions: str = "check check fold") -> RecordFactory:
    """A round whose decisions are told so, with the running hash of what is told."""
    commitments: list[bytes] = []

    def lie(kind: str, number: int, body: Body) -> None:
        if kind == "round_opening":
            commitments.append(bytes.fromhex(body["commitment"]))
        if kind == "round_final":
            running = first_actions_hash(commitments[0])
            for action in body["actions"]:
                action.update(by=by, party=party)
                running = next_actions_hash(running, action)
            body["actions_hash"] = running.hex()

    return played(actions=actions, lie=lie)


PARTIES = tuple(
    Planted(f"{by}'s decision sent by {party}", "15 actions", partial(sent_by, by, party))
    for by, party in (("player", "operator-2"), ("player", "rgs"), ("rule", "operator-1"), ("timer", "operator-1"))
)
"""Faults of who decided."""

# --- keys' dates ---


def turned(reason: str = "KEYS_CHANGED") -> RecordFactory:
    """A process goes on as its next boot, which signs what the one before had begun to write, a second earlier."""
    factory, one, player = begun()
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    written = factory.now()
    factory.event(one)
    factory.numbered(one, "instance_end", {"last_draw_no": str(one.draw_no), "reason": reason})
    two = factory.start("rgs-2", boot_no=2, previous_boot=factory.boot(one))
    factory.event(two, "LARGE_WIN", time=written)
    return ended(factory, two, player)


def clock_set_back(*, is_reported: bool = True) -> RecordFactory:
    """A process whose clock was a day ahead at its start, and set right."""
    factory = RecordFactory("clock")
    factory.node("node-1")
    factory.clock_ms += 86_400_000
    one = factory.start("rgs-1")
    if is_reported:
        factory.event(one, "TIME_JUMP", subject="clock", after="-86400000 ms")
    factory.clock_ms -= 86_400_000
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


def reported_too_early() -> RecordFactory:
    """The event that tells of the clock set back is dated by the clock as it is now, before the start."""
    factory, one, player = begun()
    factory.event(one, "TIME_JUMP", subject="clock", after="-86400000 ms", time=EARLY)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


def turned_after_set_back() -> RecordFactory:
    """The process of `clock_set_back` under another key: the next boot is dated before the first one."""
    factory = RecordFactory("clock")
    factory.node("node-1")
    factory.clock_ms += 86_400_000
    one = factory.start("rgs-1")
    factory.event(one, "TIME_JUMP", subject="clock", after="-86400000 ms")
    factory.clock_ms -= 86_400_000
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    factory.numbered(one, "instance_end", {"last_draw_no": str(one.draw_no), "reason": "KEYS_CHANGED"})
    two = factory.start("rgs-2", boot_no=2, previous_boot=factory.boot(one))
    return ended(factory, two, player)


TIMES = (
    Planted("statement dated before a boot that follows a stop", "3 key", partial(turned, "SHUTDOWN")),
    Planted("clock set back, and nobody told", "3 key", partial(clock_set_back, is_reported=False)),
    Planted("clock set back, told too early", "3 key", reported_too_early),
    Planted(
        "start dated before its node key",
        "3 key",
        partial(small_factory, lie_at("instance_start", 1, put("time", value=EARLY))),
    ),
    Planted(
        "statement dated before its instance",
        "3 key",
        partial(small_factory, lie_at("instance_end", 1, put("time", value=EARLY))),
    ),
    Planted(
        "link dated before its instance",
        "3 key",
        partial(small_factory, lie_at("session_open", 1, put("time", value=EARLY))),
    ),
)
"""Faults of keys that are dated after what they sign."""

# --- boots ---


def boots(change: Change | None = None, *, numbers: Sequence[int] = (1, 2, 3), names: bool = True) -> RecordFactory:
    """Boots of one worker that end in order, each naming the one before; a change in the start of the second."""
    factory = RecordFactory("boots", lie=change and lie_at("instance_start", 2, change))
    previous: Any = {}
    for number in numbers:
        worker = factory.start(f"rgs-{number}", boot_no=number, **(previous if names else {}))
        player = factory.open(worker)
        factory.buy(worker, player, 1_000)
        factory.play(worker, player, {"ante": 100}, ["play_4x"])
        ended(factory, worker, player)
        previous = {"previous_boot": factory.boot(worker)}
    return factory


def of_another_worker() -> RecordFactory:
    """The second boot of a worker names the first one of another."""
    factory = RecordFactory("workers")
    one, two = (factory.start(f"rgs-{number}", worker=number) for number in range(2))
    factory.end(one)
    factory.end(two)
    factory.end(factory.start("rgs-2", boot_no=2, worker=1, previous_boot=factory.boot(one)))
    return factory


BOOTS = tuple(
    Planted(name, "21 instance", build)
    for name, build in (
        ("second boot that names none", partial(boots, drop("previous_boot"))),
        ("boot left out", partial(boots, numbers=(1, 3))),
        ("boot left out that nobody names", partial(boots, numbers=(1, 3), names=False)),
        ("first boot left out", partial(boots, numbers=(2, 3))),
        ("boot before of another worker", of_another_worker),
        ("boot of a lost one left out", partial(two_instances, lie_at("instance_start", 3, put("boot_no", value="3")))),
    )
)
"""Faults of a worker's boots."""

# --- counters ---


def reseeded(counters: Callable[[int], int], *, discards: bool = False) -> RecordFactory:
    """Rounds and perhaps a discarded draw whose reseed counters are another function of their numbers."""
    factory, one, player = begun()

    def draw() -> tuple[int, int, bytes]:
        draw_no, _, transcript = factory.draw(one)
        return draw_no, counters(draw_no), transcript

    for _ in range(2):
        factory.deal(one, [player], {"ante": 100}, draw=draw())
        factory.act(player, ["play_4x"])
        factory.settle(one, player)
    if discards:
        one.reseed_counter += 1
        factory.discard(one)
    return ended(factory, one, player)


def outstanding() -> RecordFactory:
    """The first draw that the files tell of is the tenth: nine are in flight, where eight may be."""
    factory, one, player = begun()
    one.draw_no = one.reseed_counter = 9
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player)


DRAWS = (
    Planted("more draws outstanding than in flight", "20 draws", outstanding),
    Planted("a reseed too many before the first draw", "20 draws", partial(reseeded, lambda number: number + 1)),
    Planted("two reseeds a draw", "20 draws", partial(reseeded, lambda number: 2 * number)),
    Planted("a discarded draw with a reseed too many", "20 draws", partial(reseeded, int, discards=True)),
)
"""Faults of the generator's counters."""
