"""What a void is based on, as signed events show it: a malfunction of its round, a proposal, two admins (check 19).

A malfunction pauses the round until it is resumed. Decisions in between, and a void of a resumed round, do not come
from unmodified software. The event stands before the void, in the files as in time. A party is an admin from
CERTIFICATE_ADDED of such a certificate until CERTIFICATE_REMOVED. Memory grows with malfunctions, proposals and
certificates of admins, which are rare. In a cut export only what stands in it is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import VOID
from rgs.core.replay.reading import Statement

ADMIN: Final = "admin"
_SUBJECT_WORDS: Final = 3
"""Role, party and fingerprint."""


@dataclass(slots=True)
class Malfunction:
    """`round_id` and `session_id` are empty if the event does not name them."""

    round_id: str
    session_id: str
    time: str


@dataclass(slots=True)
class AdminCertificate:
    """The life of one certificate of an admin: its first addition and its first removal, each empty if none is told.
    The files may tell them in any order.
    """

    since: str = ""
    until: str = ""


class Voids:
    """The events of one replay that voids stand on."""

    def __init__(self) -> None:
        self._malfunctions: dict[str, Malfunction] = {}
        self._paused: dict[str, str] = {}
        """Round -> the malfunction that pauses it."""
        self._proposals: dict[str, list[tuple[str, str, str, str]]] = {}
        """Round -> (session or nothing, who, reason, time) of each proposal since the malfunction."""
        self._admins: dict[str, dict[str, AdminCertificate]] = {}
        """Party -> fingerprint -> life."""
        self._parties: dict[str, str] = {}
        """Fingerprint -> party: one certificate cannot stand for two admins."""
        self._approvals: list[tuple[str, str, VerificationError]] = []
        """Approvals (party, time), each with its error if the files do not show that an admin gave it."""

    def take(self, statement: Statement) -> None:
        """Take an event."""
        body: dict[str, Any] = statement.body
        round_id = body.get("round_id", "")
        match body["code"]:
            case "MALFUNCTION":
                result = Malfunction(round_id, body.get("session_id", ""), body["time"])
                self._malfunctions[statement.hash], self._paused[round_id] = result, statement.hash
            case "ROUND_RESUMED":
                self._paused.pop(round_id, None)
                self._proposals.pop(round_id, None)
            case "VOID_PROPOSED":
                proposal = (body.get("session_id", ""), body.get("actor", ""), body.get("reason", ""), body["time"])
                self._proposals.setdefault(round_id, []).append(proposal)
            case "CERTIFICATE_ADDED" | "CERTIFICATE_REMOVED":
                self._take_certificate(body)
            case _:
                pass

    def _take_certificate(self, body: dict[str, Any]) -> None:
        words = body.get("subject", "").split(" ")
        if len(words) != _SUBJECT_WORDS or words[0] != ADMIN:
            return
        _, party, fingerprint = words
        if self._parties.setdefault(fingerprint, party) != party:
            return
        life = self._admins.setdefault(party, {}).setdefault(fingerprint, AdminCertificate())
        # A recovery reports a certificate again: the first report counts.
        if body["code"] == "CERTIFICATE_ADDED":
            life.since = life.since or body["time"]
        else:
            life.until = life.until or body["time"]

    def verify(self, statement: Statement, opened: str, *, is_whole: bool) -> None:
        """Check 19 of a void whose final is right: the events behind it. `opened` is the time of its opening."""
        body: dict[str, Any] = statement.body
        void = body["void"]
        result = self._malfunctions.get(void["malfunction"])
        if result is None:
            if is_whole:
                raise statement.failure(VOID, f"{void['malfunction']} is not a malfunction event before it")
            return
        session_id = body.get("session_id", "")  # a table's final belongs to no session
        if result.round_id != body["round_id"] or result.session_id not in ("", session_id):
            raise statement.failure(VOID, f"the malfunction is that of round {result.round_id or 'none'}")
        if self._paused.get(result.round_id) != void["malfunction"]:
            raise statement.failure(VOID, "the round was resumed behind the malfunction, or paused by another one")
        times = [opened, result.time, *(approval["time"] for approval in void["approvals"])]
        if times != sorted(times):
            raise statement.failure(VOID, f"opening, malfunction and approvals are out of order: {', '.join(times)}")
        if any(window["close_time"] > result.time for window in body.get("windows", ())):
            raise statement.failure(VOID, f"a window was open while the round was paused since {result.time}")
        actions = body.get("actions", ())
        if actions and actions[-1]["time"] > result.time:
            raise statement.failure(VOID, f"a decision was taken while the round was paused since {result.time}")
        first = void["approvals"][0]
        proposed = (first["party"], void["reason"], first["time"])
        if is_whole:
            proposals = self._proposals.get(body["round_id"], ())
            if not any(result[1:] == proposed and result[0] in ("", session_id) for result in proposals):
                raise statement.failure(VOID, f"no proposal of {first['party']} at {first['time']} stands before it")
            self._note_approvals(statement)

    def _note_approvals(self, statement: Statement) -> None:
        for approval in statement.body["void"]["approvals"]:
            party, time = approval["party"], approval["time"]
            error = statement.failure(VOID, f"no event shows that {party} was an admin at {time}")
            self._approvals.append((party, time, error))

    def _is_admin(self, party: str, time: str) -> bool:
        return any(
            life.since and life.since <= time and not (life.until and life.until < time)
            for life in self._admins.get(party, {}).values()
        )

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        admins = self._admins.items()
        return {
            "admins": {party: {print_: asdict(life) for print_, life in lives.items()} for party, lives in admins},
            "approvals": [(party, time, error.message, error.metadata) for party, time, error in self._approvals],
            "malfunctions": {hash_: asdict(malfunction) for hash_, malfunction in self._malfunctions.items()},
            "parties": self._parties,
            "paused": self._paused,
            "proposals": self._proposals,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        for party, lives in state["admins"].items():
            self._admins[party] = {print_: AdminCertificate(**life) for print_, life in lives.items()}
        self._malfunctions = {hash_: Malfunction(**row) for hash_, row in state["malfunctions"].items()}
        self._parties, self._paused = dict(state["parties"]), dict(state["paused"])
        for round_id, proposals in state["proposals"].items():
            self._proposals[round_id] = [(session, who, reason, time) for session, who, reason, time in proposals]
        for party, time, message, metadata in state["approvals"]:
            self._approvals.append((party, time, VerificationError(message, **metadata)))

    def finish(self) -> Iterator[VerificationError]:
        """The approvals of parties that were no admins."""
        return (error for party, time, error in self._approvals if not self._is_admin(party, time))
