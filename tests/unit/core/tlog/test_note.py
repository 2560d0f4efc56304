"""rgs.core.tlog.note, checkpoints and logproofs: the standards' own examples, one byte form, and what is refused."""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, VerificationError
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint, parse_checkpoint, parse_hash, parse_size
from rgs.core.tlog.merkle import EMPTY_ROOT, inclusion_path, leaf_hash, root_of
from rgs.core.tlog.note import (
    COSIGNATURE,
    ED25519,
    NOTE_BYTES_MAX,
    TIME_S_MAX,
    Note,
    NoteKey,
    NoteSignature,
    VerifiedLine,
    add_signatures,
    check_key_name,
    cosign,
    format_note,
    format_vkey,
    note_key,
    parse_note,
    parse_signatures,
    parse_vkey,
    sign_text,
    verify_note,
)
from rgs.core.tlog.proofs import HEADER, LogProof, format_log_proof, parse_log_proof, verify_log_proof

# C2SP signed-note, section "Example".
VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
NOTE = (
    "This is an example message.\n\n"
    "\u2014 example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
).encode()
ANNA, BERT = (Ed25519Signer.from_seed(bytes([number]) * 32) for number in (1, 2))
ORIGIN = "rgs.example/rounds/2026h2"
TEXT = format_checkpoint(Checkpoint(ORIGIN, 2, root_of([leaf_hash(b"a"), leaf_hash(b"b")])))


def test_the_example_of_the_standard() -> None:
    key = parse_vkey(VKEY)
    note = parse_note(NOTE)
    assert verify_note(note, [key]) == (VerifiedLine(key, 0),)
    assert (format_vkey(key), format_note(note)) == (VKEY, NOTE)


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "name",
        "+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        VKEY.replace("530d903a", "530D903A"),
        VKEY.replace("530d903a", "530d903b"),
        VKEY.replace("foo", "fo o"),
        VKEY[:-1],
        VKEY[:-1] + "l",  # another key
        VKEY.replace("+Aeky", "+Auky"),  # another kind
        VKEY.rpartition("+")[0] + "+",
        VKEY + "=",
    ],
)
def test_a_verifier_key_that_is_none(vkey: str) -> None:
    with pytest.raises(FormatError):
        parse_vkey(vkey)


@given(st.binary(min_size=32, max_size=32), st.sampled_from([ED25519, COSIGNATURE]))
def test_verifier_keys_there_and_back(public_key: bytes, kind: int) -> None:
    key = NoteKey("a.example/b", kind, public_key)
    assert parse_vkey(format_vkey(key)) == key


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "a\x01b"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(FormatError):
        check_key_name(name)


def signed(text: str = TEXT) -> Note:
    return Note(text, (sign_text(text, ORIGIN, ANNA), cosign(text, "w.example", BERT, 1_700_000_000)))


KEYS = [note_key(ORIGIN, ED25519, ANNA), note_key("w.example", COSIGNATURE, BERT)]


def test_a_log_and_a_witness() -> None:
    note = signed()
    assert verify_note(note, KEYS) == (VerifiedLine(KEYS[0], 0), VerifiedLine(KEYS[1], 1_700_000_000))
    assert verify_note(note, KEYS[:1]) == (VerifiedLine(KEYS[0], 0),), "a stranger's line is passed over"
    assert parse_note(format_note(note)) == note
    with pytest.raises(VerificationError):
        verify_note(note, [note_key("other", ED25519, ANNA)])


def test_a_bad_line_of_a_known_key_rejects_the_whole_note() -> None:
    log, witness = signed().signatures
    torn = NoteSignature(witness.name, witness.key_id, witness.signature[:7] + b"\x01" + witness.signature[8:])
    for bad in (
        torn,
        NoteSignature(witness.name, witness.key_id, witness.signature[:-1]),
        NoteSignature(witness.name, witness.key_id, b"\xff" + witness.signature[1:]),  # a time beyond 2**63
        NoteSignature(log.name, log.key_id, bytes(64)),
    ):
        with pytest.raises(VerificationError):
            verify_note(Note(TEXT, (log, bad)), KEYS)
    nowhere = NoteKey(ORIGIN, ED25519, bytes([255]) * 32)  # no point of the curve
    with pytest.raises(VerificationError):
        verify_note(Note(TEXT, (NoteSignature(ORIGIN, nowhere.key_id, bytes(64)),)), [nowhere])


def test_a_newer_line_takes_the_place_of_the_older() -> None:
    note, later = signed(), cosign(TEXT, "w.example", BERT, 1_700_000_009)
    again = add_signatures(note, [later])
    assert again.signatures == (note.signatures[0], later)


@pytest.mark.parametrize("time_s", [0, -1, TIME_S_MAX + 1])
def test_a_time_that_is_none(time_s: int) -> None:
    with pytest.raises(FormatError):
        cosign(TEXT, "w.example", BERT, time_s)


@pytest.mark.parametrize("text", ["", "no line feed", "a\rb\n", "a\tb\n"])
def test_a_text_that_is_none(text: str) -> None:
    with pytest.raises(FormatError):
        sign_text(text, ORIGIN, ANNA)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        NOTE[:-1],
        NOTE + b"\n",
        NOTE.replace(b"\xe2\x80\x94", b"-"),
        NOTE.replace(b"/foo ", b"/foo  "),
        NOTE.replace(b"This", b"Th\x07s"),
        NOTE.replace(b"This", b"Th\xffs"),
        NOTE.replace(b"aQM=", b"aQN="),  # stray bits
        NOTE.replace(b"aQM=", b"aQM"),
        NOTE.replace(b"aQM=", b"aQM=="),
        b"text\n\n\xe2\x80\x94 name AAAA\n",  # no key id
        NOTE + b"\n" + b"x" * NOTE_BYTES_MAX,
    ],
)
def test_a_note_that_is_none(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_note(data)


def test_signature_lines() -> None:
    line = format_note(signed()).decode().split("\n\n")[1].split("\n")[0] + "\n"
    assert len(parse_signatures(line * 16)) == 16
    for lines in ("", line[:-1], line * 65):
        with pytest.raises(FormatError):
            parse_signatures(lines)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=80), st.integers(1, 3))
