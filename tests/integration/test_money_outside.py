"""The whole server with an operator's wallet and a regulator over gRPC, simulators that misbehave as planned:
real jurisdictions under an authority that is no development one, in both ways of funding.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from google.rpc.error_details_pb2 import RetryInfo

from rgs.core.errors import InvalidFieldError, UnknownFieldError
from rgs.core.sessions import Funding
from rgs.devkit.simulators.faults import Fault, FaultPlan, Faults, Planned
from rgs.devkit.simulators.regulator import SimulatedRegulator
from rgs.devkit.simulators.serving import ServerTls, Simulator, SimulatorServer
from rgs.devkit.simulators.wallet import SimulatedWallet
from rgs.node.clock import SystemClock
from rgs.node.peers import load_peers
from rgs.node.pki import Issued, is_development, issue_peer_certificate, issue_server
from rgs.service.callers import Role
from rgs.service.instance import regulator_id
from rgs.store.wallet import WalletStore
from rgs.v1 import admin_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, entropy, reason_in, status_in

OPERATOR = "op-real"
OPENING_MINOR = 200_000


@cache
def real_authority() -> Issued:
    """An authority as an operator brings it: without the mark of a development one."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Clients of a test")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Issued(builder.sign(key, hashes.SHA256()), key)


class Outside:
    """A home under a real authority, both simulators, and the server between them."""

    def __init__(self, folder: Path, jurisdiction: str, funding: str, wallet: FaultPlan, regulator: FaultPlan) -> None:
        self.harness = ApiHarness(folder / "home")
        self.jurisdiction = jurisdiction
        now_ms = self.harness.clock.now_ms
        currency = "GBP" if jurisdiction == "gb-ukgc" else "EUR"
        self.wallet = SimulatedWallet(
            folder / "wallet.db", now_ms, Faults(wallet), opening_minor=OPENING_MINOR, currency=currency
        )
        self.regulator = SimulatedRegulator(
            folder / "regulator.db", now_ms, Faults(regulator), partial(regulator_id, entropy().read), counts=True
        )
        self._funding = funding
        self._deadline_ms = 10_000 if (wallet, regulator) == (FaultPlan(), FaultPlan()) else 400
        self.servers: dict[str, SimulatorServer] = {}
        self.wires: dict[str, ServerTls] = {}

    async def start(self, *, with_regulator: bool = True) -> None:
        tls, real_ms = self.harness.config.tls, SystemClock().now_ms()
        authority = real_authority()
        assert not is_development(authority.certificate_pem)
        own = issue_server(authority, ["localhost"], entropy().read, real_ms)
        for stem, issued in (
            ("ca", authority),
            ("server", own),
            ("peers", issue_peer_certificate(authority, "node1", entropy().read, real_ms)),
        ):
            (tls / f"{stem}.pem").write_bytes(issued.certificate_pem)
            (tls / f"{stem}.key").write_bytes(issued.key_pem)
        simulators: list[tuple[str, Simulator]] = [("wallet", self.wallet), ("regulator", self.regulator)]
        for name, simulator in simulators:
            wire = ServerTls(own.key_pem, own.certificate_pem, authority.certificate_pem)
            self.wires[name] = wire
            self.servers[name] = SimulatorServer(simulator, "localhost:0", wire)
            await self.servers[name].start()
        port = {name: server.port for name, server in self.servers.items()}
        settings = f'[operator.{OPERATOR}]\nfunding = "{self._funding}"\n'
        settings += f'[operator.{OPERATOR}.wallet]\ntarget = "localhost:{port["wallet"]}"\n'
        settings += f"deadline_ms = {self._deadline_ms}\n"
        if with_regulator:
            settings += f'[regulator]\ntarget = "localhost:{port["regulator"]}"\n'
            settings += f"deadline_ms = {self._deadline_ms}\nopen_ms = 100\n"
        self.harness.config.peers.write_text(settings, "utf-8")
        await self.harness.start()

    async def stop(self) -> None:
        await self.harness.stop()
        for server in self.servers.values():
            await server.stop()

    async def player(self) -> ApiClient:
        certificate = self.harness.issue(Role.OPERATOR, OPERATOR)
        await self.harness.allow(certificate, Role.OPERATOR, OPERATOR, self.jurisdiction)
        await asyncio.sleep(1.1)  # the allow-list is asked once a second
        return ApiClient(self.harness.channel(certificate))


@contextlib.asynccontextmanager
async def outside(
    folder: Path,
    jurisdiction: str = "it-adm",
    funding: str = "participation",
    *,
    wallet: FaultPlan = FaultPlan(),  # noqa: B008 - a value
    regulator: FaultPlan = FaultPlan(),  # noqa: B008
    with_regulator: bool = True,
) -> AsyncIterator[Outside]:
    world = Outside(folder, jurisdiction, funding, wallet, regulator)
    await world.start(with_regulator=with_regulator)
    try:
        yield world
    finally:
        await world.stop()


