"""The configuration of one node: defaults, then `rgs.toml` in the home directory, then options of the command line.

One table holds every setting with its check. Paths in the file are relative to the home, so that a home can be moved.
Refuses unknown keys, wrong types and values out of bounds, naming field, limit and value; refuses to keep keys where a
copy of the store would carry them along (ARCHITECTURE 2.9: the KEK lives outside store and backup).
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from rgs.core.errors import FormatError, InvalidFieldError, UnknownFieldError
from rgs.core.ids import check_name
from rgs.core.shards import ORIGIN_MAX, format_origin, half_year, parse_origin
from rgs.store.address import PostgresAddress, StoreAddress, parse_address

CONFIG_FILE: Final = "rgs.toml"
DEFAULT_HOME: Final = Path("var/rgs")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,8}", re.ASCII)
_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}", re.ASCII)
_TEXT_MAX: Final = 1024
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class Config:
    """One node's settings; all paths are absolute.

    `store` is a file, or a PostgreSQL URL. `outward` is the file that names wallets and the central system, if it is
    there (`rgs.node.peers`). `listen` is `host:port` (port 0: any free one), `workers` the number of
    processes behind it. `log_calls` is whether the log gets a line for every call that may change something.
    `draws_in_flight_max` is how far an instance's draw window may grow. `drain_s` is how long a stopping server lets
    calls finish, in seconds. A round that brings `large_win_minor` or more is a significant event. Where
    `return_alarm_stops`, a return out of its band disables its game. `rules_check_s` and `self_test_s` are the times
    between two looks at the certified files and at the generator's known answers; `surroundings_check_s` that for
    interpreter, libraries and all other files. A manifest at `certified`, if there is one, is what the software has to
    be.
    `reconciliation` is the folder of what operators submit and of the reports: at most `reconciliation_rows_max` rows a
    submission, `reconciliation_stored_mb` an operator, and `reconciliation_memory_mb` for the one run at a time.
    `retry_window_h` is for how many hours a request that is sent again gets the answer that it had. `retention_days` is
    how long after the close of its last session a player's record has to be kept: ten years unless the law says else.

    `translog` is the folder of the transparency log, the same for all nodes of a store. `log_origin` is the origin that
    the log's shards have in common, empty for one made of the store epoch. A statement that is not in the log
    `log_delay_s` after its commit stops new rounds. `log_policy` is a C2SP tlog-policy file whose witnesses cosign what
    the log publishes, None: nobody is asked; `witness_ca` holds the authorities that their certificates come from,
    None: those that the system trusts.

    `party_calls_max`, `party_messages_per_s` and `party_streams_max` are what one party may have under way, send a
    second and keep open, in each process. A stream whose client does not read for `stream_stall_s`, or asks nothing for
    `stream_idle_s`, is ended.

    `sched_batch` asks Linux to schedule the server's threads as batch work (SCHED_BATCH): fewer switches between them.
    """

    home: Path
    node: str
    listen: str
    workers: int
    store: StoreAddress
    wallet: Path
    register: Path
    outward: Path
    keys: Path
    kek: Path
    tls: Path
    log: Path
    log_level: str
    log_calls: bool
    translog: Path
    log_origin: str
    log_delay_s: int
    log_policy: Path | None
    witness_ca: Path | None
    draws_in_flight_max: int
    reflection: bool
    drain_s: int
    large_win_minor: int
    return_alarm_stops: bool
    rules_check_s: int
    self_test_s: int
    surroundings_check_s: int
    certified: Path
    party_calls_max: int
    party_messages_per_s: int
    party_streams_max: int
    stream_stall_s: int
    stream_idle_s: int
    retry_window_h: int
    sched_batch: bool
    reconciliation: Path
    reconciliation_rows_max: int
    reconciliation_stored_mb: int
    reconciliation_memory_mb: int
    retention_days: int

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of all settings: what tells of a change without telling what. Paths in the home are relative."""
        values = {key: _told(getattr(self, key), self.home) for key in SETTINGS}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8")).hexdigest()

    @property
    def bundle(self) -> Path:
        """The key bundle that auditors get."""
        return self.keys / "keys.json"

    @property
    def ca(self) -> Path:
        """The certificates of the authorities that client certificates must come from, PEM."""
        return self.tls / "ca.pem"


def load_config(home: Path, options: Mapping[str, object] | None = None) -> Config:
    """The settings of the node at `home`. `options` go before the file; those that are None were not given.

    Raises InvalidFieldError and UnknownFieldError.
    """
    home = home.absolute()
    given = {key: value for key, value in (options or {}).items() if value is not None}
    values = {key: setting.default for key, setting in SETTINGS.items()} | _read_file(home / CONFIG_FILE) | given
    checked = {key: SETTINGS[key].check(key, value) for key, value in values.items() if _known(key)}
    for key, value in checked.items():
        if isinstance(value, Path):
            checked[key] = home / value
    config = Config(home=home, **checked)
    _verify_apart(config)
    _verify_one_process(config)
    return config


def _told(value: object, home: Path) -> str:
    return str(value.relative_to(home) if isinstance(value, Path) and value.is_relative_to(home) else value)


def _known(key: str) -> bool:
    if key not in SETTINGS:
        raise UnknownFieldError(f"{key} is no setting; there are {', '.join(SETTINGS)}", field=key, value=key)
    return True


def _read_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number or a nesting beyond all measure
        raise InvalidFieldError(f"{path.name} is not TOML: {error}", field=path.name) from None


