"""The log's side of C2SP tlog-witness: ask one witness to cosign one checkpoint, or to show what it has seen.

A cosignature counts only if it verifies under the key that the policy names and its time is near ours. A witness that
has seen another size (409) is asked again from there. Redirects are not followed, answers have a limit, and plain HTTP
to another machine is refused.

Blocking: `rgs.tlog.cosigning` asks on threads of its own.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, UnavailableError, VerificationError
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint, parse_size
from rgs.core.tlog.note import NOTE_BYTES_MAX, Note, NoteKey, NoteSignature, parse_note, parse_signatures, verify_note
from rgs.core.tlog.policies import Party
from rgs.core.tlog.witness import SIZE_TYPE, STALE, AddCheckpoint, WitnessRefusalError, format_add_checkpoint

TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = NOTE_BYTES_MAX
REQUESTED_MAX: Final = 3
"""How often one witness is asked about one checkpoint: its size may change between two requests."""
OFF_S_MAX: Final = 300
"""How far the time of a cosignature may be from our time, in seconds."""
URL_LIMIT: Final = "https, or http on this machine (loopback)"

Prove = Callable[[int, int], Sequence[bytes]]
"""(old size, new size) -> consistency proof, empty where old is 0 or new."""


class WitnessUnavailableError(UnavailableError, reason="WITNESS_UNAVAILABLE"):
    """A witness did not answer, or its answer does not follow the standard."""


def check_url(url: str, field_: str = "url") -> str:
    """The address of a witness; InvalidFieldError for a malformed one, and for plain HTTP to another machine."""
    try:
        where = urlsplit(url)
        fits = where.scheme == "https" or (where.scheme == "http" and _is_loopback(where.hostname or ""))
        fits = fits and bool(where.hostname) and where.port != 0 and not (where.query or where.fragment)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidFieldError(
            f"the address of a witness must be {URL_LIMIT}", field=field_, limit=URL_LIMIT, value=ascii(url[:100])
        )
    return url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class Witnesses:
    """The witnesses of a log: `parties` by their name in the policy, each with its address. The size that each has seen
    is remembered. `tls` has the roots that https trusts; None: those of the system.
    """

    parties: Mapping[str, Party]
    clock: Clock
    tls: ssl.SSLContext | None = None
    timeout_s: float = TIMEOUT_S
    seen: dict[str, int] = field(default_factory=dict)

    def ask(self, name: str, note: Note, prove: Prove) -> list[NoteSignature]:
        """The cosignature of one witness. WitnessUnavailableError; WitnessRefusalError with the status it gave;
        VerificationError, FormatError where its answer does not verify.
        """
        party, size = self.parties[name], parse_checkpoint(note.text).size
        old = min(self.seen.get(name, 0), size)
        for _ in range(REQUESTED_MAX):
            body = format_add_checkpoint(AddCheckpoint(old, tuple(prove(old, size)), note))
            status, kind, answer = self._send(party.url, "POST", "/add-checkpoint", body)
            if status == HTTPStatus.OK:
                self.seen[name] = size
                return self._cosignatures(name, note, answer)
            if status != STALE or kind != SIZE_TYPE:
                why = answer[:200].decode("ascii", "replace").strip()
                raise WitnessRefusalError(f"witness {name} refuses: {status} {why}", witness=name, status=status)
            old = self.seen[name] = parse_size(answer.decode("ascii", "replace").removesuffix("\n"))
            if old > size:
                raise WitnessRefusalError(
                    f"witness {name} has seen a tree of {old} leaves: this one has {size}",
                    witness=name,
                    status=status,
                    size=old,
                )
        raise WitnessUnavailableError(f"witness {name} names another size each time", witness=name)

    def seen_by(self, name: str, key: NoteKey) -> Checkpoint:
        """The newest checkpoint that a witness shows of the log with this key. The key has signed it, so the witness
        cannot have invented it. WitnessUnavailableError, VerificationError, FormatError.
        """
        path = f"/{hashlib.sha256(key.name.encode()).hexdigest()}/checkpoint"
        status, _, answer = self._send(self.parties[name].url, "GET", path, None)
        if status != HTTPStatus.OK:
            raise WitnessUnavailableError(f"witness {name} does not show its checkpoint: status {status}", witness=name)
        note = parse_note(answer)
        verify_note(note, [key])
        checkpoint = parse_checkpoint(note.text)
        if checkpoint.origin != key.name:
            raise VerificationError(f"witness {name} shows a checkpoint of another log", witness=name)
        return checkpoint

    def _send(self, url: str, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        import http.client  # noqa: PLC0415 - a server starts without it, and most have no witness

        where = urlsplit(check_url(url))
        host = where.hostname or ""
        connection = (
            http.client.HTTPSConnection(host, where.port, timeout=self.timeout_s, context=self.tls)
            if where.scheme == "https"
            else http.client.HTTPConnection(host, where.port, timeout=self.timeout_s)
        )
        try:
            kind = {"Content-Type": "text/plain; charset=utf-8"} if body is not None else {}
            connection.request(method, f"{where.path.rstrip('/')}{path}", body, kind)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise WitnessUnavailableError(f"{url} answers more than {ANSWER_BYTES_MAX} bytes", url=url)
            return response.status, response.getheader("Content-Type", ""), answer
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise WitnessUnavailableError(f"{url} does not answer: {type(error).__name__}", url=url) from None
        finally:
            connection.close()

    def _cosignatures(self, name: str, note: Note, answer: bytes) -> list[NoteSignature]:
        """The lines of an answer that are this witness's, verify over this note, and tell a time near ours."""
        key = self.parties[name].key
        try:
            lines = parse_signatures(answer.decode())
        except UnicodeDecodeError:
            raise FormatError("a cosignature is UTF-8", field="signature") from None
        own = [line for line in lines if (line.name, line.key_id) == (key.name, key.key_id)]
        now_s = self.clock.now_ms() // 1000
        for one in verify_note(Note(note.text, tuple(own)), [key]):
            if abs(one.time_s - now_s) > OFF_S_MAX:
                raise VerificationError(
                    f"witness {name} says that it is {one.time_s}, here it is {now_s}: one of the clocks is wrong",
                    witness=name,
                    field="time_s",
                    limit=OFF_S_MAX,
                    value=one.time_s - now_s,
                )
        return own
