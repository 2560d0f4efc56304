"""`rgs play`: play by hand in a terminal against a running server, and see every signed statement verified.

A player's front end in small: it shows what the server's views say, sends decisions, and checks each statement it gets
(`rgs.cli.proof`). A session or round that was left open is offered again at the next start. With piped input it reads
lines instead of keys; when input ends it leaves, and everything stays at the server as it is.

Refuses to play on in a session whose statements do not verify, and to send a request again under a new id.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from rgs.cli.cards_art import format_amount
from rgs.cli.client import CallError, Client, Identity, OutcomeUnknownError, address_of
from rgs.cli.files import check_fingerprint
from rgs.cli.keyring import ROOT_FINGERPRINT, read_fingerprint
from rgs.cli.options import HOME, HomeOption, note, open_home
from rgs.cli.proof import Keys
from rgs.cli.sitting import LeftError, Sitting
from rgs.cli.terminal import InputEndedError, Keyboard, open_console
from rgs.config import Config
from rgs.core.errors import UnavailableError
from rgs.v1.catalog_pb2 import Game, ListGamesRequest
from rgs.v1.common_pb2 import SESSION_STATUS_OPEN, SessionView
from rgs.v1.session_pb2 import ListSessionsRequest

PARTY: Final = "demo-operator"
PLAYER: Final = "demo-player"
INTERRUPTED: Final = 130


def play(
    game: Annotated[str | None, typer.Option(help="uth-solo or casino-holdem; asked for where not given.")] = None,
    player: Annotated[str, typer.Option(help="The player's pseudonym.")] = PLAYER,
    server: Annotated[str | None, typer.Option(help="HOST:PORT; the home's own where not given.")] = None,
    party: Annotated[str, typer.Option(help="The operator whose certificate lies in the home.")] = PARTY,
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, brought from outside.")] = None,
    home: HomeOption = HOME,
) -> int:
    """Play by hand against a running server, and see every round verified."""
    config = open_home(home)
    console = open_console()
    client = Client(server or address_of(config), Identity.of_party(config, party))
    with client, Keyboard(console) as keyboard:
        try:
            return _play(client, console, keyboard, game, player, _fingerprint(config, root))
        except OutcomeUnknownError as error:
            raise UnavailableError(f"no answer from {client.address}: {error.message}; does the server run?") from None
        except CallError as error:
            note(f"rgs: {error}")
            return 1


def _play(client: Client, console: Console, keyboard: Keyboard, game: str | None, player: str, root: str | None) -> int:
    games = {one.ruleset.id: one for one in client.call(client.catalog.ListGames, ListGamesRequest()).games}
    keys = Keys(client, root)
    try:
        left_open = _resumed(client, console, keyboard, player)
        chosen = left_open.ruleset.id if left_open is not None else game or _chosen(console, keyboard, games)
        if chosen not in games:
            note(f"rgs: there is no game {chosen}; there are {', '.join(_solo(games))}")
            return 1
        sitting = Sitting(client, console, keyboard, keys, games[chosen])
        if left_open is not None:
            sitting.resume(left_open.session_id)
        else:
            sitting.open(player)
        sitting.run()
    except (InputEndedError, LeftError):
        console.print("\n  The session stays open at the server: start again to go on with it.")
        return 0
    except KeyboardInterrupt:
        console.print("\n  Interrupted. The session stays open at the server: start again to go on with it.")
        return INTERRUPTED
    return 1 if sitting.is_broken else 0


def _resumed(client: Client, console: Console, keyboard: Keyboard, player: str) -> SessionView | None:
    """A session of the player that was left open, if the person wants to go on with it."""
    request = ListSessionsRequest(player=player, open_only=True)
    for session in client.call(client.sessions.ListSessions, request).sessions:
        if session.status != SESSION_STATUS_OPEN:
            continue
        balance = format_amount(session.balance_minor, session.currency)
        console.print(
            Text(f"  {session.game_name} was left open: session {session.regulator_session_id}, balance {balance}")
        )
        console.print(Text("  [y] go on with it   [n] leave it as it is"))
        if keyboard.key("yn", "y") == "y":
            return session
    return None


def _chosen(console: Console, keyboard: Keyboard, games: dict[str, Game]) -> str:
    solo = _solo(games)
    for number, name in enumerate(solo, 1):
        console.print(Text(f"  [{number}] {games[name].name} ({name})"))
    return solo[int(keyboard.key("".join(str(number) for number in range(1, len(solo) + 1)), "1")) - 1]


def _solo(games: dict[str, Game]) -> list[str]:
    return [name for name, one in games.items() if not one.table_only]


def _fingerprint(config: Config, given: str | None) -> str | None:
    """The root's fingerprint: as given, or as it lies in the home; None where there is none."""
    if given is not None:
        return check_fingerprint(given, "root")
    return read_fingerprint(config.keys) if (config.keys / ROOT_FINGERPRINT).is_file() else None


def main(arguments: list[str], _manifest: Any) -> int:
    """Run the command; the exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(play)
    status = typer.main.get_command(app).main(args=arguments, prog_name="rgs play", standalone_mode=False)
    return status if isinstance(status, int) else 0
