"""A server under fuzz: sends what is drawn, and after every call asks the books whether anything moved that must not.

What a call may do to balances: nothing if it was refused or only reads; otherwise what keeps the sum of accounts and
sessions, in sessions of the caller's own. No call ends in a fault of ours, nothing is logged as one, and no error text
holds a secret of the server. `verify_books` has the last word.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.status_pb2 import Status
from structlog.testing import capture_logs

from rgs.core.statements.lines import parse_key_bundle
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.node.pki import fingerprint_of
from rgs.tlog.directory import LogDirectory
from rgs.tlog.sequencer import Sequencer
from rgs.v1 import admin_pb2, common_pb2, free_bet_pb2, play_pb2, reconciliation_pb2, session_pb2, table_pb2
from tests.support.api.wired import STRANGER, STREAM, WATCH, Money, Till, Wire, certificate
from tests.support.fuzz.messages import Repeat, Step, bytes_of
from tests.support.fuzz.table_besieged import TABLE, TABLE_ADMIN, TABLE_NAME, BesiegedTable
from tests.support.service.harness import ACCOUNT_MINOR, KEK, NODE_KEY, key_bundle
from tests.support.service.leaks import dressed
from tests.support.service.oracles import verify_books

ADMIN, AUDIT, FREE_BET, PLAY, SESSION = (
    f"rgs.v1.{name}Service/" for name in ("Admin", "Audit", "FreeBet", "Play", "Session")
)
REFUSALS = {
    code.value[0]
    for code in (
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.OUT_OF_RANGE,
    )
}
"""How a call may end while nothing is broken: never INTERNAL, UNKNOWN, DATA_LOSS, and never UNAVAILABLE."""
ANSWER_S = 20
"""How long a call may take. It is far more than any needs, on a machine that does much else."""
LISTS = {f"{SESSION}ListSessions", "rgs.v1.HistoryService/ListRounds", "rgs.v1.SupportService/ListSupportRounds"}
"""Lists in which a reference or a session stands alone."""
MOVES = {f"{SESSION}BuyParticipation", f"{SESSION}EndParticipation", f"{PLAY}StartRound", f"{PLAY}Act", STREAM}
"""What may move the money of a session of the caller's; opening and closing move none."""
LOOKED_AT = {f"{TABLE_ADMIN}ConfigureTable", f"{TABLE}PlaceBets", f"{TABLE}Decide", f"{TABLE}Leave", WATCH}
"""After these the dealer looks at the table, and may open or end the round of who sits there."""
VOIDS = f"{ADMIN}ApproveVoid"
KNOWN_TOO = {"request_id", "operator", "reason", "session_id", "round_id", "kind", "round_no", "amount_minor", "player"}
RECONCILED = {"seconds", "nanos", "time"} | {
    field.name
    for name, kind in reconciliation_pb2.DESCRIPTOR.message_types_by_name.items()
    if name.endswith("Request") or name in {"WalletRow", "Receipt"}
    for field in kind.fields
    if field.name not in KNOWN_TOO and not field.name.startswith("page_")
}
"""Fields of reconciliation that this server has no values for."""


