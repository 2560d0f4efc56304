"""Lies about rounds of tables: changes of one statement, and stories that need a round of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from rgs.core.statements import commitment_of, first_actions_hash, format_canonical, next_actions_hash
from rgs.core.tables.windows import WindowEnd
from tests.support.records.factory import Body, RecordFactory, join
from tests.support.records.lies import Change, Planted, Z, lie_at
from tests.support.records.table_stories import (
    OF_A_ROUND,
    Story,
    begun,
    body_of,
    cut,
    kept_lines,
    played,
    voided,
)

SHARED, BOXES, LUGANO = "uth-online", "uth-seven-box", "uth-lugano"
NOON = "2026-11-21T12:00:00.000Z"


def later(*path: str | int, ms: int) -> Change:
    """Move a time."""

    def change(body: Body) -> None:
        at: Body = body
        for step in path[:-1]:
            at = at[step]  # type: ignore[index]
        moved = datetime.fromisoformat(at[path[-1]]) + timedelta(milliseconds=ms)  # type: ignore[index]
        text = moved.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moved.microsecond // 1000:03d}Z"
        at[path[-1]] = text  # type: ignore[index]

    return change


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(body: Body) -> None:
        for one in changes:
            one(body)

    return change


def betting_moved(ms: int) -> Change:
    """The betting window and its code, moved."""

    def change(body: Body) -> None:
        both(later("betting_open_time", ms=ms), later("betting_close_time", ms=ms))(body)
        body["game_code"] = f"#{body['betting_open_time'][11:19]}"

    return change


def lie_in(name: str, check: str, kind: str, nth: int, change: Change, ruleset: str = BOXES) -> Planted:
    """A lie in one statement of two rounds that are played."""
    return Planted(name, check, partial(played, ruleset, lie_at(kind, nth, change)))


def of_void(name: str, check: str, kind: str, change: Change, reason: str = "MALFUNCTION") -> Planted:
    """A lie in a round that is void after its first window."""
    return Planted(name, check, partial(voided, reason, lie_at(kind, 1, change)))


def in_cut(name: str, check: str, build: Callable[[], RecordFactory], *kinds: str) -> Planted:
    """A fault in a cut export of one session."""
    return Planted(name, check, build, lambda factory: cut(factory, *kinds))


def story(name: str, check: str, lie: Callable[[Story], None], ruleset: str = BOXES, *, early: bool = False) -> Planted:
    """A fault that needs a story of its own, before which nothing was played."""

    def build() -> RecordFactory:
        one = begun(ruleset, early_close=early)
        lie(one)
        return one.end()

    return Planted(name, check, build)


# --- stories ---


def added_after_the_draw(one: Story) -> None:
    """A fourth player gets the seat behind the last one when the deck is known."""
    late = one.players[2]
    one.players = one.players[:2]
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.table.open_seats(one.one)
    seat = one.table.seats[1]
    body = {**seat.body, "seat_no": "3", "session_id": late.session_id}
    fourth = type(seat)(late, seat.seat, body, late.balance)
    one.table.open_seat(one.one, fourth)
    one.table.seats.append(fourth)
    one.players.append(late)
    one.settle()


def added_at_the_end(one: Story) -> None:
    """A seat under the root that is opened when the cards are shown."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.table.open_seats(one.one, one.table.seats[:2])
    one.shown()
    one.table.reveal(one.one)
    one.table.open_seat(one.one, one.table.seats[2])
    one.table.end_seats(one.one)


def dropped(one: Story) -> None:
    """A seat that was fixed is never opened."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.table.seats.pop()
    one.table.open_seats(one.one)
    one.settle()


def replaced(one: Story) -> None:
    """Two seats change their places after the draw."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    first, second = one.table.seats[:2]
    first.body["seat_no"], second.body["seat_no"] = "2", "1"
    one.table.open_seats(one.one)
    one.settle()


def one_seat_twice(one: Story) -> None:
    """Two players on one seat."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.table.seats[1].body["seat_no"] = "1"
    one.table.open_seats(one.one)
    one.settle()


def dearer_than_the_table(one: Story) -> None:
    one.table.play(one.one, [(player, {"ante": 2_000}) for player in one.players], {})


def eight_seats(one: Story) -> None:
    one.players += [one.factory.open(one.one, BOXES, table="table-1") for _ in range(5)]
    for player in one.players[3:]:
        one.factory.buy(one.one, player, 50_000)
    one.play()


def dealt_twice(one: Story) -> None:
    """The second deck is that which is played."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.table.deal(one.one)
    one.table.open_seats(one.one)
    one.settle()


