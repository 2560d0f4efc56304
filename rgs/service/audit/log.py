"""The transparency log over the contract: the checkpoint, a statement with its proof, consistency, all entries in order
(ARCHITECTURE 2.15: the log is a standard one; docs/log.md).

Only entries that a published checkpoint covers are served. `rgs.service.audit.audit` decides which statements a party
sees; every caller may read checkpoints and proofs. Files are read on threads, a bundle at a time. A resume token of
another shard is refused, and one of a log whose entries have changed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from rgs.core.errors import FormatError, InvalidFieldError, NotLoggedYetError, RgsError, VerificationError
from rgs.core.receipts import format_key_path, narrow_bundle
from rgs.core.shards import parse_origin
from rgs.core.statements.lines import format_key_bundle
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.tlog.note import parse_note, parse_vkey, verify_note
from rgs.core.values import check_range
from rgs.service.audit.audit import StatementReader
from rgs.service.callers import Caller
from rgs.service.pages import decode_token, encode_token
from rgs.store.interface import StatementRow
from rgs.store.sequence import read_place
from rgs.tlog.directory import LogRefusedError
from rgs.tlog.published import PublishedShard, published_shard
from rgs.tlog.sequencer import ORDER_FILE

_VERSION: Final = "e1"
_MARK_BYTES: Final = 8
"""A token holds so many bytes of the last entry's hash: enough to notice another log, not to stop a forger."""
_TOKEN_MAX: Final = 256

_T = TypeVar("_T")


class LogUnreadableError(RgsError, reason="LOG_UNREADABLE"):
    """The log's files are missing, or are not those that were signed."""


@dataclass(frozen=True, slots=True)
class PublishedCheckpoint:
    """`note` as it is published; `vkey` empty where this node's log key has not signed it."""

    origin: str
    size: int
    root: bytes
    note: bytes
    vkey: str


