"""rgs.core.tlog.policies and rgs.core.tlog.witness: quorums, files, and what a witness answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, VerificationError
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint
from rgs.core.tlog.merkle import EMPTY_ROOT, consistency_proof, leaf_hash, root_of
from rgs.core.tlog.note import COSIGNATURE, ED25519, Note, add_signatures, cosign, format_vkey, note_key, sign_text
from rgs.core.tlog.policies import ENTRIES_MAX, Policy, format_policy, parse_policy, verify_checkpoint
from rgs.core.tlog.witness import (
    AddCheckpoint,
    SeenTree,
    WitnessRefusalError,
    format_add_checkpoint,
    judge,
    origin_of,
    parse_add_checkpoint,
)

ORIGIN = "rgs.example/rounds"
LOG = Ed25519Signer.from_seed(bytes(32))
WITNESSES = {name: Ed25519Signer.from_seed(name.encode() * 16) for name in ("w1", "w2", "w3", "w4")}
LOG_KEY = note_key(ORIGIN, ED25519, LOG)
LEAVES = [leaf_hash(str(number).encode()) for number in range(20)]


def vkey(name: str) -> str:
    return format_vkey(note_key(f"{name}.example", COSIGNATURE, WITNESSES[name]))


FILE = f"""# whom we trust
log {format_vkey(LOG_KEY)} https://rgs.example/rounds

 witness w1\t{vkey("w1")}
