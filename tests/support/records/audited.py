"""A record factory with its transparency log, witnesses and an auditor: what the tests of `certify log` share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certification import log as command
from rgs.core.statements import Ed25519Signer, parse_line
from rgs.core.tlog.note import COSIGNATURE, Note, add_signatures, cosign, format_note, format_vkey, note_key, parse_note
from tests.support.log.logs import VKEY, make_log
from tests.support.records.factory import RecordFactory
from tests.support.records.parts import SessionRecord, Worker

WITNESS = Ed25519Signer.from_seed(b"a witness not of the operator 32")
OWN = Ed25519Signer.from_seed(b"a witness of the operator itself")
SEEN_S = 1_795_100_000
LATER = "2099-12-31T23:59:59.999Z"
"""By the auditor's clock, unless a test says otherwise: whenever the tests run, nothing is still to come."""


def vkey_of(name: str, signer: Ed25519Signer) -> str:
    return format_vkey(note_key(name, COSIGNATURE, signer))


POLICY = f"log {VKEY}\nwitness w {vkey_of('w.example', WITNESS)}\nquorum w\n"
POLICY_OWN = f"# self-witness own\nlog {VKEY}\nwitness own {vkey_of('own.example', OWN)}\nquorum own\n"


def entries_of(factory: RecordFactory) -> list[bytes]:
    """What stands in the log of a server."""
    return [parse_line(line).envelope for line in factory.lines]


def witnessed(folder: Path, name: str = "w.example", signer: Ed25519Signer = WITNESS, time_s: int = SEEN_S) -> None:
    """The published checkpoint gets a cosignature."""
    path = folder / "checkpoint"
    note = parse_note(path.read_bytes())
    line = cosign(note.text, name, signer, time_s)
    path.write_bytes(format_note(add_signatures(Note(note.text, note.signatures), [line])))


def a_round(
    factory: RecordFactory, worker: Worker, player: SessionRecord, actions: Sequence[str] = ("check", "play_2x")
) -> None:
    factory.deal(worker, [player], {"ante": 100, "trips": 50})
    factory.act(player, actions)
    factory.settle(worker, player)


@dataclass
class Case:
    """A folder with a log, a policy and an auditor's state. `audit` is one run of `certify log`."""

    folder: Path
    factory: RecordFactory
    policy: str = POLICY
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def publish(
        self, entries: Sequence[bytes] | None = None, *, is_witnessed: bool = True, time_s: int = SEEN_S
    ) -> None:
        """The log as it is now, cosigned at that time."""
        make_log(self.log, entries_of(self.factory) if entries is None else entries)
        if is_witnessed:
            witnessed(self.log, time_s=time_s)
            witnessed(self.log, "own.example", OWN, time_s)

    def audit(self, *more: str, root: bool = True, log: str = "") -> int:
        """The exit status; `report` is what was written."""
        keys, policy, report = (self.folder / name for name in ("keys.json", "policy.txt", "report.json"))
        keys.write_bytes(self.factory.keys())
        policy.write_text(self.policy)
        report.unlink(missing_ok=True)
        arguments = [log or str(self.log), "--policy", str(policy), "--state", str(self.state), "--keys", str(keys)]
        arguments += ["--root", self.factory.root.keyid] if root else []
        arguments += [] if "--now" in more else ["--now", LATER]
        status = command.main([*arguments, "--workers", "1", "--json", str(report), *more])
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return status

    @property
    def checks(self) -> set[str]:
        """The checks that failed."""
        return {row["check"] for row in self.report["failures"]}
