"""The drill of docs/keys.md, as an auditor plays it with `certify log`: a node's key was stolen, and revoked from the
place on that a witness had seen. The thief dates back; the honest node goes on under another key.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from certification import cosigned, receipt
from certification.cosigned import CosignedCheckpoints
from certification.memory import format_state, parse_state
from rgs.core.errors import FormatError
from rgs.core.statements import leaf_hash
from rgs.core.times import format_time
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.note import ED25519, Note, cosign, format_note, format_vkey, note_key, sign_text
from rgs.core.tlog.policies import parse_policy
from rgs.tlog.published import make_proof
from tests.support.log.logs import ORIGIN, SIGNER, STRANGER, make_log
from tests.support.records.audited import OWN, POLICY, SEEN_S, WITNESS, Case, a_round, entries_of, vkey_of, witnessed
from tests.support.records.factory import RecordFactory

THEFT_S = SEEN_S + 600
REVOKED_S = SEEN_S + 3_600


def lived(factory: RecordFactory, name: str, node: str, rounds: int, worker_no: int = 0) -> None:
    """A session of that many rounds, whole."""
    worker = factory.start(name, node, worker=worker_no)
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    for _ in range(rounds):
        a_round(factory, worker, player)
    factory.end_participation(worker, player)
    factory.close(worker, player)
    factory.end(worker)


class Drill:
    """Five honest rounds, cosigned (`seen` is that checkpoint); a thief's two; a revocation; three honest rounds under
    the key of another node.
    """

    def __init__(self, folder: Path) -> None:
        self.factory = RecordFactory("drill")
        self.case = Case(folder, self.factory)
        lived(self.factory, "node-1-b1-w0", "node-1", 5)
        self.position = len(self.factory.lines)
        self.case.publish()
        self.seen = folder / "seen.checkpoint"
        shutil.copy(self.case.log / "checkpoint", self.seen)

    def steal(self) -> None:
        self.factory.clock_ms -= 30_000
        lived(self.factory, "node-1-b1-w1", "node-1", 2, 1)
        self.factory.clock_ms += 30_000
        self.case.publish(time_s=THEFT_S)

    def revoke(self, **more: str) -> None:
        body = {"key": self.factory.nodes["node-1"].keyid, "reason": "STOLEN", "time": format_time(REVOKED_S * 1000)}
        position = {"origin": ORIGIN, "size": str(self.position)}
        self.factory.key_statement(self.factory.root, "revocation", {**body, **position, **more})

    def go_on(self) -> None:
        lived(self.factory, "node-2-b1-w0", "node-2", 3)
        self.case.publish(time_s=REVOKED_S + 600)

    @property
    def rounds(self) -> int:
        """How many rounds the auditor believes."""
        verified: int = self.case.report["summary"]["rounds_verified"]
        return verified

    def refused(self) -> range:
        """The entries that fail, all by their key."""
        rows = self.case.report["failures"]
        assert {row["check"] for row in rows} == {"3 key"}
        places = [int(row["place"].removeprefix("entry ")) for row in rows]
        assert places == list(range(places[0], places[-1] + 1))
        return range(places[0], places[-1] + 1)


@pytest.fixture
def drill(tmp_path: Path) -> Drill:
    return Drill(tmp_path)


def test_who_had_read_before_the_theft_keeps_it_and_refuses_the_thief(drill: Drill) -> None:
    assert drill.case.audit() == 0
    drill.steal()
    thief = range(drill.position, len(drill.factory.lines))
    drill.revoke()
    drill.go_on()
    for more in ((), ("--whole",), ()):
        assert drill.case.audit(*more) == 1
        assert (drill.rounds, drill.refused()) == (8, thief)
        assert drill.case.report["read_again"] == ""


def test_who_had_believed_the_thief_reads_again(drill: Drill, capsys: pytest.CaptureFixture[str]) -> None:
    assert drill.case.audit() == 0
    drill.steal()
    thief = range(drill.position, len(drill.factory.lines))
    assert drill.case.audit() == 0
    assert drill.rounds == 7
    drill.revoke()
    drill.go_on()
    assert drill.case.audit() == 1
    assert (drill.rounds, drill.refused()) == (8, thief)
    assert f"is revoked from entry {drill.position} of" in drill.case.report["read_again"]
    assert "read again   everything, since key" in capsys.readouterr().out
    assert drill.case.audit() == 1
    assert (drill.rounds, drill.case.report["read_again"]) == (8, "")


def test_the_first_run_after_the_theft_saw_it_all_too_late_for_nothing(drill: Drill) -> None:
    """What was cosigned after the theft and before the revocation covers the honest part as well."""
    drill.steal()
    assert drill.case.audit() == 0
    drill.revoke()
    drill.go_on()
    assert drill.case.audit() == 1
    assert drill.rounds == 8


def test_who_comes_after_the_revocation_believes_nothing_without_a_witness(drill: Drill) -> None:
    drill.steal()
    drill.revoke()
    drill.go_on()
    assert drill.case.audit() == 1
    assert (drill.rounds, drill.refused().start) == (3, 0)
    assert "no outside witness had seen entry" in drill.case.report["failures"][0]["message"]
    # The failures of before are part of the state, until everything is read again.
    assert drill.case.audit("--witnessed", str(drill.seen)) == 1
    assert drill.rounds == 3
    assert drill.case.audit("--whole") == 1  # the checkpoint brought is remembered
    assert (drill.rounds, drill.refused().start) == (8, drill.position)


def test_a_checkpoint_that_the_auditor_brings_lets_the_honest_part_stand(drill: Drill) -> None:
    drill.steal()
    drill.revoke()
    drill.go_on()
    assert drill.case.audit("--witnessed", str(drill.seen)) == 1
    assert (drill.rounds, drill.refused().start) == (8, drill.position)


def test_a_revocation_without_a_place_leaves_nothing(drill: Drill) -> None:
    assert drill.case.audit() == 0
    body = {"key": drill.factory.nodes["node-1"].keyid, "reason": "STOLEN", "time": format_time(REVOKED_S * 1000)}
    drill.factory.key_statement(drill.factory.root, "revocation", body)
    assert drill.case.audit() == 1
    assert (drill.rounds, drill.refused().start) == (0, 0)


def test_what_was_cosigned_after_the_revocation_covers_nothing(drill: Drill) -> None:
    late = drill.case.folder / "late"
    drill.case.publish(time_s=REVOKED_S + 1)
    shutil.copy(drill.case.log / "checkpoint", late)
    drill.revoke()
    assert drill.case.audit("--witnessed", str(late)) == 1
    assert drill.rounds == 0
    assert drill.case.audit("--whole", "--witnessed", str(drill.seen)) == 0  # of one size, the earliest counts
    assert drill.rounds == 5


def test_the_operators_own_witness_counts_for_nothing(drill: Drill, capsys: pytest.CaptureFixture[str]) -> None:
    drill.case.policy = POLICY.replace(
        "quorum w", f"witness own {vkey_of('own.example', OWN)}\ngroup any 1 w own\nquorum any"
    )
    seen = drill.case.folder / "own.checkpoint"
    make_log(drill.case.log, entries_of(drill.factory))
    witnessed(drill.case.log, "own.example", OWN)
    shutil.copy(drill.case.log / "checkpoint", seen)
    drill.case.publish(time_s=REVOKED_S + 600)
    assert drill.case.audit("--self-witness", "own", "--witnessed", str(seen)) == 2
    assert "no outside witness" in capsys.readouterr().err
    assert drill.case.audit("--witnessed", str(seen)) == 0
    # The auditor learns whose witness that is: what the state remembers is judged by what is known today.
    drill.revoke()
    assert drill.case.audit() == 0
    assert drill.case.audit("--self-witness", "own") == 1
    assert drill.rounds == 0


def test_a_checkpoint_brought_is_held_against_the_log(drill: Drill, tmp_path: Path) -> None:
    entries = entries_of(drill.factory)
    other = tmp_path / "other"
    for result, words in ((entries[:3] + entries[4:], "forked: not the log that was cosigned by a witness"),):
        make_log(other, result)
        witnessed(other)
        assert drill.case.audit("--witnessed", str(other / "checkpoint")) == 1
        assert drill.case.checks == {"log consistency"}
        assert words in drill.case.report["failures"][0]["message"]
    lived(drill.factory, "node-2-b1-w0", "node-2", 1)
    drill.case.publish()
    more = tmp_path / "more"
    shutil.copy(drill.case.log / "checkpoint", more)
    shutil.rmtree(drill.case.log)
    drill.case.publish(entries)
    assert drill.case.audit("--witnessed", str(more)) == 1
    assert "rolled back" in drill.case.report["failures"][0]["message"]
    assert not drill.case.state.exists()


def test_a_note_that_says_nothing_is_refused(drill: Drill, capsys: pytest.CaptureFixture[str]) -> None:
    drill.case.publish(is_witnessed=False)
    assert drill.case.audit("--witnessed", str(drill.case.log / "checkpoint")) == 2
    assert drill.case.audit("--witnessed", str(drill.case.folder / "nothing")) == 2
    assert "--witnessed" in capsys.readouterr().err


def test_in_a_later_shard_the_auditor_is_sent_back_to_the_first(drill: Drill, tmp_path: Path) -> None:
    drill.steal()
    assert drill.case.audit() == 0
    origin, folder = "log.example/2027h1", tmp_path / "next"
    drill.case.policy = POLICY.replace("witness", f"log {format_vkey(note_key(origin, ED25519, STRANGER))}\nwitness", 1)
    make_log(folder, [(drill.case.log / "checkpoint").read_bytes()], origin=origin, signer=STRANGER)
    witnessed(folder)
    assert drill.case.audit("--witnessed", str(drill.seen), log=str(folder)) == 0  # of another shard: not for this one
    drill.revoke()
    assert drill.case.audit(log=str(folder)) == 1
    assert "audit the log from its first shard on" in drill.case.report["failures"][0]["message"]


def test_a_receipt_of_before_the_theft_stands_by_its_own_proof(
    drill: Drill, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, log = drill.case.folder, drill.case.log

    def receipt_of(index: int) -> list[str]:
        entries = entries_of(drill.factory)
        start = max(at for at in range(index + 1) if b"instance-start" in entries[at])
        proof = make_proof(log, leaf_hash(entries[index]), bundle=drill.factory.keys(), start=entries[start])
        for name, data in (("json", entries[index]), ("proof", proof), ("policy", drill.case.policy.encode())):
            (folder / f"r{index}.{name}").write_bytes(data)
        (folder / "keys.json").write_bytes(drill.factory.keys())
        files = [str(folder / f"r{index}.{name}") for name in ("json", "proof", "policy")]
        return [
            *files[:2],
            "--policy",
            files[2],
            "--root",
            drill.factory.root.keyid,
            "--keys",
            str(folder / "keys.json"),
        ]

    honest = receipt_of(4)
    drill.steal()
    thief = len(drill.factory.lines) - 3
    drill.revoke()
    stolen = receipt_of(thief)
    assert receipt.main(honest) == 0
    assert receipt.main([*honest, "--self-witness", "w"]) == 1  # whose witness it was, is known now
    assert receipt.main(stolen) == 1
    assert f"is revoked from entry {drill.position} of" in capsys.readouterr().out
    drill.case.publish(time_s=REVOKED_S + 1)
    assert receipt.main(receipt_of(4)) == 1  # a proof that was made afterwards shows nothing


def test_states_without_what_was_signed_or_cosigned_are_refused(drill: Drill) -> None:
    assert drill.case.audit() == 0
    document = parse_state(drill.case.state.read_bytes())
    for name, bad in (("cosigned", None), ("cosigned", [1]), ("cosigned", ["x"]), ("signed", 1), ("signed", {"0": {}})):
        drill.case.state.write_bytes(b"".join(format_state({**document, name: bad})))
        assert drill.case.audit() == 2, (name, bad)


def note(size: int) -> bytes:
    text = format_checkpoint(Checkpoint(ORIGIN, size, bytes(32)))
    return format_note(Note(text, (sign_text(text, ORIGIN, SIGNER), cosign(text, "w.example", WITNESS, SEEN_S + size))))


def test_the_memory_of_cosigned_checkpoints_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosigned, "NOTES_MAX", 8)
    policy = parse_policy(POLICY.encode())
    held = CosignedCheckpoints(policy, ())
    for size in range(1, 101):
        held.add(note(size))
        held = CosignedCheckpoints(policy, (), held.notes)
    sizes = [one.size for one in held.witnessed]
    assert len(sizes) <= 8
    assert sizes == sorted(sizes)
    assert sizes[-4:] == [97, 98, 99, 100]  # the newest are all there, the older become fewer
    assert sizes[0] == 1
    with pytest.raises(FormatError):
        held.add(b"nothing")
