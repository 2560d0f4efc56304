"""Ends the sessions of players who have excluded themselves, as the rules allow, until none is open.

Open bets are taken back, seats are left, what is left of a participation goes back to the wallet. A round in play is
finished by the game server's rules; its session is closed after that. What is not done yet is noted in the file, so
that the next process goes on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from rgs.v1 import session_pb2, table_pb2

from .commands import Commands
from .errors import PlatformError
from .rgs_client import Rgs, own_request_id
from .store.accounts import Account, AccountRows
from .store.play import PlayRows, Seat

EVERY_S: Final = 5.0
PAGE_SIZE: Final = 50

log = logging.getLogger(__name__)


class Closing:
    """Goes through the excluded players' sessions."""

    def __init__(self, rgs: Rgs, accounts: AccountRows, rows: PlayRows, commands: Commands) -> None:
        self._rgs = rgs
        self._accounts = accounts
        self._rows = rows
        self._commands = commands
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Look at once."""
        self._woken.set()

    async def run(self) -> None:
        """Until this is cancelled."""
        while True:
            self._woken.clear()
            for account in await self._accounts.closing():
                try:
                    if await self._close_all(account):
                        await self._accounts.closed(account.account_id)
                except PlatformError as error:
                    log.info("sessions of an excluded player wait: %s", error.reason)
            try:
                await asyncio.wait_for(self._woken.wait(), EVERY_S)
            except TimeoutError:
                continue

    async def _close_all(self, account: Account) -> bool:
        """Whether no session of the player is open any more."""
        request = session_pb2.ListSessionsRequest(player=account.player, open_only=True, page_size=PAGE_SIZE)
        listed = await self._rgs.call(self._rgs.sessions.ListSessions, request)
        is_done = not listed.next_page_token
        for session in listed.sessions:
            try:
                await self._close(account, session)
            except PlatformError as error:
                log.info("a session of an excluded player waits: %s", error.reason)
                is_done = False
        return is_done

    async def _close(self, account: Account, session: Any) -> None:
        session_id, account_id = session.session_id, account.account_id
        if session.table:
            await self._leave(account_id, session_id, session.table)
        if session.participation_id and not session.participation_ended:
            end = session_pb2.EndParticipationRequest(
                request_id=own_request_id(account_id, f"excluded:end:{session_id}"), session_id=session_id
            )
            await self._rgs.call(self._rgs.sessions.EndParticipation, end)
        close = session_pb2.CloseSessionRequest(
            request_id=own_request_id(account_id, f"excluded:close:{session_id}"), session_id=session_id
        )
        await self._rgs.call(self._rgs.sessions.CloseSession, close)
        await self._rows.drop_seat(session_id)

    async def _leave(self, account_id: int, session_id: str, table: str) -> None:
        request = table_pb2.GetTableRequest(table=table, session_id=session_id)
        seat = (await self._rgs.call(self._rgs.tables.GetTable, request)).seat
        if seat.ended or not seat.device_no:
            return
        await self._commands.take_back_seat(Seat(session_id, account_id, "", table, seat.device_no))
        leave = table_pb2.LeaveRequest(
            request_id=own_request_id(account_id, f"excluded:leave:{session_id}:{seat.device_no}"),
            session_id=session_id,
            device_no=seat.device_no,
        )
        await self._rgs.call(self._rgs.tables.Leave, leave)
