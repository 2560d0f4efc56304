"""The witness as a program, and the log's side of it: status codes, forks, rollbacks, races, hostile requests."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest

from rgs.cli import witness as command
from rgs.cli.options import run_app
from rgs.core.errors import FormatError, InvalidFieldError, UnavailableError, VerificationError
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.merkle import consistency_proof, leaf_hash, node_hash, root_of
from rgs.core.tlog.note import (
    ED25519,
    Note,
    add_signatures,
    cosign,
    format_note,
    format_signature,
    format_vkey,
    note_key,
    parse_note,
    parse_vkey,
    sign_text,
)
from rgs.core.tlog.policies import Party, Policy, verify_checkpoint
from rgs.core.tlog.witness import AddCheckpoint, SeenTree, WitnessRefusalError, format_add_checkpoint
from rgs.node import witness_folder
from rgs.node.clock import SystemClock
from rgs.node.files import FileRefusedError
from rgs.node.keyring import parse_private_key
from rgs.store.witness import WitnessStore
from rgs.tlog.witness.serving import HEAD_BYTES_MAX, WitnessServer
from rgs.tlog.witnesses import Witnesses, WitnessUnavailableError, check_url
from tests.support.api.harness import authority, server_certificate

ORIGIN = "rgs.example/rounds"
LOG = Ed25519Signer.from_seed(bytes(32))
LOG_KEY = note_key(ORIGIN, ED25519, LOG)
LEAVES = [leaf_hash(str(number).encode()) for number in range(40)]
FORKED = [*LEAVES[:5], leaf_hash(b"another"), *LEAVES[6:]]


def checkpoint(size: int, leaves: list[bytes] = LEAVES, signer: Ed25519Signer = LOG) -> Note:
    text = format_checkpoint(Checkpoint(ORIGIN, size, root_of(leaves[:size])))
    return Note(text, (sign_text(text, ORIGIN, signer),))


def proof(old: int, new: int, leaves: list[bytes] = LEAVES) -> list[bytes]:
    def read(level: int, index: int) -> bytes:
        if not level:
            return leaves[index]
        return node_hash(read(level - 1, 2 * index), read(level - 1, 2 * index + 1))

    return consistency_proof(read, old, new)


def body(old: int, size: int, leaves: list[bytes] = LEAVES) -> bytes:
    return format_add_checkpoint(AddCheckpoint(old, tuple(proof(old, size, leaves)), checkpoint(size, leaves)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "witness"
    assert (
        run_app(command.app, "witness", ["init", str(made), "--name", "witness.example", "--log", format_vkey(LOG_KEY)])
        == 0
    )
    return made


@contextmanager
def served(folder: Path, request_s: float = 10.0, tls: ssl.SSLContext | None = None) -> Iterator[WitnessServer]:
    """The witness of a folder over HTTP, on a loop of its own."""
    witness, store = witness_folder.open_witness(folder)
    loop = asyncio.new_event_loop()
    server = WitnessServer(witness, "127.0.0.1", 0, tls=tls, request_s=request_s)
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        store.close()


async def exchange(port: int, data: bytes) -> tuple[int, str, bytes]:
    """Status, content type and body that raw bytes are answered with; status 0 for none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    writer.close()
    if not answer:
        return 0, "", b""
    head, _, rest = answer.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert int(fields["Content-Length"]) == len(rest)
    return int(head.split(b" ")[1]), fields["Content-Type"], rest


def post(port: int, content: bytes, path: str = "/add-checkpoint") -> tuple[int, str, bytes]:
    return asyncio.run(
        exchange(
            port, b"POST %s HTTP/1.1\r\nHost: w\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(content)) + content
        )
    )


def get(port: int, path: str) -> tuple[int, str, bytes]:
    return asyncio.run(exchange(port, f"GET {path} HTTP/1.1\r\nHost: w\r\n\r\n".encode()))


def party(folder: Path, port: int) -> Party:
    return Party(parse_vkey((folder / "witness.vkey").read_text().strip()), f"http://127.0.0.1:{port}")


# --- the program ------------------------------------------------------------------------------------------------------


