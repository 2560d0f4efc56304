"""The settings, and the keys of a node."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Final

from rgs.core.errors import RgsError
from rgs.core.times import format_time
from rgs.integrity.isolation import SurroundingsError, isolated_command, unheard, verify_environment
from rgs.node import keyring
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.files import FileRefusedError
from rgs.node.transparency_log import load_policy, trusted_by_witnesses
from rgs.node.workers import ServingAlreadyError, serving_alone

SETTINGS: Final = "settings"
KEYS: Final = "keys"
START_S: Final = 120.0
"""A measured start takes seconds; one that hangs is refused."""


def check_settings(home: Home) -> Iterator[Finding]:
    """What the settings name: address, log, witnesses, certified software."""
    config = home.config
    yield from _check_listen(home)
    if not config.log_origin:
        yield found(SETTINGS, "LOG_ORIGIN_EMPTY", "the log has a name that nobody owns", value="rgs.example/…")
    yield from _check_policy(home)
    yield from _check_software(home)


def _check_listen(home: Home) -> Iterator[Finding]:
    try:
        with serving_alone(home.config.home):
            for setting, listen in (("listen", home.config.listen), ("metrics_listen", home.config.metrics_listen)):
                if listen:
                    yield _probe(setting, listen)
    except ServingAlreadyError:
        yield fine(SETTINGS, f"this home is served now, at {home.config.listen}")


def _probe(setting: str, listen: str) -> Finding:
    host, _, port = listen.rpartition(":")
    try:
        found_ = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found_[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        what = f"nothing can listen at `{setting}`: {error.strerror or type(error).__name__}"
        return found(SETTINGS, "LISTEN_REFUSED", what, value=listen)
    return fine(SETTINGS, f"{listen} is free")


def _check_policy(home: Home) -> Iterator[Finding]:
    path = home.config.log_policy
    if path is None:
        yield found(
            SETTINGS, "NO_WITNESS", "no witness cosigns the log: it could be rewritten unseen", value="log_policy = ''"
        )
        return
    try:
        policy, own = load_policy(path)
        trusted_by_witnesses(home.config.witness_ca)
    except RgsError as error:
        yield found(SETTINGS, "POLICY_REFUSED", error.message, value=path)
        return
    if not policy.is_met_by(policy.witnesses.keys() - own):
        yield found(
            SETTINGS, "SELF_WITNESSED", "the quorum is met by the server's own witnesses", value=" ".join(sorted(own))
        )
    else:
        yield fine(SETTINGS, f"the log's quorum needs witnesses of others ({len(policy.witnesses)} are named)")


def _check_software(home: Home) -> Iterator[Finding]:
    """Start the launcher as the server is started: it measures everything, and compares it with `certified`."""
    path = home.config.certified
    if not path.is_file():
        yield found(SETTINGS, "CERTIFIED_MISSING", "the software is compared with no certified release", value=path)
    try:
        verify_environment(os.environ)
        environment = {**unheard(os.environ), "RGS_HOME": str(home.config.home)}
        done = subprocess.run(  # noqa: S603 - our own command
            isolated_command("manifest"), env=environment, capture_output=True, timeout=START_S, check=False
        )
        why = done.stderr.decode("utf-8", "replace").strip().removeprefix("rgs: ") if done.returncode else ""
    except (SurroundingsError, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why:
        yield found(SETTINGS, "SOFTWARE_DIFFERS", f"the measured start refuses: {why[:600]}", value=path)
    else:
        yield fine(SETTINGS, "the measured start accepts the installed software")


# --- keys -------------------------------------------------------------------------------------------------------------


def check_keys(home: Home) -> Iterator[Finding]:
    """The bundle, the node's key, the log's key, the key-encryption keys; what belongs offline."""
    config = home.config
    yield from _check_node_key(home)
    for code, load in (
        ("LOG_KEY_REFUSED", lambda: keyring.load_log_signer(config.keys)),
        ("KEK_REFUSED", lambda: keyring.load_kek(config)),
    ):
        try:
            load()
        except RgsError as error:
            yield found(KEYS, code, error.message)
    if (config.keys / keyring.ROOT_KEY).exists():
        yield found(
            KEYS,
            "ROOT_IN_HOME",
            "the private key of the root lies on this machine",
            value=config.keys / keyring.ROOT_KEY,
        )


def _check_node_key(home: Home) -> Iterator[Finding]:
    config = home.config
    try:
        bundle = keyring.load_bundle(config)
        signer = keyring.load_node_signer(config, bundle, now_ms=home.now_ms)
    except RgsError as error:
        yield found(KEYS, "KEYS_REFUSED", error.message)
        return
    rows = keyring.list_keys(bundle)
    row = next(one for one in reversed(rows) if one.keyid == signer.keyid)
    if row.development:
        yield found(
            KEYS, "DEVELOPMENT_KEY", f"the key of node {config.node} is marked as a development key", value=row.keyid
        )
    try:
        fingerprint = keyring.read_fingerprint(config.keys)
    except FileRefusedError:
        fingerprint = ""  # auditors bring it from elsewhere; the server does not need it
    if fingerprint and fingerprint != rows[0].keyid:
        yield found(
            KEYS,
            "ROOT_DIFFERS",
            "root.fingerprint is not of the bundle's first root",
            value=fingerprint,
            limit=rows[0].keyid,
        )
    yield fine(
        KEYS, f"node {config.node} signs with {row.keyid[:16]}…, of {row.time}; it is now {format_time(home.now_ms)}"
    )
