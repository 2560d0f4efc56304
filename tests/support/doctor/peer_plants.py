"""Plants in allow-list, peers, clock, store and log."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from unittest.mock import patch

import grpc

from rgs.core.statements.lines import parse_key_bundle
from rgs.node import pki
from rgs.node.clock import now_ms
from rgs.node.doctor import parties
from rgs.node.doctor import store as store_checks
from rgs.node.doctor.findings import Finding
from rgs.node.doctor.generator import check_generator
from rgs.node.doctor.store import check_clock, check_durability
from rgs.service.callers import Role
from rgs.store.durability import Durability
from rgs.store.interface import PartyRow
from rgs.store.sequence import LogOrder, LogShard
from tests.support.doctor.planting import (
    DAY_MS,
    PASSWORD,
    Planted,
    gathered,
    party_findings,
    plants,
    policy,
    store_findings,
)
from tests.support.process.generator import serving_thread

# --- allow-list and peers ---------------------------------------------------------------------------------------------


@plants("DEMO_PARTY", "JURISDICTION_FOR_TESTS", "ONE_ADMIN", "EMBEDDED_WALLET", "EMBEDDED_REGULATOR")
def development_parties(planted: Planted) -> Iterable[Finding]:
    return party_findings(planted)


def row(role: Role, party: str, last_ms: int | None = None) -> PartyRow:
    return PartyRow("a" * 64, party, role, "it-adm" if role is Role.OPERATOR else "", 0, None, last_ms)


@plants("NO_ADMIN", "NO_OPERATOR")
def nobody(_planted: Planted) -> Iterable[Finding]:
    return parties.check_allowed([], now_ms())


@plants("PARTY_ENDED")
def ended_party(_planted: Planted) -> Iterable[Finding]:
    return parties.check_allowed([row(Role.ADMIN, "anna", now_ms() - 1)], now_ms())


@plants("PARTY_ENDS_SOON")
def ending_party(_planted: Planted) -> Iterable[Finding]:
    return parties.check_allowed([row(Role.ADMIN, "anna", now_ms() + 29 * DAY_MS)], now_ms())


@plants("GENERATOR_REFUSED")
def no_generator_process(planted: Planted) -> Iterable[Finding]:
    planted.set('generator = "unix:none.sock"')
    return asyncio.run(gathered(check_generator(planted.home)))


@plants("GENERATOR_REFUSED")
def generator_process_of_other_software(planted: Planted) -> Iterable[Finding]:
    planted.set('generator = "unix:g.sock"')
    with serving_thread(planted.path / "g.sock", rng_hash=b"o" * 32):
        return asyncio.run(gathered(check_generator(planted.home)))


@plants("PEERS_REFUSED")
def bad_peers(planted: Planted) -> Iterable[Finding]:
    (planted.path / "peers.toml").write_text("[operator.x]\nfundnig = 1\n", "ascii")
    return party_findings(planted)


@plants("PEERS_REFUSED")
def bad_peers_while_the_store_is_away(planted: Planted) -> Iterable[Finding]:
    planted.set('store = "postgresql://rgs@127.0.0.1:1/rgs"')
    return bad_peers(planted)


@plants("OPERATOR_UNKNOWN", "PEER_UNREACHABLE")
def wallet_of_nobody(planted: Planted) -> Iterable[Finding]:
    planted.peers('[operator.nobody.wallet]\ntarget = "127.0.0.1:1"\n')
    return party_findings(planted)


@plants("PEER_UNREACHABLE")
def wallet_with_other_authority(planted: Planted) -> Iterable[Finding]:
    return asyncio.run(reach_wallet(planted, pki.make_development_ca(os.urandom, now_ms())))


def peer_certificate(planted: Planted, time_ms: int) -> Iterable[Finding]:
    own = pki.issue_peer_certificate(planted.authority(), "node1", os.urandom, time_ms)
    for name, content in (("w.pem", own.certificate_pem), ("w.key", own.key_pem)):
        (planted.path / name).write_bytes(content)
    (planted.path / "w.key").chmod(0o600)
    peers = planted.peers('[regulator]\ntarget = "127.0.0.1:1"\ncertificate = "w.pem"\nkey = "w.key"\n')
    return list(parties.check_credentials(planted.home, peers))


@plants("PEER_CERTIFICATE_ENDED")
def ended_certificate_for_a_peer(planted: Planted) -> Iterable[Finding]:
    return peer_certificate(planted, now_ms() - 3_660 * DAY_MS)


@plants("PEER_CERTIFICATE_NOT_YET")
def early_certificate_for_a_peer(planted: Planted) -> Iterable[Finding]:
    return peer_certificate(planted, now_ms() + 30 * DAY_MS)


@plants("PEER_CERTIFICATE_ENDS_SOON")
def ending_certificate_for_a_peer(planted: Planted) -> Iterable[Finding]:
    return peer_certificate(planted, now_ms() - 360 * DAY_MS)


@plants("WITNESS_UNREACHABLE")
def silent_witness(planted: Planted) -> Iterable[Finding]:
    policy(planted, planted.path)
    return parties.check_witnesses(planted.home)


@plants("WITNESS_UNREACHABLE")
def witness_without_tls(planted: Planted) -> Iterable[Finding]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        policy(planted, planted.path, url=f"https://127.0.0.1:{listening.getsockname()[1]}")
        with patch.object(parties, "REACH_S", 0.2):
            return list(parties.check_witnesses(planted.home))


async def reach_wallet(planted: Planted, authority: pki.Issued) -> list[Finding]:
    async with wallet(authority, planted.authority()) as port:
        peers = planted.peers(f'[operator.demo-operator.wallet]\ntarget = "localhost:{port}"\n')
        with patch.object(parties, "REACH_S", 1.0):
            return await parties.check_reached(peers)


@asynccontextmanager
async def wallet(authority: pki.Issued, trusted: pki.Issued) -> AsyncIterator[int]:
    """A gRPC server with a certificate of `authority`, for clients of `trusted`."""
    server = grpc.aio.server()
    own = pki.issue_server(authority, ["localhost"], os.urandom, now_ms())
    credentials = grpc.ssl_server_credentials(
        [(own.key_pem, own.certificate_pem)], trusted.certificate_pem, require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


# --- clock, store, log ------------------------------------------------------------------------------------------------


@plants("CLOCK_NOT_KEPT")
def free_clock(planted: Planted) -> Iterable[Finding]:
    with patch.object(store_checks, "kernel_status", lambda: 0x2041):
        return list(check_clock(planted.home))


@plants("CLOCK_BEHIND_STORE")
def clock_behind(planted: Planted) -> Iterable[Finding]:
    envelope = parse_key_bundle((planted.path / "keys" / "keys.json").read_bytes())[0]

    async def newest(_self: object) -> bytes:
        return envelope

    with (
        patch("rgs.store.interface.StoreReads.newest_envelope", newest),
        patch.object(store_checks, "now_ms", lambda: now_ms() - DAY_MS),
    ):
        return store_findings(planted)


@plants("STORE_REFUSED")
def other_schema(planted: Planted) -> Iterable[Finding]:
    with closing(sqlite3.connect(planted.path / "store" / "rgs.db")) as db, db:
        db.execute("UPDATE meta SET value = '3' WHERE key = 'schema'")
    return store_findings(planted)


@plants("STORE_AWAY")
def no_database(planted: Planted) -> Iterable[Finding]:
    planted.set(f'store = "postgresql://rgs:{PASSWORD}@127.0.0.1:1/rgs"')
    return store_findings(planted)


@plants("STORE_RECOVERING")
def half_recovered(planted: Planted) -> Iterable[Finding]:
    with closing(sqlite3.connect(planted.path / "store" / "rgs.db")) as db, db:
        db.execute("INSERT INTO meta (key, value) VALUES ('recovering', 'x')")
    return store_findings(planted)


@plants("STORE_ON_ONE_DISK")
def one_file(planted: Planted) -> Iterable[Finding]:
    return store_findings(planted)


@plants("LOG_REFUSED")
def log_ahead(planted: Planted) -> Iterable[Finding]:
    (planted.path / "translog").mkdir()
    with closing(LogOrder(planted.path / "translog" / "order.db")) as order:
        order.open_shard(LogShard(1, "log.example/rgs/2026h2", b""))
        order.assign(1, 0, [("node1-b1-w0", 1)])
    return store_findings(planted)


GOOD = {
    **dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes", "archive_mode", "data_checksums"), "on"),
    **dict.fromkeys(("zero_damaged_pages", "ignore_checksum_failure"), "off"),
    "synchronous_standby_names": "*",
    "archive_command": "cp %p /x/%f",
    "max_connections": "100",
}


def database_with(workers: int = 1, is_local: bool = True, **settings: str) -> list[Finding]:
    return list(check_durability(Durability(GOOD | settings, is_encrypted=False, is_local=is_local), workers))


@plants("NOT_DURABLE")
def without_fsync(_planted: Planted) -> Iterable[Finding]:
    return database_with(fsync="off")


@plants("CHECKSUMS_OFF")
def without_checksums(_planted: Planted) -> Iterable[Finding]:
    return database_with(data_checksums="off")


@plants("NO_STANDBY")
def without_standby(_planted: Planted) -> Iterable[Finding]:
    return database_with(synchronous_standby_names="")


@plants("NOT_ARCHIVED")
def without_archive(_planted: Planted) -> Iterable[Finding]:
    return database_with(archive_command="(disabled)")


@plants("NOT_ENCRYPTED")
def in_clear(_planted: Planted) -> Iterable[Finding]:
    return database_with(is_local=False)


@plants("FEW_CONNECTIONS")
def many_workers(_planted: Planted) -> Iterable[Finding]:
    return database_with(workers=14)


@plants("CLOCKS_DIFFER")
def other_clock(planted: Planted) -> Iterable[Finding]:
    async def clock_ms(_self: object) -> int:
        return now_ms() + 6_000

    with patch("rgs.store.interface.StoreReads.clock_ms", clock_ms):
        return store_findings(planted)
