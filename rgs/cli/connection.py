"""How a command that looks something up, or gives an order, reaches the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rgs.cli.options import note
from rgs.core.errors import UnavailableError
from rgs.devkit.client import CallError, Client, ClientIdentity, OutcomeUnknownError, address_of
from rgs.node.config import check_address, open_home


def with_client(home: Path, party: str, server: str | None, ask: Callable[[Client], int | None]) -> int:
    """Connect as the party and ask; the exit status, 0 where `ask` gives none. A refusal is printed with its reason and
    is 1. UnavailableError without an answer.
    """
    config = open_home(home)
    address = check_address("server", server) if server else address_of(config)
    with Client(address, ClientIdentity.of_party(config, party)) as client:
        try:
            return ask(client) or 0
        except OutcomeUnknownError as error:
            raise UnavailableError(f"no answer from {address}: {error.message}; does the server run?") from None
        except CallError as error:
            note(f"rgs: {error}")
            return 1
