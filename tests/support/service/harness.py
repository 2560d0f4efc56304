"""Every service in one folder, without a wire: store, embedded wallet and regulator, one instance.

`ServiceHarness` opens and starts them under a clock that the test moves; its wallet and regulator are the embedded
ones behind a `Script` that can make them fall silent or refuse. Beside it: `player`, its client, and `oracles`, which
check the files that it leaves.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.core.errors import RegulatorUnavailableError, WalletUnavailableError
from rgs.core.sessions import Funding
from rgs.core.statements import (
    KINDS,
    Ed25519Signer,
    Signer,
    format_canonical,
    parse_envelope,
    seal_envelope,
)
from rgs.core.statements.lines import format_key_bundle
from rgs.core.tables.views import SeatView
from rgs.core.times import format_time
from rgs.core.views import RoundView, SessionView
from rgs.node.keyring import node_key_in_force
from rgs.node.tls_identity import identify_certificate
from rgs.node.wiring import Encoders, NodeContext, Services
from rgs.service.admin.health_monitor import MonitoredParts
from rgs.service.callers import Caller, Encode, Reply, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Artifact, Instance
from rgs.service.play.requests import Act, BuyParticipation, CloseSession, EndParticipation, OpenSession, StartRound
from rgs.service.sealing import Kek, Sealer
from rgs.service.tables.seats import TableEncode
from rgs.store.interface import Parties, PartyRow, Store
from rgs.store.parties import SqliteParties
from rgs.store.regulator import RegulatorStore
from rgs.store.sqlite.store import SqliteStore
from rgs.store.wallet import WalletStore
from tests.support.clocks import NOW_MS, ManualClock
from tests.support.service.peers import Script, ScriptedRegulator, ScriptedWallet
from tests.support.store.copied import new_books, new_store

CERTIFICATE_MS = 365 * 86_400_000
"""So long the certificates of admins hold."""
STORE_EPOCH = "01JD8ZZZZZ0000000000000000"
NODE = "node-1"
ACCOUNT_MINOR = 1_000_000
"""What the embedded wallet gives every new player."""
OPERATOR = Caller("op-1", Role.OPERATOR, "demo")
ROOT_KEY = Ed25519Signer.from_seed(b"the root of a test server: 32 by")
NODE_KEY = Ed25519Signer.from_seed(b"the node of a test server: 32 by")
_REQUESTS = itertools.count(1)
_REFERENCES = itertools.count(1)
KEK = Kek(1, {1: bytes(range(32))})

Request = OpenSession | BuyParticipation | StartRound | Act | EndParticipation | CloseSession


# --- answers as JSON --------------------------------------------------------------------------------------------------


def round_document(view: RoundView) -> dict[str, Any]:
    """Everything that a client is told of a round."""
    settlement = view.settlement
    return {
        "actions": [action.body() for action in view.actions],
        "actions_hash": view.actions_hash.hex(),
        "bets": [list(bet) for bet in view.bets],
        "board": list(view.board),
        "commitment": view.commitment.hex(),
        "deadline_ms": view.deadline_ms,
        "dealer_cards": list(view.dealer_cards),
        "end_ms": view.end_ms,
        "game_code": view.game_code,
        "hole_cards": list(view.hole_cards),
        "legal_actions": [[legal.action.value, legal.cost_minor, legal.available] for legal in view.legal_actions],
        "phase": view.phase.value,
        "returned_minor": None if settlement is None else settlement.returned_minor,
        "round_id": view.round_id,
        "round_version": view.round_version,
        "round_no": view.round_no,
        "staked_minor": None if settlement is None else settlement.staked_minor,
        "start_ms": view.start_ms,
        "status": view.status.value,
    }


def session_document(view: SessionView) -> dict[str, Any]:
    """Everything that a client is told of a session, its round aside."""
    session, money = view.session, view.session.participation
    return {
        "balance_minor": money.balance_minor,
        "bought_minor": money.bought_minor,
        "elapsed_ms": view.elapsed_ms,
        "ended": money.ended,
        "largest_ante_minor": view.largest_ante_minor,
        "next_purchase_no": session.purchase_no + 1,
        "next_round_no": session.round_no + 1,
        "paid_out_minor": money.paid_out_minor,
        "participation_id": session.participation_id,
        "purchase_left_minor": view.purchase_left_minor,
        "regulator_participation_id": session.regulator_participation_id,
        "regulator_session_id": session.regulator_session_id,
        "returned_minor": money.returned_minor,
        "session_id": session.session_id,
        "staked_minor": money.staked_minor,
        "status": session.status.value,
    }


def plain_encode(method: str, session: SessionView, round_: RoundView | None) -> bytes:
    """An `Encode` that needs no contract: JSON."""
    document = {
        "method": method,
        "round": None if round_ is None else round_document(round_),
        "session": session_document(session),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def plain_table_encode(method: str, session: SessionView, seat: SeatView) -> bytes:
    """A `TableEncode` that needs no contract: JSON."""
    document = {
        "method": method,
        "seat": {
            "bets": [list(bet) for bet in seat.bets],
            "box": seat.box,
            "device_no": seat.device_no,
            "ended": seat.ended,
            "reserved_minor": seat.reserved_minor,
            "round": None if seat.round is None else round_document(seat.round),
            "seat_version": seat.seat_version,
        },
        "session": session_document(session),
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def read_reply(reply: Reply) -> dict[str, Any]:
    """What `plain_encode` wrote."""
    document: dict[str, Any] = json.loads(reply.body)
    return document


def read_statement(envelope: bytes) -> dict[str, Any]:
    """The body of a signed statement."""
    body: dict[str, Any] = json.loads(parse_envelope(envelope).payload)
    return body


# --- the harness ------------------------------------------------------------------------------------------------------


def key_bundle() -> bytes:
    """The key statements of every harness: one root, one node."""
    time = format_time(NOW_MS - 1000)
    root = {"kind": "root_key", "public_key": ROOT_KEY.public_key.hex(), "time": time}
    node = {
        "development": True,
        "kind": "node_key",
        "node": NODE,
        "public_key": NODE_KEY.public_key.hex(),
        "time": time,
    }
    return format_key_bundle([sealed(body, ROOT_KEY) for body in (root, node)])


def sealed(body: dict[str, Any], signer: Signer) -> bytes:
    return seal_envelope(KINDS[body["kind"]].payload_type, format_canonical(body), signer)


def new_reference() -> str:
    """An operator's own id of a session that no other session of this process has."""
    return f"ref:{next(_REFERENCES)}"


