"""`rgs play`: plays by hand in a terminal against a running server, and verifies every signed statement.

It is a small player's front end in English, Italian and German (`rgs.devkit.terminal.i18n`), with a lobby, games for
one player, and tables. It shows the server's views, sends decisions, and checks each statement that it gets
(`rgs.devkit.terminal.proof`). It stops playing in a session whose statements do not verify. The next start offers a
session that was left open again. With piped input it reads lines instead of keys; when the input ends it leaves, and
the session stays open at the server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer

from rgs.cli.options import HOME, HomeOption, new_app, note
from rgs.core.amounts import format_money
from rgs.core.errors import InvalidFieldError, UnavailableError
from rgs.core.texts import LANGUAGES
from rgs.devkit.client import CallError, Client, ClientIdentity, OutcomeUnknownError, address_of
from rgs.devkit.shipped_tables import SHIPPED_TABLES, set_up, shipped_table
from rgs.devkit.terminal.game_screen import GameScreen
from rgs.devkit.terminal.history_screen import HistoryScreen
from rgs.devkit.terminal.i18n import language_of, load_words
from rgs.devkit.terminal.key_path import Keys
from rgs.devkit.terminal.lobby_screen import Chosen, Lobby
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.session_screen import LeftError
from rgs.devkit.terminal.table_game import TableGame
from rgs.devkit.terminal.terminal import InputEndedError, Keyboard, open_console
from rgs.node.config import Config, check_address, open_home
from rgs.node.files import check_fingerprint
from rgs.node.keyring import ROOT_FINGERPRINT, read_fingerprint
from rgs.v1.catalog_pb2 import Game, ListGamesRequest
from rgs.v1.common_pb2 import SESSION_STATUS_OPEN, SessionView
from rgs.v1.session_pb2 import ListSessionsRequest
from rgs.v1.table_pb2 import TableEntry

PARTY: Final = "demo-operator"
ADMIN: Final = "demo-admin"
PLAYER: Final = "demo-player"
INTERRUPTED: Final = 130


app = new_app()


@app.command()
def play(
    game: Annotated[
        str | None, typer.Option(help="A game for one player: uth-solo or casino-holdem; without it you can choose.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="A table, by its id in the lobby.")] = None,
    player: Annotated[str, typer.Option(help="The player's pseudonym.")] = PLAYER,
    server: Annotated[str | None, typer.Option(help="HOST:PORT; default: the home's server.")] = None,
    party: Annotated[str, typer.Option(help="The operator; its certificate must be in the home.")] = PARTY,
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, brought from outside.")] = None,
    language: Annotated[str | None, typer.Option(help="en, it or de; default: the language of LANG, or en.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Show past rounds, and verify them.")] = False,
    home: HomeOption = HOME,
) -> int:
    """Play by hand against a running server, and see every round verified."""
    if language is not None and language not in LANGUAGES:
        known = " ".join(LANGUAGES)
        raise InvalidFieldError(f"language must be one of {known}", field="language", limit=known, value=language[:40])
    words = load_words(language or language_of(os.environ))
    config = open_home(home)
    console = open_console()
    client = Client(
        check_address("server", server) if server else address_of(config), ClientIdentity.of_party(config, party)
    )
    with client, Keyboard(console, prompt=words.texts["say.prompt"]) as keyboard:
        prompt = Prompt(console, keyboard, words)
        try:
            return _play(client, prompt, config, (game, table), player, _fingerprint(config, root), history=history)
        except OutcomeUnknownError as error:
            raise UnavailableError(f"no answer from {client.address}: {error.message}; does the server run?") from None
        except CallError as error:
            note(f"rgs: {prompt.screen.refusal(error)}")
            return 1


def _play(
    client: Client,
    prompt: Prompt,
    config: Config,
    wanted: tuple[str | None, str | None],
    player: str,
    root: str | None,
    *,
    history: bool,
) -> int:
    """`wanted`: a game or a table, both None if the person is to choose. `root`: the root's fingerprint."""
    games = {one.ruleset.id: one for one in client.call(client.catalog.ListGames, ListGamesRequest()).games}
    keys = Keys(client, root)
    try:
        if history:
            HistoryScreen(client, prompt, keys, games, player).browse()
            return 0
        left_open = _resumed(client, prompt, player)
        if left_open is not None:
            wanted = (None, left_open.table) if left_open.table else (left_open.ruleset.id, None)
        chosen = _chosen(Lobby(client, prompt, games, _admin(config, client.address)), prompt, games, *wanted)
        if chosen is None:
            return 1
        screen: GameScreen | TableGame
        if isinstance(chosen, TableEntry):
            screen, table = TableGame(client, prompt, keys, games, chosen), chosen.table
        else:
            screen, table = GameScreen(client, prompt, keys, games, chosen.ruleset.id), ""
        if left_open is not None:
            screen.resume(left_open.session_id)
        else:
            screen.open(player, table)
        screen.run()
    except (InputEndedError, LeftError):
        if not history:
            prompt.say("", prompt.words("say.stays_open"))
        return 0
    except KeyboardInterrupt:
        prompt.say("", prompt.words("say.interrupted"))
        return INTERRUPTED
    return 1 if screen.is_broken else 0


def _chosen(
    lobby: Lobby, prompt: Prompt, games: Mapping[str, Game], game: str | None, table: str | None
) -> Chosen | None:
    """The game or the table, named or picked in the lobby; None, with a note, if there is none of that name."""
    words = prompt.words
    if table is not None:
        tables = lobby.tables()
        if table not in tables:
            note(f"rgs: {words('lobby.no_table', table=table, tables=', '.join(tables) or '-')}")
        return tables.get(table)
    if game is None:
        return lobby.choose()
    if game not in games:
        solo = ", ".join(name for name, one in games.items() if not one.table_only)
        note(f"rgs: {words('say.no_game', game=game, games=solo)}")
    return games.get(game)


def _admin(config: Config, address: str) -> Callable[[], None] | None:
    """Has the development admin of the home set up the shipped tables. None where the home has no key of it."""
    identity = ClientIdentity.of_party(config, ADMIN)
    if not identity.key.is_file():
        return None

    def set_up_tables() -> None:
        with Client(address, identity) as admin:
            set_up(admin, map(shipped_table, SHIPPED_TABLES), "DEVELOPMENT_SET_UP")

    return set_up_tables


def _resumed(client: Client, prompt: Prompt, player: str) -> SessionView | None:
    """A session that was left open, if the person wants to continue it."""
    request = ListSessionsRequest(player=player, open_only=True)
    for session in client.call(client.sessions.ListSessions, request).sessions:
        if session.status != SESSION_STATUS_OPEN:
            continue
        balance = format_money(session.balance_minor, session.currency)
        ids = {"game": session.game_name, "session": session.regulator_session_id, "amount": balance}
        prompt.say(prompt.words("say.left_open", **ids))
        if prompt.choose("resume", "ignore", default="resume") == "resume":
            return session
    return None


def _fingerprint(config: Config, given: str | None) -> str | None:
    """The root's fingerprint: as given, else from the home; None if the home has none."""
    if given is not None:
        return check_fingerprint(given, "root")
    return read_fingerprint(config.keys) if (config.keys / ROOT_FINGERPRINT).is_file() else None
