"""The wire between server and generator process: exact messages, and every other one refused."""

from __future__ import annotations

import pytest

from rgs.integrity.manifest import Manifest, ManifestEntry
from rgs.node.generator.wire import (
    MESSAGE_MAX,
    WireError,
    format_begun,
    format_drawn,
    format_ended,
    format_hello,
    format_refused,
    framed,
    length_of,
    parse_begun,
    parse_drawn,
    parse_ended,
    parse_hello,
    parse_refused,
    rng_sha256,
)
from rng.generator import Draw, LifeEvent

DRAW = Draw("node-1-b1-w0", 7, 7, bytes(range(60)), 9)
ENDED = LifeEvent("failed", "node-1-b1-w0", 6, "SAME_BLOCK")


def test_every_message_is_read_as_it_was_written() -> None:
    assert parse_hello(format_hello("node-1-b1-w0")) == "node-1-b1-w0"
    assert parse_begun(format_begun(b"x" * 32)) == b"x" * 32
    assert parse_drawn(format_drawn(DRAW)) == DRAW
    assert parse_ended(format_ended(ENDED), ENDED.instance) == ENDED
    assert parse_refused(format_refused("ANOTHER_USER")) == "ANOTHER_USER"
    assert framed(b"D") == b"\x00\x01D"
    assert length_of(framed(format_drawn(DRAW))[:2]) == len(format_drawn(DRAW))
    longest = Draw("n" * 128, 1, 1, bytes(1024), 973)
    assert len(format_drawn(longest)) <= MESSAGE_MAX
    assert parse_drawn(format_drawn(longest)) == longest


@pytest.mark.parametrize("length", [0, MESSAGE_MAX + 1, 65_535])
def test_a_length_out_of_bounds_is_refused_before_anything_is_read(length: int) -> None:
    with pytest.raises(WireError, match=f"{length} bytes, 1 to 2048"):
        length_of(length.to_bytes(2, "big"))


HELLO = format_hello("node")
REFUSED = [
    (parse_hello, b""), (parse_hello, b"D"), (parse_hello, HELLO[:-1]), (parse_hello, HELLO + b"x"),
    (parse_hello, b"H\x02\x04node"), (parse_hello, b"H\x01\x00"), (parse_hello, b"H\x01\x04no e"),
    (parse_hello, b"H\x01\x04nod\xe9"), (parse_hello, b"H\x01\x81" + b"n" * 129), (parse_hello, b"H\x01"),
    (parse_begun, format_begun(b"x" * 31)), (parse_begun, format_begun(b"x" * 33)), (parse_begun, HELLO),
    (parse_drawn, format_drawn(Draw("n", 1, 1, bytes(50), 0))),
    (parse_drawn, format_drawn(Draw("n", 1, 1, bytes(1025), 0))),
    (parse_drawn, format_drawn(DRAW)[:20]), (parse_drawn, b"d"),
    (lambda message: parse_ended(message, "n"), format_ended(ENDED) + b"x"),
    (lambda message: parse_ended(message, "n"), format_ended(LifeEvent("instantiated", "n", 0, "POWER_UP"))),
    (lambda message: parse_ended(message, "n"), format_ended(LifeEvent("failed", "n", 0, "free text"))),
    (parse_refused, format_refused("lower")), (parse_refused, format_refused("")), (parse_refused, b"r\x09SHORT"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_a_message_that_is_not_in_its_form_is_refused_without_its_content(case: int) -> None:
    parse, message = REFUSED[case]
    with pytest.raises(WireError) as caught:
        parse(message)
    assert len(str(caught.value)) < 100
    assert "nod" not in str(caught.value)


def test_the_hash_of_the_software_is_that_of_the_certified_unit_alone() -> None:
    files = [ManifestEntry("rgs/core/x.py", "0" * 64, 1), ManifestEntry("rng/x.py", "1" * 64, 1)]
    one = rng_sha256(Manifest(tuple(files), locked=True))
    assert rng_sha256(Manifest((ManifestEntry("rgs/core/x.py", "2" * 64, 9), files[1]), locked=True)) == one
    assert rng_sha256(Manifest((files[0], ManifestEntry("rng/x.py", "2" * 64, 1)), locked=True)) != one
    assert rng_sha256(Manifest((files[0], ManifestEntry("rng/y.py", "1" * 64, 1)), locked=True)) != one