class ServiceHarness:
    """One process of the server over a folder. The files are made where they are missing, taken up where they are.

    Made by `open_harness`; `start` and `stop` are for tests that let it die in between.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: ManualClock | None = None,
        encode: Encode = plain_encode,
        table_encode: TableEncode = plain_table_encode,
        kek: Kek = KEK,
        draws_in_flight_max: int = 1024,
        account_minor: int = ACCOUNT_MINOR,
        fundings: Mapping[str, Funding] | None = None,
        games: GameCatalog | None = None,
        store: Store | None = None,
        parties: Parties | None = None,
    ) -> None:
        """`store` and `parties` are those of a database that the harness is to live over, instead of a file."""
        self.folder = folder
        self.clock = clock or ManualClock()
        if store is not None:  # a database whose clock is the test's, too
            store.clock_ms = self._database_ms  # type: ignore[method-assign]
        self._account_minor = account_minor
        path = folder / "rgs.db"
        if store is None and not path.exists():
            new_store(path, STORE_EPOCH)
        self.store = cast(SqliteStore, store or SqliteStore(path))
        self.instance = Instance(
            store=self.store,
            clock=self.clock,
            sealer=Sealer(kek),
            node=NODE,
            draws_in_flight_max=draws_in_flight_max,
            shared=store is not None,
        )
        new_books(folder)
        self.wallet_store = WalletStore(folder / "wallet.db")
        self.regulator_store = RegulatorStore(folder / "regulator.db")
        self.wallet = EmbeddedWallet(self.wallet_store, self.clock.now_ms)
        self.regulator = EmbeddedRegulator(self.regulator_store, self.instance.new_regulator_id, self.clock.now_ms)
        self.wallet_script, self.regulator_script = Script(WalletUnavailableError), Script(RegulatorUnavailableError)
        self.books = games or GameCatalog(fundings)
        self.parties = parties or SqliteParties(path)
        self.software = ""
        self.surroundings = ""
        """What a look at the certified files finds: a code, empty if they are as at the start."""
        self.log = ""
        """What stands against the transparency log: a code, empty if nothing does."""
        self.services = Services(
            NodeContext(
                store=self.store,
                parties=self.parties,
                instance=self.instance,
                clock=self.clock,
                games=self.books,
                wallet=ScriptedWallet(self.wallet, self.wallet_script),
                regulator=ScriptedRegulator(self.regulator, self.regulator_script),
                node=NODE,
            ),
            encoders=Encoders(encode, table_encode),
            monitored=MonitoredParts(
                lambda: self.software,
                600_000,
                86_400_000,
                lambda: self.log,
                lambda: self.surroundings,
            ),
            identify=identify_certificate,
            admit=lambda _: None,
            open_account=self._open_account,
        )
        self.locks, self.operations, self.play = self.services.locks, self.services.operations, self.services.play
        self.tables = self.services.tables
        self.sessions, self.history = self.services.sessions, self.services.history
        self.launches = self.services.launches
        self.reporting = self.services.reporting
        self.catalog, self.audit = self.services.catalog, self.services.audit

    async def start(self) -> None:
        """Sign as a new instance of the folder. VerificationError, as the server: the clock is behind the node key."""
        await self.services.load()
        node_key_in_force(key_bundle(), NODE, self.clock.now_ms())
        ruleset = self.books.rulesets["uth-solo"]
        await self.instance.start(
            NODE_KEY,
            manifest_sha256="0" * 64,
            software_version="0.1.0",
            artifacts=[Artifact("rulesets/uth-solo", ruleset.sha256, ruleset.canonical)],
        )

    async def let_in(self, *admins: str) -> None:
        """Allow a certificate of each admin, as it is done at the machine."""
        known, now_ms = {row.fingerprint for row in await self.parties.all()}, self.clock.now_ms()
        for party in admins:
            fingerprint = hashlib.sha256(party.encode()).hexdigest()
            if fingerprint not in known:
                await self.parties.add(
                    PartyRow(fingerprint, party, Role.ADMIN, "", now_ms, None, now_ms + CERTIFICATE_MS)
                )

    async def stop(self, *, ended: bool = True) -> None:
        """Let go of the folder: with `instance_end`, or without a word as after a power cut."""
        try:
            if ended:
                await self.instance.end("DRAINED")
        finally:
            await self.store.close()
            await self.parties.close()
            await self.wallet.close()
            await self.regulator.close()

    async def settle(self) -> None:
        """Continue what is under way and tell the regulator what is queued, until nothing is left."""
        for _ in range(100):
            while await self.sessions.recover() or await self.reporting.report_stages():
                pass
            waiting = [operation.next_ms for operation in await self.store.pending_operations(200)]
            if max(waiting, default=0) <= self.clock.now_ms():
                return
            self.clock.time_ms = min(time_ms for time_ms in waiting if time_ms > self.clock.time_ms)

    async def send(self, request: Request, caller: Caller = OPERATOR) -> Reply:
        """A mutating request to the service that takes it."""
        match request:
            case OpenSession():
                return await self.sessions.open(caller, request)
            case BuyParticipation():
                return await self.sessions.buy(caller, request)
            case StartRound():
                return await self.play.start_round(caller, request)
            case Act():
                return await self.play.act(caller, request)
            case EndParticipation():
                return await self.sessions.end_participation(caller, request)
            case CloseSession():
                return await self.sessions.close(caller, request)

    def request_id(self) -> str:
        """A request id that no other request of this process has."""
        return str(uuid.UUID(int=next(_REQUESTS)))

    async def balance(self, player: str = "anna", operator: str = OPERATOR.party) -> int:
        """What the player's account holds."""
        return (await self.wallet.get_balance(operator=operator, player=player, currency="EUR")).balance_minor

    async def _database_ms(self) -> int | None:
        return self.clock.database_ms()

    async def _open_account(self, operator: str, player: str, currency: str) -> None:
        await self.wallet.open_account(
            operator=operator, player=player, currency=currency, balance_minor=self._account_minor
        )


@asynccontextmanager
async def open_harness(folder: Path, *, ended: bool = True, **options: Any) -> AsyncIterator[ServiceHarness]:
    """A started harness, stopped at the end."""
    harness = ServiceHarness(folder, **options)
    try:
        await harness.start()
        yield harness
    except BaseException:
        await harness.stop(ended=False)
        raise
    await harness.stop(ended=ended)


# --- a client ---------------------------------------------------------------------------------------------------------
