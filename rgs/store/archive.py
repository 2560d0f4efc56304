"""Reads ended rounds that were moved from the store into files (docs/retention.md).

An archive is a folder of parts, `2026-11-21.1`, each whole from the moment it has its name and never changed. A part
holds sessions that were closed: `statements.jsonl`, which `certify replay` reads, and `index.db`, which says at which
byte each statement of a round stands and keeps the rows of the rounds. Neither has private blocks, pseudonyms or sealed
decks. A round is found by bounds of the parts and an index, without a scan.

The seats of a table's round go with their sessions, so they may stand in several parts. What they share stands in the
part of the last one.

Every envelope is compared with the hash in the index, and every row of a round with its digest: ArchiveDamagedError,
which names the part, for anything that was changed. Calls of the disk run beside the event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import re
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from rgs.core.errors import RgsError
from rgs.core.rounds import Round
from rgs.core.statements import leaf_hash, parse_line
from rgs.core.statements.lines import LINE_BYTES_MAX
from rgs.core.tables.rows import TableRound
from rgs.store.rows import ROUNDS
from rgs.store.table_rows import OF_OPERATOR_SEATS, TABLE_ROUNDS
from rgs.store.tables import listed

FORMAT: Final = "rgs/archive/v2"
BEFORE_TABLES: Final = "rgs/archive/v1"
"""Parts of this format hold solo play only. They are read as before."""
STATEMENTS_FILE: Final = "statements.jsonl"
INDEX_FILE: Final = "index.db"
UNDELETED: Final = "undeleted"
"""A file in a part whose rows may still be in the store."""
PART: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})\.([1-9][0-9]{0,8})")
"""The name of a part: the UTC day on which its sessions began to play, and a number."""
MOVED_KINDS: Final = ("round_opening", "round_final", "seat_opening", "seat_final", "transfer", "free_bet")
"""Links of a session that leave the store. None of them has a private block; its other links stay there."""
OF_ALL_SEATS: Final = ("table_round", "table_seats", "table_deal", "table_final")
"""What all seats of a table's round share: it leaves the store after the last of them."""
OPEN_MAX: Final = 64
"""Parts that are open at once."""
PAGE: Final = 512
INDEX_SCHEMA: Final = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE lines (
      id INTEGER PRIMARY KEY, kind TEXT NOT NULL, instance TEXT NOT NULL, statement_no INTEGER NOT NULL,
      session_id TEXT NOT NULL, link_no INTEGER NOT NULL, round_id TEXT NOT NULL, seat_no INTEGER NOT NULL,
      hash BLOB NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX lines_by_number ON lines (instance, statement_no)",
    "CREATE UNIQUE INDEX lines_by_link ON lines (session_id, link_no) WHERE link_no > 0",
    "CREATE INDEX lines_by_seat ON lines (round_id, seat_no)",
    "CREATE UNIQUE INDEX lines_shared ON lines (round_id, kind) WHERE link_no = 0",
    "CREATE INDEX lines_by_hash ON lines (hash)",
    "".join(
        [
            "CREATE TABLE rounds (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, ",
            listed(ROUNDS.columns),
            ", UNIQUE (round_id, seat_no), UNIQUE (session_id, round_no))",
        ]
    ),
    "CREATE UNIQUE INDEX rounds_seat_of ON rounds (session_id, round_id) WHERE table_id <> ''",
    "CREATE INDEX rounds_seats_of_operator ON rounds (round_id, operator, seat_no) WHERE table_id <> ''",
    "".join(
        ["CREATE TABLE table_rounds (digest BLOB NOT NULL, ", listed(TABLE_ROUNDS.columns), ", UNIQUE (round_id))"]
    ),
)
INSERT_LINE: Final = "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_ROUND: Final = ROUNDS.insert_behind("id", "digest")
INSERT_TABLE_ROUND: Final = TABLE_ROUNDS.insert_behind("digest")
_LINES: Final = (
    "SELECT id, kind, instance, statement_no, session_id, link_no, round_id, seat_no, hash, at, bytes FROM lines s "
)
_ROUNDS: Final = "".join(["SELECT ", listed(ROUNDS.columns), ", id, digest FROM rounds "])
_TABLE_ROUNDS: Final = "".join(["SELECT ", listed(TABLE_ROUNDS.columns), ", digest FROM table_rounds "])
_T = TypeVar("_T")