def test_init_keeps_the_key_to_its_owner_and_is_not_done_twice(folder: Path) -> None:
    assert stat.S_IMODE((folder / "witness.key").stat().st_mode) == 0o600
    with pytest.raises(FileRefusedError):
        run_app(command.app, "witness", ["init", str(folder), "--name", "witness.example"])
    (folder / "witness.key").chmod(0o640)
    with pytest.raises(FileRefusedError, match="others may read"):
        witness_folder.open_witness(folder)


def test_a_folder_that_does_not_fit_together(folder: Path, tmp_path: Path) -> None:
    (folder / "logs.txt").write_text("# none yet\n")
    with pytest.raises(FileRefusedError, match="names no log"):
        witness_folder.open_witness(folder)
    other = tmp_path / "other"
    run_app(command.app, "witness", ["init", str(other), "--name", "witness.example"])
    (folder / "witness.vkey").write_bytes((other / "witness.vkey").read_bytes())
    with pytest.raises(FileRefusedError, match="is not the verifier key"):
        witness_folder.open_witness(folder)
    own = (other / "witness.vkey").read_text().strip()
    with pytest.raises(FormatError, match="a log has a key of kind 1"):
        run_app(command.app, "witness", ["init", str(tmp_path / "third"), "--name", "w", "--log", own])
    for listen in ("50571", "host:", "host:99999"):
        with pytest.raises(InvalidFieldError):
            run_app(command.app, "witness", ["serve", str(other), "--listen", listen])


def test_status_codes_over_http(folder: Path) -> None:
    stranger = checkpoint(3, signer=Ed25519Signer.from_seed(b"s" * 32))
    unknown = Note(
        text := f"other.example\n{checkpoint(3).text.partition(chr(10))[2]}", (sign_text(text, "other.example", LOG),)
    )
    with served(folder) as server:
        status, kind, line = post(server.port, body(0, 5))
        assert (status, kind) == (200, "text/plain; charset=utf-8")
        assert line.startswith("— witness.example ".encode())
        assert post(server.port, body(0, 9)) == (409, "text/x.tlog.size", b"5\n")
        assert post(server.port, body(5, 9))[0] == 200
        assert post(server.port, body(9, 9))[0] == 200  # again: the answer may have been lost
        assert post(server.port, format_add_checkpoint(AddCheckpoint(0, (), stranger)))[0] == 403
        assert post(server.port, format_add_checkpoint(AddCheckpoint(0, (), unknown)))[0] == 404
        assert post(server.port, format_add_checkpoint(AddCheckpoint(9, (), checkpoint(4))))[0] == 400
        assert post(server.port, body(9, 20, FORKED))[0] == 422
        assert post(server.port, body(9, 9, FORKED))[0] == 422  # same size, another root
        assert post(server.port, b"nothing of the kind")[0] == 400
        hashed = hashlib.sha256(ORIGIN.encode()).hexdigest()
        status, _, seen = get(server.port, f"/{hashed}/checkpoint")
        key = parse_vkey((folder / "witness.vkey").read_text().strip())
        accepted = verify_checkpoint(parse_note(seen), Policy((Party(LOG_KEY),), {"w": Party(key)}, {}, "w"))
        assert (status, accepted.checkpoint.size) == (200, 9)
        # What it shows holds the lines of the log and its own, whatever strangers put under the checkpoint.
        text = checkpoint(9).text
        crowd = [sign_text(text, f"stranger{number}.example", LOG) for number in range(63)]
        crowded = format_add_checkpoint(AddCheckpoint(9, (), add_signatures(checkpoint(9), crowd)))
        assert post(server.port, crowded)[0] == 200
        shown = parse_note(get(server.port, f"/{hashed}/checkpoint")[2])
        assert [line.name for line in shown.signatures] == [ORIGIN, "witness.example"]
        assert get(server.port, f"/{'0' * 64}/checkpoint")[0] == 404
        assert get(server.port, "/add-checkpoint")[0] == 405
        assert get(server.port, "/anything")[0] == 404