def dealt_after_its_end(one: Story) -> None:
    one.table.fix(one.one, one.stakes)
    one.table.make_void(one.one)
    one.table.deal(one.one)


def ended_twice(one: Story) -> None:
    one.dealt()
    one.shown()
    one.table.reveal(one.one)
    first = one.table.final
    one.table.reveal(one.one)
    one.table.final = first
    one.table.end_seats(one.one)


def faster_than_the_law() -> RecordFactory:
    """Two rounds of one player within five seconds, in Great Britain."""
    one = begun(players=1, jurisdiction="gb-ukgc")
    one.table.betting_ms = one.table.decision_ms = 0
    one.factory.now = partial(one.factory.now, 10)  # type: ignore[method-assign]
    one.table.play(one.one, one.stakes, {})
    one.table.play(one.one, one.stakes, {})
    return one.end()


def never_ended(one: Story) -> None:
    """The next round begins while one is open, and stays open."""
    one.dealt()
    one.table.fix(one.one, one.stakes)
    one.table.make_void(one.one)


def never_ended_and_nobody_sat(one: Story) -> None:
    """A deck that is drawn and kept back: nobody was given a seat."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    one.play()


def last_without_end(one: Story) -> None:
    one.table.fix(one.one, one.stakes)


def finals_late(one: Story) -> None:
    """The seats' finals stand behind the next round's beginning."""
    one.dealt()
    one.shown()
    one.table.reveal(one.one)
    seats, final, revealed, round_id = one.table.seats, one.table.final, one.table.revealed, one.table.round_id
    one.table.fix(one.one, one.stakes)
    kept = one.table.seats
    one.table.make_void(one.one)
    void, one.table.void = one.table.void, None
    one.table.seats, one.table.final, one.table.revealed, one.table.round_id = seats, final, revealed, round_id
    one.table.end_seats(one.one)
    one.table.seats, one.table.void = kept, void


def finals_missing(one: Story) -> None:
    """The next round begins, and no seat has its final, then or later."""
    one.dealt()
    one.shown()
    one.table.reveal(one.one)
    one.table.fix(one.one, one.stakes)
    one.table.make_void(one.one)


def final_before_the_tables(one: Story) -> None:
    """The seats settle before the table_final stands."""
    one.dealt()
    one.shown()
    one.table.final = Z
    one.table.end_seats(one.one)
    one.table.reveal(one.one)


def counted_after_the_deal(one: Story) -> None:
    """table_seats and table_deal change their places."""
    lines = one.factory.lines
    one.play()
    seats, deal = (next(i for i, line in enumerate(lines) if body_of(line)["kind"] == kind) for kind in (
        "table_seats", "table_deal"))  # fmt: skip
    lines[seats], lines[deal] = lines[deal], lines[seats]


def counted_twice(one: Story) -> None:
    one.table.fix(one.one, one.stakes)
    counted = body_of(one.factory.lines[-1])
    again = {name: counted[name] for name in ("table_round", "round_id", "seats", "salt")}
    one.factory.numbered(one.one, "table_seats", again)
    one.table.deal(one.one)
    one.table.open_seats(one.one)
    one.settle()


def counted_after_its_end(one: Story) -> None:
    """table_seats behind the void of a round that was not dealt."""
    before = len(one.factory.lines)
    one.table.fix(one.one, one.stakes)
    one.table.make_void(one.one)
    lines = one.factory.lines
    seats = next(i for i in range(before, len(lines)) if body_of(lines[i])["kind"] == "table_seats")
    lines.append(lines.pop(seats))


def uncounted(one: Story) -> None:
    """No table_seats: the numbers of the instance have no gap."""
    one.factory.numbered = _without_seats(one.factory)  # type: ignore[method-assign]
    one.play()


def uncounted_and_undealt(one: Story) -> None:
    one.factory.numbered = _without_seats(one.factory)  # type: ignore[method-assign]
    one.table.fix(one.one, one.stakes)
    one.table.make_void(one.one)


def _without_seats(factory: RecordFactory) -> Callable[..., str]:
    sign = factory.numbered

    def numbered(worker, kind, body, private=None):  # type: ignore[no-untyped-def]
        return "" if kind == "table_seats" else sign(worker, kind, body, private)

    return numbered


def paused_without_a_whole_window(one: Story) -> None:
    """A pause is the last end of a phase, and the next phase begins."""
    one.dealt()
    one.table.window("preflop", {1: "check", 2: "check", 3: "check"}, end=WindowEnd.PAUSED)
    one.table.window("flop", {})
    one.table.window("river", {})
    one.table.reveal(one.one)
    one.table.end_seats(one.one)


def boxes(*boxes: int) -> Callable[[Story], None]:
    """Seats in these boxes."""

    def lie(one: Story) -> None:
        one.table.boxes = boxes
        one.play()

    return lie


def opened_after_the_first_window(one: Story) -> None:
    """The first window opens before the seats are given."""
    one.table.fix(one.one, one.stakes)
    one.table.deal(one.one)
    opened = one.factory.clock_ms
    one.table.open_seats(one.one)
    one.shown()
    first = one.table.windows[0]
    one.table.windows[0] = type(first)(first.phase, opened, first.close_ms, first.end)
    one.table.reveal(one.one)
    one.table.end_seats(one.one)


def with_the_same_id(one: Story) -> None:
    """Two rounds under one id."""
    one.play()
    first, ulid = one.table.round_id, one.factory.ulid
    one.factory.ulid = lambda: first  # type: ignore[method-assign]
    one.play()
    one.factory.ulid = ulid  # type: ignore[method-assign]


def one_code_twice() -> RecordFactory:
    """Rounds 1 and 3 bet in one second with one code; round 2 lies outside the files."""
    times: dict[str, str] = {}

    def lie(kind: str, count: int, body: Body) -> None:
        names = ("betting_open_time", "betting_close_time", "game_code")
        if kind == "table_round" and count == 1:
            times.update({name: body[name] for name in names})
        if kind == "table_round" and count == 2:
            body.update(times)

    one = begun(SHARED, lie)
    one.table.fix(one.one, one.stakes)
    one.table.fix(one.one, one.stakes)
    return one.end()


def with_all_rounds(factory: RecordFactory) -> bytes:
    """A cut export of one session, with the rounds of its table that it did not play."""
    links = [body for body in map(body_of, factory.lines) if "link_no" in body]
    mine = [int(body["link_no"]) for body in links if body["session_id"] == links[0]["session_id"]]
    return kept_lines(factory, lambda body: body["kind"] in OF_A_ROUND, {links[0]["session_id"]: (1, max(mine))})


def only_rounds(factory: RecordFactory) -> bytes:
    return kept_lines(factory, lambda body: body["kind"] == "table_round", {})


def without_paths(factory: RecordFactory) -> bytes:
    """A cut export whose paths are left out."""
    lines = cut(factory).split(b"\n")
    return b"\n".join(line[: line.index(b',"path":')] + b',"private":null}' if b',"path":' in line else line
                      for line in lines)  # fmt: skip


def fixed_twice(factory: RecordFactory) -> bytes:
    """The line of a `table_round` stands there twice."""
    lines: list[bytes] = []
    for line in factory.lines:
        lines += [line] * (1 + (body_of(line)["kind"] == "table_round"))
    return join(lines)


def another_path(factory: RecordFactory) -> bytes:
    """The path of a cut export leads elsewhere."""
    lines = cut(factory).split(b"\n")
    return b"\n".join(
        line.replace(b',"path":["', b',"path":["' + Z.encode() + b'","', 1) if b',"path":' in line else line
        for line in lines
    )


def bound(change: Change) -> Change:
    """A change of the decisions, whose running hash is put right."""

    def changed(body: Body) -> None:
        change(body)
        running = first_actions_hash(bytes.fromhex(body["opening"]))
        for action in body["actions"]:
            running = next_actions_hash(running, action)
        body["actions_hash"] = running.hex()

    return changed


def decided_at(index: int, *, ms: int) -> Change:
    """A decision at another time."""
    return bound(later("actions", index, "time", ms=ms))


def other_flag(*path: str) -> Change:
    """The opposite."""

    def change(body: Body) -> None:
        body[path[0]][path[1]] = not body[path[0]][path[1]]

    return change


def other_outcome(body: Body) -> None:
    body["outcome"]["outcome"] = "tie"


def added() -> RecordFactory:
    one = begun()
    added_after_the_draw(one)
    return one.end()


def late() -> RecordFactory:
    one = begun()
    finals_late(one)
    return one.end()


def a_byte_too_many() -> RecordFactory:
    """Commitment and transcript agree, and the last byte is one that no shuffle uses."""
    said: dict[str, Body] = {}

    def listen(kind: str, count: int, body: Body) -> None:
        if count == 1:
            said[kind] = body

    def lie(kind: str, count: int, body: Body) -> None:
        drawn = bytes.fromhex(said["table_final"]["transcript"]) + b"\x00"
        salt = bytes.fromhex(said["table_final"]["salt"])
        if (kind, count) == ("table_deal", 1):
            body["commitment"] = commitment_of(format_canonical(body["deal"]), salt, drawn).hex()
        if (kind, count) == ("table_final", 1):
            body["transcript"] = drawn.hex()

    played(lie=listen)
    return played(lie=lie)
