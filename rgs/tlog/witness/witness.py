"""A witness of transparency logs (C2SP tlog-witness): judges a request, keeps the row, cosigns.

`rgs.core.tlog.witness.judge` decides. The order here is: compare with the row, cosign, persist, and only then answer.
Unknown logs are refused. A cosignature says one thing: at this time this was the largest tree of the origin that the
witness had seen, and every smaller one is its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rgs.core.clock import Clock
from rgs.core.statements import Signer
from rgs.core.tlog.note import NoteKey, add_signatures, cosign, format_note, format_signature
from rgs.core.tlog.witness import SeenTree, judge, origin_of, parse_add_checkpoint
from rgs.store.witness import WitnessStore


class Witness:
    """One witness: `name` is that of its key, `logs` are the keys of the logs that it cosigns."""

    def __init__(self, name: str, signer: Signer, logs: Sequence[NoteKey], store: WitnessStore, clock: Clock) -> None:
        self._name = name
        self._signer = signer
        self._logs = tuple(logs)
        self._store = store
        self._clock = clock

    def add_checkpoint(self, body: bytes) -> str:
        """The cosignature line that answers a request. FormatError, WitnessRefusalError, UnavailableError."""
        request = parse_add_checkpoint(body)
        origin = origin_of(request)
        keys = [key for key in self._logs if key.name == origin]
        made = []

        def decide(seen: SeenTree) -> tuple[SeenTree, bytes]:
            after, note = judge(request, keys, seen)
            line = cosign(note.text, self._name, self._signer, self._clock.now_ms() // 1000)
            made.append(format_signature(line))
            return after, format_note(add_signatures(note, [line]))

        self._store.advance(origin, decide)
        return made[0]

    def checkpoint(self, origin_hash: str) -> bytes | None:
        """The newest note cosigned for the origin of this hash (hex SHA-256); None if there is none."""
        for origin, note in self._store.notes().items():
            if hashlib.sha256(origin.encode()).hexdigest() == origin_hash:
                return note
        return None
