"""The configuration of one node: defaults, then `rgs.toml` in the home directory, then options of the command line.

`Config` declares every setting with its default and its check. Paths in the file are relative to the home, so that a
home can be moved. Unknown keys, wrong types and values out of bounds are errors that name field, limit and value. Keys
must not lie in the folder of the store, where a copy of the store would include them (ARCHITECTURE 2.9: the KEK lives
outside store and backup).
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
from typing import Annotated, Any, Final, get_type_hints

from rgs.core.errors import FormatError, InvalidFieldError, UnknownFieldError
from rgs.core.ids import check_name
from rgs.core.shards import ORIGIN_MAX, format_origin, half_year, parse_origin
from rgs.node.files import FileRefusedError
from rgs.store.address import PostgresAddress, StoreAddress, parse_address

CONFIG_FILE: Final = "rgs.toml"
PEERS_FILE: Final = "peers.toml"
DEFAULT_HOME: Final = Path("var/rgs")
EMBEDDED: Final = "embedded"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
ARCHIVE_DAYS_MIN: Final = 33
"""Support finds a round by its game code for 32 days."""
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,8}", re.ASCII)
_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}", re.ASCII)
_TEXT_MAX: Final = 1024
_PORT_MAX: Final = 65_535


# --- one check a form ---------------------------------------------------------------------------------------------

Check = Callable[[str, object], Any]


def refusal(field: str, limit: str, value: object) -> InvalidFieldError:
    """The error of a setting that is not within its limit."""
    return InvalidFieldError(f"{field} must be {limit}", field=field, limit=limit, value=str(value)[:80])


def _name(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise refusal(field, "a name", value)
    return check_name(value, field)


def _path(field: str, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value) or len(str(value)) > _TEXT_MAX or "\0" in str(value):
        raise refusal(field, f"a path of 1 to {_TEXT_MAX} characters", value)
    return Path(value)


def _path_or_none(field: str, value: object) -> Path | None:
    return None if value == "" else _path(field, value)


def _store(field: str, value: object) -> StoreAddress:
    if isinstance(value, PostgresAddress):
        return value
    if isinstance(value, str) and "://" in value:
        return parse_address(value, field)
    return _path(field, value)


def _generator(field: str, value: object) -> Path | None:
    if value == EMBEDDED:
        return None
    scheme, _, path = value.partition(":") if isinstance(value, str) else ("", "", "")
    if scheme != "unix" or not path or "\0" in path:
        raise refusal(field, f"{EMBEDDED}, or unix: and the path of a generator process's socket", value)
    return _path(field, path)


def number(least: int, most: int) -> Check:
    """The check of a whole number between two bounds."""

    def check(field: str, value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise refusal(field, f"a whole number from {least} to {most}", value)
        return value

    return check


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise refusal(field, "true or false", value)
    return value


def _one_of(*choices: str) -> Check:
    def check(field: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise refusal(field, f"one of {', '.join(choices)}", value)
        return value

    return check


def _origin(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise refusal(field, "a name such as log.example/rgs", value)
    try:
        return value and parse_origin(format_origin(value, half_year(0)))[0]
    except FormatError:
        limit = f"lowercase letters, digits, . _ - /, with its half-year at most {ORIGIN_MAX} characters"
        raise refusal(field, limit, value) from None


def check_address(field: str, value: object) -> str:
    """`host:port`, an IPv6 address in brackets; InvalidFieldError."""
    text = value if isinstance(value, str) else ""
    host, _, port = text.rpartition(":")
    if _PORT.fullmatch(port) is None or int(port) > _PORT_MAX or not _is_host(host):
        raise refusal(field, f"host:port, an IPv6 address in brackets, the port 0 to {_PORT_MAX}", value)
    return text


def _address_or_none(field: str, value: object) -> str:
    return "" if value == "" else check_address(field, value)


def _is_host(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        try:
            return ip_address(host[1:-1]).version == 6
        except ValueError:
            return False
    return _HOST.fullmatch(host) is not None


# --- the settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """The default of a setting, and the check that returns its value or raises InvalidFieldError."""

    default: object
    check: Check


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one node. All paths are absolute."""

    home: Path
    node: Annotated[str, Setting("node1", _name)]
    listen: Annotated[str, Setting("127.0.0.1:50551", check_address)]
    """`host:port`; port 0 takes any free one."""
    workers: Annotated[int, Setting(1, number(1, 256))]
    """Processes behind the port; more than one need PostgreSQL."""
    store: Annotated[StoreAddress, Setting("store/rgs.db", _store)]
    """A file, or a PostgreSQL URL."""
    wallet: Annotated[Path, Setting("embedded/wallet.db", _path)]
    regulator: Annotated[Path, Setting("embedded/regulator.db", _path)]
    peers: Annotated[Path, Setting(PEERS_FILE, _path)]
    """The file that names wallets and the regulator's system (`rgs.node.peers`); the default need not be there."""
    keys: Annotated[Path, Setting("keys", _path)]
    kek: Annotated[Path, Setting("kek/kek.json", _path)]
    tls: Annotated[Path, Setting("tls", _path)]
    log: Annotated[Path, Setting("log/rgs.log", _path)]
    logging_level: Annotated[str, Setting("info", _one_of(*LOG_LEVELS))]
    logging_calls: Annotated[bool, Setting(True, _flag)]
    """Whether the log gets a line for every call that may change something."""
    translog: Annotated[Path, Setting("translog", _path)]
    """The folder of the transparency log, the same for all nodes of a store."""
    log_origin: Annotated[str, Setting("", _origin)]
    """The origin that the log's shards share; empty: it is made of the store epoch."""
    log_delay_s: Annotated[int, Setting(60, number(1, 86_400))]
    """A statement that is not in the log so long after its commit stops new rounds."""
    log_policy: Annotated[Path | None, Setting("", _path_or_none)]
    """A C2SP tlog-policy whose witnesses cosign the log's checkpoints; None: no witness is asked."""
    witness_ca: Annotated[Path | None, Setting("", _path_or_none)]
    """The CAs of the witnesses' certificates; None: those that the system trusts."""
    draws_in_flight_max: Annotated[int, Setting(1024, number(1, 1_000_000))]
    """How far the draw window of an instance may grow."""
    generator: Annotated[Path | None, Setting(EMBEDDED, _generator)]
    """The socket of the generator process (`rgs.node.generator`); None: the generator is in the server's process."""
    reflection: Annotated[bool, Setting(True, _flag)]
    drain_s: Annotated[int, Setting(10, number(0, 3_600))]
    """How long a stopping server waits for calls under way."""
    large_win_minor: Annotated[int, Setting(1_000_000, number(1, 1_000_000_000_000))]
    """A round that returns so much or more is a significant event."""
    return_alarm_stops: Annotated[bool, Setting(False, _flag)]
    """Whether a measured return outside its band disables the game."""
    rules_check_s: Annotated[int, Setting(600, number(1, 86_400))]
    """Between two checks of the certified files."""
    self_test_s: Annotated[int, Setting(86_400, number(60, 86_400))]
    """Between two self-tests of the generator with known answers."""
    surroundings_check_s: Annotated[int, Setting(86_400, number(1, 86_400))]
    """Between two checks of interpreter, libraries and all other files."""
    certified: Annotated[Path, Setting("certified.json", _path)]
    """A manifest that the software must match, if the file exists."""
    party_calls_max: Annotated[int, Setting(1_024, number(1, 1_000_000))]
    """The limits of one party in each process: calls under way, messages a second, open streams."""
    party_messages_per_s: Annotated[int, Setting(10_000, number(1, 1_000_000))]
    party_streams_max: Annotated[int, Setting(4_096, number(1, 1_000_000))]
    stream_stall_s: Annotated[int, Setting(60, number(1, 86_400))]
    """A stream whose client does not read for so long is ended."""
    stream_idle_s: Annotated[int, Setting(3_600, number(1, 86_400))]
    """A stream whose client sends nothing for so long is ended."""
    retry_window_h: Annotated[int, Setting(72, number(24, 8_760))]
    """For so long a repeated request gets its stored answer."""
    sched_batch: Annotated[bool, Setting(False, _flag)]
    """Ask Linux to schedule the threads as batch work (SCHED_BATCH): fewer switches between them."""
    reconciliation: Annotated[Path, Setting("reconciliation", _path)]
    """The folder of submissions and reports, with limits for a submission, an operator, and the one run at a time."""
    reconciliation_rows_max: Annotated[int, Setting(10_000_000, number(1, 1_000_000_000))]
    reconciliation_stored_mb: Annotated[int, Setting(20_000, number(1, 100_000_000))]
    reconciliation_memory_mb: Annotated[int, Setting(1_024, number(256, 1_000_000))]
    metrics_listen: Annotated[str, Setting("", _address_or_none)]
    """`host:port` of the metrics (`rgs.node.metrics`); empty: there are none."""
    metrics_token: Annotated[Path | None, Setting("", _path_or_none)]
    """The file with the bearer token that a scrape must show."""
    metrics_ca: Annotated[Path | None, Setting("", _path_or_none)]
    """The CAs of the client certificates that a scrape must show."""
    traces: Annotated[Path | None, Setting("", _path_or_none)]
    """The file that spans are appended to (`rgs.node.traces`); None: nothing is traced."""
    retention_days: Annotated[int, Setting(3_653, number(0, 36_525))]
    """How long a player's record is kept after the close of the last session; ten years unless the law differs."""

    archive: Annotated[Path | None, Setting("", _path_or_none)]
    """The folder of ended rounds that `rgs archive` has moved out of the store, the same for all nodes; None: none."""
    archive_days: Annotated[int, Setting(90, number(ARCHIVE_DAYS_MIN, 36_525))]
    """How long a session stays in the store after its close, at least, before its rounds may be archived."""

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of all settings: it shows that something changed, not what. Paths in the home are relative."""
        values = {key: _portable(getattr(self, key), self.home) for key in SETTINGS}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8")).hexdigest()

    @property
    def bundle(self) -> Path:
        """The key bundle that auditors get."""
        return self.keys / "keys.json"

    @property
    def ca(self) -> Path:
        """The CAs of client certificates, PEM."""
        return self.tls / "ca.pem"


SETTINGS: Final[Mapping[str, Setting]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Config, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}


def load_config(home: Path, options: Mapping[str, object] | None = None) -> Config:
    """The settings of the node at `home`. `options` override the file; an option that is None was not given.

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
    _verify_metrics(config)
    return config


