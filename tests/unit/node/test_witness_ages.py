"""How old each witness of the policy is: one that never answers, one that stops, and a log without new statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.note import COSIGNATURE, Note, cosign, format_note, format_vkey, note_key, sign_text
from rgs.node.config import load_config
from rgs.node.metrics.witness_ages import WitnessAges
from rgs.tlog.directory import LogDirectory
from tests.support.clocks import NOW_MS, ManualClock

ORIGIN = "log.example/rgs/2026h2"
NAMES = ("one.example", "two.example", "three.example")
SIGNERS = {name: Ed25519Signer.from_seed(bytes([number]) * 32) for number, name in enumerate((ORIGIN, *NAMES))}


class Site:
    """A log and its policy, whose quorum is two of three witnesses; the third is the one that may be missing."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        lines = [
            f"witness w{number} {format_vkey(note_key(name, COSIGNATURE, SIGNERS[name]))} http://127.0.0.1:1\n"
            for number, name in enumerate(NAMES)
        ]
        (home / "policy.txt").write_text("".join(lines) + "group any 2 w0 w1 w2\nquorum any\n", "ascii")
        (home / "rgs.toml").write_text('log_policy = "policy.txt"\n', "ascii")
        self.clock = ManualClock()
        self.config = load_config(home)
        self.ages = WitnessAges(config=self.config)
        self.directory = LogDirectory(self.config.translog / "2026h2")
        self.directory.prepare()
        self.size = 0

    def publish(self, *witnesses: str) -> None:
        """The next checkpoint, bare, and then with these cosignatures."""
        self.size += 1
        text = format_checkpoint(Checkpoint(ORIGIN, self.size, bytes([self.size]) * 32))
        lines = [cosign(text, name, SIGNERS[name], self.clock.now_ms() // 1000) for name in witnesses]
        note = Note(text, (sign_text(text, ORIGIN, SIGNERS[ORIGIN]), *lines))
        self.directory.publish(format_note(note))
        if len(witnesses) >= 2:
            self.directory.keep_cosigned(format_note(note))

    def after(self, seconds: int) -> list[float]:
        self.clock.tick(seconds * 1000)
        found = self.ages.read(self.clock.running_ms(), self.clock.now_ms())
        return [round(found[name]) for name in NAMES]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "home")


def test_a_witness_that_never_answers_grows_old(site: Site) -> None:
    assert site.after(0) == [0, 0, 0], "there is no checkpoint yet"
    for minute in range(1, 20):
        site.publish(*NAMES[:2])
        assert site.after(60) == [0, 0, 60 * minute]
    site.publish(*NAMES)
    assert site.after(5) == [0, 0, 0]


def test_without_a_quorum_those_who_are_missing_grow_old(site: Site) -> None:
    site.publish(*NAMES)
    assert site.after(10) == [0, 0, 0]
    for minute in range(1, 20):
        site.publish(NAMES[0])
        assert site.after(60) == [0, 60 * minute, 60 * minute]


def test_a_log_without_new_statements_makes_nobody_old(site: Site) -> None:
    site.publish(*NAMES)
    assert site.after(10) == [0, 0, 0]
    assert site.after(4 * 3600) == [0, 0, 0]
    site.publish()
    assert site.after(2) == [2, 2, 2], "since the last reading at most"


def test_a_line_counts_while_the_newest_checkpoint_is_bare(site: Site) -> None:
    """Under load every reading may find a checkpoint that no witness has seen yet."""
    site.after(0)
    for _ in range(30):
        site.publish(*NAMES[:2])
        site.clock.tick(59_000)
        site.publish()
        assert site.after(1)[:2] == [60, 60]
        assert site.after(0)[2] > 0


def test_a_line_from_the_future_hides_nothing(site: Site) -> None:
    site.after(0)
    site.clock.jump(10**9)
    site.publish(*NAMES)
    site.clock.jump(-(10**9))
    site.publish()
    site.after(0)
    assert site.after(1000) == [1000, 1000, 1000]


def test_without_a_policy_there_is_no_witness(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert WitnessAges(config=config).read(0, NOW_MS) == {}
