"""Plants in settings, files, keys and certificates."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from rgs.node import pki
from rgs.node.backups.making import make_backup
from rgs.node.clock import now_ms
from rgs.node.doctor import checkup
from rgs.node.doctor.certificates import check_certificates
from rgs.node.doctor.findings import Finding, Home
from rgs.node.doctor.keys import check_keys, check_settings
from rgs.node.doctor.permissions import GIB, check_disks, check_permissions
from rgs.node.doctor.watching import BACKUP_OLD_MS, check_watching
from rgs.service.callers import Role
from tests.support.doctor.planting import (
    DAY_MS,
    PASSWORD,
    Planted,
    issued,
    plants,
    policy,
)

# --- settings ---------------------------------------------------------------------------------------------------------


@plants("SETTINGS_REFUSED")
def unknown_setting(planted: Planted) -> Iterable[Finding]:
    planted.set("wrokers = 3")
    return asyncio.run(checkup.check_home(planted.path))


@plants("SETTINGS_REFUSED")
def no_home(planted: Planted) -> Iterable[Finding]:
    return asyncio.run(checkup.check_home(planted.path / "nowhere"))


@plants("CHECK_FAILED")
def broken_check(planted: Planted) -> Iterable[Finding]:
    def fails(_home: Home) -> Iterator[Finding]:
        raise KeyError(PASSWORD)

    with patch.object(checkup, "CHECKS", (("disk", fails),)), patch.object(checkup, "ASYNC_CHECKS", ()):
        return asyncio.run(checkup.check_home(planted.path))


@plants("LISTEN_REFUSED")
def taken_port(planted: Planted) -> Iterable[Finding]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        planted.set(f'listen = "127.0.0.1:{taken.getsockname()[1]}"')
        return settings_findings(planted)


@plants("LISTEN_REFUSED")
def taken_port_of_the_metrics(planted: Planted) -> Iterable[Finding]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        planted.set('listen = "127.0.0.1:0"', f'metrics_listen = "127.0.0.1:{taken.getsockname()[1]}"')
        return settings_findings(planted)


@plants("LISTEN_REFUSED")
def foreign_address(planted: Planted) -> Iterable[Finding]:
    planted.set('listen = "192.0.2.1:50551"')
    return settings_findings(planted)


def settings_findings(planted: Planted, *, measured: bool = False) -> list[Finding]:
    """`measured`: with the start that takes seconds."""
    if measured:
        return list(check_settings(planted.home))
    with patch("rgs.node.doctor.keys._check_software", lambda _home: iter(())):
        return list(check_settings(planted.home))


@plants("LOG_ORIGIN_EMPTY", "NO_WITNESS")
def nothing_set(planted: Planted) -> Iterable[Finding]:
    return settings_findings(planted)


@plants("SELF_WITNESSED")
def own_witness(planted: Planted) -> Iterable[Finding]:
    policy(planted, planted.path, more="# self-witness own\n")
    return settings_findings(planted)


@plants("POLICY_REFUSED")
def bad_policy(planted: Planted) -> Iterable[Finding]:
    (planted.path / "policy.txt").write_text("witness x y z\n", "ascii")
    planted.set('log_policy = "policy.txt"')
    return settings_findings(planted)


@plants("POLICY_REFUSED")
def no_authorities_of_witnesses(planted: Planted) -> Iterable[Finding]:
    policy(planted, planted.path)
    (planted.path / "wca.pem").write_text("nothing\n", "ascii")
    planted.set('witness_ca = "wca.pem"')
    return settings_findings(planted)


@plants("SOFTWARE_DIFFERS")
def other_software(planted: Planted) -> Iterable[Finding]:
    (planted.path / "certified.json").write_text("{}", "ascii")
    return settings_findings(planted, measured=True)


@plants("CERTIFIED_MISSING")
def no_certified(planted: Planted) -> Iterable[Finding]:
    with patch("rgs.node.doctor.keys.subprocess.run", side_effect=OSError("not run")):
        return settings_findings(planted, measured=True)


# --- permissions and disks --------------------------------------------------------------------------------------------


@plants("SECRET_OPEN")
def open_key(planted: Planted) -> Iterable[Finding]:
    (planted.path / "keys" / "log.key").chmod(0o640)
    return check_permissions(planted.home)


@plants("SECRET_OPEN")
def open_kek(planted: Planted) -> Iterable[Finding]:
    (planted.path / "kek" / "kek.json").chmod(0o604)
    return check_permissions(planted.home)


@plants("FOLDER_OPEN")
def open_folder(planted: Planted) -> Iterable[Finding]:
    (planted.path / "tls").chmod(0o770)
    return check_permissions(planted.home)


@plants("FOLDER_OPEN")
def log_folder_of_everybody(planted: Planted) -> Iterable[Finding]:
    (planted.path / "translog").mkdir()
    (planted.path / "translog").chmod(0o773)
    return check_permissions(planted.home)


@plants("LOG_FOLDER_OF_GROUP")
def log_folder_of_a_group(planted: Planted) -> Iterable[Finding]:
    (planted.path / "translog").mkdir()
    (planted.path / "translog").chmod(0o2770)
    return check_permissions(planted.home)


@plants("NOT_WRITABLE")
def traces_elsewhere(planted: Planted) -> Iterable[Finding]:
    planted.set('traces = "log/traces.jsonl"')
    with patch("rgs.node.doctor.watching.os.access", lambda path, _mode: not path.is_relative_to(planted.path)):
        return list(check_watching(planted.home))


@plants("NO_METRICS")
def without_metrics(planted: Planted) -> Iterable[Finding]:
    return check_watching(planted.home)


@plants("METRICS_REFUSED")
def token_for_everybody(planted: Planted) -> Iterable[Finding]:
    (planted.path / "token").write_text("t" * 40)
    (planted.path / "token").chmod(0o644)
    planted.set('metrics_listen = "127.0.0.1:9464"', 'metrics_token = "token"')
    return check_watching(planted.home)


@plants("METRICS_REFUSED")
def certificates_of_nobody(planted: Planted) -> Iterable[Finding]:
    (planted.path / "scrapers.pem").write_text("no certificate")
    planted.set('metrics_listen = "127.0.0.1:9464"', 'metrics_ca = "scrapers.pem"')
    return check_watching(planted.home)


def backups(planted: Planted, age_ms: int) -> list[Finding]:
    """Of a home with a backup of this age."""
    made = asyncio.run(make_backup(planted.home.config, planted.path / "backups", None, now_ms() - age_ms))
    assert made.folder.parent == planted.path / "backups"
    return list(check_watching(replace(planted.home, backups=planted.path / "backups")))


@plants("BACKUP_OLD")
def no_backup(planted: Planted) -> Iterable[Finding]:
    return check_watching(replace(planted.home, backups=planted.path / "nowhere"))


@plants("BACKUP_OLD")
def backup_of_the_day_before(planted: Planted) -> Iterable[Finding]:
    return backups(planted, BACKUP_OLD_MS + 60_000)


@plants("BACKUP_OLD")
def damaged_backup(planted: Planted) -> Iterable[Finding]:
    backups(planted, 1_000)
    (path,) = (planted.path / "backups").glob("*/backup.json")
    path.write_text("{")
    return check_watching(replace(planted.home, backups=planted.path / "backups"))


@plants("ARCHIVE_UNREADABLE")
def archive_that_is_not_there(planted: Planted) -> Iterable[Finding]:
    planted.set('archive = "nowhere"')
    return check_watching(planted.home)


@plants("ARCHIVE_UNREADABLE")
def part_without_its_files(planted: Planted) -> Iterable[Finding]:
    planted.set('archive = "archive"')
    (planted.path / "archive" / "2026-01-01.1").mkdir(parents=True)
    return check_watching(planted.home)


@plants("OWNER_DIFFERS")
def other_owner(planted: Planted) -> Iterable[Finding]:
    path, real = planted.path / "keys" / "node.key", Path.stat

    def stat(self: Path, **options: Any) -> os.stat_result:
        status = real(self, **options)
        return os.stat_result([*status[:4], status.st_uid + 1, *status[5:10]]) if self == path else status

    with patch.object(Path, "stat", stat):
        return list(check_permissions(planted.home))


@plants("NOT_WRITABLE")
def read_only(planted: Planted) -> Iterable[Finding]:
    with patch("rgs.node.doctor.permissions.os.access", lambda path, _mode: path != planted.path / "store"):
        return list(check_permissions(planted.home))


@plants("DISK_FULL")
def full_disk(planted: Planted) -> Iterable[Finding]:
    return disks(planted, free=GIB - 1)


@plants("DISK_LOW")
def low_disk(planted: Planted) -> Iterable[Finding]:
    return disks(planted, free=GIB)


@plants("DISK_NOT_DURABLE")
def store_in_memory(planted: Planted) -> Iterable[Finding]:
    lines = "30 1 0:99 / /elsewhere rw - ext4 x rw\n31 1 {} / / rw - tmpfs tmpfs rw\n"
    home, device = planted.home, planted.path.stat().st_dev
    mounts = lines.format(f"{os.major(device)}:{os.minor(device)}")
    with patch.object(Path, "read_text", lambda *_: mounts):
        return list(check_disks(home))


def disks(planted: Planted, *, free: int) -> list[Finding]:
    usage = shutil.disk_usage(planted.path)._replace(free=free)
    with patch("rgs.node.doctor.permissions.shutil.disk_usage", lambda _path: usage):
        return list(check_disks(planted.home))


# --- keys -------------------------------------------------------------------------------------------------------------


@plants("KEYS_REFUSED")
def no_node_key(planted: Planted) -> Iterable[Finding]:
    (planted.path / "keys" / "node.key").unlink()
    return check_keys(planted.home)


@plants("KEYS_REFUSED")
def key_of_tomorrow(planted: Planted) -> Iterable[Finding]:
    return check_keys(replace(planted.home, now_ms=now_ms() - DAY_MS))


@plants("LOG_KEY_REFUSED")
def no_log_key(planted: Planted) -> Iterable[Finding]:
    (planted.path / "keys" / "log.key").unlink()
    return check_keys(planted.home)


@plants("KEK_REFUSED")
def broken_kek(planted: Planted) -> Iterable[Finding]:
    (planted.path / "kek" / "kek.json").write_text("{}", "ascii")
    return check_keys(planted.home)


@plants("DEVELOPMENT_KEY", "ROOT_IN_HOME")
def development(planted: Planted) -> Iterable[Finding]:
    return check_keys(planted.home)


@plants("ROOT_DIFFERS")
def other_root(planted: Planted) -> Iterable[Finding]:
    (planted.path / "keys" / "root.fingerprint").write_text("0" * 64 + "\n", "ascii")
    return check_keys(planted.home)


# --- certificates -----------------------------------------------------------------------------------------------------


@plants("CERTIFICATE_REFUSED")
def key_of_another(planted: Planted) -> Iterable[Finding]:
    (planted.path / "tls" / "server.key").write_bytes(issued(planted, now_ms()).key_pem)
    return check_certificates(planted.home)


@plants("CERTIFICATE_REFUSED")
def no_certificate(planted: Planted) -> Iterable[Finding]:
    (planted.path / "tls" / "server.pem").write_bytes(b"\xff\xfe")
    return check_certificates(planted.home)


@plants("CERTIFICATE_ENDED")
def ended_certificate(planted: Planted) -> Iterable[Finding]:
    planted.server(issued(planted, now_ms() - 366 * DAY_MS))
    return check_certificates(planted.home)


@plants("CERTIFICATE_NOT_YET")
def certificate_of_tomorrow(planted: Planted) -> Iterable[Finding]:
    planted.server(issued(planted, now_ms() + DAY_MS))
    return check_certificates(planted.home)


@plants("CERTIFICATE_ENDS_SOON")
def ending_certificate(planted: Planted) -> Iterable[Finding]:
    planted.server(issued(planted, now_ms() - 336 * DAY_MS))
    return check_certificates(planted.home)


@plants("CHAIN_BROKEN")
def broken_chain(planted: Planted) -> Iterable[Finding]:
    other = pki.make_development_ca(os.urandom, now_ms())
    planted.server(issued(planted, now_ms()), other.certificate_pem)
    return check_certificates(planted.home)


@plants("PURPOSE_WRONG", "NAME_MISSING")
def client_as_server(planted: Planted) -> Iterable[Finding]:
    planted.server(pki.issue_client(planted.authority(), Role.LAB, "lab", os.urandom, now_ms()))
    return check_certificates(planted.home)


@plants("PURPOSE_WRONG")
def leaf_as_authority(planted: Planted) -> Iterable[Finding]:
    with (planted.path / "tls" / "ca.pem").open("ab") as file:
        file.write(issued(planted, now_ms()).certificate_pem)
    return check_certificates(planted.home)


@plants("KEY_WEAK")
def weak_key(planted: Planted) -> Iterable[Finding]:
    key = rsa.generate_private_key(65_537, 1024)  # noqa: S505 - the fault
    whole = issued(planted, now_ms()).certificate
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), whole.serial_number)
    builder = builder.not_valid_before(whole.not_valid_before_utc).not_valid_after(whole.not_valid_after_utc)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (planted.path / "tls" / "server.pem").write_bytes(pem)
    (planted.path / "tls" / "server.key").write_bytes(private)
    return check_certificates(planted.home)


@plants("DEVELOPMENT_CA", "CA_KEY_IN_HOME", "CLIENT_KEYS_IN_HOME")
def development_certificates(planted: Planted) -> Iterable[Finding]:
    return check_certificates(planted.home)
