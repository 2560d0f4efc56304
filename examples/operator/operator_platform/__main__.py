"""`python -m operator_platform`: serves the platform, or adds a member of staff to its home."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import logging
import re
import signal
import sys
from pathlib import Path

from .accounts import PASSWORD_MIN, Passwords
from .config import Config
from .office_door import ROLES, SUPPORT
from .platform import Platform
from .store.accounts import AccountRows
from .store.database import WrongFileError
from .store.platform import open_platform


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(prog="python -m operator_platform", description=__doc__)
    found.add_argument("--home", type=Path, required=True, help="folder of the platform's files; made if it is missing")
    found.add_argument(
        "--add-staff",
        metavar="NAME",
        help="add staff or set a password (asked, or the first line of standard input), then end",
    )
    found.add_argument(
        "--role",
        choices=ROLES,
        default=SUPPORT,
        help="of --add-staff: support sees, hides and mutes; a manager also bars and grants (%(default)s)",
    )
    found.add_argument("--rgs", default="localhost:50551", metavar="HOST:PORT", help="the game server (%(default)s)")
    found.add_argument("--ca", type=Path, help="PEM: the authority of the game server's certificate")
    found.add_argument("--certificate", type=Path, help="PEM: the operator's certificate")
    found.add_argument("--key", type=Path, help="PEM: its key")
    found.add_argument("--operator", default="demo-operator", help="the operator's name (%(default)s)")
    found.add_argument(
        "--currency",
        action="append",
        default=[],
        metavar="CODE",
        help="a currency of accounts (EUR); may be repeated, the first is that of new accounts",
    )
    found.add_argument(
        "--http", default="127.0.0.1:8080", metavar="HOST:PORT", help="where the page is served (%(default)s)"
    )
    found.add_argument(
        "--origin",
        action="append",
        default=[],
        help="an origin of the page, such as https://play.example; may be repeated",
    )
    found.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="a proxy in front, whose X-Forwarded-For names the caller; may be repeated",
    )
    found.add_argument("--http-certificate", type=Path, help="PEM: serve the page over TLS")
    found.add_argument("--http-key", type=Path, help="PEM: its key")
    found.add_argument(
        "--wallet", default="127.0.0.1:50561", metavar="HOST:PORT", help="where the wallet is served (%(default)s)"
    )
    found.add_argument("--wallet-certificate", type=Path, help="PEM: the wallet's server certificate")
    found.add_argument("--wallet-key", type=Path, help="PEM: its key")
    found.add_argument("--wallet-ca", type=Path, help="PEM: the authority of the game server's client certificate")
    found.add_argument("--page", type=Path, help="folder of the built page")
    found.add_argument("--root-fingerprint", default="", help="what players are told to pin: the root's SHA-256 in hex")
    found.add_argument(
        "--limit-raise-delay-s",
        type=int,
        default=0,
        help="a raised limit waits at least so long (default: as the jurisdiction says)",
    )
    found.add_argument(
        "--reality-check-s",
        type=int,
        default=0,
        help="time between reality checks, if it is shorter than the jurisdiction's",
    )
    found.add_argument("--no-play-deposits", action="store_true", help="the cashier offers no play money")
    found.add_argument("--rate-factor", type=int, default=1, help="multiplies the rate limits, for tests (%(default)s)")
    return found


def config_of(options: argparse.Namespace, refuse: argparse.ArgumentParser) -> Config:
    """The settings. Ends with status 2 where an option is missing."""
    for name in ("ca", "certificate", "key", "wallet_certificate", "wallet_key", "wallet_ca"):
        path = getattr(options, name)
        if path is None or not path.is_file():
            refuse.error(f"--{name.replace('_', '-')} must name a file: {path}")
    for currency in options.currency:
        if not re.fullmatch("[A-Z]{3}", currency):
            refuse.error(f"--currency must be three capital letters, such as EUR: {currency}")
    host, _, port = options.http.rpartition(":")
    if not port.isdigit():
        refuse.error(f"--http must be HOST:PORT: {options.http}")
    given = {"page": options.page} if options.page is not None else {}
    return Config(
        home=options.home,
        rgs_address=options.rgs,
        ca=options.ca,
        certificate=options.certificate,
        key=options.key,
        operator=options.operator,
        currencies=tuple(dict.fromkeys(options.currency)) or ("EUR",),
        http_host=host,
        http_port=int(port),
        origins=tuple(options.origin),
        proxies=tuple(options.proxy),
        http_certificate=options.http_certificate,
        http_key=options.http_key,
        wallet_listen=options.wallet,
        wallet_certificate=options.wallet_certificate,
        wallet_key=options.wallet_key,
        wallet_ca=options.wallet_ca,
        root_fingerprint=options.root_fingerprint,
        limit_raise_delay_ms=options.limit_raise_delay_s * 1000,
        reality_check_ms=options.reality_check_s * 1000,
        play_deposits=not options.no_play_deposits,
        rate_factor=options.rate_factor,
        **given,
    )


def add_staff(home: Path, name: str, role: str) -> int:
    """Ask for a password and keep the member of staff."""
    password = getpass.getpass(f"Password of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if len(password) < PASSWORD_MIN:
        print(f"the password must have at least {PASSWORD_MIN} characters", file=sys.stderr)
        return 2
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = open_platform(home / "platform.db")
    AccountRows(database).add_staff(name, Passwords().hash_now(password), role)
    database.close()
    print(f"{name} may sign in at /office/ as {role}")
    return 0


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT."""
    started = asyncio.Event()
    running = asyncio.create_task(Platform(config).run(started))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    announced = asyncio.create_task(started.wait())
    await asyncio.wait((announced, running), return_when=asyncio.FIRST_COMPLETED)
    if started.is_set():
        scheme = "https" if config.http_certificate else "http"
        print(f"platform on {scheme}://{config.http_host}:{config.http_port}/", flush=True)
    announced.cancel()
    try:
        await running
    except asyncio.CancelledError:
        return


def main() -> int:
    """Run the command; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    options_parser = parser()
    options = options_parser.parse_args()
    try:
        if options.add_staff:
            return add_staff(options.home, options.add_staff, options.role)
        asyncio.run(serve(config_of(options, options_parser)))
    except (OSError, WrongFileError, RuntimeError) as error:
        print(f"operator_platform: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
