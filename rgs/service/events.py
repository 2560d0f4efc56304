"""Significant events (GLI-19 2.8.8): each is a signed statement with a code, and with before, after, who and why where
they apply.

There is no free text: fields hold codes, names and short printable values. Events that strangers can cause are counted
and signed once a minute, so that nobody can flood the record.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final, TypedDict, Unpack

from rgs.core.clock import Clock
from rgs.core.times import format_time
from rgs.store.changes import Answer, Change, Draft, LargeWinReported, MetaSet, Record, Signed
from rgs.store.interface import Store

FLOOD_PERIOD_MS = 60_000
VALUE_MAX = 200
LOG_KEY = "log_key"
"""Key of `meta`: the verifier key of the last LOG_KEY_STARTED."""
WINS_BATCH = 50
_SHORTENED: Final = {"subject", "before", "after"}
"""Fields of an event that may hold text of others."""


class EventCode(StrEnum):
    """Codes of events. The instance itself signs three more: RNG_INSTANTIATED, RNG_UNINSTANTIATED and RNG_FAILED."""

    AUTHENTICATION_FAILED = "AUTHENTICATION_FAILED"
    SERVER_FAULT = "SERVER_FAULT"
    LARGE_WIN = "LARGE_WIN"
    TIME_JUMP = "TIME_JUMP"
    SWITCH_CHANGED = "SWITCH_CHANGED"
    CERTIFICATE_ADDED = "CERTIFICATE_ADDED"
    CERTIFICATE_REMOVED = "CERTIFICATE_REMOVED"
    CONFIGURATION_CHANGED = "CONFIGURATION_CHANGED"
    GUARD_CLOSED = "GUARD_CLOSED"
    GUARD_OPENED = "GUARD_OPENED"
    GUARD_CLEARED = "GUARD_CLEARED"
    MALFUNCTION = "MALFUNCTION"
    ROUND_RESUMED = "ROUND_RESUMED"
    VOID_PROPOSED = "VOID_PROPOSED"
    ROUND_FINISHED_BY_RULE = "ROUND_FINISHED_BY_RULE"
    KEYS_CHANGED = "KEYS_CHANGED"
    PEER_CONTRADICTION = "PEER_CONTRADICTION"
    REPORTS_HELD = "REPORTS_HELD"
    REPORTS_RELEASED = "REPORTS_RELEASED"
    REPORTS_CLOSED_OUT = "REPORTS_CLOSED_OUT"
    CHECKPOINT_KNOWN = "CHECKPOINT_KNOWN"
    WITNESS_REFUSED = "WITNESS_REFUSED"
    PLAYER_ERASED = "PLAYER_ERASED"
    STORE_RECOVERED = "STORE_RECOVERED"
    LOG_KEY_STARTED = "LOG_KEY_STARTED"
    RETURN_OUT_OF_BAND = "RETURN_OUT_OF_BAND"
    TABLE_CONFIGURED = "TABLE_CONFIGURED"
    TABLE_OPENED = "TABLE_OPENED"
    TABLE_SHUT = "TABLE_SHUT"
    TABLE_RESUMED = "TABLE_RESUMED"
    BETS_CANCELLED = "BETS_CANCELLED"
    PLAYER_BARRED = "PLAYER_BARRED"
    BAR_ENDED = "BAR_ENDED"
    BOX_RESERVED = "BOX_RESERVED"
    BOX_RELEASED = "BOX_RELEASED"
    MESSAGE_ERASED = "MESSAGE_ERASED"


class EventFields(TypedDict, total=False):
    """The fields of an event beside its code and time."""

    actor: str
    subject: str
    before: str
    after: str
    reason: str
    session_id: str
    round_id: str


def event_draft(code: EventCode, time_ms: int, **fields: Unpack[EventFields]) -> Draft:
    """The event as a statement draft; empty fields are left out."""
    body = {"code": code.value, "time": format_time(time_ms)}
    for name, value in fields.items():
        text = _printable(str(value)) if name in _SHORTENED else str(value)
        if text:
            body[name] = text
    return Draft("event", body)


def _printable(value: str) -> str:
    """Printable ASCII without quote and backslash, at most VALUE_MAX characters; `?` replaces other characters."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in value[:VALUE_MAX])


class Events:
    """Signs events: `emit` at once; `count` collects what strangers cause, and `flush` signs it with the count."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._counted: Counter[tuple[EventCode, str]] = Counter()
        self._since_ms = 0
        self._log_key = ""

    async def emit(
        self,
        code: EventCode,
        *,
        records: tuple[Record, ...] = (),
        answer: Answer | None = None,
        **fields: Unpack[EventFields],
    ) -> Signed:
        """Sign the event, with what it changes and the answer of the request behind it, in one commit."""
        draft = event_draft(code, self._clock.now_ms(), **fields)
        (signed,) = await self._store.commit(Change(drafts=(draft,), records=records, answer=answer))
        return signed

    def count(self, code: EventCode, reason: str) -> None:
        """Count an event that strangers can cause; `flush` signs it."""
        self._counted[code, reason] += 1

    async def flush(self, *, everything: bool = False) -> None:
        """Sign the counted events, at most once a minute unless `everything`."""
        now_ms = self._clock.running_ms()
        if not self._counted or (not everything and now_ms - self._since_ms < FLOOD_PERIOD_MS):
            return
        counted, self._counted, self._since_ms = self._counted, Counter(), now_ms
        while counted:
            (code, reason), times = counted.popitem()
            try:
                await self.emit(code, reason=reason, after=str(times))
            except BaseException:
                counted[code, reason] = times
                self._counted.update(counted)  # none is lost: the next flush signs them
                raise

    async def report_wins(self) -> int:
        """Sign an event for each large win in the store, each once; how many there were."""
        wins = await self._store.large_wins(WINS_BATCH)
        for win in wins:
            await self.emit(
                EventCode.LARGE_WIN,
                after=str(win.won_minor),
                session_id=win.session_id,
                round_id=win.round_id,
                records=(LargeWinReported(win.round_id),),
            )
        return len(wins)

    async def report_log_key(self, vkey: str) -> None:
        """Sign once that the transparency log is signed by this verifier key from now on."""
        if not vkey or vkey == self._log_key:
            return
        before = await self._store.meta(LOG_KEY)
        if before != vkey:
            records = (MetaSet(LOG_KEY, vkey),)
            origin = vkey.partition("+")[0]
            await self.emit(EventCode.LOG_KEY_STARTED, subject=origin, before=before, after=vkey, records=records)
        self._log_key = vkey

    async def report_configuration(self, node: str, sha256: str, *, first_boot: bool) -> None:
        """Sign that the node's configuration has changed since its last start; only the two hashes are named."""
        key = f"configuration {node}"
        before = await self._store.meta(key)
        if before == sha256:
            return
        record = MetaSet(key, sha256)
        if first_boot and not before:
            await self._store.commit(Change(records=(record,)))
            return
        await self.emit(EventCode.CONFIGURATION_CHANGED, subject=node, before=before, after=sha256, records=(record,))
