"""What a revoked key leaves standing: only what lies below its position, and what a stranger saw before."""

from __future__ import annotations

import pytest

from rgs.core.errors import FormatError, VerificationError
from rgs.core.replay import HashedEntry, KeyBook, Place, Replay, Rulebook, Witnessed
from rgs.core.replay.revocations import Revocations, read_witnessed
from rgs.core.statements import Ed25519Signer, leaf_hash, parse_envelope, parse_line
from rgs.core.times import format_time
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.merkle import root_of
from rgs.core.tlog.note import COSIGNATURE, ED25519, Note, cosign, format_note, note_key, sign_text
from rgs.core.tlog.policies import Party, Policy, WitnessGroup
from tests.support.records.factory import START_MS, RecordFactory
from tests.support.records.lies import LATE
from tests.support.records.ready_made import small_factory

ORIGIN = "rgs.example/rounds/2026h2"
BEFORE = "rgs.example/rounds/2026h1"
AFTER = "rgs.example/rounds/2027h1"
LOG = Ed25519Signer.from_seed(b"\x11" * 32)
OUTSIDE = Ed25519Signer.from_seed(b"\x12" * 32)
OWN = Ed25519Signer.from_seed(b"\x13" * 32)
SEEN = Witnessed(ORIGIN, 1_000, format_time(START_MS))


def revoked(size: int, *, of: str = "node", origin: str = ORIGIN) -> RecordFactory:
    factory = small_factory()
    instance = factory.lines[1].split(b'"keyid":"')[1][:64].decode()
    key = {"node": factory.nodes["node-1"].keyid, "instance": instance}[of]
    body = {"key": key, "origin": origin, "reason": "STOLEN", "size": str(size), "time": LATE}
    factory.key_statement(factory.root, "revocation", body)
    return factory


def replay_log(factory: RecordFactory, *witnessed: Witnessed, origin: str = ORIGIN) -> list[str]:
    """The server's statements as a log that begins with them: what failed, in words."""
    replay = Replay(KeyBook(factory.keys(), witnessed=witnessed), Rulebook())
    failures = []
    for index, line in enumerate(factory.lines):
        data = parse_line(line).envelope
        entry = HashedEntry(leaf_hash(data), parse_envelope(data), Place(origin, index), is_signed=False)
        failures += replay.feed_entry(entry)
    return [failure.message for failure in (*failures, *replay.finish())]


def note(size: int, **cosigned: int) -> bytes:
    """A checkpoint with the cosignatures `outside` and `own` of those times."""
    text = format_checkpoint(Checkpoint(ORIGIN, size, root_of([bytes(32)] * size)))
    lines = [sign_text(text, ORIGIN, LOG)]
    for name, signer in (("outside", OUTSIDE), ("own", OWN)):
        if name in cosigned:
            lines.append(cosign(text, f"{name}.example", signer, cosigned[name]))
    return format_note(Note(text, tuple(lines)))


POLICY = Policy(
    (Party(note_key(ORIGIN, ED25519, LOG)),),
    {
        "outside": Party(note_key("outside.example", COSIGNATURE, OUTSIDE)),
        "own": Party(note_key("own.example", COSIGNATURE, OWN)),
    },
    {"any": WitnessGroup(1, ("outside", "own"))},
    "any",
)


@pytest.mark.parametrize("of", ["node", "instance"])
def test_what_a_witness_saw_below_the_position_stands(of: str) -> None:
    assert replay_log(revoked(1_000, of=of), SEEN) == []


def test_at_and_above_the_position_nothing_counts() -> None:
    factory = revoked(len(factory_lines()) - 2)
    result = [message for message in replay_log(factory, SEEN) if "is revoked from entry" in message]
    assert len(result) == 2


def factory_lines() -> list[bytes]:
    return small_factory().lines


@pytest.mark.parametrize(
    "witnessed",
    [
        (),
        (Witnessed(AFTER, 1_000, SEEN.time),),
        (Witnessed(ORIGIN, 0, SEEN.time),),
        (Witnessed(ORIGIN, 1_000, "9999-01-01T00:00:00.000Z"),),
    ],
)
def test_below_the_position_nothing_stands_by_itself(witnessed: tuple[Witnessed, ...]) -> None:
    """Planted: no checkpoint; one of another shard; one that is too small; one cosigned after the revocation."""
    result = replay_log(revoked(1_000), *witnessed)
    assert result[0].endswith("and no outside witness had seen entry 0 before")


