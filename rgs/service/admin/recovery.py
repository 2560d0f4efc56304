"""A restored store brought up to its log, and what is said of it (docs/keys.md).

First the gap is imported, with nothing signed; then an instance of its own pauses every round that is open, for what
its player has decided in the gap is not known: two admins void them. Last, one commit tells STORE_RECOVERED with the
epochs before and after and gives the store the new one: its signature is that of the change, and the next
`instance_start` bears it. Cut short anywhere, it is run again.

The log does not say who played: the private blocks lie beside it, sealed (rgs.store.privates), and come back with the
statements; with that of an opening the request that has opened the session, so that a repeat finds it. Where they are
lost, sessions that were opened in the gap stand without player and without regulator's ids.

Returns that were credited bet by bet are owed again under their ids: a wallet that has them says so.

Refuses to settle anything, to guess players, and to end an affair that the log does not tell of: reconciliation does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rgs.core.clock import Clock
from rgs.core.ids import opening_id
from rgs.core.recovery import advance_session, end_round, round_of, session_of, split_request
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.statements import KINDS, UnhandledKindError, parse_canonical, private_hash
from rgs.core.times import format_date, parse_time
from rgs.ports.regulator import StageReport
from rgs.service.events import EventCode, event_draft
from rgs.service.instance import Instance
from rgs.service.play.settlement import owed_return
from rgs.service.sealing import Sealer
from rgs.store.changes import Affair, Change, DayCount, MetaSet
from rgs.store.interface import LOG_EPOCH, RECOVERING, Store, StoreReads
from rgs.store.privates import SealedPrivates
from rgs.store.recovery import Import, InstanceState
from rgs.tlog.gap import Missing

REASON = "STORE_RECOVERED"
_AFFAIR_OF = {"session_open": "open", "purchase": "purchase", "participation_end": "end", "session_close": "close"}
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was done: the rounds that wait for their void, with why, and the epochs."""

    paused: tuple[Round, ...]
    before: str
    after: str


def with_privates(gap: Sequence[Missing], sealed: SealedPrivates, sealer: Sealer) -> list[Missing]:
    """The gap, each statement with its private block where that can be opened, and is the one that was signed for."""
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
    """The rows of a gap, over what the store has."""
    planned = Import()
    for row in await reads.instances(alive_only=False):
        planned.instances[row.instance] = InstanceState(
            row.node, row.boot_no, row.worker, row.start_ms, row.statement_no, row.draw_no
        )
    touched = {missing.instance for missing in gap}
    for missing in gap:
        touched |= _count(planned, missing)
        kind = KINDS[missing.kind]
        round_id, seat_no = "", 0
        if kind.linked:
            round_id, seat_no = await _link(planned, reads, missing)
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
    planned.instances = {name: state for name, state in planned.instances.items() if name in touched}
    return planned


def _count(planned: Import, missing: Missing) -> set[str]:
    """Take the statement's number and draw into its instance's row; another instance that it ends."""
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
        case "round_opening" | "discarded_draw":
            state.draw_no = max(state.draw_no, int(deal["draw_no"]))
        case "instance_end":
            state.end_ms = time_ms
        case "instance_lost":
            planned.instances[body["lost"]["instance"]].end_ms = time_ms
            return {body["lost"]["instance"]}
        case "draw_window" | "event" | "artifact" | "session_open" | "purchase" | "money_leg" | "round_final":
            pass
        case "participation_end" | "session_close":
            pass
        case kind:
            raise UnhandledKindError(kind, "rgs.service.admin.recovery._count")
    return set()