class ArchiveDamagedError(RgsError, reason="ARCHIVE_DAMAGED"):
    """A part of the archive was changed, cut or lost. Nothing of it is served."""


class ArchivedLine(NamedTuple):
    """A statement of an archived round. It has no private block."""

    id: int
    kind: str
    instance: str
    statement_no: int
    session_id: str
    link_no: int
    round_id: str
    seat_no: int
    hash: bytes
    envelope: bytes


class Line(NamedTuple):
    """Where a statement stands in the file of its part: the columns of `lines`."""

    id: int
    kind: str
    instance: str
    statement_no: int
    session_id: str
    link_no: int
    round_id: str
    seat_no: int
    hash: bytes
    at: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a part may hold: the first and last row, round and session of it, and of each instance the numbers."""

    rows: Sequence[int]
    rounds: Sequence[str]
    sessions: Sequence[str]
    instances: dict[str, Sequence[int]]
    statements: int
    """How many lines are of rounds."""
    round_count: int
    session_count: int
    sha256: str
    """Hex SHA-256 of the whole file of statements."""
    table_round_count: int = 0
    """Rounds of tables of which the last seat is here."""

    def format(self) -> str:
        """The JSON in `meta`."""
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__}, sort_keys=True)


def row_digest(values: Sequence[Any]) -> bytes:
    """SHA-256 over the columns of a row."""
    return sha256(json.dumps(list(values), default=bytes.hex, separators=(",", ":")).encode()).digest()


def archived_row(round_: Round) -> tuple[Any, ...]:
    """The columns of a round as the archive keeps them: without pseudonym, for an erasure does not reach the files, and
    without what is left of a sealed deck.
    """
    return ROUNDS.row(replace(round_, player="", sealed=b""))


class Part:
    """One part, open for reading. ArchiveDamagedError from all methods."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self._file = (folder / STATEMENTS_FILE).open("rb")
        except OSError as error:
            raise self.damaged(f"{STATEMENTS_FILE}: {error.strerror}") from None
        try:
            address = (folder / INDEX_FILE).resolve().as_uri() + "?mode=ro&immutable=1"
            self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            meta = dict(self._db.execute("SELECT key, value FROM meta").fetchall())
            self._has_tables = meta["format"] == FORMAT
            if meta["format"] not in (FORMAT, BEFORE_TABLES):
                raise ValueError(meta["format"])
            self.bounds = Bounds(**json.loads(meta["bounds"]))
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
            self._file.close()
            raise self.damaged(f"{INDEX_FILE} is not an index of {FORMAT} ({type(error).__name__})") from None

    def damaged(self, why: str) -> ArchiveDamagedError:
        """The error that names this part."""
        name = self.folder.name
        return ArchiveDamagedError(f"part {name} of the archive is damaged: {why}: restore it from a copy", part=name)

    def places(self, where: str, *values: Any) -> list[Line]:
        """Where statements stand."""
        return [Line(*row) for row in self._ask(_LINES + where, *values)]

    def lines(self, where: str, *values: Any) -> list[ArchivedLine]:
        """Statements with their envelopes."""
        return [ArchivedLine(*place[:9], self.envelope(place)) for place in self.places(where, *values)]

    def envelope(self, place: Line) -> bytes:
        """The envelope at a place, which has the hash of the index."""
        try:
            self._file.seek(place.at)
            data = self._file.read(min(place.bytes, LINE_BYTES_MAX))
            envelope = parse_line(data).envelope
        except (OSError, RgsError) as error:
            why = f"{STATEMENTS_FILE} cannot be read at byte {place.at} ({type(error).__name__})"
            raise self.damaged(why) from None
        if leaf_hash(envelope) != place.hash:
            why = f"{STATEMENTS_FILE} has at byte {place.at} another statement than {place.statement_no} of"
            raise self.damaged(f"{why} {place.instance}")
        return envelope

    def rounds(self, where: str, *values: Any) -> list[tuple[int, Round]]:
        """Rounds with their row numbers, and without pseudonyms."""
        found = []
        for *columns, number, digest in self._ask(_ROUNDS + where, *values):
            if row_digest(columns) != digest:
                raise self.damaged(f"row {number} of {INDEX_FILE} has been changed")
            found.append((number, ROUNDS.read(columns)))
        return found

    def table_rounds(self, where: str, *values: Any) -> list[TableRound]:
        """Rounds of tables of which the last seat is here."""
        found = []
        for *columns, digest in self._ask(_TABLE_ROUNDS + where, *values) if self._has_tables else ():
            round_ = TABLE_ROUNDS.read(columns)
            if row_digest(columns) != digest:
                raise self.damaged(f"table round {round_.round_id} in {INDEX_FILE} has been changed")
            found.append(round_)
        return found

    def session_counts(self) -> list[tuple[str, int, int]]:
        """(session, its statements here, its rounds here)."""
        query = (
            "SELECT l.session_id, count(*), (SELECT count(*) FROM rounds r WHERE r.session_id = l.session_id)"
            " FROM lines l WHERE l.link_no > 0 GROUP BY l.session_id ORDER BY l.session_id"
        )
        return self._ask(query)

    def shared_hashes(self) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        """Each round of a table of which the last seat is here, with the hashes of what its seats share."""
        after = ""
        while page := self.table_rounds("WHERE round_id > ? ORDER BY round_id LIMIT ?", after, PAGE):
            for round_ in page:
                lines = self.places("WHERE round_id = ? AND link_no = 0", round_.round_id)
                if {line.kind for line in lines} != {*OF_ALL_SEATS}:
                    raise self.damaged(f"{INDEX_FILE} has not all that the seats of round {round_.round_id} share")
                yield round_.round_id, tuple(line.hash for line in lines)
            after = page[-1].round_id

    def verify(self) -> None:
        """Read all of it: the whole file, every statement and row of the index, and as many as the part says."""
        with (self.folder / STATEMENTS_FILE).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != self.bounds.sha256:
                raise self.damaged(f"{STATEMENTS_FILE} is not as it was written")
        statements = rounds = after = 0
        while lines := self.lines("WHERE id > ? ORDER BY id LIMIT ?", after, PAGE):
            statements, after = statements + len(lines), lines[-1].id
        after = 0
        while page := self.rounds("WHERE id > ? ORDER BY id LIMIT ?", after, PAGE):
            rounds, after = rounds + len(page), page[-1][0]
        shared = sum(1 for _ in self.shared_hashes())
        bounds = self.bounds
        if (statements, rounds, shared) != (bounds.statements, bounds.round_count, bounds.table_round_count):
            raise self.damaged(
                f"it has {statements} statements, {rounds} rounds and {shared} table rounds, not those that it was"
                " written with"
            )

    def _ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(f"{INDEX_FILE}: {error}") from None

    def close(self) -> None:
        self._db.close()
        self._file.close()


