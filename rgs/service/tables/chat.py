"""The chat of tables: lines of players, and coded lines of the dealer. A line is a row of its own, and nothing else
holds it: no statement, no export, no log line.

A player may write at the table where it sits, once in a while. Where cards are secret the chat is closed from the cut
of the bets until the result: the commit of a line demands that the table has not moved since that was checked. Lines
go after 30 days, by trusted time only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final
from weakref import WeakValueDictionary

from rgs.core.clock import Clock
from rgs.core.errors import ChatClosedError, InvalidFieldError, NotFoundError, NotSeatedError, TableChangedError
from rgs.core.ids import check_request_id
from rgs.core.tables.config import TableConfig
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.views import ChatLine
from rgs.service.callers import Caller, Role, reply_of
from rgs.service.game_catalog import GameCatalog, owned_session
from rgs.service.instance import Instance
from rgs.service.pages import check_page_size, format_key_token, parse_key_token
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.lobby import sees
from rgs.service.tables.requests import Say
from rgs.store.changes import Answer, Change, TableGuard, TableMovedError
from rgs.store.interface import Store, StoreReads
from rgs.store.table_records import ChatMessage

TEXT_MAX: Final = 200
PAUSE_MS: Final = 2_000
"""The least time between two lines of a player."""
CROWD: Final = 200
"""Where more players than this sit, a player waits longer."""
CROWD_PAUSE_MS: Final = 10_000
KEPT_MS: Final = 30 * 86_400_000
DUTY: Final = "chat"
POLL_MS: Final = 600_000
"""The pause after there was nothing to drop."""
TRIES_MAX: Final = 3


def _unheard(_: ChatMessage) -> None:
    """Nobody in this process follows tables."""


@dataclass(kw_only=True, eq=False, repr=False)
class Chat:
    """Writes, lists and drops lines. `said` is told of each line that is committed."""

    store: Store
    instance: Instance
    clock: Clock
    games: GameCatalog
    configs: TableConfigs
    said: Callable[[ChatMessage], None] = _unheard
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)
    """By session: two lines of a player in this process are checked one after the other."""
    _next_ms: int = field(default=0, init=False)

    async def say(self, caller: Caller, request: Say) -> ChatLine:
        """Write a line. ChatClosedError, NotSeatedError, InvalidFieldError."""
        check_request_id(request.request_id)
        text = check_text(request.text)
        session = await owned_session(self.store, caller, request.session_id)
        async with self._locks.setdefault(session.session_id, asyncio.Lock()):
            if (known := await self._known(caller, request)) is not None:
                return line_of(caller, known)
            for _ in range(TRIES_MAX):
                sitting = await self.store.sitting(session.session_id)
                if sitting is None or sitting.leaving:
                    raise NotSeatedError("the session has no seat at a table", session_id=session.session_id)
                change, message = await self._line(caller, request, sitting, text)
                try:
                    await self.store.commit(change)
                except TableMovedError:
                    continue
                self.said(message)
                return line_of(caller, message)
        raise TableChangedError("the table moves all the time: send the request again", session_id=session.session_id)

    async def _known(self, caller: Caller, request: Say) -> ChatMessage | None:
        """The line of an earlier try. Its text is gone if an admin has erased it since."""
        answer = await self.store.answer(caller.party, type(request).__name__, request.request_id)
        if answer is None:
            return None
        message_id = reply_of(answer, request.digest(caller.party)).body.decode("ascii")
        message = await self.store.chat_message(message_id)
        if message is None:
            raise NotFoundError("the line has been dropped", kind="message")
        return message

    async def _line(self, caller: Caller, request: Say, sitting: Sitting, text: str) -> tuple[Change, ChatMessage]:
        """The line as a change. It is guarded where the chat closes with a step of the table."""
        row = await table_of(self.store, sitting.table_id)
        config = await self.configs.of(row.config)
        is_secret = self._verify_open(row, config)
        now_ms = self.clock.now_ms()
        await self._verify_pause(sitting, now_ms)
        message = ChatMessage(
            message_id=self.instance.new_id(now_ms),
            table_id=sitting.table_id,
            time_ms=now_ms,
            operator=sitting.operator,
            player=sitting.player,
            nickname=sitting.nickname,
            text=text,
            code="",
        )
        answer = Answer(
            caller.party,
            type(request).__name__,
            request.request_id,
            request.digest(caller.party),
            message.message_id.encode("ascii"),
            now_ms,
        )
        guard = TableGuard(sitting.table_id, row.table.version) if is_secret else None
        return Change(answer=answer, records=(message,), guard=guard), message

    def _verify_open(self, row: TableRow, config: TableConfig) -> bool:
        """ChatClosedError if nobody may write now; whether that may change with the table's next step."""
        if not config.chat:
            raise ChatClosedError(f"table {config.id} has no chat", table=config.id)
        is_secret = self.games.rulesets[config.ruleset_id].visibility != "open"
        if is_secret and row.table.is_in_round:
            raise ChatClosedError(
                f"table {config.id} is {row.table.state}: its chat is closed until the result, as cards are secret",
                table=config.id,
                state=row.table.state.value,
            )
        return is_secret

    async def _verify_pause(self, sitting: Sitting, now_ms: int) -> None:
        """ChatClosedError naming the wait, if the player's last line is too young. One from the future does not count:
        the clock was set back.
        """
        since_ms = now_ms - await self.store.newest_chat_ms(sitting.operator, sitting.player)
        if not 0 <= since_ms < CROWD_PAUSE_MS:
            return
        is_crowd = await self.store.count_sittings(sitting.table_id, CROWD + 1) > CROWD
        pause_ms = CROWD_PAUSE_MS if is_crowd else PAUSE_MS
        if since_ms < pause_ms:
            wait_ms = pause_ms - since_ms
            raise ChatClosedError(
                f"a player writes once in {pause_ms} ms here: wait {wait_ms} ms",
                table=sitting.table_id,
                limit=pause_ms,
                retry_after_ms=wait_ms,
            )

    async def list(
        self, caller: Caller, table_id: str, page_size: int, page_token: str
    ) -> tuple[tuple[ChatLine, ...], str]:
        """A page of lines, newest first, and the next page's token (empty at the end). NotFoundError."""
        limit = check_page_size(page_size)
        (before,) = parse_key_token(page_token, 1)
        row = await table_of(self.store, table_id)
        if not sees(caller, await self.configs.of(row.config)):
            raise no_table(table_id)
        found = await self.store.chat(table_id, before=before, limit=limit + 1)
        lines = tuple(line_of(caller, message) for message in found[:limit])
        return lines, format_key_token(lines[-1].message_id) if len(found) > limit else ""

    def dealer_line(self, table_id: str, code: str, time_ms: int) -> ChatMessage:
        """A line of the dealer, to be committed with the step that it tells of."""
        return ChatMessage(
            message_id=self.instance.new_id(time_ms),
            table_id=table_id,
            time_ms=time_ms,
            operator="",
            player="",
            nickname="",
            text="",
            code=code,
        )

    async def forget(self) -> int:
        """Drop some lines that are older than 30 days; how many. One process does it, while time is trusted."""
        running_ms = self.clock.running_ms()
        if running_ms < self._next_ms or not self.clock.is_trusted or not await self.store.lead(DUTY):
            return 0
        gone = await self.store.forget_chat(self.clock.now_ms() - KEPT_MS)
        if not gone:
            self._next_ms = running_ms + POLL_MS
        return gone


