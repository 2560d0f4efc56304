"""Brings a restored store up to its transparency log, and signs that it was done (docs/keys.md).

First the statements that the store lacks (the gap) are imported; nothing is signed. Then an instance pauses every open
round, because what its player decided in the gap is not known: two admins void them. Last, one commit signs
STORE_RECOVERED with the old and the new store epoch, and gives the store the new one. The next `instance_start` names
it. If recovery is cut short, it is run again from the start.

The log does not say who played. The private blocks lie beside it, sealed (`rgs.store.privates`), and are imported with
the statements. The block of an opening brings the request that opened the session, so that a repeat finds it. Where
blocks are lost, sessions that were opened in the gap have no player and no regulator's ids.

Returns that were credited bet by bet are owed again under their ids: a wallet that has taken one says so. So is what
goes back to the campaign of a free bet. Free bets that were granted in the gap are lost: the operator grants again.

Recovery settles nothing, guesses no player, and ends no operation that the log does not mention: reconciliation does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rgs.core.clock import Clock
from rgs.core.free_bets import reclaimed_minor
from rgs.core.ids import opening_id
from rgs.core.recovery import advance_session, end_round, round_of, session_of, split_request
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import KINDS, UnhandledKindError, parse_canonical, private_hash
from rgs.core.times import format_date, parse_time
from rgs.service.admin.admin import pause
from rgs.service.admin.table_recovery import REASON as REASON  # noqa: PLC0414 - offered here too
from rgs.service.admin.table_recovery import PausedTable, TableImport, TableRecovery
from rgs.service.events import EventCode, event_draft
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.play.settlement import renewed_grant, round_credit, stage_count, stage_report
from rgs.service.sealing import Sealer
from rgs.store.changes import Change, DayCount, MetaSet, Operation, StoreRefusedError
from rgs.store.interface import LOG_EPOCH, RECOVERING, Store, StoreReads
from rgs.store.launches import LaunchesForgotten
from rgs.store.privates import SealedPrivates
from rgs.store.recovery import Import, InstanceState
from rgs.tlog.gap import Missing

_OPERATION_OF = {"session_open": "open", "purchase": "purchase", "participation_end": "end", "session_close": "close"}
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Recovered:
    """The rounds that wait for their void, and the store's epochs before and after."""

    paused: tuple[Round, ...]
    before: str
    after: str
    tables: tuple[PausedTable, ...] = ()
    """Tables whose round waits for its void."""
    undecided: tuple[Round, ...] = ()
    """Seats of settled rounds that are void, because their decisions are lost."""


def with_privates(gap: Sequence[Missing], sealed: SealedPrivates, sealer: Sealer) -> list[Missing]:
    """The gap, each statement with its private block if the block can be opened and is the one that was signed."""
    return [_with_private(missing, sealed, sealer) for missing in gap]


def _with_private(missing: Missing, sealed: SealedPrivates, sealer: Sealer) -> Missing:
    due = missing.body.get("private")
    kept = None if due is None else sealed.find(missing.instance, missing.statement_no)
    unsealed = None if kept is None else sealer.unseal_private(missing.hash, kept)
    if unsealed is None:
        return missing
    private, request = split_request(unsealed)
    document = parse_canonical(private)
    is_signed_for = private_hash(bytes.fromhex(document["salt"]), document["block"]).hex() == due
    return replace(missing, private=private, request=request) if is_signed_for else missing


async def plan_import(reads: StoreReads, gap: Sequence[Missing]) -> Import:
    """The rows to import for a gap, beside those that the store has."""
    planned = Import()
    for row in await reads.instances(alive_only=False):
        planned.instances[row.instance] = InstanceState(
            row.node, row.boot_no, row.worker, row.start_ms, row.statement_no, row.draw_no
        )
    tables = TableImport(planned, reads, GameCatalog())
    touched = {missing.instance for missing in gap}
    for missing in gap:
        touched |= _count(planned, missing)
        kind = KINDS[missing.kind]
        round_id, seat_no = "", 0
        if kind.linked:
            round_id, seat_no = await _link(planned, reads, tables, missing)
        else:
            await tables.take(missing)
        planned.statements.append(
            (missing.instance, missing.statement_no, missing.kind, missing.body.get("code", ""),
             missing.body.get("session_id", "") if kind.linked else "", int(missing.body.get("link_no", "0")),
             round_id or missing.body.get("round_id", ""), seat_no, missing.hash, missing.envelope)
        )  # fmt: skip
        if missing.private:
            planned.privates.append((missing.instance, missing.statement_no, missing.private))
        elif "private" in missing.body:
            planned.lost_privates += 1
        if missing.kind == "artifact":
            planned.artifacts.append((missing.body["sha256"], missing.body["name"], missing.content))
    await tables.finish()
    planned.instances = {name: state for name, state in planned.instances.items() if name in touched}
    return planned


