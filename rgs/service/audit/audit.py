"""Reads signed statements by hash, number, session, round, or range of an instance, and the key statements.

An operator reads the statements of its own sessions, what all seats share in rounds of tables where its players may
play, and the key path of its instances; auditors, regulators and labs read all. So an operator gets neither the seats
of other operators nor `table_seats`, which counts them. A private block goes to its operator, to auditors and to
regulators, never to a lab. Envelopes are served as the bytes that were signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.ids import check_name, check_ulid
from rgs.core.statements import leaf_hash
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import owned_session
from rgs.service.pages import check_page_size, format_page_token, parse_page_token
from rgs.service.table_statements import (
    SHARED_KINDS,
    counted_seats,
    is_offered_to,
    path_of,
    shared_statements,
)
from rgs.store.interface import StatementRow, Store

_HASH_BYTES = 32
_NUMBER_MAX = 1 << 62
_SEAT_KINDS = ("seat_opening", "seat_final")
_OF_A_SEAT = ("round_opening", "round_final", *_SEAT_KINDS, *SHARED_KINDS)
_SOLO_ROWS_MAX = 1_000
"""More than the openings and finals of one round of solo play."""
_OPEN_TO_OPERATORS = frozenset({"instance_start", "instance_end", "instance_lost", "artifact"})
"""The key path, and names with hashes: an operator needs them to verify its own rounds."""


class StatementReader:
    """Statements, filtered by what the caller may see."""

    def __init__(self, *, store: Store, key_statements: Sequence[bytes]) -> None:
        self._store = store
        self._key_statements = tuple(key_statements)

    def key_statements(self) -> tuple[bytes, ...]:
        """Envelopes of the key bundle, the first root's first."""
        return self._key_statements

    def take_key_statements(self, key_statements: Sequence[bytes]) -> None:
        """Replace the key statements after the key bundle has grown."""
        self._key_statements = tuple(key_statements)

    async def get_statement(self, caller: Caller, *, hash: bytes, instance: str, statement_no: int) -> StatementRow:  # noqa: A002
        """By hash (32 bytes), or by instance and number; NotFoundError if there is none for this party."""
        row: StatementRow | None
        if hash:
            if len(hash) != _HASH_BYTES:
                raise InvalidFieldError(
                    f"hash has {len(hash)} bytes, not {_HASH_BYTES}", field="hash", limit=_HASH_BYTES, value=len(hash)
                )
            row = await self._store.statement_of_hash(hash)
        else:
            check_name(instance, "instance")
            rows = await self._store.statements_of_instance(instance, statement_no, statement_no, 1)
            row = rows[0] if rows else None
        return await self._seen(caller, row, instance=instance, statement_no=statement_no)

    async def statement_of_seat(self, caller: Caller, *, round_id: str, session_id: str, kind: str) -> StatementRow:
        """The opening or final of a session's seat in a round, or what its seat shares with all of the table;
        NotFoundError if there is none for this party.
        """
        check_ulid(session_id, "session_id")
        if kind not in _OF_A_SEAT:
            limit = " or ".join(_OF_A_SEAT)
            raise InvalidFieldError(f"kind is not {limit}", field="kind", limit=limit, value=kind[:40])
        row = await self._of_seat(check_ulid(round_id, "round_id"), session_id, kind)
        return await self._seen(caller, row, round_id=round_id, session_id=session_id)

    async def _of_seat(self, round_id: str, session_id: str, kind: str) -> StatementRow | None:
        if kind not in _SEAT_KINDS + SHARED_KINDS:
            rows = await self._store.statements_of_round(round_id, 0, _SOLO_ROWS_MAX)
            return next((row for row in rows if (row.kind, row.session_id) == (kind, session_id)), None)
        seat = await self._store.seat(session_id, round_id)
        if seat is None:
            return None
        if kind in SHARED_KINDS:
            return next((row for row in await self._shared(round_id) if row.kind == kind), None)
        envelope = (await self._store.round_envelopes(round_id, seat.seat_no))[_SEAT_KINDS.index(kind)]
        if not envelope:
            return None
        return await self._store.statement_of_hash(leaf_hash(envelope), round_id=round_id)

    async def path_of(self, row: StatementRow) -> tuple[bytes, ...]:
        """The path that stands beside a `seat_opening`, its sibling first; of other kinds empty."""
        return await path_of(self._store, row)

    async def start_of(self, instance: str) -> bytes:
        """The envelope of an instance's `instance_start`."""
        return await self._store.start_of(instance)

    async def list_statements(
        self,
        caller: Caller,
        *,
        session_id: str,
        round_id: str,
        instance: str,
        first_no: int,
        last_no: int,
        page_size: int,
        page_token: str,
    ) -> tuple[tuple[StatementRow, ...], str]:
        """A page in order, and the next page's token. Exactly one of session_id, round_id and instance is given."""
        limit = check_page_size(page_size)
        (after,) = parse_page_token(page_token, 1)
        if [bool(session_id), bool(round_id), bool(instance)].count(True) != 1:
            raise InvalidFieldError("give exactly one of session_id, round_id, instance", field="session_id")
        if session_id:
            await owned_session(self._store, caller, session_id)
            rows = await self._store.statements_of_session(session_id, after, limit + 1)
            position = [row.link_no for row in rows]
        elif round_id:
            rows = await self._of_round(caller, check_ulid(round_id, "round_id"), after, limit + 1)
            position = [row.id for row in rows]
        else:
            check_name(instance, "instance")
            first = max(first_no, after + 1, 1)
            rows = await self._store.statements_of_instance(instance, first, last_no or _NUMBER_MAX, limit + 1)
            position = [row.statement_no for row in rows]
        token = format_page_token(position[limit - 1]) if len(rows) > limit else ""
        return tuple(await self._seen_by(caller, rows[:limit])), token

    async def _of_round(self, caller: Caller, round_id: str, after: int, limit: int) -> list[StatementRow]:
        """The statements of a round in commit order, those that all seats of a table share among them.

        A page counts only what the caller may see, or its pages would show how many seats others have.
        """
        shared = await self._seen_by(caller, await self._shared(round_id))
        if caller.role is Role.OPERATOR:
            rows = await self._store.statements_of_operator(round_id, caller.party, after, limit)
        else:
            rows = await self._store.statements_of_round(round_id, after, limit)
            shared += await counted_seats(self._store, shared[0]) if shared else []
        rows += [row for row in shared if row.id > after]
        return sorted(rows, key=lambda row: row.id)[:limit]

    async def _shared(self, round_id: str) -> list[StatementRow]:
        round_ = await self._store.table_round(round_id)
        return [] if round_ is None else await shared_statements(self._store, round_)

    async def _seen(self, caller: Caller, row: StatementRow | None, **named: str | int) -> StatementRow:
        seen = [] if row is None else await self._seen_by(caller, [row])
        if not seen:
            raise NotFoundError("no such statement", field=None, kind="statement", **named)
        return seen[0]

    async def _seen_by(self, caller: Caller, rows: list[StatementRow]) -> list[StatementRow]:
        """The rows that this party may see, without the private blocks that it may not."""
        if caller.role is Role.LAB:
            return [replace(row, private=b"") for row in rows]
        if caller.role is not Role.OPERATOR:
            return rows
        owned: dict[str, bool] = {}
        offered: dict[str, bool] = {}
        for row in rows:
            if row.session_id and row.session_id not in owned:
                session = await self._store.session(row.session_id)
                owned[row.session_id] = session is not None and session.operator == caller.party
            if row.kind in SHARED_KINDS and row.round_id not in offered:
                offered[row.round_id] = await is_offered_to(self._store, caller.party, row.round_id)
        return [
            row
            for row in rows
            if (
                offered[row.round_id]
                if row.kind in SHARED_KINDS
                else owned.get(row.session_id, row.kind in _OPEN_TO_OPERATORS)
            )
        ]