class Archive:
    """All parts in a folder. Parts may be added meanwhile by `rgs archive`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._bounds: dict[str, Bounds] = {}
        self._open: OrderedDict[str, Part] = OrderedDict()

    # --- what reads of the store ask -------------------------------------------------------------------------------

    async def round(self, round_id: str) -> Round | None:
        """The round of solo play, or seat 1 of a table's; here and below without the player's pseudonym."""
        where = "WHERE round_id = ? AND seat_no = 1"
        found = await self._beside(_of_round(round_id), lambda part: part.rounds(where, round_id))
        return found[0][1] if found else None

    async def seat(self, session_id: str, round_id: str) -> Round | None:
        """The seat of a session in a round of a table."""
        where = "WHERE session_id = ? AND round_id = ? AND table_id <> ''"
        found = await self._beside(_of_round(round_id), lambda part: part.rounds(where, session_id, round_id))
        return found[0][1] if found else None

    async def seats_of_round(self, round_id: str, after: int, limit: int, operator: str = "") -> list[Round]:
        """The archived seats of a round by number, above `after`; at a table those of an operator, where one is given.
        Others may be in the store.
        """
        where, values = "WHERE round_id = ?", [round_id]
        if operator:
            where, values = where + " AND operator = ? AND table_id <> ''", [round_id, operator]
        where += " AND seat_no > ? ORDER BY seat_no LIMIT ?"
        found = await self._beside(
            _of_round(round_id), lambda part: part.rounds(where, *values, after, limit), whole=True
        )
        seats = {one.seat_no: one for _, one in found}
        return [seats[number] for number in sorted(seats)][:limit]

    async def table_round(self, round_id: str) -> TableRound | None:
        """The round of a table, once its last seat is archived."""
        found = await self._beside(_of_round(round_id), lambda part: part.table_rounds("WHERE round_id = ?", round_id))
        return found[0] if found else None

    async def rounds_of_session(self, session_id: str, before_no: int, limit: int) -> list[tuple[int, Round]]:
        """The rounds of a session, newest first, below a round number."""
        where = "WHERE session_id = ? AND round_no < ? ORDER BY round_no DESC LIMIT ?"
        return await self._beside(
            _of_session(session_id), lambda part: part.rounds(where, session_id, before_no, limit)
        )

    async def statements_of_session(self, session_id: str, after_link: int, limit: int) -> list[ArchivedLine]:
        """The links of a session that are archived, above a number."""
        where = "WHERE session_id = ? AND link_no > ? AND link_no > 0 ORDER BY link_no LIMIT ?"
        return await self._beside(
            _of_session(session_id), lambda part: part.lines(where, session_id, after_link, limit)
        )

    async def statements_of_round(
        self, round_id: str, after_id: int, limit: int, operator: str = ""
    ) -> list[ArchivedLine]:
        """The archived openings and finals of a round, above a row; those of an operator's seats, where one is given.
        Others may be in the store.
        """
        where, values = "WHERE round_id = ? AND seat_no > 0", [round_id]
        if operator:
            where, values = OF_OPERATOR_SEATS, [*(round_id, operator) * 2, round_id]
        where += " AND id > ? ORDER BY id LIMIT ?"
        found = await self._beside(
            _of_round(round_id), lambda part: part.lines(where, *values, after_id, limit), whole=True
        )
        lines = {(line.seat_no, line.kind): line for line in found}
        return sorted(lines.values(), key=lambda line: line.id)[:limit]

    async def statements_of_seat(self, round_id: str, seat_no: int) -> list[ArchivedLine]:
        """Opening and final of a seat."""
        where = "WHERE round_id = ? AND seat_no = ?"
        return await self._beside(_of_round(round_id), lambda part: part.lines(where, round_id, seat_no))

    async def statement_of_hash(self, hash_: bytes, round_id: str) -> ArchivedLine | None:
        """It is looked for in every part, unless its round is known."""
        may_hold = _of_round(round_id) if round_id else lambda _: True
        found = await self._beside(may_hold, lambda part: part.lines("WHERE hash = ?", hash_))
        return found[0] if found else None

    async def statements_of_instance(self, instance: str, first: int, last: int, limit: int) -> list[ArchivedLine]:
        """Those of an instance's numbers that are archived, in order."""

        def holds(bounds: Bounds) -> bool:
            low, high = bounds.instances.get(instance, (1, 0))
            return low <= last and first <= high

        where = "WHERE instance = ? AND statement_no BETWEEN ? AND ? ORDER BY statement_no LIMIT ?"
        found = await self._beside(holds, lambda part: part.lines(where, instance, first, last, limit), whole=True)
        return sorted({line.statement_no: line for line in found}.values(), key=lambda line: line.statement_no)[:limit]

    async def statements_in_order(self, after_id: int) -> AsyncIterator[ArchivedLine]:
        """All statements in the order of their rows, a page of each part whose rows are at hand in memory."""
        waiting = sorted((bounds.rows[0], name) for name, bounds in (await self._all()).items())
        heap: list[tuple[int, int, str, list[ArchivedLine]]] = []
        where = "WHERE id > ? ORDER BY id LIMIT ?"

        async def take(name: str, after: int) -> None:
            page = await asyncio.to_thread(self._in_part, name, lambda part: part.lines(where, after, PAGE))
            if page:
                heapq.heappush(heap, (page[0].id, 0, name, page))

        while waiting or heap:
            while waiting and (not heap or waiting[0][0] <= heap[0][0]):
                await take(waiting.pop(0)[1], after_id)
            if not heap:
                continue
            _, at, name, page = heapq.heappop(heap)
            yield page[at]
            if at + 1 < len(page):
                heapq.heappush(heap, (page[at + 1].id, at + 1, name, page))
            else:
                await take(name, page[at].id)

    # --- the parts --------------------------------------------------------------------------------------------------

    async def _all(self) -> dict[str, Bounds]:
        return await asyncio.to_thread(self._seen)

    async def _beside(
        self, may_hold: Callable[[Bounds], bool], ask: Callable[[Part], list[_T]], *, whole: bool = False
    ) -> list[_T]:
        """What the first part that has any answers, newest first; with `whole`, what all of them do."""
        return await asyncio.to_thread(self._ask_parts, may_hold, ask, whole)

    def _ask_parts(self, may_hold: Callable[[Bounds], bool], ask: Callable[[Part], list[_T]], whole: bool) -> list[_T]:
        found: list[_T] = []
        for name in [name for name, bounds in reversed(self._seen().items()) if may_hold(bounds)]:
            found += self._in_part(name, ask)
            if found and not whole:
                break
        return found

    def _seen(self) -> dict[str, Bounds]:
        """The parts that are there now, by name."""
        names = part_names(self._folder)
        with self._lock:
            for name in names:
                if name not in self._bounds:
                    self._bounds[name] = self._part(name).bounds
            return {name: self._bounds[name] for name in names}

    def _in_part(self, name: str, ask: Callable[[Part], list[_T]]) -> list[_T]:
        with self._lock:
            return ask(self._part(name))

    def _part(self, name: str) -> Part:
        """The open part; under the lock."""
        part = self._open.pop(name, None) or Part(self._folder / name)
        self._open[name] = part
        if len(self._open) > OPEN_MAX:
            _, oldest = self._open.popitem(last=False)
            oldest.close()
        return part

    def close(self) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()


def part_names(folder: Path) -> list[str]:
    """The parts in a folder, by day and number; none where nothing was archived yet. ArchiveDamagedError where the
    folder cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir() if PART.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        why = f"the folder of the archive cannot be read: {error.strerror}: {folder}"
        raise ArchiveDamagedError(why, path=folder) from None
    return sorted(names, key=lambda name: (name.partition(".")[0], int(name.partition(".")[2])))


def _of_round(round_id: str) -> Callable[[Bounds], bool]:
    return lambda bounds: bounds.rounds[0] <= round_id <= bounds.rounds[1]


def _of_session(session_id: str) -> Callable[[Bounds], bool]:
    return lambda bounds: bounds.sessions[0] <= session_id <= bounds.sessions[1]