def _count(planned: Import, missing: Missing) -> set[str]:
    """Take the statement's number and draw into its instance's row; the names of other instances that it ends."""
    body, time_ms = missing.body, parse_time(missing.body["time"])
    if missing.kind == "instance_start":
        planned.instances[missing.instance] = InstanceState(
            body["node"], int(body["boot_no"]), int(body["worker"]), time_ms, 1, 0
        )
        return set()
    state = planned.instances[missing.instance]
    state.statement_no = missing.statement_no
    deal = body.get("deal", body)
    match missing.kind:
        case "round_opening" | "table_deal" | "discarded_draw":
            state.draw_no = max(state.draw_no, int(deal["draw_no"]))
        case "instance_end":
            state.end_ms = time_ms
        case "instance_lost":
            planned.instances[body["lost"]["instance"]].end_ms = time_ms
            return {body["lost"]["instance"]}
        case "draw_window" | "event" | "artifact" | "session_open" | "purchase" | "transfer" | "round_final":
            pass
        case "participation_end" | "session_close" | "seat_opening" | "seat_final" | "free_bet":
            pass
        case "table_round" | "table_seats" | "table_final":
            pass
        case kind:
            raise UnhandledKindError(kind, "rgs.service.admin.recovery._count")
    return set()


async def _link(planned: Import, reads: StoreReads, tables: TableImport, missing: Missing) -> tuple[str, int]:
    """Take one link of a session; its round and seat, empty and 0 if it has none."""
    body, kind, block = missing.body, missing.kind, _block(missing)
    session = await _session(planned, reads, missing)
    states = planned.new_sessions if session.session_id in planned.new_sessions else planned.sessions
    after = states[session.session_id] = advance_session(session, kind, body, block, missing.hash)
    day = format_date(after.last_ms)
    match kind:
        case "round_opening":
            dealt = round_of(body, missing.hash, after)
            dealt = replace(dealt, free_bet=planned.free_bets.get(dealt.round_id, ""))
            planned.new_rounds[dealt.round_id, dealt.seat_no] = dealt
            return dealt.round_id, dealt.seat_no
        case "seat_opening":
            opened = await tables.open_seat(missing, session)
            return opened.round_id, opened.seat_no
        case "round_final" | "seat_final":
            ended = await (tables.end_seat(missing) if kind == "seat_final" else _end(planned, reads, missing))
            if after.is_demo:  # no total, and no report
                return ended.round_id, ended.seat_no
            planned.ended.append((ended, after.currency))
            reclaimed = _reclaimed(ended, body)
            planned.days.append(stage_count(after, ended, reclaimed))
            if not after.is_seamless:
                planned.reports.append((stage_report(after, ended, reclaimed), missing.hash.hex()))
            if ended.free_bet and body["status"] == "void":
                planned.renewed.append(renewed_grant(ended, parse_time(body["time"])))
            return ended.round_id, ended.seat_no
        case "purchase" | "participation_end" if after.is_demo:
            pass
        case "purchase":
            bought = int(body["amount_minor"])
            planned.days.append(DayCount(after.operator, after.currency, day, purchases=1, bought_minor=bought))
        case "transfer" if body["direction"] == "credit" and after.player:  # the wallet knows whether it took it
            amount_minor, time_ms = int(body["amount_minor"]), parse_time(body["time"])
            owed = round_credit(after, body["transaction_id"], amount_minor, body["round_id"], time_ms)
            planned.owed.append(owed)
        case "free_bet" if body["direction"] == "debit":
            planned.free_bets[body["round_id"]] = f"{body['campaign']}:{body['grant_id']}"
            planned.grants_used.append((body["round_id"], body["grant_id"]))
        case "free_bet":
            amount_minor, time_ms = int(body["amount_minor"]), parse_time(body["time"])
            free_bet = _played(planned, body["round_id"]).free_bet
            if after.player:
                owed = round_credit(after, body["transaction_id"], amount_minor, body["round_id"], time_ms, free_bet)
                planned.owed.append(owed)
        case "participation_end":
            paid = int(body["paid_out_minor"])
            planned.days.append(DayCount(after.operator, after.currency, day, ends=1, final_balance_minor=paid))
            # All of its stages were reported before its end was: the regulator takes no end before them.
            planned.reports = [row for row in planned.reports if row[0].session_id != after.session_id]
        case "session_open" | "transfer" | "session_close":
            pass
        case _:
            raise UnhandledKindError(kind, "rgs.service.admin.recovery._link")
    return "", 0


def _played(planned: Import, round_id: str) -> Round:
    """The round of solo play that has just ended in the gap."""
    key = (round_id, 1)
    return planned.new_rounds.get(key) or planned.rounds[key]


def _reclaimed(ended: Round, body: Mapping[str, Any]) -> int:
    """What goes back to the campaign of a free bet."""
    if not ended.free_bet:
        return 0
    return reclaimed_minor(body["settlement"]) if "settlement" in body else ended.granted_minor