def test_hostile_requests_are_refused_and_the_witness_goes_on(folder: Path) -> None:
    with served(folder, request_s=2.0) as server:
        for data, status in (
            (b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", 413),
            (b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 400),
            (b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
            (b"POST /add-checkpoint HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
            (b"DELETE / HTTP/1.1\r\n\r\n", 400),
            (b"GET /../etc HTTP/2.0\r\n\r\n", 400),
            (b"x" * (2 * HEAD_BYTES_MAX) + b"\r\n\r\n", 400),
            (b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 10\r\n\r\nslow", 0),  # ended by its time
        ):
            assert asyncio.run(exchange(server.port, data))[0] in {status, 0}, data[:60]
        assert post(server.port, body(0, 5))[0] == 200


def test_of_many_at_once_one_fork_is_cosigned(folder: Path) -> None:
    witness, store = witness_folder.open_witness(folder)
    witness.add_checkpoint(body(0, 5))

    def ask(leaves: list[bytes]) -> int:
        try:
            witness.add_checkpoint(body(5, 20, leaves))
        except WitnessRefusalError as error:
            return error.status
        return 200

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, [LEAVES, FORKED] * 8))
    store.close()
    won = {index % 2 for index, answer in enumerate(answers) if answer == 200}
    assert len(won) == 1
    assert answers.count(200) == 1  # the others named a size that was gone


def test_what_was_cosigned_outlives_the_process_and_is_never_less(folder: Path) -> None:
    witness, store = witness_folder.open_witness(folder)
    witness.add_checkpoint(body(0, 9))
    store.close()
    witness, store = witness_folder.open_witness(folder)
    with pytest.raises(WitnessRefusalError):
        witness.add_checkpoint(body(0, 5))
    with pytest.raises(UnavailableError, match="does not go back"):
        store.advance(ORIGIN, lambda _: (SeenTree(4, bytes(32)), b"older"))
    assert witness.checkpoint(hashlib.sha256(ORIGIN.encode()).hexdigest()) is not None
    store.close()


def test_nothing_is_answered_that_was_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness, store = witness_folder.open_witness(folder)
    store.close()  # as a disk that fails
    with pytest.raises(UnavailableError):
        witness.add_checkpoint(body(0, 5))
    again = WitnessStore(folder / "seen.db")
    assert again.notes() == {}
    again.close()


# --- the log's side ---------------------------------------------------------------------------------------------------


def asking(folder: Path, port: int, **options: Any) -> Witnesses:
    """The log's side of the witness of a folder."""
    return Witnesses({"w": party(folder, port)}, SystemClock(), timeout_s=2, **options)


def test_the_log_asks_and_the_quorum_is_met(folder: Path) -> None:
    with served(folder) as server:
        witness = party(folder, server.port)
        policy = Policy((Party(LOG_KEY),), {"w": witness}, {}, "w")
        witnesses = asking(folder, server.port)
        for size in (5, 9, 40):
            note = add_signatures(checkpoint(size), witnesses.ask("w", checkpoint(size), proof))
            assert verify_checkpoint(parse_note(format_note(note)), policy).checkpoint.size == size
        # A log that has lost its memory asks from 0, is told the size, and asks again.
        anew = asking(folder, server.port)
        assert len(anew.ask("w", checkpoint(40), proof)) == 1
        assert anew.seen == {"w": 40}
        # One that was rolled back, or forks, is refused, and shown what was cosigned under its own key.
        with pytest.raises(WitnessRefusalError, match="has seen a tree of 40 leaves") as refused:
            anew.ask("w", checkpoint(9), proof)
        assert (refused.value.status, refused.value.size) == (409, 40)
        forked = asking(folder, server.port, seen={"w": 40})
        with pytest.raises(WitnessRefusalError) as refused:
            forked.ask("w", checkpoint(40, FORKED), lambda _old, _new: [])
        assert refused.value.status == 422
        assert anew.seen_by("w", LOG_KEY) == Checkpoint(ORIGIN, 40, root_of(LEAVES))
        other = note_key(ORIGIN, ED25519, Ed25519Signer.from_seed(b"s" * 32))
        with pytest.raises(VerificationError, match="no signature of a known key"):
            anew.seen_by("w", other)
        with pytest.raises(WitnessUnavailableError, match="404"):
            anew.seen_by("w", note_key("other.example", ED25519, LOG))
    with pytest.raises(WitnessUnavailableError, match="does not answer"):
        witnesses.ask("w", checkpoint(40), proof)


def lie(folder: Path, answer: bytes, ask: Callable[[Witnesses], object]) -> None:
    """Ask a witness that answers everything with these bytes."""

    async def lying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: ([0-9]+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(lying, "127.0.0.1", 0)
        try:
            await asyncio.to_thread(ask, asking(folder, server.sockets[0].getsockname()[1]))
        finally:
            server.close()

    asyncio.run(run())


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ok(b"x" * 70000), WitnessUnavailableError),
        (ok(b"\xff\xff\xff"), FormatError),
        (ok("— a AAAAAAAAAAA=\n".encode()), VerificationError),
        (
            b"HTTP/1.1 409 Conflict\r\nContent-Type: text/x.tlog.size\r\nContent-Length: 2\r\n\r\n4\n",
            WitnessUnavailableError,
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", WitnessRefusalError),
        (b"nonsense\r\n\r\n", WitnessUnavailableError),
    ],
)
def test_a_witness_that_answers_wrongly_is_told_and_not_believed(
    folder: Path, answer: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        lie(folder, answer, lambda witnesses: witnesses.ask("w", checkpoint(9), proof))


@pytest.mark.parametrize("off_s", [-3_600, -301, 330, 2**40])
def test_a_cosignature_of_another_time_is_not_taken(folder: Path, off_s: int) -> None:
    note, key = checkpoint(9), (folder / "witness.key").read_bytes()
    signer = Ed25519Signer(parse_private_key(key, "witness key"))
    now_s = SystemClock().now_ms() // 1000

    def answer(time_s: int) -> bytes:
        return ok(format_signature(cosign(note.text, "witness.example", signer, time_s)).encode())

    with pytest.raises(VerificationError, match="one of the clocks is wrong"):
        lie(folder, answer(now_s + off_s), lambda witnesses: witnesses.ask("w", note, proof))
    lie(folder, answer(now_s - 200), lambda witnesses: witnesses.ask("w", note, proof))


def test_what_a_witness_shows_is_believed_only_under_the_key_of_the_log(folder: Path) -> None:
    elsewhere = format_checkpoint(Checkpoint("other.example", 3, root_of(LEAVES[:3])))
    named = Note(elsewhere, (sign_text(elsewhere, ORIGIN, LOG),))
    stranger = checkpoint(3, signer=Ed25519Signer.from_seed(b"s" * 32))
    for shown, error in (
        (format_note(named), VerificationError),
        (format_note(stranger), VerificationError),
        (b"nothing", FormatError),
    ):
        with pytest.raises(error):
            lie(folder, ok(shown), lambda witnesses: witnesses.seen_by("w", LOG_KEY))


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://w.example",
            "http://w.example",
            "http://10.0.0.1:80",
            "https://",
            "w.example",
            "https://w.example:99999",
        ),
        *("https://[::1", "https://w.example/?x", "http://localhost.example", ""),
    ],
)
def test_an_address_that_is_none_or_leaves_the_machine_in_the_clear_is_refused(folder: Path, url: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        Witnesses({"w": Party(party(folder, 1).key, url)}, SystemClock()).ask("w", checkpoint(9), proof)
    assert refused.value.metadata["limit"] == "https, or http on this machine (loopback)"
    assert "value" in refused.value.metadata
    assert check_url("https://w.example/prefix/")
    assert check_url("http://[::1]:1")


def test_https_is_for_a_certificate_of_the_authorities_given(folder: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours = server_certificate()
    with NamedTemporaryFile() as file:
        file.write(ours.certificate_pem + ours.key_pem)
        file.flush()
        tls.load_cert_chain(file.name)
    trusted = ssl.create_default_context(cadata=authority().certificate_pem.decode())
    note, key = checkpoint(9), party(folder, 1).key
    signer = Ed25519Signer(parse_private_key((folder / "witness.key").read_bytes(), "witness key"))
    line = format_signature(cosign(note.text, "witness.example", signer, SystemClock().now_ms() // 1000))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\n\n")
        writer.write(ok(line.encode()))
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        parties = {"w": Party(key, f"https://localhost:{server.sockets[0].getsockname()[1]}")}
        requested = Witnesses(parties, SystemClock(), trusted)
        assert len(await asyncio.to_thread(requested.ask, "w", note, proof)) == 1
        stranger = Witnesses(parties, SystemClock(), ssl.create_default_context())
        with pytest.raises(WitnessUnavailableError, match="SSLCertVerificationError"):
            await asyncio.to_thread(stranger.ask, "w", note, proof)
        server.close()

    asyncio.run(run())
