"""`rgs generator serve`: the generator as a process of its own, behind a local socket (docs/generator.md).

It is started isolated and measured as `rgs serve` is, and refuses the same. It reports to standard output, one JSON
object a line: the lives of its generators, and refused connections. No byte of a draw is in it.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from rgs.cli.commands import NotUnderstoodError, PlainParser
from rgs.core.errors import InvalidFieldError
from rgs.integrity.isolation import verify_isolated
from rgs.integrity.manifest import Manifest, ManifestError, verify_loaded
from rgs.node.generator.serving import GeneratorServer, listening_at
from rgs.node.generator.wire import rng_sha256
from rng import __version__ as rng_version
from rng import selftest

_CERTIFIED: Final = "certified.json"
_USER_MAX: Final = 2**32 - 2


def command(arguments: Sequence[str], manifest: Manifest) -> int:
    """Serve until SIGTERM or SIGINT. NotUnderstoodError for arguments that are not understood."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.help:
        print(parser.format_help(), end="")
        return 0
    if given.order != "serve" or given.socket is None:
        raise NotUnderstoodError("say `rgs generator serve --socket PATH` (see `rgs generator --help`)")
    user = os.geteuid() if given.user is None else _user(given.user)
    manifest.verify_locked()
    verify_isolated()
    verify_loaded()
    _verify_certified(given.home, manifest)
    selftest.run()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        with listening_at(given.socket, for_others=user != os.geteuid()) as listener:
            _report("listening", socket=str(given.socket), user=user, rng=rng_version)
            GeneratorServer(listener, user, rng_sha256(manifest), _report).run()
    except SystemExit:
        _report("stopped")
    return 0


def _parser() -> PlainParser:
    parser = PlainParser(
        "rgs generator",
        "Serve the generator as a process of its own until SIGTERM or SIGINT, to a server whose `rgs.toml` says"
        ' generator = "unix:PATH". Stop that server first.',
    )
    parser.add_argument("order", nargs="?", metavar="serve", help="The only order.")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="Where it listens; at most 107 bytes.")
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="The server's user, by name or number: only its processes may draw. [default: the user of this process]",
    )
    parser.add_argument(
        "--home", type=Path, metavar="DIR", help=f"A folder whose {_CERTIFIED} the software must match."
    )
    return parser


def _user(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isascii() and name.isdecimal() and int(name) <= _USER_MAX:
            return int(name)
    raise InvalidFieldError(f"there is no user {name[:80]}", field="user", value=name[:80])


def _verify_certified(home: Path | None, manifest: Manifest) -> None:
    """ManifestError unless the launcher has compared the software with the manifest of the home that was named."""
    found = manifest.surroundings
    if home is not None and (found is None or found.certified != str(home.absolute() / _CERTIFIED)):
        raise ManifestError(f"{home} has no {_CERTIFIED}, or the launcher did not compare with it")


def _report(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
