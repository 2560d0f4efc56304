"""Who may call, and whom the server calls: allow-list, wallets, regulator, witnesses."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Final
from urllib.parse import urlsplit

import grpc

from rgs.adapters.grpc.peer import PeerSettings
from rgs.core.errors import FormatError, RgsError
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.times import format_time
from rgs.node.doctor.certificates import DAY_MS, check_times
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.home import DEMO_PARTIES
from rgs.node.peers import NodePeers, load_peers
from rgs.node.pki import load_certificates
from rgs.node.stores import allow_list
from rgs.node.transparency_log import load_policy, trusted_by_witnesses
from rgs.service.admin.certificates import ends_soon
from rgs.service.callers import Role
from rgs.store.interface import PartyRow

ALLOWED: Final = "allow-list"
PEERS: Final = "peers"
REACH_S: Final = 5.0
"""So long a peer may take to be reached."""
_DEMO: Final = frozenset(party for _, party in DEMO_PARTIES)


async def check_parties(home: Home) -> AsyncIterator[Finding]:
    """The allow-list and peers.toml, alone and against each other. A store that does not answer is reported by
    `check_store`; peers.toml is read all the same.
    """
    peers: NodePeers | None = None
    try:
        peers = load_peers(home.config.peers, home.config.home)
    except RgsError as error:
        yield found(PEERS, "PEERS_REFUSED", error.message)
    rows = await _allowed(home)
    if rows is not None:
        for finding in check_allowed(rows, home.now_ms):
            yield finding
    if peers is None:
        return
    if rows is not None:
        for finding in check_named(rows, peers):
            yield finding
    for finding in check_credentials(home, peers):
        yield finding
    for finding in await check_reached(peers):
        yield finding


async def _allowed(home: Home) -> list[PartyRow] | None:
    """The allow-list; None if the store does not answer."""
    try:
        async with allow_list(home.config.store) as parties:
            return await parties.allowed()
    except RgsError:
        return None


def check_allowed(rows: list[PartyRow], now_ms: int) -> Iterator[Finding]:
    """The certificates that are allowed."""
    problems: list[Finding] = []
    for row in rows:
        where = f"{row.role} {row.party}"
        if row.party in _DEMO:
            problems.append(
                found(ALLOWED, "DEMO_PARTY", f"{where} of the development set-up may call", value=row.fingerprint)
            )
        if row.jurisdiction and _is_for_tests(row.jurisdiction):
            what = f"{where} plays in a jurisdiction for tests"
            problems.append(found(ALLOWED, "JURISDICTION_FOR_TESTS", what, value=row.jurisdiction))
        if row.last_ms is None:
            continue
        ends = format_time(row.last_ms)
        if row.last_ms < now_ms:
            problems.append(
                found(
                    ALLOWED, "PARTY_ENDED", f"the certificate of {where} has ended", value=row.fingerprint, limit=ends
                )
            )
        elif ends_soon(row.last_ms, now_ms):
            days = (row.last_ms - now_ms) // DAY_MS
            what = f"the certificate of {where} ends at {ends}"
            problems.append(found(ALLOWED, "PARTY_ENDS_SOON", what, value=f"{days} days", limit="30 days"))
    admins = {row.party for row in rows if row.role == Role.ADMIN}
    if not admins:
        problems.append(found(ALLOWED, "NO_ADMIN", "no admin may call", value=0, limit=1))
    elif len(admins) == 1:
        problems.append(found(ALLOWED, "ONE_ADMIN", "only one admin may call", value=1, limit=2))
    if not any(row.role == Role.OPERATOR for row in rows):
        problems.append(found(ALLOWED, "NO_OPERATOR", "no operator may call", value=0, limit=1))
    yield from problems
    if not problems:
        counts = Counter(row.role for row in rows)
        yield fine(ALLOWED, ", ".join(f"{count} of role {role}" for role, count in sorted(counts.items())))


def _is_for_tests(name: str) -> bool:
    try:
        return load_jurisdiction(name).test_regulator_allowed
    except RgsError:
        return False


def check_named(rows: list[PartyRow], peers: NodePeers) -> Iterator[Finding]:
    """The operators of the allow-list against those of peers.toml."""
    operators = {row.party for row in rows if row.role == Role.OPERATOR}
    for name in sorted(operators):
        named = peers.operators.get(name)
        if named is None or named.wallet is None:
            yield found(PEERS, "EMBEDDED_WALLET", f"operator {name} plays from the embedded wallet", value=name)
    for name in sorted(peers.operators.keys() - operators):
        yield found(
            PEERS,
            "OPERATOR_UNKNOWN",
            f"peers.toml names operator {name}, of whom no certificate is allowed",
            value=name,
        )
    if peers.regulator is None:
        yield found(PEERS, "EMBEDDED_REGULATOR", "sessions are opened at the embedded test regulator", value="none")


def check_credentials(home: Home, peers: NodePeers) -> Iterator[Finding]:
    """The ends of the certificates that peers.toml names."""
    for name, settings in outside(peers).items():
        for kind, pem in (("certificate", settings.certificate), ("ca", settings.ca)):
            try:
                for one in check_times(home, f"{kind} for the {name}", load_certificates(pem)):
                    yield found(PEERS, f"PEER_{one.code}", one.what, value=one.value, limit=one.limit)
            except FormatError as error:
                yield found(PEERS, "PEERS_REFUSED", f"{kind} for the {name}: {error.message}")


def outside(peers: NodePeers) -> dict[str, PeerSettings]:
    """The wallets and the regulator's system that are not embedded, by their names for people."""
    named = {f"wallet of {name}": one.wallet for name, one in peers.operators.items() if one.wallet is not None}
    if peers.regulator is not None:
        named["regulator"] = peers.regulator
    return named