def check_text(text: str) -> str:
    """The text without space at its ends: 1 to 200 printing characters. InvalidFieldError, which does not quote it."""
    trimmed = text.strip(" ")
    if not 1 <= len(trimmed) <= TEXT_MAX:
        raise InvalidFieldError(
            f"text has {len(trimmed)} characters, not 1 to {TEXT_MAX}", field="text", limit=TEXT_MAX, value=len(trimmed)
        )
    if not trimmed.isprintable():
        raise InvalidFieldError("text has characters that do not print", field="text")
    return trimmed


def line_of(caller: Caller, message: ChatMessage) -> ChatLine:
    """The line as the caller sees it: an operator learns which of its own players wrote it. An admin, who bars players
    and erases lines, learns it of all.
    """
    is_own = caller.role is Role.OPERATOR and bool(message.player) and message.operator == caller.party
    is_shown = is_own or caller.role is Role.ADMIN
    return ChatLine(
        message_id=message.message_id,
        table_id=message.table_id,
        time_ms=message.time_ms,
        nickname=message.nickname,
        text=message.text,
        code=message.code,
        player=message.player if is_shown else "",
        operator=message.operator if is_shown else "",
        is_own=is_own,
    )


def erased(message: ChatMessage) -> ChatMessage:
    """The line after an admin has erased it."""
    return replace(message, nickname="", text="")


async def table_of(store: StoreReads, table_id: str) -> TableRow:
    """The table as it stands. NotFoundError."""
    found = await store.table(table_id)
    if found is None:
        raise no_table(table_id)
    return found[0]


def no_table(table_id: str) -> NotFoundError:
    """There is no such table, or not for the caller."""
    return NotFoundError(f"no table {table_id[:64]}", kind="table", field="table", table=table_id[:64])