def test_the_boundary_of_what_was_seen_is_exact() -> None:
    count = len(factory_lines())
    assert replay_log(revoked(count), Witnessed(ORIGIN, count, SEEN.time)) == []
    result = replay_log(revoked(count), Witnessed(ORIGIN, count - 1, SEEN.time))
    assert f"no outside witness had seen entry {count - 1} before" in result[0]


@pytest.mark.parametrize(("origin", "stands"), [(BEFORE, True), (AFTER, False), ("other.example/2026h1", False)])
def test_shards_follow_one_another_within_one_log(origin: str, stands: bool) -> None:
    result = replay_log(revoked(0), Witnessed(origin, 1_000, SEEN.time), origin=origin)
    assert (result == []) is stands


def test_every_revocation_of_a_key_has_a_say() -> None:
    factory = revoked(1_000)
    body = {"key": factory.nodes["node-1"].keyid, "reason": "STOLEN", "time": LATE}
    factory.key_statement(factory.root, "revocation", body)
    assert "is revoked" in replay_log(factory, SEEN)[0]


def test_a_file_tells_no_place() -> None:
    replay = Replay(KeyBook(revoked(1_000).keys(), witnessed=[SEEN]), Rulebook())
    assert [error.metadata["check"] for error in replay.feed(factory_lines()[0])] == ["3 key"]


@pytest.mark.parametrize(
    "body",
    [{"key": "0", "size": "1"}, {"key": "0", "origin": ORIGIN}, {"key": "0", "origin": "x//2026h1", "size": "1"}],
)
def test_half_a_position_and_one_in_no_log_is_refused(body: dict[str, str]) -> None:
    with pytest.raises((FormatError, VerificationError), match=r"together|origin"):
        Revocations().add(body)


def test_the_earliest_cosignature_from_outside_counts() -> None:
    assert read_witnessed(note(7, outside=1_000, own=10), POLICY, {"own"}) == Witnessed(
        ORIGIN, 7, "1970-01-01T00:16:40.000Z"
    )
    assert read_witnessed(note(7, outside=1_000, own=10), POLICY).time == "1970-01-01T00:00:10.000Z"


def test_the_operator_alone_is_no_witness() -> None:
    with pytest.raises(VerificationError, match="no outside witness"):
        read_witnessed(note(7, own=10), POLICY, {"own"})
    with pytest.raises(VerificationError, match="not the quorum"):
        read_witnessed(note(7), POLICY)


def test_the_drill_a_thief_who_dates_back_gains_nothing() -> None:
    """Docs/keys.md played: what was cosigned before the theft stands, what the thief signs does not, and the node goes
    on under its new key.
    """
    factory = small_factory()
    stolen, honest = factory.nodes["node-1"].keyid, len(factory.lines)
    thief = factory.start("rgs-9", boot_no=9)  # under the stolen key, at a time that lies before the theft
    factory.end(thief)
    factory.node("node-2")
    factory.end(factory.start("rgs-10", node="node-2"))
    body = {"key": stolen, "origin": ORIGIN, "reason": "STOLEN", "size": str(honest), "time": LATE}
    factory.key_statement(factory.root, "revocation", body)
    result = replay_log(factory, Witnessed(ORIGIN, honest, SEEN.time))
    assert [f"from entry {honest} of" in message for message in result] == [True, False]
    assert "has no path to the root" in result[1]


def test_the_revocation_of_a_root_by_itself_may_stand_in_the_log_that_it_ends() -> None:
    """The bundle's own statements stand whatever became of the root; what the root's keys signed does not."""
    factory = small_factory()
    body = {"key": factory.root.keyid, "origin": ORIGIN, "reason": "STOLEN", "size": "1000", "time": LATE}
    factory.key_statement(factory.root, "revocation", body)
    for envelope in factory.bundle:
        factory.line(envelope)
    assert replay_log(factory, SEEN) == []
    assert len(replay_log(factory)) == len(factory.lines) - len(factory.bundle)
    alone = RecordFactory("alone")
    alone.key_statement(alone.root, "key_end", {"key": alone.root.keyid, "reason": "ROTATED", "time": LATE})
    for envelope in alone.bundle:
        alone.line(envelope)
    assert replay_log(alone) == []