@dataclass(frozen=True, slots=True)
class Consistency:
    """Proof that the tree of `new` leaves begins with the tree of `old`: hashes of 32 bytes."""

    origin: str
    old: int
    new: int
    hashes: list[bytes]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry, and the token to resume behind it."""

    index: int
    entry: bytes
    resume_token: str


class PublicLog:
    """Reads the log. `folder` holds the shards; `vkey_of` gives this node's verifier key for the name of a shard."""

    def __init__(self, *, audit: StatementReader, folder: Path, vkey_of: Callable[[str], str]) -> None:
        self._audit = audit
        self._folder = folder
        self._vkey_of = vkey_of

    async def checkpoint(self, origin: str) -> PublishedCheckpoint:
        """The newest checkpoint of a shard, without `origin` of the newest. NotFoundError, InvalidFieldError,
        LogUnreadableError.
        """
        shard = await self._shard(origin)
        vkey = self._vkey_of(shard.origin)
        try:
            verify_note(parse_note(shard.note), [parse_vkey(vkey)])
        except VerificationError:
            vkey = ""
        return PublishedCheckpoint(shard.origin, shard.size, shard.checkpoint.root, shard.note, vkey)

    async def record(
        self,
        caller: Caller,
        *,
        hash: bytes,  # noqa: A002
        round_id: str,
        session_id: str,
        kind: str,
    ) -> tuple[StatementRow, bytes]:
        """A statement that the party may see, and its `.tlog-proof` with the key path. NotFoundError,
        NotLoggedYetError, InvalidFieldError, LogUnreadableError.
        """
        if hash:
            row = await self._audit.get_statement(caller, hash=hash, instance="", statement_no=0)
        else:
            row = await self._audit.statement_of_seat(caller, round_id=round_id, session_id=session_id, kind=kind)
        start = await self._audit.start_of(row.instance)
        bundle = format_key_bundle(list(self._audit.key_statements()))
        extra = format_key_path(narrow_bundle(bundle, start), start)
        return row, await _read(self._prove, row, extra)

    async def consistency(self, origin: str, old: int, new: int) -> Consistency:
        """Proof between two sizes, up to that of the newest checkpoint; `new` 0 means that one. InvalidFieldError,
        NotFoundError, LogUnreadableError.
        """
        shard = await self._shard(origin)
        new = new or shard.size
        for field, value, limit in (("new_size", new, shard.size), ("old_size", old, new)):
            check_range(value, field, 0, limit)
        return Consistency(shard.origin, old, new, await _read(shard.consistency, old, new))

    async def entries(
        self, *, origin: str, start_index: int, resume_token: str, follow: bool
    ) -> AsyncIterator[LogEntry | None]:
        """The entries from a place on, up to the size of the published checkpoint. With `follow` later ones too, None
        while there is nothing new; the stream ends with the shard, once another shard follows it. InvalidFieldError,
        NotFoundError, LogUnreadableError.
        """
        mark = ""
        if resume_token:
            origin, start_index, mark = _parse_resume(resume_token, origin, start_index)
        shard = await self._shard(origin)
        field = "resume_token" if mark else "start_index"
        check_range(start_index, field, 0, shard.size)
        if mark and mark != _mark(await _read(shard.leaf, start_index - 1)):
            limit = "of the log as it is"
            raise InvalidFieldError(
                f"{field} is not {limit}: entry {start_index - 1} was another one",
                field=field,
                limit=limit,
                value=start_index - 1,
            )
        index = start_index
        while True:
            while index < shard.size:
                for entry in await _read(shard.entries_from, index):
                    yield LogEntry(index, entry, _format_token(shard.origin, index + 1, _mark(leaf_hash(entry))))
                    index += 1
            if not follow:
                return
            # The newest shard is read first: once another one follows this shard, this one does not grow.
            newest = await self._shard("")
            shard = await self._shard(shard.origin)
            if shard.size < index:
                raise LogUnreadableError(f"{shard.origin} had {index} entries, and has {shard.size}")
            if shard.size == index:
                if newest.origin != shard.origin:
                    return
                yield None

    async def _shard(self, origin: str) -> PublishedShard:
        try:
            if origin:
                parse_origin(origin)
        except FormatError as error:
            raise InvalidFieldError(error.message, field="origin", **error.metadata) from None
        return await _read(published_shard, self._folder, origin)

    def _prove(self, row: StatementRow, extra: bytes) -> bytes:
        place = read_place(self._folder / ORDER_FILE, row.instance, row.statement_no)
        if place is None:
            raise NotLoggedYetError("the statement has no place in the log yet")
        origin, index = place
        shard = published_shard(self._folder, origin)
        if index >= shard.size:
            raise NotLoggedYetError(
                f"the statement is entry {index} of {origin}, the newest checkpoint has {shard.size}",
                origin=origin,
                value=index,
                limit=shard.size,
            )
        return shard.proof(index, row.hash, extra)


async def _read(read: Callable[..., _T], *values: object) -> _T:
    try:
        return await asyncio.to_thread(read, *values)
    except (LogRefusedError, VerificationError, FormatError) as error:
        raise LogUnreadableError(f"the log cannot be read: {error}") from error


# --- resume tokens ----------------------------------------------------------------------------------------------------


def _mark(leaf: bytes) -> str:
    return leaf[:_MARK_BYTES].hex()


def _format_token(origin: str, index: int, mark: str) -> str:
    """The token of a place: the next index, and the mark of the entry before it. Inverse of `_parse_token`."""
    return encode_token(f"{_VERSION} {origin} {index} {mark}")


def _parse_token(token: str) -> tuple[str, int, str]:
    try:
        if len(token) > _TOKEN_MAX:
            raise ValueError
        version, origin, number, mark = decode_token(token).split(" ")
        parse_origin(origin)
        index = int(number)
        is_whole = version == _VERSION and index > 0 and len(mark) == 2 * _MARK_BYTES
        if is_whole and _format_token(origin, index, mark) == token:
            return origin, index, mark
    except (ValueError, FormatError):
        pass
    raise InvalidFieldError("resume_token was not made by this stream", field="resume_token", value=token[:40])


def _parse_resume(token: str, origin: str, start_index: int) -> tuple[str, int, str]:
    """Shard, index and mark of a token. InvalidFieldError if another field of the request contradicts it."""
    of, index, mark = _parse_token(token)
    if origin not in {"", of}:
        raise InvalidFieldError(
            f"resume_token is of {of}, not of {origin}", field="resume_token", limit=origin, value=of
        )
    if start_index:
        raise InvalidFieldError("start_index stands beside a resume_token", field="start_index", value=start_index)
    return of, index, mark