def _verify_apart(config: Config) -> None:
    if isinstance(config.store, PostgresAddress):
        return
    # Nor the log: what a restored backup of the store lacks must show.
    backed_up = config.store.parent.resolve()
    for field, path in (("kek", config.kek), ("keys", config.keys), ("translog", config.translog)):
        if path.resolve().is_relative_to(backed_up):
            raise InvalidFieldError(
                f"{field} lies in the folder of the store, so that a copy of the store would carry it along",
                field=field,
                limit=f"outside {backed_up}",
                value=path,
            )


def _verify_one_process(config: Config) -> None:
    """A file is one process's."""
    if config.workers > 1 and not isinstance(config.store, PostgresAddress):
        raise InvalidFieldError(
            f"{config.workers} workers cannot share a file: more than one need a PostgreSQL store",
            field="workers",
            limit=1,
            value=config.workers,
        )


# --- one check a form ---------------------------------------------------------------------------------------------

Check = Callable[[str, object], Any]


def _refusal(field: str, limit: str, value: object) -> InvalidFieldError:
    return InvalidFieldError(f"{field} must be {limit}", field=field, limit=limit, value=str(value)[:80])


def _name(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refusal(field, "a name", value)
    return check_name(value, field)


def _path(field: str, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value) or len(str(value)) > _TEXT_MAX or "\0" in str(value):
        raise _refusal(field, f"a path of 1 to {_TEXT_MAX} characters", value)
    return Path(value)


def _path_or_none(field: str, value: object) -> Path | None:
    return None if value == "" else _path(field, value)


def _store(field: str, value: object) -> StoreAddress:
    if isinstance(value, PostgresAddress):
        return value
    if isinstance(value, str) and "://" in value:
        return parse_address(value, field)
    return _path(field, value)


def _number(least: int, most: int) -> Check:
    def check(field: str, value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise _refusal(field, f"a whole number from {least} to {most}", value)
        return value

    return check


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _refusal(field, "true or false", value)
    return value


def _one_of(*choices: str) -> Check:
    def check(field: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _refusal(field, f"one of {', '.join(choices)}", value)
        return value

    return check


def _origin(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refusal(field, "a name such as log.example/rgs", value)
    try:
        return value and parse_origin(format_origin(value, half_year(0)))[0]
    except FormatError:
        limit = f"lowercase letters, digits, . _ - /, with its half-year at most {ORIGIN_MAX} characters"
        raise _refusal(field, limit, value) from None


def check_address(field: str, value: object) -> str:
    """`host:port`, an IPv6 address in brackets; InvalidFieldError."""
    text = value if isinstance(value, str) else ""
    host, _, port = text.rpartition(":")
    if _PORT.fullmatch(port) is None or int(port) > _PORT_MAX or not _is_host(host):
        raise _refusal(field, f"host:port, an IPv6 address in brackets, the port 0 to {_PORT_MAX}", value)
    return text


def _is_host(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        try:
            return ip_address(host[1:-1]).version == 6
        except ValueError:
            return False
    return _HOST.fullmatch(host) is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: the default, and the check that returns the value or raises InvalidFieldError."""

    default: object
    check: Check


SETTINGS: Final[Mapping[str, Setting]] = {
    "node": Setting("node1", _name),
    "listen": Setting("127.0.0.1:50551", check_address),
    "workers": Setting(1, _number(1, 256)),
    "store": Setting("store/rgs.db", _store),
    "wallet": Setting("embedded/wallet.db", _path),
    "register": Setting("embedded/register.db", _path),
    "outward": Setting("outward.toml", _path),
    "keys": Setting("keys", _path),
    "kek": Setting("kek/kek.json", _path),
    "tls": Setting("tls", _path),
    "log": Setting("log/rgs.log", _path),
    "log_level": Setting("info", _one_of(*LOG_LEVELS)),
    "log_calls": Setting(True, _flag),
    "translog": Setting("translog", _path),
    "log_origin": Setting("", _origin),
    "log_delay_s": Setting(60, _number(1, 86_400)),
    "log_policy": Setting("", _path_or_none),
    "witness_ca": Setting("", _path_or_none),
    "draws_in_flight_max": Setting(1024, _number(1, 1_000_000)),
    "reflection": Setting(True, _flag),
    "drain_s": Setting(10, _number(0, 3_600)),
    "large_win_minor": Setting(1_000_000, _number(1, 1_000_000_000_000)),
    "return_alarm_stops": Setting(False, _flag),
    "rules_check_s": Setting(600, _number(1, 86_400)),
    "self_test_s": Setting(86_400, _number(60, 86_400)),
    "surroundings_check_s": Setting(86_400, _number(1, 86_400)),
    "certified": Setting("certified.json", _path),
    "party_calls_max": Setting(1_024, _number(1, 1_000_000)),
    "party_messages_per_s": Setting(10_000, _number(1, 1_000_000)),
    "party_streams_max": Setting(4_096, _number(1, 1_000_000)),
    "stream_stall_s": Setting(60, _number(1, 86_400)),
    "stream_idle_s": Setting(3_600, _number(1, 86_400)),
    "retry_window_h": Setting(72, _number(24, 8_760)),
    "sched_batch": Setting(False, _flag),
    "reconciliation": Setting("reconciliation", _path),
    "reconciliation_rows_max": Setting(10_000_000, _number(1, 1_000_000_000)),
    "reconciliation_stored_mb": Setting(20_000, _number(1, 100_000_000)),
    "reconciliation_memory_mb": Setting(1_024, _number(256, 1_000_000)),
    "retention_days": Setting(3_653, _number(0, 36_525)),
}