def _portable(value: object, home: Path) -> str:
    return str(value.relative_to(home) if isinstance(value, Path) and value.is_relative_to(home) else value)


def _known(key: str) -> bool:
    if key not in SETTINGS:
        raise UnknownFieldError(f"unknown setting {key}; known settings: {', '.join(SETTINGS)}", field=key, value=key)
    return True


def _read_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a huge number or deep nesting
        raise InvalidFieldError(f"{path.name} is not TOML: {error}", field=path.name) from None


def _verify_apart(config: Config) -> None:
    if isinstance(config.store, PostgresAddress):
        return
    # The log lies elsewhere too, so that it shows what a restored backup of the store lacks.
    backed_up = config.store.parent.resolve()
    for field, path in (("kek", config.kek), ("keys", config.keys), ("translog", config.translog)):
        if path.resolve().is_relative_to(backed_up):
            raise InvalidFieldError(
                f"{field} must not lie in the folder of the store: a copy of the store would include it",
                field=field,
                limit=f"outside {backed_up}",
                value=path,
            )


def _verify_one_process(config: Config) -> None:
    if config.workers > 1 and not isinstance(config.store, PostgresAddress):
        raise InvalidFieldError(
            f"{config.workers} workers cannot share a store file: more than one worker needs PostgreSQL",
            field="workers",
            limit=1,
            value=config.workers,
        )


def is_loopback(address: str) -> bool:
    """Whether a `host:port` can be reached from this machine only."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _verify_metrics(config: Config) -> None:
    admits = config.metrics_token is not None or config.metrics_ca is not None
    if config.metrics_listen and not admits and not is_loopback(config.metrics_listen):
        raise InvalidFieldError(
            f"metrics_listen {config.metrics_listen} can be reached from other machines: set metrics_token or"
            " metrics_ca, or listen on 127.0.0.1",
            field="metrics_listen",
            limit="metrics_token or metrics_ca is set, or the address is of this machine",
            value=config.metrics_listen,
        )


def open_home(home: Path, options: dict[str, object] | None = None) -> Config:
    """The settings of an existing home; FileRefusedError if `rgs init` has not made one."""
    if not (home / CONFIG_FILE).is_file():
        raise FileRefusedError(f"{home} is not the home of a node: make one with `rgs init --home {home}`", path=home)
    return load_config(home, options)