async def check_reached(peers: NodePeers) -> list[Finding]:
    """Whether each wallet and the regulator's system answers."""
    return list(await asyncio.gather(*(_reach(name, settings) for name, settings in outside(peers).items())))


async def _reach(name: str, settings: PeerSettings) -> Finding:
    """Open a channel as the server does. It is ready when both have accepted each other's certificate."""
    host, _, port = settings.target.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), REACH_S)
        writer.close()
    except (OSError, TimeoutError) as error:
        what = f"nothing answers for the {name}: {type(error).__name__}"
        return found(PEERS, "PEER_UNREACHABLE", what, value=settings.target, limit=f"{REACH_S:.0f} s")
    credentials = grpc.ssl_channel_credentials(settings.ca, settings.key, settings.certificate)
    options = [("grpc.ssl_target_name_override", settings.server_name)] if settings.server_name else []
    async with grpc.aio.secure_channel(settings.target, credentials, options=options) as channel:
        try:
            await asyncio.wait_for(channel.channel_ready(), REACH_S)
        except TimeoutError:
            what = f"the {name} answers, and TLS fails: certificate, authority or name"
            return found(PEERS, "PEER_UNREACHABLE", what, value=settings.target, limit=f"{REACH_S:.0f} s")
    return fine(PEERS, f"the {name} answers at {settings.target}, with mutual TLS")


# --- witnesses --------------------------------------------------------------------------------------------------------


def check_witnesses(home: Home) -> Iterator[Finding]:
    """Whether each witness of the policy answers. A policy that cannot be read is reported by `check_settings`."""
    path = home.config.log_policy
    if path is None:
        return
    try:
        policy, _ = load_policy(path)
        tls = trusted_by_witnesses(home.config.witness_ca)
    except RgsError:
        return
    for name, party in policy.witnesses.items():
        if not party.url:
            continue
        why = _ask(party.url, tls)
        if why:
            yield found(PEERS, "WITNESS_UNREACHABLE", f"witness {name} does not answer: {why}", value=party.url)
        else:
            yield fine(PEERS, f"witness {name} answers at {party.url}")


def _ask(url: str, tls: ssl.SSLContext | None) -> str:
    """Ask for a checkpoint of a log that nobody has; empty if the witness says that it does not know it."""
    where = urlsplit(url)
    host = where.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, where.port, timeout=REACH_S, context=tls)
        if where.scheme == "https"
        else http.client.HTTPConnection(host, where.port, timeout=REACH_S)
    )
    try:
        connection.request("GET", f"{where.path.rstrip('/')}/{hashlib.sha256(b'').hexdigest()}/checkpoint")
        status = connection.getresponse().status
    except ssl.SSLError as error:
        return f"TLS: {error.reason or type(error).__name__}"
    except (OSError, http.client.HTTPException, socket.gaierror) as error:
        return type(error).__name__
    finally:
        connection.close()
    return "" if status == http.client.NOT_FOUND else f"status {status}"
