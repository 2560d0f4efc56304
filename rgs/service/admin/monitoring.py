"""Measures returns while the server plays, and compares them with the exact ones (GL-27, UKGC live return monitoring;
docs/monitoring.md).

One process leads this duty. It reads the signed openings and finals since its last commit, adds them to the tallies of
`rgs.core.returns`, and commits tallies, position and alarms together. So each round is counted once, whichever process
dies, and play does not wait for it.

Rounds are counted **in the order of their start**. Which rounds end first depends on their cards (good cards are raised
at once), so that the ended rounds alone are no fair sample. An open round is waited for; after PATIENCE_MS it is passed
over, and counted when it ends. A round of a table begins with its `table_deal`, ends with its last seat, and counts
once.

A ruleset without a certificate is not judged. An alarm stops new rounds of one game only if the settings say so: it is
a reason to examine the game.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import RgsError, UnknownRulesetError
from rgs.core.returns.distributions import load_laws
from rgs.core.returns.figures import Played, TableCount, played
from rgs.core.returns.tally import NO_CURRENCY, Reading, ReturnTally, format_tally, parse_tally
from rgs.core.rulesets import Ruleset, load_ruleset, parse_canonical_ruleset
from rgs.core.statements import parse_envelope
from rgs.core.tables.joined import joined_final, joined_opening
from rgs.core.tables.rows import TableRound
from rgs.core.times import parse_time
from rgs.service.admin.admin import DISABLED, ENABLED
from rgs.service.events import EventCode, event_draft
from rgs.service.table_statements import SHARED_KINDS, shared_statements
from rgs.store.changes import Change, Draft, Record, SwitchOff
from rgs.store.interface import Store
from rgs.store.returns import PassedOverCounted, RoundPassedOver, RoundToCount, StatementsRead, TallyKept

BATCH = 200
"""Statements that are read at once, in about 10 ms; then other work gets its turn."""
BATCHES_MAX = 50
"""Batches of one commit: those of one instance in one look. The next look continues."""
INSTANCES_MAX = 1_000
"""Instances in one look."""
PATIENCE_MS = 900_000
"""How long an open round is waited for."""
LATE_PERIOD_MS = 60_000
"""Time between two looks at rounds that were passed over."""
SEATS_AT_ONCE = 64
"""Seats of a table that are read before other work gets its turn."""
ALARM_PARTY = "rgs"
"""The party that disables a game after an alarm."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured returns of a ruleset. `readings` is empty if this version has no certificate for it."""

    ruleset_id: str
    ruleset_sha256: str
    tally: ReturnTally
    readings: tuple[Reading, ...]


class _Batch:
    """The content of one commit: the tallies that rounds are added to, and the other records."""

    def __init__(self, kept: Mapping[str, TallyKept]) -> None:
        self._kept = kept
        self.tallies: dict[str, tuple[Ruleset, ReturnTally]] = {}
        self.records: list[Record] = []

    def add(self, ruleset: Ruleset, one: Played, currency: str) -> None:
        if ruleset.sha256 not in self.tallies:
            kept = self._kept.get(ruleset.sha256)
            self.tallies[ruleset.sha256] = (ruleset, ReturnTally() if kept is None else parse_tally(kept.tally))
        _, tally = self.tallies[ruleset.sha256]
        tally.add(one, currency or NO_CURRENCY)

    def tally_records(self) -> list[Record]:
        """The records of the tallies, once all rounds of the batch are added."""
        return [
            TallyKept(sha256, ruleset.id, self._kept[sha256].version + 1 if sha256 in self._kept else 1, text)
            for sha256, (ruleset, tally) in self.tallies.items()
            for text in (format_tally(tally),)
        ]


