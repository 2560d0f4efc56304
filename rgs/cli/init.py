"""`rgs init`: makes the home of a node, complete for development (`rgs.node.home`). An existing home is not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, entropy
from rgs.core.errors import InvalidFieldError
from rgs.core.jurisdictions import DEMO
from rgs.node.clock import now_ms
from rgs.node.home import DEFAULT_NODE, DEMO_PARTIES, Home, ensure_home
from rgs.node.keyring import ROOT_KEY
from rgs.node.log_folder import vkey_now
from rgs.node.production import Given, make_production_home
from rgs.store.address import parse_address


def command(
    home: HomeOption = HOME,
    node: Annotated[
        str | None, typer.Option(help=f"Name of the node; its instances carry it (default {DEFAULT_NODE}).")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="The database for a new home's store, postgresql://user@host/name.")
    ] = None,
    production: Annotated[
        bool, typer.Option("--production", help="For real money: keys and certificates are given, nobody is allowed.")
    ] = False,
    keys: Annotated[
        Path | None, typer.Option(help="With --production: the folder with the bundle and the node's key.")
    ] = None,
    tls: Annotated[
        Path | None, typer.Option(help="With --production: ca.pem, server.pem, server.key, peers.pem, peers.key.")
    ] = None,
    log_origin: Annotated[str, typer.Option(help="With --production: the log's name, such as log.example/rgs.")] = "",
) -> int:
    """Make the home of a node, complete for development, or with --production. An existing home is not changed."""
    address = None if store is None else parse_address(store)
    if isinstance(address, Path):
        raise InvalidFieldError("store must be postgresql://user@host/name", field="store")
    if production or keys is not None or tls is not None or log_origin:
        if not (production and node and keys and tls and log_origin):
            raise InvalidFieldError("--production needs --node, --keys, --tls and --log-origin", field="production")
        given = Given(node, keys, tls, log_origin, address)
        config = make_production_home(home, given, entropy().read, now_ms())
        print(f"Made {home}: node {node}, for production. Nobody may call yet.")
        print(f"  log key            {vkey_now(config)}")
        print(f"Next:                peers.toml, `rgs party add`, `rgs doctor --home {home}`")
        return 0
    found = ensure_home(home, node, entropy().read, now_ms(), address)
    if address is not None and found.config.store != address:
        raise InvalidFieldError(
            f"{home} already has another store: {found.config.store}", field="store", limit=str(found.config.store)
        )
    if found.made:
        report(home, found)
    else:
        print(f"{home} is the complete home of node {found.config.node}: nothing to do")
    return 0


def report(home: Path, found: Home) -> None:
    """Print what was made, and what to do next."""
    print(f"Made {home}: node {found.config.node}, for DEVELOPMENT (marked so in its certificates and its node key).")
    print(f"  root fingerprint   {found.root}")
    print("                     give it to auditors by another way than the exports")
    print(f"  log key            {vkey_now(found.config)}")
    print("                     the transparency log's verifier key of this half-year; give it to auditors, too")
    print(f"  client keys        {home / 'tls' / 'clients'}: {', '.join(party for _, party in DEMO_PARTIES)}")
    print(f"  allow-list         all of them; demo-operator in jurisdiction {DEMO}")
    print(f"Take offline now:    {home / 'keys' / ROOT_KEY} (signs node keys; the server never needs it)")
    print(f"Keep apart:          {home / 'kek'} from every copy of {home / 'store'} (it opens the sealed decks)")
    option = "" if home == HOME else f" --home {home}"
    print(
        f"Next:                `rgs serve{option}` to serve, then `rgs play{option}`: its lobby offers to set up tables"
    )
    print("                     `rgs demo` to see whole games verified")