def test_notes_there_and_back(line: str, count: int) -> None:
    text = (line + "\n\n") * count + line + "end\n"
    note = Note(text, (sign_text(text, ORIGIN, ANNA),))
    assert parse_note(format_note(note)) == note
    verify_note(note, KEYS)


# --- checkpoints ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 2**63 - 1), st.binary(min_size=32, max_size=32), st.lists(st.just("ext a"), max_size=2))
def test_checkpoints_there_and_back(size: int, root: bytes, extensions: list[str]) -> None:
    checkpoint = Checkpoint(ORIGIN, size, root, tuple(extensions))
    assert parse_checkpoint(format_checkpoint(checkpoint)) == checkpoint


def test_the_empty_log() -> None:
    text = f"{ORIGIN}\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    assert parse_checkpoint(text) == Checkpoint(ORIGIN, 0, EMPTY_ROOT)


ROOT = base64.b64encode(bytes(range(32))).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"o\n1\n{ROOT}",
        "o\n1\n",
        f"\n1\n{ROOT}\n",
        f"o\n01\n{ROOT}\n",
        f"o\n-1\n{ROOT}\n",
        f"o\n{2**63}\n{ROOT}\n",
        f"o\n\u0661\n{ROOT}\n",
        f"o\n1\n{ROOT[:-2]}\n",
        f"o\n1\n{ROOT[:-4]}\n",
        f"o\n1\n{ROOT[:-2]}9=\n",
        f"o\n0\n{ROOT}\n",
        f"o\n1\n{ROOT}\n\n",
        f"o\to\n1\n{ROOT}\n",
        f"o\n1\n{ROOT}\ne\tx\n",
    ],
)
def test_a_checkpoint_that_is_none(text: str) -> None:
    with pytest.raises(FormatError):
        parse_checkpoint(text)


@pytest.mark.parametrize(
    "checkpoint", [Checkpoint("o", 1, b"short"), Checkpoint("o", -1, bytes(32)), Checkpoint("o", 2**63, bytes(32))]
)
def test_a_checkpoint_that_is_not_written(checkpoint: Checkpoint) -> None:
    with pytest.raises(FormatError):
        format_checkpoint(checkpoint)


def test_sizes_and_hashes() -> None:
    assert parse_size("0") == 0
    assert parse_hash(ROOT) == bytes(range(32))


# --- offline proofs ---------------------------------------------------------------------------------------------------

LEAVES = [leaf_hash(bytes([number])) for number in range(7)]


def proof(index: int = 4, size: int = 7, extra: bytes | None = None) -> LogProof:
    text = format_checkpoint(Checkpoint(ORIGIN, size, root_of(LEAVES[:size])))
    return LogProof(index, tuple(inclusion_path(LEAVES[:size], index)), signed(text), extra)


@pytest.mark.parametrize("extra", [None, b"", b"more"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_offline_proofs(size: int, extra: bytes | None) -> None:
    for index in range(size):
        result = proof(index, size, extra)
        data = format_log_proof(result)
        assert data.startswith(HEADER.encode() + b"\n")
        assert parse_log_proof(data) == result
        assert verify_log_proof(result, LEAVES[index]).size == size
        with pytest.raises(VerificationError):
            verify_log_proof(result, leaf_hash(b"other"))


DATA = format_log_proof(proof())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        DATA.replace(b"@v1", b"@v2"),
        DATA.replace(b"index 4", b"index 04"),
        DATA.replace(b"index 4", b"indexes"),
        DATA.replace(b"index 4\n", b"extra !\nindex 4\n"),
        DATA.replace(b"index 4\n", b"extra QR==\nindex 4\n"),  # stray bits
        DATA.replace(b"index 4\n", b"index 4\n" + (ROOT.encode() + b"\n") * 64),
        DATA.replace(b"index 4\n", b"index 4\nAAAA\n"),
        DATA.replace(b"index", b"ind\xffx"),
        DATA.partition(b"\n\n")[0] + b"\n",
        HEADER.encode() + b"\n\n" + DATA.partition(b"\n\n")[2],
        DATA[:-1],
        DATA + b"x" * 2 * NOTE_BYTES_MAX,
    ],
)
def test_an_offline_proof_that_is_none(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_log_proof(data)


def test_what_is_read_as_a_proof_is_in_its_one_form() -> None:
    """Every byte of a proof, one by one, as something else, doubled and left out."""
    data = DATA.replace(b"index 4\n", b"extra QQ==\nindex 4\n")
    accepted = 0
    for at in range(len(data)):
        for other in (b"", b"\n", b"\r", b" ", b"=", b"A", b"0", b"+", data[at : at + 1] * 2):
            changed = data[:at] + other + data[at + 1 :]
            try:
                read = parse_log_proof(changed)
            except FormatError:
                continue
            accepted += 1
            assert format_log_proof(read) == changed
    assert accepted > len(data)


def test_no_message_shows_a_whole_line() -> None:
    with pytest.raises(FormatError) as caught:
        parse_note(b"t\n\n\xe2\x80\x94 " + b"n" * 500 + b" x y\n")
    assert max(len(value) for value in caught.value.metadata.values()) <= 80
    assert re.search("n{81}", str(caught.value)) is None