witness w2 {vkey("w2")} https://w2.example
witness w3 {vkey("w3")}
group two 2 w1 w2
group either any two w3
quorum either
"""


def note(*witnesses: str, size: int = 9, signer: Ed25519Signer = LOG) -> Note:
    text = format_checkpoint(Checkpoint(ORIGIN, size, root_of(LEAVES[:size])))
    made = Note(text, (sign_text(text, ORIGIN, signer),))
    return add_signatures(made, [cosign(text, f"{name}.example", WITNESSES[name], 1000 + size) for name in witnesses])


def test_a_policy_and_its_quorum() -> None:
    policy = parse_policy(FILE.encode())
    assert parse_policy(format_policy(policy).encode()) == policy
    assert policy.logs[0].url == "https://rgs.example/rounds"
    for names, is_met in (
        ({"w1"}, False),
        ({"w1", "w2"}, True),
        ({"w3"}, True),
        ({"w4", "two"}, False),
        (set(), False),
    ):
        assert policy.is_met_by(names) is is_met
    assert parse_policy(FILE.replace("quorum either", "quorum none").encode()).is_met_by(set())
    assert parse_policy(FILE.replace("2 w1 w2", "all w1 w2").encode()).groups["two"].count == 2


def test_a_checkpoint_under_a_policy() -> None:
    policy = parse_policy(FILE.encode())
    accepted = verify_checkpoint(note("w1", "w2", "w4"), policy)
    assert (accepted.checkpoint.size, accepted.log.key, accepted.witnessed) == (9, LOG_KEY, {"w1": 1009, "w2": 1009})
    assert accepted.seen_s == 1009
    for witnessed, seen_s in (
        ({"w1": 10, "w2": 99}, 10),
        ({"w3": 50, "w1": 99}, 50),
        ({"w3": 50, "w1": 60, "w2": 70}, 60),
        ({"w4": 99}, 0),
        ({}, 0),
    ):
        assert policy.seen_s(witnessed) == seen_s
    unwitnessed = parse_policy(FILE.replace("quorum either", "quorum none").encode())
    assert verify_checkpoint(note(), unwitnessed).seen_s == 0
    with pytest.raises(VerificationError, match="quorum"):
        verify_checkpoint(note("w1"), policy)
    with pytest.raises(VerificationError, match="nobody"):
        verify_checkpoint(note(), policy)
    text = note().text
    with pytest.raises(VerificationError, match="has not signed"):
        verify_checkpoint(Note(text, (cosign(text, "w3.example", WITNESSES["w3"], 5),)), policy)
    with pytest.raises(VerificationError, match="no log of the origin"):
        verify_checkpoint(note("w3"), Policy(()))
    with pytest.raises(VerificationError):  # another key under the log's name is a stranger's
        verify_checkpoint(note(signer=WITNESSES["w1"]), unwitnessed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("quorum either\n", ""),
        ("quorum either", "quorum either\nquorum two"),
        ("quorum either", "quorum nobody"),
        ("group two 2 w1 w2", "group two 2 w1 w9"),
        ("group two 2 w1 w2", "group two 3 w1 w2"),
        ("group two 2 w1 w2", "group two 0 w1 w2"),
        ("group two 2 w1 w2", "group two 02 w1 w2"),
        ("group two 2 w1 w2", "group two most w1 w2"),
        ("group two 2 w1 w2", "group two 2"),
        ("group two 2 w1 w2", "group w1 2 w1 w2"),
        ("group two 2 w1 w2", "group none 2 w1 w2"),
        ("group either any two w3", "group either any two w1"),
        ("group either any two w3", "group either any either"),
        ("witness w3 ", "witness w2 "),
        (vkey("w3"), vkey("w2")),
        (vkey("w3"), format_vkey(LOG_KEY)),
        (vkey("w3"), vkey("w3")[:-3]),
        (vkey("w3"), vkey("w3") + " url more"),
        ("# whom", "whom"),
        ("# whom", "# wh\rm"),
        ("# whom", "group g any w1" + "\n#" * 70_000),
    ],
)
def test_a_policy_that_is_none(old: str, new: str) -> None:
    assert old in FILE
    with pytest.raises(FormatError):
        parse_policy(FILE.replace(old, new).encode())


def test_a_policy_of_too_many() -> None:
    signers = [Ed25519Signer.from_seed(number.to_bytes(32, "big")) for number in range(ENTRIES_MAX + 1)]
    lines = [f"log {format_vkey(note_key('a.example', ED25519, one))}\n" for one in signers]
    assert len(parse_policy(("".join(lines[:-1]) + "quorum none\n").encode()).logs) == ENTRIES_MAX
    with pytest.raises(FormatError):
        parse_policy(("".join(lines) + "quorum none\n").encode())


def test_names_are_bytes() -> None:
    strange = b"w\xfc".decode("utf-8", "surrogateescape")
    data = FILE.replace("witness w3", "witness w\u00fc").replace("any two w3", "any two w\u00fc").encode("latin-1")
    assert parse_policy(data).is_met_by({strange})
    with pytest.raises(FormatError):  # but the name of a key stands in notes, which are UTF-8
        parse_policy(FILE.replace(vkey("w3"), "w\u00fc" + vkey("w3")[2:]).encode("latin-1"))


# --- witnesses --------------------------------------------------------------------------------------------------------


def read(level: int, index: int) -> bytes:
    return root_of(LEAVES[index << level : (index + 1) << level])


def request(old: int, size: int) -> AddCheckpoint:
    return AddCheckpoint(old, tuple(consistency_proof(read, old, size)), note(size=size))


def seen(size: int) -> SeenTree:
    return SeenTree(size, root_of(LEAVES[:size]))


@given(st.integers(0, 20), st.integers(1, 20))
def test_a_log_that_grows_is_cosigned(one: int, other: int) -> None:
    old, size = sorted((one, other))
    requested = request(old, size)
    body = format_add_checkpoint(requested)
    assert parse_add_checkpoint(body) == requested
    assert origin_of(requested) == ORIGIN
    assert judge(requested, [LOG_KEY], seen(old)) == (seen(size), requested.checkpoint)


def test_the_first_answer_of_a_witness() -> None:
    assert judge(request(0, 5), [LOG_KEY], SeenTree())[0] == SeenTree(5, root_of(LEAVES[:5]))
    assert SeenTree().root == EMPTY_ROOT


def test_lines_of_strangers_are_not_cosigned_with_the_checkpoint() -> None:
    requested = request(3, 9)
    result = [replace(requested.checkpoint.signatures[0], name=f"stranger{number}.example") for number in range(60)]
    crowded = replace(requested, checkpoint=add_signatures(requested.checkpoint, result))
    assert judge(crowded, [LOG_KEY], seen(3)) == (seen(9), requested.checkpoint)


def test_the_tree_of_no_leaves_has_one_root() -> None:
    text = format_checkpoint(Checkpoint(ORIGIN, 1, LEAVES[0])).replace("\n1\n", "\n0\n")
    requested = AddCheckpoint(0, (), Note(text, (sign_text(text, ORIGIN, LOG),)))
    for keys, status in (([LOG_KEY], 422), ([], 404), ([note_key(ORIGIN, ED25519, WITNESSES["w1"])], 403)):
        with pytest.raises(WitnessRefusalError) as caught:
            judge(requested, keys, SeenTree())
        assert caught.value.status == status
    broken = text.replace("\n0\n", "\n00\n")
    with pytest.raises(FormatError):
        judge(AddCheckpoint(0, (), Note(broken, (sign_text(broken, ORIGIN, LOG),))), [LOG_KEY], SeenTree())


@pytest.mark.parametrize(
    ("requested", "keys", "known", "status"),
    [
        (request(3, 9), [], seen(3), 404),
        (request(3, 9), [note_key(ORIGIN, ED25519, WITNESSES["w1"])], seen(3), 403),
        (AddCheckpoint(10, (), note(size=9)), [LOG_KEY], seen(10), 400),
        (request(3, 9), [LOG_KEY], seen(4), 409),
        (AddCheckpoint(3, (), note(size=9)), [LOG_KEY], seen(3), 422),
        (AddCheckpoint(0, (LEAVES[0],), note(size=9)), [LOG_KEY], SeenTree(), 422),
        (AddCheckpoint(9, (), note(size=9)), [LOG_KEY], SeenTree(9, bytes(32)), 422),
    ],
)
def test_what_a_witness_refuses(requested: AddCheckpoint, keys: list[object], known: SeenTree, status: int) -> None:
    with pytest.raises(WitnessRefusalError) as caught:
        judge(requested, keys, known)  # type: ignore[arg-type]
    assert caught.value.status == status
    assert caught.value.size == (known.size if status == 409 else None)


BODY = format_add_checkpoint(request(3, 9))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        BODY.replace(b"old 3", b"old 03"),
        BODY.replace(b"old 3", b"new 3"),
        BODY.replace(b"old 3", b"old 3\nAAAA"),
        BODY.replace(b"old 3", b"old 3\xff"),
        b"old 3\n"
        + BODY.split(b"\n")[1] * 0
        + (BODY.split(b"\n")[1] + b"\n") * 64
        + b"\n"
        + BODY.partition(b"\n\n")[2],
        BODY[:-1],
        BODY.partition(b"\n\n")[0],
        BODY + b"x" * 200_000,
    ],
)
def test_a_request_that_is_none(body: bytes) -> None:
    with pytest.raises(FormatError):
        parse_add_checkpoint(body)