async def until(happens: Callable[[], Awaitable[Any]], polls: int = 100) -> Any:
    """What the server says once it says it, for as long as a peer that misbehaves may take: ten looks a second."""
    for _ in range(polls):
        try:
            if result := await happens():
                return result
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
        await asyncio.sleep(0.1)
    raise AssertionError("never")


def again(method: Any, request: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: method(request)


async def test_italy_is_playable_with_a_regulator(tmp_path: Path) -> None:
    """Each first call of a method loses its reply: the same request goes on, and everything is told once."""
    methods = ("Debit", "Credit", "OpenSession", "BuyParticipation", "ReportStages", "EndParticipation", "CloseSession")
    lost = FaultPlan(tuple(Planned(Fault.LOST_REPLY, method, 1) for method in methods))
    async with outside(tmp_path, wallet=lost, regulator=lost) as world:
        player = await world.player()
        opened = await until(again(player.sessions.OpenSession, player.open_request()))
        player.session_id = opened.session.session_id
        assert opened.session.jurisdiction.id == "it-adm"
        assert not opened.session.test_regulator
        bought = await until(again(player.sessions.BuyParticipation, player.buy_request()))
        assert len(bought.session.regulator_participation_id) == 16
        await player.round_to_the_end()
        await player.round_to_the_end()
        ending = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
        ended = await until(again(player.sessions.EndParticipation, ending))
        closing = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=player.session_id)
        closed = await until(again(player.sessions.CloseSession, closing))
        assert closed.session.paid_out_minor == ended.session.paid_out_minor
    entries = [entry for entry in world_entries(tmp_path) if entry.kind != "opening"]
    assert [entry.kind for entry in entries] == ["debit", "credit"]
    assert entries[1].amount_minor == ended.session.paid_out_minor


def world_entries(folder: Path) -> list[Any]:
    with contextlib.closing(WalletStore(folder / "wallet.db")) as store:
        store.verify()
        return list(store.rows())


async def test_italy_is_refused_without_a_regulator(tmp_path: Path) -> None:
    async with outside(tmp_path, with_regulator=False) as world:
        player = await world.player()
        error = await refused(player.open())
        assert reason_in(status_in(error)) == "JURISDICTION_REFUSES"


async def test_italy_is_refused_bet_by_bet(tmp_path: Path) -> None:
    async with outside(tmp_path, funding="seamless") as world:
        player = await world.player()
        error = await refused(player.open())
        assert reason_in(status_in(error)) == "JURISDICTION_REFUSES"


async def test_britain_is_playable_bet_by_bet(tmp_path: Path) -> None:
    """The first debit's reply is lost, the second debit never arrives, the first credit's reply is lost."""
    faults = FaultPlan(
        (
            Planned(Fault.LOST_REPLY, "Debit", 1),
            Planned(Fault.LOST_REQUEST, "Debit", 2),
            Planned(Fault.LOST_REPLY, "Credit", 1),
        )
    )
    async with outside(tmp_path, "gb-ukgc", "seamless", wallet=faults) as world:
        player = await world.player()
        opened = await player.sessions.OpenSession(player.open_request(currency="GBP"))
        player.session_id = opened.session.session_id
        start = player.start_request()
        error = await refused(player.play.StartRound(start))
        assert reason_in(status_in(error)) == "WALLET_UNAVAILABLE"
        started = await until(again(player.play.StartRound, start))
        player.seen(started)
        decided = await until(again(player.play.Act, player.act_request(2)))
        assert decided.round.status == 2
        assert decided.session.bought_minor == decided.session.staked_minor == 600
        owed = await until(lambda: nothing_is_owed(player.channel))
        assert owed
    moved = [(entry.kind, entry.amount_minor) for entry in world_entries(tmp_path) if entry.kind != "opening"]
    returned = decided.session.returned_minor
    assert moved == [("debit", 200), ("debit", 400), ("credit", returned)], "a lost round returns 0, and says so"


async def test_an_expired_token_stops_a_bet_and_is_nowhere_in_the_home(tmp_path: Path) -> None:
    """It reaches the operator's wallet over the wire; the wallet's refusal is the answer for ever."""
    token = "expired-5f0c9a71e2"  # noqa: S105 - the simulated wallet knows it by its beginning
    async with outside(tmp_path, "gb-ukgc", "seamless") as world:
        player = await world.player()
        opened = await player.sessions.OpenSession(player.open_request(currency="GBP", session_token=token))
        player.session_id = opened.session.session_id
        start = player.start_request()
        result = [status_in(await refused(player.play.StartRound(start))) for _ in range(2)]
        assert result[0] == result[1]
        assert reason_in(result[0]) == "WALLET_REFUSED"
        assert b"TOKEN_EXPIRED" in result[0].SerializeToString()
        second = await player.sessions.OpenSession(player.open_request(currency="GBP", session_token="good"))  # noqa: S106
        player.session_id = second.session.session_id
        await player.play.StartRound(player.start_request())
        said = result[0].SerializeToString() + opened.SerializeToString()
    held = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(held) > 20
    assert [path.name for path in held if token.encode() in path.read_bytes()] == []
    assert token.encode() not in said