async def _link(planned: Import, reads: StoreReads, missing: Missing) -> tuple[str, int]:
    """Take one link of a session; the round and seat that it is about."""
    body, kind, block = missing.body, missing.kind, _block(missing)
    session = await _session(planned, reads, missing)
    states = planned.new_sessions if session.session_id in planned.new_sessions else planned.sessions
    after = states[session.session_id] = advance_session(session, kind, body, block, missing.hash)
    day = format_date(after.last_ms)
    match kind:
        case "round_opening":
            dealt = round_of(body, missing.hash, after)
            planned.new_rounds[dealt.round_id] = dealt
            return dealt.round_id, dealt.seat_no
        case "round_final":
            ended = await _end(planned, reads, missing)
            planned.ended.append((ended, after.currency))
            planned.days.append(_played(after, ended))
            if not after.is_seamless:
                planned.reports.append((_report(after, ended), missing.hash.hex()))
            return ended.round_id, ended.seat_no
        case "purchase":
            bought = int(body["amount_minor"])
            planned.days.append(DayCount(after.operator, after.currency, day, purchases=1, bought_minor=bought))
        case "money_leg" if body["direction"] == "credit" and after.player:  # whether it was taken, the wallet knows
            amount_minor, time_ms = int(body["amount_minor"]), parse_time(body["time"])
            owed = owed_return(after, body["transaction_id"], amount_minor, body["round_id"], time_ms)
            planned.owed.append(owed)
        case "participation_end":
            paid = int(body["paid_out_minor"])
            planned.days.append(DayCount(after.operator, after.currency, day, ends=1, final_balance_minor=paid))
            # All of its stages were told before its end was: the central system takes no end before them.
            planned.reports = [row for row in planned.reports if row[0].session_id != after.session_id]
        case "session_open" | "money_leg" | "session_close":
            pass
        case _:
            raise UnhandledKindError(kind, "rgs.service.admin.recovery._link")
    return "", 0


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
    kind = _AFFAIR_OF.get(missing.kind, "")
    if missing.kind == "money_leg":  # a debit: a credit stands behind its final
        kind = "act" if stored.open_round_id else "start"
    planned.affairs.append((kind, session_id))
    planned.sessions[session_id] = stored
    return stored


def _opening(missing: Missing) -> Affair:
    """The affair that has opened the session: by it a repeat of its request finds the session, for ever."""
    body, request = missing.body, missing.request
    session_id = str(body["session_id"])
    return Affair(
        affair_id=opening_id(session_id),
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
    dealt = planned.new_rounds.get(round_id)
    if dealt is not None:
        ended = planned.new_rounds[round_id] = end_round(dealt, missing.body)
        return ended
    stored = await reads.round(round_id)
    if stored is None:
        raise ValueError(f"the log ends a round {round_id} that nothing has begun")
    ended = planned.rounds[round_id] = end_round(stored, missing.body)
    return ended


def _played(session: Session, ended: Round) -> DayCount:
    return DayCount(
        session.operator,
        session.currency,
        format_date(ended.end_ms),
        stages=1,
        staked_minor=ended.staked_minor,
        returned_minor=ended.returned_minor,
    )


def _report(session: Session, ended: Round) -> StageReport:
    """Told to the central system (again, perhaps: it knows a stage by its number)."""
    return StageReport(
        session_id=session.session_id,
        stage_no=ended.stage_no,
        regulator_session_id=session.regulator_session_id,
        regulator_participation_id=session.regulator_participation_id,
        available_minor=ended.balance_before_minor,
        staked_minor=ended.staked_minor,
        returned_minor=ended.returned_minor,
        opening_hash=ended.opening_hash,
        end_ms=ended.end_ms,
    )


async def sign_recovery(store: Store, instance: Instance, clock: Clock) -> Recovered:
    """Pause what is open, then end the store's epoch. The instance has declared the lost ones lost at its start."""
    paused: list[Round] = []
    for round_ in await _open_rounds(store):
        session = await store.session(round_.session_id)
        if not round_.malfunction and session is not None:
            now_ms = max(clock.now_ms(), session.last_ms)
            draft = event_draft(
                EventCode.MALFUNCTION,
                now_ms,
                reason=REASON,
                before="IN_PLAY",
                after="PAUSED",
                session_id=round_.session_id,
                round_id=round_.round_id,
            )
            change = Change(
                session=replace(session, version=session.version + 1),
                round=replace(round_, version=round_.version + 1, malfunction_code=REASON),
                drafts=(draft,),
                pauses=True,
            )
            await store.commit(change)
        paused.append(round_)
    now_ms = clock.now_ms()
    before, after = await store.meta("store_epoch"), instance.new_id(now_ms)
    told = Counter("without a deck" if not round_.sealed else "with their deck" for round_ in paused)
    draft = event_draft(
        EventCode.STORE_RECOVERED,
        now_ms,
        subject=f"rounds open: {told['with their deck']} with their deck, {told['without a deck']} without",
        before=before,
        after=after,
    )
    records = (
        MetaSet(LOG_EPOCH, await store.meta(LOG_EPOCH) or before),  # the log goes on under its name
        MetaSet("store_epoch", after),
        MetaSet(RECOVERING, ""),
    )
    await store.commit(Change(drafts=(draft,), records=records))
    return Recovered(tuple(paused), before, after)


async def _open_rounds(store: Store) -> list[Round]:
    found: list[Round] = []
    after = 0
    while page := await store.open_rounds("", after=after, limit=_PAGE):
        found += [round_ for _, round_ in page]
        after = page[-1][0]
    return found