class Siege:
    """One server for many examples; `begin` gives each a session of its own with a round in play."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[Status] = []
        self.complaints: list[str] = []
        self.counts: dict[str, int] = {}
        self.accepted: list[tuple[str, str, bytes, list[bytes]]] = []
        self._number, self._counted = 0, 1_000
        self._known: dict[str, list[Any]] = {}
        self._secrets: list[bytes] = [KEK.keys[1]]

    async def start(self) -> None:
        self.wire = Wire(self.folder)
        await self.wire.start()
        self.till = Till(self.folder)
        harness = self.wire.harness
        harness.services.audit.take_key_statements(parse_key_bundle(key_bundle()))
        self.log = Sequencer(
            store=harness.store,
            clock=harness.clock,
            folder=self.folder / "log",
            prefix="log.example",
            signer=NODE_KEY,
            delay_ms=60_000,
        )
        self.table = BesiegedTable(self.wire, self._request_id)
        await self.table.start()

    async def stop(self) -> None:
        """The end: everything adds up, and nothing was told."""
        await self.wire.tick()
        await self.close()
        assert self.wire.faults == []
        assert self.complaints == [], self.complaints
        reported = b"\n".join(status.SerializeToString() for status in self.errors)
        for secret in self._secrets:
            leaks = [dress for dress, text in dressed(secret) if text in reported]
            assert leaks == [], leaks
        verify_books(self.folder)

    async def close(self) -> None:
        self.till.close()
        await self.log.close()
        await self.wire.stop()

    async def begin(self) -> None:
        """A player with money and, every second time, a round in play; one with money; one of op-2 with a round."""
        self._number += 1
        self.accepted.clear()
        self.wire.harness.clock.tick(3_000)
        mine, _ = await self._seat("op-1", f"mine-{self._number}", start=bool(self._number % 2))
        idle, _ = await self._seat("op-1", f"idle-{self._number}", start=False)
        foreign, _ = await self._seat("op-2", f"foreign-{self._number}", start=True)
        views = (mine, idle, foreign)
        self._secrets += await self.table.begin(f"seat-{self._number}", plays=bool(self._number % 2))
        rounds = [view.open_round.round_id for view in views if view.open_round.round_id]
        for round_id in rounds:
            round_ = await self.wire.harness.store.round(round_id)
            assert round_ is not None
            opened = self.wire.harness.services.decks.open(round_)
            self._secrets += [opened.salt, opened.transcript]
        granted = await self._grant("op-1", idle.player)
        await self.wire.harness.settle()
        await self.log.work()
        await self.wire.harness.services.finals_list.poll()
        shard = next((self.folder / "log").glob("*/checkpoint")).parent
        published = parse_checkpoint(parse_note(LogDirectory(shard).checkpoint()).text)
        self._size = published.size
        self._known = {
            "session_id": [view.session_id for view in views],
            "round_id": rounds,
            "player": [view.player for view in views],
            "operator": ["op-1", "op-2"],
            "game": ["uth-solo", "casino-holdem", "uth-lugano"],
            "ruleset_id": ["uth-solo", "casino-holdem"],
            "currency": ["EUR"],
            "operator_reference": [f"ref:{self._counted}", views[0].operator_reference],
            "session_token": ["the operator's own token"],
            "close_out": [False, True],
            "instance": [self.wire.harness.instance.name],
            "reason": ["INSPECTED", "DECK_UNRECOVERABLE"],
            "code": ["STUCK"],
            "text": [views[0].player, views[0].session_id, views[0].operator_reference],
            "kind": ["round_opening", "round_final", "stages", "held"],
            "subject": [views[0].session_id, "op-1"],
            "name": ["clock", "store", "rng"],
            "jurisdiction": ["", "demo", "it-adm"],
            "fingerprint": [fingerprint_of(certificate("spare").certificate)],
            "certificate": [certificate(party).certificate_pem for party in ("spare", STRANGER, "admin-1")],
            "first_day": ["", "2026-11-21"],
            "last_day": ["", "2026-11-21"],
            "page_token": ["", "cDEuMQ"],
            "resume_token": ["", "cDEuMQ"],
            "origin": [published.origin, "", "log.example/2020h1"],
            "bet": ["ante", "trips", "blind"],
            "table": ["", TABLE_NAME],
            "free_bet": ["", granted, ""],
            "grant_id": [granted],
            "campaign": ["spring"],
            "mode": [0, 1],
            "language": ["it", "en"],
            "return_url": ["", "https://casino.example/"],
            "launch_token": ["", "", "A" * 43],
        }

    async def _grant(self, party: str, player: str) -> str:
        """The id of a free bet."""
        request = free_bet_pb2.GrantFreeBetsRequest(
            request_id=self._request_id(0), player=player, game="uth-solo", currency="EUR", campaign="spring",
            stake_minor=100, count=1, expiry_time=Timestamp(seconds=self.wire.harness.clock.now_ms() // 1000 + 3_600),
        )  # fmt: skip
        data = await self.wire.ask(party, f"{FREE_BET}GrantFreeBets", request)
        return free_bet_pb2.GrantFreeBetsResponse.FromString(data).free_bets[0].grant_id

    async def _seat(self, party: str, player: str, *, start: bool) -> tuple[Any, bytes]:
        wire = self.wire
        opening = session_pb2.OpenSessionRequest(
            request_id=self._request_id(0), game="uth-solo", player=player, currency="EUR", operator_reference=player
        )
        data = await wire.ask(party, f"{SESSION}OpenSession", opening)
        session_id = session_pb2.OpenSessionResponse.FromString(data).session.session_id
        purchase = session_pb2.BuyParticipationRequest(
            request_id=self._request_id(0), session_id=session_id, purchase_no=1, amount_minor=20_000
        )
        data = await wire.ask(party, f"{SESSION}BuyParticipation", purchase)
        if not start:
            return session_pb2.BuyParticipationResponse.FromString(data).session, data
        bets = [common_pb2.Bet(bet="ante", amount_minor=100)]
        stakes = play_pb2.StartRoundRequest(
            request_id=self._request_id(0), session_id=session_id, round_no=1, bets=bets
        )
        data = await wire.ask(party, f"{PLAY}StartRound", stakes)
        response = play_pb2.StartRoundResponse.FromString(data)
        view = response.session
        view.open_round.CopyFrom(response.round)
        return view, data

    def _request_id(self, nth: int) -> str:
        """0 is a new one; others come again."""
        if not nth:
            self._counted += 1
            return str(uuid.UUID(int=self._counted))
        return str(uuid.UUID(int=nth))

    # --- what is drawn ----------------------------------------------------------------------------------------------

    def known(self, method: str, field: str, nth: int) -> Any:
        """The nth value of this server for a field; None where the field is left out."""
        if method.startswith((TABLE, TABLE_ADMIN)) and field in (of_table := self.table.known(method, nth)):
            return of_table[field]
        stands = self.till.stands(self._known["session_id"][0])
        numbers = {
            "round_no": stands["round_no"] + 1,
            "round_version": stands["round_version"],
            "purchase_no": stands["purchase_no"] + 1,
            "amount_minor": 100,
            "action": 1,
            "scope": 1 + nth % 4,
            "count": 1 + nth % 3,
            "min_minor": 20,
            "max_minor": 100_000,
            "statement_no": 1 + nth,
            "page_size": nth,
            "old_size": nth,
            "new_size": self._size - nth,
            "start_index": nth,
            "loss_minor": 100_000,
            "stake_minor": 100_000,
            "duration_ms": 3_600_000,
        }
        match field:
            case "operator_reference" | "session_id" if not nth and method in LISTS:
                return None  # each stands alone, or not at all
            case "request_id":
                return self._request_id(nth)
            case "round_ids":
                return self._known["round_id"][: 1 + nth]
            case "bets":
                return [{"bet": "ante", "amount_minor": 100}]
            case "bet_limits":
                return [{"bet": "ante", "min_minor": 20, "max_minor": 100_000}] if nth % 2 else None
            case "follow" | "limits" | "hash" | "first_no" | "last_no" | "date" | "game_code":
                return None
            case "dry_run" | "enabled" | "open_only" | "removed_too":
                return bool(nth % 2)
            case "embedded_regulator":
                return True
            case "expiry_time":
                return {"seconds": self.wire.harness.clock.now_ms() // 1000 + 3_600}
            case "header":
                return {"request_id": self._request_id(nth), "first_day": "2026-11-21", "last_day": "2026-11-21"}
        if field in numbers:
            return numbers[field] + nth if field in ("round_no", "round_version", "purchase_no") else numbers[field]
        if field in RECONCILED:
            return None
        values = self._known[field]
        return values[nth % len(values)]

    async def run(self, steps: list[Step | Repeat]) -> None:
        await self.begin()
        try:
            for step in steps:
                await self._step(step)
        finally:  # also for the one example that failed: it is run again, to be told
            await self._restore()

    async def _step(self, step: Step | Repeat) -> None:
        self.wire.harness.clock.tick(700)
        before = self.till.money()
        await self.table.read()
        expected: list[bytes] | None = None
        if isinstance(step, Repeat):
            if not self.accepted:
                return
            party, method, data, expected = self.accepted[step.nth % len(self.accepted)]
        else:
            party, method, data = step.party, step.method, bytes_of(step, self.known)
        try:
            status, got = await asyncio.wait_for(self.wire.call(party, method, data), ANSWER_S)
        except TimeoutError:
            raise AssertionError(f"no answer within {ANSWER_S} s: {party} {method} {data.hex()}") from None
        await self.wire.harness.tables.dealer.stop()  # what it has begun comes to its end
        kinds: dict[str, Any] = {STREAM: play_pb2.PlayResponse, WATCH: table_pb2.WatchResponse}
        in_band = [kinds[method].FromString(part) for part in got] if method in kinds else []
        refusals = [status, *(answer.error for answer in in_band if answer.HasField("error"))]
        refusals = [refusal for refusal in refusals if refusal.code]
        self.errors += refusals
        for refusal in refusals:
            assert refusal.code in REFUSALS, (party, method, data.hex(), refusal)
        assert self.wire.faults == [], (party, method, data.hex())
        outcome = f"{method.split('/')[1]} {refusals[0].code if refusals else 0}"
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self._verify(party, method, before, self.till.money(), moved=not refusals and expected is None)
        if expected is not None:
            assert got == expected, (party, method, data.hex())
        elif not refusals and _is_kept(method, data):
            self.accepted.append((party, method, data, got))

    def _verify(self, party: str, method: str, before: Money, after: Money, *, moved: bool) -> None:
        assert before.keys() <= after.keys()
        changed = {key for key in before if before[key] != after[key]}
        added = after.keys() - before.keys()
        seated = {self.table.session_id} if moved and method in LOOKED_AT else set()
        if not moved or (method not in MOVES and method != VOIDS):
            assert changed <= seated, (party, method, changed)
        for key in (changed | added) - seated:
            assert method == VOIDS or self.till.owner(key) == party, (party, method, key)
        for key in added:
            assert after[key] in ((ACCOUNT_MINOR,), (0, 0, 0, 0)), (key, after[key])
        # What left the accounts is in the sessions, or came back from them: whatever was won or lost is there too.
        accounts = [values[0] for values in after.values() if len(values) == 1]
        in_sessions = sum(values[0] - values[3] for values in after.values() if len(values) == 4)
        assert sum(accounts) + in_sessions == ACCOUNT_MINOR * len(accounts), (party, method)

    async def _restore(self) -> None:
        """Enable what an accepted call disabled, so that the next example finds the server as this one did."""
        services = self.wire.harness.services
        for switch in services.availability.switches():
            operator, _, player = switch.subject.partition("/")
            fields = {"operator": {"operator": operator}, "game": {"game": operator}, "play": {}}
            reported: Any = fields.get(switch.scope, {"operator": operator, "player": player})
            scope = admin_pb2.SwitchScope.Value(f"SWITCH_SCOPE_{switch.scope.upper()}")
            message = admin_pb2.SetSwitchRequest(
                request_id=self._request_id(0), scope=scope, enabled=True, reason="NEXT", **reported
            )
            await self.wire.ask("admin-1", f"{ADMIN}SetSwitch", message)
        assert services.availability.serving
        await self.table.restore()


def _is_kept(method: str, data: bytes) -> bool:
    """Whether the same bytes have the same answer for ever: calls under a request id, alone, that tell nothing new."""
    name = method.split("/")[1]
    reads = ("Get", "List", "Watch", "Stream", "Export", "Explain", "Find")
    newer = (*reads, "ProposeVoid", "ApproveVoid", "VoidTableRound", "ConfigureTable", "Say")
    shown_anew = ("CreateLaunch", "GrantFreeBets")  # a repeat has a new token; the grants are shown as they stand now
    return method != STREAM and not name.startswith(newer + shown_anew)


class Complaints(logging.Handler):
    """What libraries complain of: a traceback in a servicer, a task whose error nobody took."""

    def __init__(self, siege: Siege) -> None:
        super().__init__(logging.WARNING)
        self._siege = siege

    def emit(self, record: logging.LogRecord) -> None:
        self._siege.complaints.append(self.format(record))


def besiege(folder: Path, examples: Any) -> Siege:
    """Give a siege to `examples(runner, siege)`, and verify it at the end."""
    siege = Siege(folder)
    complaints = Complaints(siege)
    logging.getLogger().addHandler(complaints)
    try:
        with capture_logs() as logs, asyncio.Runner() as runner:
            runner.run(siege.start())
            try:
                examples(runner, siege)
            except BaseException:
                runner.run(siege.close())
                raise
            runner.run(siege.stop())
        assert [line for line in logs if line["log_level"] in ("error", "critical") or "exc_info" in line] == []
    finally:
        logging.getLogger().removeHandler(complaints)
    return siege
