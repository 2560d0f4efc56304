"""The generator process: the certified unit behind a local socket, a generator and a thread for each connection.

It uses the standard library and `rng` alone. The kernel says which user is at the other end (SO_PEERCRED); every user
but one is refused. A name is never drawn under by two connections at once. What it reports are the lives of its
generators, each with the number of its draws: an auditor can compare that with `instance_end`. It reports, keeps and
writes no byte of a draw.

The generator of a connection ends with it. After SIGTERM all connections are closed; the servers then draw no more, so
they are stopped before.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rgs.core.errors import InvalidFieldError, RgsError
from rgs.node.generator.wire import (
    CLOSE,
    DRAW,
    LENGTH_BYTES,
    PASSED,
    SELFTEST,
    WireError,
    format_begun,
    format_drawn,
    format_ended,
    format_refused,
    framed,
    length_of,
    parse_hello,
)
from rng.errors import GeneratorFailedError, RngError
from rng.generator import Generator

CONNECTIONS_MAX: Final = 600
"""More than 256 workers need, while each of them hands over to its next instance."""
HELLO_S: Final = 5.0
"""A connection that has not said HELLO by then is closed."""
LEFT_BYTES: Final = 4_096
PATH_BYTES_MAX: Final = 107
"""The kernel's limit for the path of a socket."""
_PEER: Final = struct.Struct("3i")

Report = Callable[..., None]
"""Takes an event by name, with facts as keywords."""


class SocketTakenError(RgsError, reason="SOCKET_TAKEN"):
    """Another generator process serves at this path."""


class _RefusedError(Exception):
    """A HELLO begins nothing; the text is its code."""


@contextlib.contextmanager
def listening_at(path: Path, *, for_others: bool) -> Iterator[socket.socket]:
    """A socket at `path`, for its owner (mode 0600), or for its group, too (0660). It is removed at the end.

    SocketTakenError, InvalidFieldError.
    """
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        limit = f"at most {PATH_BYTES_MAX} bytes"
        raise InvalidFieldError(f"the path of a socket has {limit}", field="socket", limit=limit, value=path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        _remove_stale(path)
        before = os.umask(0o777)  # nobody connects before the mode is set
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(before)
        made = path.stat().st_ino
        path.chmod(0o660 if for_others else 0o600)
        listener.listen(CONNECTIONS_MAX)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == made:
                    path.unlink()


def _remove_stale(path: Path) -> None:
    """Remove the socket that a killed process has left. SocketTakenError if somebody answers, or it is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketTakenError(f"{path} exists and is no socket: remove it, or name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SocketTakenError(f"another process serves at {path}")


class GeneratorServer:
    """Serves generators to one user. `run` accepts connections until an exception breaks it off, then ends them all."""

    def __init__(self, listener: socket.socket, user: int, rng_hash: bytes, report: Report) -> None:
        """`user` is the only one whose processes may draw; `rng_hash` names the software to them."""
        self._listener = listener
        self._user = user
        self._rng_hash = rng_hash
        self._report = report
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._names: set[str] = set()

    def run(self) -> None:
        """Accept connections."""
        threads: list[threading.Thread] = []
        try:
            while True:
                connection, _ = self._listener.accept()
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                threads[-1].start()
        finally:
            with self._lock:
                for connection in self._open:
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(HELLO_S)

    def _serve(self, connection: socket.socket) -> None:
        """One connection, from its HELLO to its end."""
        with connection, self._counted(connection) as is_one_too_many:
            try:
                connection.settimeout(HELLO_S)
                instance = parse_hello(_receive(connection))
                self._verify_peer(connection, is_one_too_many=is_one_too_many)
                with self._named(instance):
                    self._serve_instance(connection, instance)
            except _RefusedError as error:
                self._refuse(connection, str(error))
            except RngError as error:  # the self-test or the start-up test of the source failed: nothing was begun
                self._refuse(connection, error.reason)
            except (WireError, OSError, EOFError) as error:
                self._report("connection_broken", why=str(error) or type(error).__name__)

    def _serve_instance(self, connection: socket.socket, instance: str) -> None:
        generator = Generator(instance)
        try:
            self._report("generator_instantiated", instance=instance)
            connection.settimeout(None)
            connection.sendall(framed(format_begun(self._rng_hash)))
            with contextlib.suppress(GeneratorFailedError):
                while (request := _receive(connection)) != CLOSE:
                    connection.sendall(framed(_answer(generator, request)))
            connection.sendall(framed(format_ended(generator.close())))
            connection.settimeout(HELLO_S)
            while connection.recv(LEFT_BYTES):  # requests on their way; closing over them would lose the end
                pass
        except EOFError:  # the server's process has ended
            pass
        finally:
            event = generator.close()
            self._report(f"generator_{event.kind}", instance=instance, reason=event.reason, draws=event.draws)

    def _refuse(self, connection: socket.socket, code: str) -> None:
        self._report("connection_refused", code=code)
        with contextlib.suppress(OSError):
            connection.sendall(framed(format_refused(code)))

    def _verify_peer(self, connection: socket.socket, *, is_one_too_many: bool) -> None:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        _, user, _ = _PEER.unpack(peer)
        if user != self._user:
            raise _RefusedError("ANOTHER_USER")
        if is_one_too_many:
            raise _RefusedError("TOO_MANY_CONNECTIONS")

    @contextlib.contextmanager
    def _counted(self, connection: socket.socket) -> Iterator[bool]:
        with self._lock:
            self._open.add(connection)
            is_one_too_many = len(self._open) > CONNECTIONS_MAX
        try:
            yield is_one_too_many
        finally:
            with self._lock:
                self._open.discard(connection)

    @contextlib.contextmanager
    def _named(self, instance: str) -> Iterator[None]:
        with self._lock:
            if instance in self._names:
                raise _RefusedError("INSTANCE_IN_USE")
            self._names.add(instance)
        try:
            yield
        finally:
            with self._lock:
                self._names.discard(instance)


def _answer(generator: Generator, request: bytes) -> bytes:
    """GeneratorFailedError, WireError."""
    match request:
        case _ if request == DRAW:
            return format_drawn(generator.draw())
        case _ if request == SELFTEST:
            generator.selftest()
            return PASSED
        case _:
            raise WireError(f"a request of {len(request)} bytes that is not known")


def _receive(connection: socket.socket) -> bytes:
    """The next message. EOFError at the end of the connection; WireError."""
    return _exactly(connection, length_of(_exactly(connection, LENGTH_BYTES)))


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = connection.recv(count - len(found))
        if not more:
            raise EOFError("the connection has ended")
        found += more
    return found
