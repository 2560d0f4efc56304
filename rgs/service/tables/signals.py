"""Signals of what this process has just committed at tables: a table moved, a seat changed, a line was said.

The services give a signal after their commit, never before. Signals stay within the process and may be lost with it:
whoever needs to know what other processes did reads the store (`rgs.service.tables.feed`).
"""

from __future__ import annotations

from typing import Protocol

from rgs.store.changes import Change
from rgs.store.table_records import ChatMessage


class Listener(Protocol):
    """Gets every signal of the process, at once. It must not wait and not raise."""

    def moved(self, table_id: str, version: int) -> None: ...
    def seat_changed(self, session_id: str) -> None: ...
    def said(self, message: ChatMessage) -> None: ...


class Signals:
    """The signals of one process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Give every signal to the listener from now on."""
        self._listeners.append(listener)

    def committed(self, change: Change) -> None:
        """Give the signals of a change that is durable now."""
        if change.table is not None:
            self.moved(change.table.table.table_id, change.table.table.version)
        if change.sitting is not None:
            self.seat(change.sitting.session_id)
        for record in change.records:
            if isinstance(record, ChatMessage):
                self.said(record)

    def moved(self, table_id: str, version: int) -> None:
        """A table has this version now, or looks different at it: somebody sat down, bet or decided at a box."""
        for listener in self._listeners:
            listener.moved(table_id, version)

    def seat(self, session_id: str) -> None:
        """The seat of a session has changed without a step of its table: another device, bets, seat lost, barred."""
        for listener in self._listeners:
            listener.seat_changed(session_id)

    def said(self, message: ChatMessage) -> None:
        """A line of chat was written."""
        for listener in self._listeners:
            listener.said(message)