class Monitoring:
    """Counts rounds (`poll`, in the process that leads) and gives the results (`measured`, in any)."""

    def __init__(self, *, store: Store, clock: Clock, alarm_stops: bool = False) -> None:
        self._store = store
        self._clock = clock
        self.alarm_stops = alarm_stops
        """Whether an alarm disables the game."""
        self._late_ms = 0
        self._waits: dict[str, int] = {}
        """Instance -> the statement behind which a round was open."""
        self._rulesets: dict[str, Ruleset | None] = {}

    async def poll(self) -> int:
        """Count all rounds that can be counted now, with one commit an instance; how many statements were read.
        StoreError.
        """
        read = 0
        for instance, after_no in await self._store.unread_instances(INSTANCES_MAX):
            read += await self._read(instance, after_no)
        if self._clock.running_ms() - self._late_ms >= LATE_PERIOD_MS:
            self._late_ms = self._clock.running_ms()
            await self._read_late()
        return read

    async def measured(self) -> tuple[list[Measured], int]:
        """Every ruleset that was played, and how many rounds are passed over and still open."""
        found = []
        for kept in await self._store.tallies():
            ruleset = await self._ruleset(kept.ruleset_id, kept.ruleset_sha256)
            laws = None if ruleset is None else load_laws(ruleset)
            tally = parse_tally(kept.tally)
            # The bands take a few thousand logarithms: not on the loop that answers players.
            readings = [] if laws is None else await asyncio.to_thread(tally.readings, laws)
            found.append(Measured(kept.ruleset_id, kept.ruleset_sha256, tally, tuple(readings)))
        return found, await self._store.passed_over()

    # --- counting -------------------------------------------------------------------------------------------------

    async def _read(self, instance: str, after_no: int) -> int:
        """Count the instance's next statements and commit the counts; how many statements it was.

        The tallies are formatted and judged once a commit, however many rounds are in it: that costs more than to count
        a hundred rounds.
        """
        batch, read_no = await self._batch(), after_no
        for _ in range(BATCHES_MAX):
            number, goes_on = await self._read_batch(batch, instance, read_no)
            read_no += number
            if not goes_on:
                break
            await asyncio.sleep(0)
        if read_no > after_no:
            batch.records.append(StatementsRead(instance, read_no, after_no))
            await self._commit(batch)
        return read_no - after_no

    async def _read_batch(self, batch: _Batch, instance: str, after_no: int) -> tuple[int, bool]:
        """Count some statements; how many it was, and whether more may follow at once."""
        # While a round is waited for, later ones need not be read at every look.
        limit = 1 if self._waits.get(instance) == after_no else BATCH
        rows = await self._store.rounds_to_count(instance, after_no, limit)
        read_no, goes_on = after_no, len(rows) == limit
        for row in rows:
            if row.opening:
                opening = _body(row.opening)
                if row.final:
                    await self._count(batch, opening, row)
                elif (ended := await self._ended_at_table(opening)) is not None:
                    await self._count_table(batch, ended)
                elif self._clock.passed_ms(parse_time(opening["time"])) < PATIENCE_MS:
                    self._waits[instance], goes_on = read_no, False
                    break
                else:
                    batch.records.append(RoundPassedOver(row.round_id))
            read_no = row.statement_no
        return read_no - after_no, goes_on

    async def _read_late(self) -> None:
        round_ids = await self._store.late_rounds(BATCH)
        if not round_ids:
            return
        batch = await self._batch()
        for round_id in round_ids:
            at_table = await self._store.table_round(round_id)
            if at_table is not None:
                await self._count_table(batch, at_table)
            else:
                envelopes = await self._store.round_envelopes(round_id)
                opening = _body(envelopes[0])
                currency = await self._currency(opening["session_id"])
                await self._count(batch, opening, RoundToCount(0, round_id, currency, *envelopes))
            batch.records.append(PassedOverCounted(round_id))
        await self._commit(batch)

    async def _batch(self) -> _Batch:
        return _Batch({kept.ruleset_sha256: kept for kept in await self._store.tallies()})

    async def _count(self, batch: _Batch, opening: Mapping[str, Any], row: RoundToCount) -> None:
        rules = opening["deal"]["ruleset"]
        ruleset = await self._ruleset(rules["id"], rules["sha256"])
        if ruleset is not None:
            batch.add(ruleset, played(ruleset, opening, _body(row.final)), row.currency)

    async def _ended_at_table(self, opening: Mapping[str, Any]) -> TableRound | None:
        """The round of a `table_deal` once all of its seats have ended."""
        if opening["kind"] != "table_deal":
            return None
        round_ = await self._store.table_round(opening["round_id"])
        if round_ is None or not round_.final or await self._store.has_unfinished(round_.round_id):
            return None
        return round_

    async def _count_table(self, batch: _Batch, round_: TableRound) -> None:
        shared = {row.kind: _body(row.envelope) for row in await shared_statements(self._store, round_)}
        fixed, deal, end = (shared[kind] for kind in SHARED_KINDS)
        ruleset = await self._ruleset(fixed["ruleset"]["id"], fixed["ruleset"]["sha256"])
        if ruleset is None:
            return
        counted, currency, seat_no = TableCount(ruleset), "", 0
        while seats := await self._store.seats_of_round(round_.round_id, seat_no, SEATS_AT_ONCE):
            currency = currency or await self._currency(seats[0].session_id)
            for seat in seats:
                opening, final = map(_body, await self._store.round_envelopes(round_.round_id, seat.seat_no))
                counted.add(joined_opening(fixed, deal, opening), joined_final(end, final))
            seat_no = seats[-1].seat_no
            await asyncio.sleep(0)
        batch.add(ruleset, counted.played(), currency)

    async def _currency(self, session_id: str) -> str:
        session = await self._store.session(session_id, fresh=False)
        return "" if session is None else session.currency

    async def _commit(self, batch: _Batch) -> None:
        drafts: list[Draft] = []
        reported: list[tuple[str, Reading]] = []
        for ruleset, tally in batch.tallies.values():
            laws = load_laws(ruleset)
            alarms = [] if laws is None else tally.alarms(laws)
            reported += [(ruleset.id, alarm) for alarm in alarms]
            if alarms and self.alarm_stops and not await self._is_disabled(ruleset.id):
                record, draft = self._stop(ruleset.id)
                batch.records.append(record)
                drafts.append(draft)
        drafts += [alarm_draft(ruleset_id, alarm, self._clock.now_ms()) for ruleset_id, alarm in reported]
        records = (*batch.tally_records(), *batch.records)
        await self._store.commit(Change(drafts=tuple(drafts), records=records))
        for ruleset_id, alarm in reported:
            structlog.get_logger().error(
                "return_out_of_band", game=ruleset_id, figure=alarm.figure, series=alarm.series
            )

    async def _is_disabled(self, ruleset_id: str) -> bool:
        return any((one.scope, one.subject) == ("game", ruleset_id) for one in await self._store.switches())

    def _stop(self, ruleset_id: str) -> tuple[SwitchOff, Draft]:
        reason, now_ms = EventCode.RETURN_OUT_OF_BAND.value, self._clock.now_ms()
        draft = event_draft(
            EventCode.SWITCH_CHANGED,
            now_ms,
            actor=ALARM_PARTY,
            subject=f"game {ruleset_id}",
            before=ENABLED,
            after=DISABLED,
            reason=reason,
        )
        return SwitchOff("game", ruleset_id, reason, ALARM_PARTY, now_ms), draft

    async def _ruleset(self, ruleset_id: str, sha256: str) -> Ruleset | None:
        """The ruleset of this hash, shipped or from the store's artifacts; None if neither has it."""
        if sha256 not in self._rulesets:
            self._rulesets[sha256] = _shipped(ruleset_id, sha256) or await self._kept_ruleset(sha256)
        return self._rulesets[sha256]

    async def _kept_ruleset(self, sha256: str) -> Ruleset | None:
        content = await self._store.artifact(sha256)
        try:
            return None if content is None else parse_canonical_ruleset(content)
        except RgsError:
            return None  # of a version with other rules than ours


def alarm_draft(ruleset_id: str, alarm: Reading, time_ms: int) -> Draft:
    """The event of an alarm: `before` has the exact return, `after` the measured one."""
    evidence = "no fair deal gives this" if math.isinf(alarm.evidence) else f"ln E {alarm.evidence:.2f}"
    measured = f"{alarm.rounds} rounds, {evidence}, limit {alarm.limit:.2f}"
    if alarm.measured is not None:
        band = f"{'' if alarm.low is None else f'{alarm.low:.6f}'}..{alarm.high:.6f}"
        measured = f"measured {alarm.measured:.6f}, band {band}, {measured}"
    return event_draft(
        EventCode.RETURN_OUT_OF_BAND,
        time_ms,
        subject=f"{ruleset_id} {alarm.figure} {alarm.series}",
        before="" if alarm.exact is None else f"exact {alarm.exact:.6f}",
        after=measured,
        reason=alarm.direction,
    )


def _body(envelope: bytes) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(parse_envelope(envelope).payload)
    return body


def _shipped(ruleset_id: str, sha256: str) -> Ruleset | None:
    try:
        ruleset = load_ruleset(ruleset_id)
    except UnknownRulesetError:
        return None
    return ruleset if ruleset.sha256 == sha256 else None
