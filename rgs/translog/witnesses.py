"""The log's side of C2SP tlog-witness: after publishing, ask the witnesses of a policy to cosign (`cosign_checkpoint`).

A witness that is away, slow or wrong delays its own cosignature and nothing else: its failure is told, the note goes on
without its line. One that has seen another size (409) is asked again from there. What it answers is believed only as
far as it verifies under the key that the policy names. Refuses to follow redirects and to read answers without end.

Blocking: who plays calls this on a thread of its own.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from rgs.core.checkpoints import parse_checkpoint, parse_size
from rgs.core.errors import FormatError, RgsError, UnavailableError, VerificationError
from rgs.core.note import Note, NoteSignature, add_signatures, parse_signatures, verify_note
from rgs.core.policies import Party
from rgs.core.witnessing import SIZE_TYPE, STALE, AddCheckpoint, format_add_checkpoint

TIMEOUT_S: Final = 5.0
ANSWER_BYTES_MAX: Final = 16_384
ASKED_MAX: Final = 3
"""Times that one witness is asked about one checkpoint: its size may move between two."""

Prove = Callable[[int, int], Sequence[bytes]]
"""(old size, new size) -> consistency proof, empty where old is 0 or new."""


class WitnessUnavailableError(UnavailableError):
    """A witness did not answer, or not as the standard says."""

    reason = "WITNESS_UNAVAILABLE"


@dataclass(slots=True)
class Witnesses:
    """The witnesses of a log: `parties` by their name in the policy, those with a URL. Remembers what each has seen."""

    parties: Mapping[str, Party]
    timeout_s: float = TIMEOUT_S
    seen: dict[str, int] = field(default_factory=dict)
    failures: dict[str, RgsError] = field(default_factory=dict)
    """Of the last checkpoint: witness -> why it has not cosigned."""

    def cosign_checkpoint(self, note: Note, prove: Prove) -> Note:
        """The note with every cosignature that could be had; it is published in the place of the one given."""
        return add_signatures(note, self.ask(note, prove))

    def ask(self, note: Note, prove: Prove) -> list[NoteSignature]:
        """The cosignatures that could be had; `failures` tells of the others."""
        asked = {name: party for name, party in self.parties.items() if party.url}
        self.failures = {}
        lines: list[NoteSignature] = []
        with ThreadPoolExecutor(max_workers=max(len(asked), 1)) as threads:
            running = {name: threads.submit(self._ask, name, party, note, prove) for name, party in asked.items()}
            for name, answer in running.items():
                try:
                    lines += answer.result()
                except RgsError as error:
                    self.failures[name] = error
        return lines

    def _ask(self, name: str, party: Party, note: Note, prove: Prove) -> list[NoteSignature]:
        size = parse_checkpoint(note.text).size
        old = min(self.seen.get(name, 0), size)
        for _ in range(ASKED_MAX):
            body = format_add_checkpoint(AddCheckpoint(old, tuple(prove(old, size)), note))
            status, kind, answer = self._post(party.url, body)
            if status == http.client.OK:
                self.seen[name] = size
                return _cosignatures(party, note, answer)
            if status != STALE or kind != SIZE_TYPE:
                told = answer[:200].decode("ascii", "replace").strip()
                raise VerificationError(f"witness {name} refuses: {status} {told}", field="witness", value=status)
            old = self.seen[name] = parse_size(answer.decode("ascii", "replace").removesuffix("\n"))
            if old > size:
                raise VerificationError(
                    f"witness {name} has seen a tree of {old} leaves: this one has {size}", value=size, limit=old
                )
        raise WitnessUnavailableError(f"witness {name} names another size each time", witness=name)

    def _post(self, url: str, body: bytes) -> tuple[int, str, bytes]:
        where = urlsplit(url)
        connect = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(where.scheme)
        if connect is None or not where.hostname:
            raise FormatError("the URL of a witness is http or https", field="url", value=url[:100])
        connection = connect(where.hostname, where.port, timeout=self.timeout_s)
        try:
            path = f"{where.path.rstrip('/')}/add-checkpoint"
            connection.request("POST", path, body, {"Content-Type": "text/plain; charset=utf-8"})
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX + 1)
            if len(answer) > ANSWER_BYTES_MAX:
                raise WitnessUnavailableError(f"{url} answers more than {ANSWER_BYTES_MAX} bytes", url=url)
            return response.status, response.getheader("Content-Type", ""), answer
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise WitnessUnavailableError(f"{url} does not answer: {type(error).__name__}", url=url) from None
        finally:
            connection.close()


def _cosignatures(party: Party, note: Note, answer: bytes) -> list[NoteSignature]:
    """The lines of an answer that are this witness's and verify over this note."""
    try:
        lines = parse_signatures(answer.decode())
    except UnicodeDecodeError:
        raise FormatError("a cosignature is UTF-8", field="signature") from None
    own = [line for line in lines if (line.name, line.key_id) == (party.key.name, party.key.key_id)]
    verify_note(Note(note.text, tuple(own)), [party.key])
    return own
