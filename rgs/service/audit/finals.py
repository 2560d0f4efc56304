"""The finals of each operator in one order without gaps: `FinalsList` keeps the list in the process that leads, and
`FinalsReader` gives it to operators from a place on.

Finals are committed by many processes at once, and a row number may become visible behind a higher one. So the list is
made afterwards. Each instance is followed by its own statement numbers, which have no gap, and what the list has of it
is moved in the commit that lists. Between instances the row numbers decide, which keep the order of every session. A
mark over all finals so far stands beside each: a resume token shows by it whether the list is still the same.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.tables.tree import path_nodes
from rgs.core.values import check_range
from rgs.service.callers import Caller
from rgs.service.pages import decode_token, encode_token
from rgs.store.changes import Change, StoreError
from rgs.store.finals import FinalsListed, FinalsRead, ListedFinal, StatementToList, Unlisted
from rgs.store.interface import ROW_MAX, Store

INSTANCES_MAX: Final = 64
"""Instances that one commit looks at."""
BATCH: Final = 512
"""Statements that one commit looks at."""
BATCHES_MAX: Final = 20
"""Commits of one look; the next look continues."""
PAGE: Final = 50
"""Finals that a stream reads at once."""
_DOMAIN: Final = b"rgs/finals/v1\x00"
_VERSION: Final = "f1"
_MARK_CHARS: Final = 32
_TOKEN_MAX: Final = 200


class FinalsList:
    """Lists new finals. One process does it for all over the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._heads: dict[str, tuple[int, str]] = {}
        """Number and mark of the newest final of each operator; forgotten when a commit fails."""

    async def poll(self) -> int:
        """List all finals that are committed; how many. StoreError: the next call tries again."""
        listed = 0
        for _ in range(BATCHES_MAX):
            statements, finals = await self._batch()
            listed += finals
            if not statements:
                break
        return listed

    async def _batch(self) -> tuple[int, int]:
        """List the next statements of all instances; how many statements were looked at, and how many are finals."""
        waiting = await self._store.unlisted(INSTANCES_MAX + 1)
        rows = await self._next(waiting)
        if not rows:
            return 0, 0
        read = {one.instance: one.after_no for one in waiting}
        records = [
            FinalsRead(instance, last_no, read[instance])
            for instance, last_no in {row.instance: row.statement_no for row in rows}.items()
        ]
        try:
            listed = [await self._place(row) for row in rows if row.operator]
            lists = (FinalsListed(json.dumps(listed, separators=(",", ":"))),) if listed else ()
            await self._store.commit(Change(records=(*records, *lists)))
        except BaseException:
            self._heads.clear()
            raise
        return len(rows), len(listed)

    async def _next(self, waiting: list[Unlisted]) -> list[StatementToList]:
        """The next statements by row number, up to the first that may stand behind one that was not read."""
        if not waiting:
            return []
        taken, left = waiting[:INSTANCES_MAX], waiting[INSTANCES_MAX:]
        page = max(BATCH // len(taken), 1)
        end = left[0].next_id if left else ROW_MAX
        rows: list[StatementToList] = []
        for one in taken:
            found = await self._store.statements_to_list(one.instance, one.after_no, one.last_no, page)
            if not found or found[-1].statement_no != one.after_no + len(found):
                raise StoreError(
                    f"statement {one.after_no + 1} of {one.instance}, or one behind it, is missing: finals wait for it"
                )
            if found[-1].statement_no < one.last_no:
                end = min(end, found[-1].id + 1)
            rows += found
        return sorted((row for row in rows if row.id < end), key=lambda row: row.id)

    async def _place(self, row: StatementToList) -> tuple[str, int, str, int, str]:
        """The row of the list: the next number of the operator, and the mark over it."""
        head = self._heads.get(row.operator) or await self._store.newest_final(row.operator)
        number, mark = head[0] + 1, sha256(_DOMAIN + head[1].encode() + row.hash).hexdigest()
        self._heads[row.operator] = (number, mark)
        return row.operator, number, row.instance, row.statement_no, mark


@dataclass(frozen=True, slots=True)
class PlacedFinal:
    """A final of the list, with what is shown beside it: its round and session. `path` is empty in solo play."""

    listed: ListedFinal
    round: Round
    session: Session
    path: tuple[bytes, ...]
    resume_token: str


class FinalsReader:
    """Gives an operator its own finals."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def watch(
        self, caller: Caller, *, resume_token: str, first_no: int, follow: bool
    ) -> AsyncIterator[PlacedFinal | None]:
        """The caller's finals from a place on. With `follow` later ones too, None while there is nothing new.
        InvalidFieldError.
        """
        operator = caller.party
        if resume_token:
            if first_no:
                raise InvalidFieldError("first_no stands beside a resume_token", field="first_no", value=first_no)
            after = await self._behind(operator, resume_token)
        else:
            after = check_range(first_no or 1, "first_no", 1, ROW_MAX) - 1
        while True:
            page = await self._store.finals(operator, after, PAGE)
            sessions: dict[str, Session] = {}
            for listed in page:
                yield await self._final(listed, sessions)
                after = listed.final_no
            if len(page) < PAGE:
                if not follow:
                    return
                yield None

    async def _behind(self, operator: str, token: str) -> int:
        """The number that a token stands behind. InvalidFieldError if the list is not the one that the token is of."""
        number, mark = _parse_token(token)
        found = await self._store.final_mark(operator, number)
        if not found.startswith(mark) or not found:
            raise InvalidFieldError(
                f"resume_token is not of the list as it is: final {number} or one before it was another one, because a"
                " backup was restored; begin again at the first_no from which you want to compare",
                field="resume_token",
                value=number,
            )
        return number

    async def _final(self, listed: ListedFinal, sessions: dict[str, Session]) -> PlacedFinal:
        session = sessions.get(listed.session_id) or await self._store.session(listed.session_id, fresh=True)
        round_ = await self._round(listed)
        if session is None or round_ is None:
            raise NotFoundError(f"no round {listed.round_id}", kind="round", round_id=listed.round_id)
        sessions[listed.session_id] = session
        token = _format_token(listed.final_no, listed.mark)
        return PlacedFinal(listed, round_, session, path_nodes(round_.path), token)

    async def _round(self, listed: ListedFinal) -> Round | None:
        if listed.kind == "seat_final":
            return await self._store.seat(listed.session_id, listed.round_id)
        return await self._store.round(listed.round_id, fresh=True)


# --- resume tokens ----------------------------------------------------------------------------------------------------


def _format_token(final_no: int, mark: str) -> str:
    """The token of a place: number and beginning of the mark of the final before it. Inverse of `_parse_token`."""
    return encode_token(f"{_VERSION} {final_no} {mark[:_MARK_CHARS]}")


def _parse_token(token: str) -> tuple[int, str]:
    try:
        if len(token) > _TOKEN_MAX:
            raise ValueError
        version, number, mark = decode_token(token).split(" ")
        final_no = int(number)
        is_whole = version == _VERSION and 0 < final_no < ROW_MAX and len(mark) == _MARK_CHARS
        if is_whole and _format_token(final_no, mark) == token:
            return final_no, mark
    except ValueError:
        pass
    raise InvalidFieldError("resume_token was not made by this stream", field="resume_token", value=token[:40])
