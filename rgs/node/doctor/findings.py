"""What `rgs doctor` can find: one row for each code, with its level and what to do (docs/doctor.md has the same table).

An error means: do not serve. A warning means: it can serve, and somebody has to look. A row of REAL_MONEY is left out
for a home that serves for development only (`--development`). A row of OUTSIDE is a warning before a start
(`--before-start`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rgs.node.config import Config


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check. `check` is its subject, `code` is stable; `value` and `limit` may be empty.

    No field holds a secret, a password or a key.
    """

    check: str
    level: Level
    code: str
    what: str
    value: str = ""
    limit: str = ""
    do: str = ""


@dataclass(frozen=True, slots=True)
class Home:
    """What the checks look at: the settings, the time in milliseconds since 1970, and the folder of the backups."""

    config: Config
    now_ms: int
    backups: Path | None = None

    def within(self, path: Path) -> str:
        """A path for people: relative to the home, where it lies in it."""
        return str(path.relative_to(self.config.home) if path.is_relative_to(self.config.home) else path)


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table: level, and what to do."""

    level: Level
    do: str


_E, _W = Level.ERROR, Level.WARNING

KINDS: Final[Mapping[str, Kind]] = {
    "CHECK_FAILED": Kind(_E, "Report this: the check itself failed, so nothing is known about its subject."),
    # settings
    "SETTINGS_REFUSED": Kind(_E, "Correct the setting (docs/node.md, section 2)."),
    "LISTEN_REFUSED": Kind(_E, "Stop what holds the port, or set the address to one of this machine."),
    "LOG_ORIGIN_EMPTY": Kind(
        _E, "Set `log_origin` to a name of your own before the first start: a log keeps its name."
    ),
    "NO_WITNESS": Kind(_E, "Set `log_policy` to a policy with witnesses of others (docs/log.md, Witnesses)."),
    "SELF_WITNESSED": Kind(_W, "Add witnesses that others run: your own prove nothing to them."),
    "POLICY_REFUSED": Kind(_E, "Correct the file that `log_policy` names, or its `witness_ca`."),
    "CERTIFIED_MISSING": Kind(_W, "Put the manifest of the certified release into the home (docs/manifest.md)."),
    "SOFTWARE_DIFFERS": Kind(_E, "Install the release that `certified` names, or get this one certified."),
    # permissions
    "SECRET_OPEN": Kind(_E, "chmod 600 the file. If others could read it for a while, replace the key (docs/keys.md)."),
    "FOLDER_OPEN": Kind(_E, "chmod go-w the folder."),
    "LOG_FOLDER_OF_GROUP": Kind(_W, "chmod g-w the folder, or let nobody but the users that serve be in its group."),
    "OWNER_DIFFERS": Kind(_E, "chown the file to the user that serves."),
    "NOT_WRITABLE": Kind(_E, "Let the user that serves write there, and run `rgs doctor` as that user."),
    # keys
    "KEYS_REFUSED": Kind(_E, "Put the newest key bundle and the node's own key there (docs/keys.md)."),
    "DEVELOPMENT_KEY": Kind(_E, "Make a key with `rgs keys node-new --production` on the root's machine."),
    "ROOT_IN_HOME": Kind(_E, "Take root.key offline, and delete it here. The server never needs it."),
    "ROOT_DIFFERS": Kind(_E, "Find out which root is yours: the bundle begins with another one than root.fingerprint."),
    "LOG_KEY_REFUSED": Kind(_E, "Put the log key of the other nodes there, or make one with `rgs keys log-new`."),
    "KEK_REFUSED": Kind(_E, "Put the key-encryption key back: without it no open round can be finished."),
    # certificates
    "CERTIFICATE_REFUSED": Kind(_E, "Put a PEM certificate and its key there (docs/production.md)."),
    "CERTIFICATE_ENDED": Kind(_E, "Issue the next certificate, and set the clock right if that is wrong."),
    "CERTIFICATE_NOT_YET": Kind(_E, "Set the clock right, or wait until the certificate is valid."),
    "CERTIFICATE_ENDS_SOON": Kind(_W, "Issue the next certificate now."),
    "CHAIN_BROKEN": Kind(_E, "Put the certificate first and each issuer behind it, in this order."),
    "PURPOSE_WRONG": Kind(_E, "Issue a certificate with the right extended key usage (docs/production.md)."),
    "NAME_MISSING": Kind(_E, "Issue a certificate with the names that clients call as DNS names or addresses."),
    "KEY_WEAK": Kind(_E, "Issue a certificate with a P-256 key, or RSA of 2048 bits or more, signed with SHA-256."),
    "DEVELOPMENT_CA": Kind(_E, "Put the certificates of your own authorities into ca.pem (docs/production.md)."),
    "CA_KEY_IN_HOME": Kind(_E, "Take the key of the authority away: whoever has it can be every party."),
    "CLIENT_KEYS_IN_HOME": Kind(_E, "Delete private keys of clients: only their parties may have them."),
    # allow-list
    "DEMO_PARTY": Kind(_E, "Remove it with `rgs party remove FINGERPRINT`."),
    "JURISDICTION_FOR_TESTS": Kind(_E, "Add the operator's certificate in its real jurisdiction, and remove this one."),
    "NO_ADMIN": Kind(_E, "Add one with `rgs party add --role admin`: nobody can clear a guard."),
    "ONE_ADMIN": Kind(_W, "Add a second admin: a void needs two."),
    "NO_OPERATOR": Kind(_W, "Add one with `rgs party add --role operator`."),
    "PARTY_ENDED": Kind(_W, "Add the party's next certificate, or remove this one."),
    "PARTY_ENDS_SOON": Kind(_W, "Ask the party for its next certificate, and add it now."),
    # peers
    "PEERS_REFUSED": Kind(_E, "Correct peers.toml (docs/money.md)."),
    "EMBEDDED_WALLET": Kind(_E, "Name the operator's wallet in peers.toml: the embedded one is for tests."),
    "EMBEDDED_REGULATOR": Kind(_E, "Name the regulator's system in peers.toml: the embedded one is for tests."),
    "OPERATOR_UNKNOWN": Kind(_W, "Add a certificate of this operator, or correct its name in peers.toml."),
    "PEER_UNREACHABLE": Kind(
        _E, "Check address, firewall, `ca`, `certificate`, `key` and `server_name` in peers.toml."
    ),
    "PEER_CERTIFICATE_ENDED": Kind(_E, "Put the next certificate or authority that peers.toml names there."),
    "PEER_CERTIFICATE_NOT_YET": Kind(_E, "Set the clock right, or wait until the certificate is valid."),
    "PEER_CERTIFICATE_ENDS_SOON": Kind(_W, "Ask the peer for its next authority, or issue the next certificate, now."),
    "WITNESS_UNREACHABLE": Kind(_W, "Check the address in the policy, the firewall and `witness_ca`."),
    # generator
    "GENERATOR_REFUSED": Kind(_E, "Start `rgs generator serve` of this version, for this user (docs/generator.md)."),
    # clock
    "CLOCK_NOT_KEPT": Kind(_W, "Run an NTP or NTS client: the kernel says that nothing keeps its clock."),
    "CLOCKS_DIFFER": Kind(_E, "Set the clocks of this machine and of the database right."),
    "CLOCK_BEHIND_STORE": Kind(_E, "Set this machine's clock right: the store has later times."),
    # store
    "STORE_REFUSED": Kind(
        _E, "Do what it says: set PGPASSFILE for a login, `rgs init` makes a store, `rgs migrate` moves it on."
    ),
    "STORE_AWAY": Kind(_E, "Start the database, or correct the URL; check user, password and pg_hba.conf."),
    "STORE_RECOVERING": Kind(_E, "Finish `rgs recover`: a recovery of this store was interrupted."),
    "NOT_DURABLE": Kind(_E, "Set it in postgresql.conf or for the role, and reload the database."),
    "CHECKSUMS_OFF": Kind(_W, "Stop the database and run pg_checksums --enable."),
    "NO_STANDBY": Kind(_W, "Add a synchronous standby (docs/production.md): a lost disk loses every round."),
    "NOT_ARCHIVED": Kind(_W, "Set archive_mode and archive_command (docs/backup.md)."),
    "NOT_ENCRYPTED": Kind(_E, "Add sslmode=verify-full and sslrootcert to the URL, and ssl = on to the database."),
    "FEW_CONNECTIONS": Kind(_E, "Raise max_connections, or lower `workers`."),
    "STORE_ON_ONE_DISK": Kind(_W, "Use PostgreSQL with a standby: a lost disk loses every round since the backup."),
    # log
    "LOG_REFUSED": Kind(_E, "Do not start: see docs/log.md, When it refuses, and docs/keys.md, section 5."),
    # watching
    "NO_METRICS": Kind(_W, "Set `metrics_listen`, and let a Prometheus read it (docs/metrics.md)."),
    "METRICS_REFUSED": Kind(
        _E, "Correct the file that `metrics_token` or `metrics_ca` names: no server starts with it."
    ),
    "BACKUP_OLD": Kind(_W, "See why the nightly `rgs backup make` did not run (docs/backup.md)."),
    "ARCHIVE_UNREADABLE": Kind(
        _W, "Mount or make the folder that `archive` names, or restore the part from a copy (docs/retention.md)."
    ),
    # disk
    "DISK_NOT_DURABLE": Kind(_E, "Move the folder to a local disk."),
    "DISK_FULL": Kind(_E, "Make room: the server stops new rounds when it cannot write."),
    "DISK_LOW": Kind(_W, "Make room, or give the folder a larger disk."),
}
"""Every code but OK."""

REAL_MONEY: Final = frozenset(
    {
        *("LOG_ORIGIN_EMPTY", "NO_WITNESS", "SELF_WITNESSED", "CERTIFIED_MISSING"),
        *("DEVELOPMENT_KEY", "ROOT_IN_HOME", "DEVELOPMENT_CA", "CA_KEY_IN_HOME", "CLIENT_KEYS_IN_HOME"),
        *("DEMO_PARTY", "JURISDICTION_FOR_TESTS", "ONE_ADMIN", "EMBEDDED_WALLET", "EMBEDDED_REGULATOR"),
        *("NO_STANDBY", "NOT_ARCHIVED", "CHECKSUMS_OFF", "STORE_ON_ONE_DISK", "DISK_NOT_DURABLE", "CLOCK_NOT_KEPT"),
        *("NO_METRICS", "BACKUP_OLD"),
    }
)
"""Findings that count only where real money is played for."""

OUTSIDE: Final = frozenset(
    {
        *("PEER_UNREACHABLE", "PEER_CERTIFICATE_ENDED", "PEER_CERTIFICATE_NOT_YET"),
        *("STORE_AWAY", "FEW_CONNECTIONS", "CLOCKS_DIFFER"),
    }
)
"""Errors of others: of wallets, the regulator and the database's machine. The server meets them itself, by circuits and
guards, and the rounds in play still have to be settled: so none of them keeps a node from starting.
"""


def found(check: str, code: str, what: str, *, value: object = "", limit: object = "") -> Finding:
    """A finding of the table."""
    kind = KINDS[code]
    return Finding(check, kind.level, code, what, str(value), str(limit), kind.do)


def fine(check: str, what: str) -> Finding:
    """A check that found nothing wrong."""
    return Finding(check, Level.OK, "OK", what)