def _block(missing: Missing) -> Mapping[str, str]:
    return parse_canonical(missing.private)["block"] if missing.private else {}


async def _session(planned: Import, reads: StoreReads, missing: Missing) -> Session:
    session_id = missing.body["session_id"]
    found = planned.new_sessions.get(session_id) or planned.sessions.get(session_id)
    if found is not None:
        return found
    stored = await reads.session(session_id)
    if stored is None:
        planned.new_sessions[session_id] = made = session_of(missing.body, _block(missing))
        if missing.request:
            planned.opened.append(_opening(missing))
        return made
    kind = _OPERATION_OF.get(missing.kind, "")
    if missing.kind in {"transfer", "free_bet"}:  # a debit: a credit stands behind its final
        kind = "act" if stored.open_round_id else "start"
    planned.operations.append((kind, session_id))
    planned.sessions[session_id] = stored
    return stored


def _opening(missing: Missing) -> Operation:
    """The operation that opened the session: by it a repeat of its request finds the session at any time."""
    body, request = missing.body, missing.request
    session_id = str(body["session_id"])
    return Operation(
        operation_id=opening_id(session_id),
        session_id=session_id,
        kind="open",
        status="done",
        party=request["party"],
        method=request["method"],
        request_id=request["request_id"],
        digest=bytes.fromhex(request["digest"]),
        amount_minor=0,
        purchase_no=0,
        created_ms=parse_time(body["time"]),
    )


async def _end(planned: Import, reads: StoreReads, missing: Missing) -> Round:
    round_id = missing.body["round_id"]
    key = (round_id, int(missing.body["seat_no"]))
    dealt = planned.new_rounds.get(key)
    if dealt is not None:
        ended = planned.new_rounds[key] = end_round(dealt, missing.body)
        return ended
    stored = await reads.round(round_id)
    if stored is None:
        raise ValueError(f"the log ends a round {round_id} that nothing has begun")
    ended = planned.rounds[key] = end_round(stored, missing.body)
    return ended


async def sign_recovery(store: Store, instance: Instance, clock: Clock, *, void_undecided: bool = False) -> Recovered:
    """Pause open rounds, then begin a new epoch of the store. The instance has signed at its start which are lost.

    StoreRefusedError, and nothing more is signed, for seats whose decisions are lost, unless these are to be void.
    """
    tables = TableRecovery(store=store, clock=clock, games=GameCatalog())
    undecided = await tables.undecided()
    verify_decided([seat for seat, _, _ in undecided], void_undecided=void_undecided)
    for seat, end, table_round in undecided:
        await tables.void_undecided(seat, end, table_round)
    paused: list[Round] = []
    for round_ in await _open_rounds(store):
        session = await store.session(round_.session_id)
        if not round_.malfunction and session is not None:
            await store.commit(pause(session, round_, REASON, max(clock.now_ms(), session.last_ms)))
        paused.append(round_)
    paused_tables = await tables.pause()
    now_ms = clock.now_ms()
    before, after = await store.meta("store_epoch"), instance.new_id(now_ms)
    decks = [*(bool(round_.sealed) for round_ in paused), *(not table.is_deck_lost for table in paused_tables)]
    draft = event_draft(
        EventCode.STORE_RECOVERED,
        now_ms,
        subject=f"rounds open: {decks.count(True)} with their deck, {decks.count(False)} without",
        before=before,
        after=after,
    )
    records = (
        MetaSet(LOG_EPOCH, await store.meta(LOG_EPOCH) or before),  # the log goes on under its name
        MetaSet("store_epoch", after),
        MetaSet(RECOVERING, ""),
        LaunchesForgotten(1 << 62),  # what has become of their tokens in the gap is not known
    )
    await store.commit(Change(drafts=(draft,), records=records))
    return Recovered(tuple(paused), before, after, paused_tables, tuple(seat for seat, _, _ in undecided))


def verify_decided(undecided: Sequence[Round], *, void_undecided: bool) -> None:
    """StoreRefusedError naming the seats of settled rounds whose decisions are lost, unless these are to be void."""
    if undecided and not void_undecided:
        seats = ", ".join(f"seat {seat.seat_no} of round {seat.round_id} at {seat.table_id}" for seat in undecided[:8])
        raise StoreRefusedError(
            f"{len(undecided)} seats of settled rounds had decided, and neither store nor log says what: {seats}."
            " Nothing can settle them. --void-undecided returns their stakes; replay will report each of these seats",
            value=len(undecided),
        )


async def _open_rounds(store: Store) -> list[Round]:
    """Those of solo play."""
    found: list[Round] = []
    after = 0
    while page := await store.open_rounds("", after=after, limit=_PAGE):
        found += [round_ for _, round_ in page if not round_.table_id]
        after = page[-1][0]
    return found