async def nothing_is_owed(channel: grpc.aio.Channel) -> bool:
    stub: Any = AdminServiceStub(channel)
    return not (await stub.ListPendingCredits(admin_pb2.ListPendingCreditsRequest())).credits


async def test_a_regulator_that_is_down_stops_openings_and_purchases_and_no_round(tmp_path: Path) -> None:
    async with outside(tmp_path) as world:
        player = await world.player()
        await player.seated()
        await player.start()
        await world.servers["regulator"].drain()
        other = ApiClient(player.channel, "player-2")
        for call in (other.open(), player.sessions.BuyParticipation(player.buy_request(purchase_no=2))):
            error = await refused(call)
            result = status_in(error)
            assert reason_in(result) in ("REGULATOR_UNAVAILABLE", "ROUND_OPEN")
            if reason_in(result) == "REGULATOR_UNAVAILABLE":
                retry = RetryInfo()
                assert any(detail.Unpack(retry) for detail in result.details)
                assert retry.retry_delay.ToMilliseconds() > 0
        last = [await player.act(action) for action in (1, 1, 7)][-1]
        assert last.round.status == 2
        await player.round_to_the_end()
        found = await world.harness.server.services.outbox.figures()
        assert {row.kind: row.count for row in found[0]}["stages"] == 2


# --- the file ---------------------------------------------------------------------------------------------------------

BAD = {
    "unknown = 1": (UnknownFieldError, "unknown"),
    "[operator.op-1]\nfund = 1": (UnknownFieldError, "operator.op-1.fund"),
    '[operator.op-1]\nfunding = "credit"': (InvalidFieldError, "operator.op-1.funding"),
    "[operator.op-1]\nwallet = 3": (InvalidFieldError, "operator.op-1.wallet"),
    "[regulator]": (InvalidFieldError, "regulator.target"),
    '[regulator]\ntarget = "x:1"\nca = 1': (InvalidFieldError, "regulator.ca"),
    '[regulator]\ntarget = "regulator.example"': (InvalidFieldError, "regulator.target"),
    '[regulator]\ntarget = ":443"': (InvalidFieldError, "regulator.target"),
    '[regulator]\ntarget = "x:65536"': (InvalidFieldError, "regulator.target"),
    '[regulator]\ntarget = "x:1²"': (InvalidFieldError, "regulator.target"),
    "operator = 1": (InvalidFieldError, "operator"),
    '[operator."Op 1"]': (InvalidFieldError, "operator"),
    "not toml": (InvalidFieldError, "peers"),
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "peers.toml").write_text(text, "utf-8")
    error, field = BAD[text]
    with pytest.raises(error) as caught:
        load_peers(tmp_path / "peers.toml", tmp_path)
    assert caught.value.field == field


def test_a_deadline_out_of_bounds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    for name in ("ca.pem", "peers.pem", "peers.key"):
        (tmp_path / "tls" / name).write_bytes(b"x")
        (tmp_path / "tls" / name).chmod(0o600)
    for deadline_ms, is_good in ((10, True), (60_000, True), (9, False), (60_001, False)):
        path = tmp_path / "peers.toml"
        path.write_text(f'[operator.op-1.wallet]\ntarget = "x:1"\ndeadline_ms = {deadline_ms}', "utf-8")
        if is_good:
            wallet = load_peers(path, tmp_path).operators["op-1"].wallet
            assert wallet is not None
            assert wallet.deadline_ms == deadline_ms
        else:
            with pytest.raises(InvalidFieldError):
                load_peers(path, tmp_path)


def test_without_a_file_all_is_embedded(tmp_path: Path) -> None:
    peers = load_peers(tmp_path / "peers.toml", tmp_path)
    assert (peers.regulator, peers.fundings, peers.sha256) == (None, {}, "")
    (tmp_path / "peers.toml").write_text('[operator.op-1]\nfunding = "seamless"', "utf-8")
    assert load_peers(tmp_path / "peers.toml", tmp_path).fundings == {"op-1": Funding.SEAMLESS}


def test_a_file_that_the_setting_names_must_be_there(tmp_path: Path) -> None:
    """A slip in `peers` must not make wallet and regulator embedded ones."""
    with pytest.raises(InvalidFieldError, match=r"no file .*/peer\.toml: correct the setting peers") as refused:
        load_peers(tmp_path / "peer.toml", tmp_path)
    assert refused.value.field == "peers"
