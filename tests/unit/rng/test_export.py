"""The collection for a lab is what production deals, byte for byte, in the documented forms."""

import io
import itertools
import os

import pytest

from rng import generator as generator_module
from rng import selftest
from rng.errors import HealthTestError, SelfTestError
from rng.export import export
from rng.generator import Generator
from rng.shuffle import transcript_to_deck
from tests.unit.rng.conftest import ScriptedSource
from tests.unit.rng.reference import ReferenceHashDrbg


def collect(what: str, count: int, *, text: bool) -> tuple[bytes, list[str]]:
    out, progress = io.BytesIO(), io.StringIO()
    export(what, count, text=text, out=out, progress=progress)
    return out.getvalue(), progress.getvalue().splitlines()


@pytest.fixture(autouse=True)
def known_serials(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a scripted source too, every collection of a test is the same."""
    monkeypatch.setattr(generator_module, "_serials", itertools.repeat(0))


@pytest.mark.parametrize("count", [1, 31, 32, 64, 65_535, 65_536, 65_537, 140_000])
def test_raw_gives_exactly_the_bytes_asked_for(count: int, source: ScriptedSource) -> None:
    octets, _ = collect("raw", count, text=False)
    assert len(octets) == count
    started = 16 + 2  # start-up test, entropy input and nonce
    assert len(source.served) == started + -(-count // 65_536)  # a reseed before each request


def test_raw_text_is_the_same_bytes_in_hex_lines(source: ScriptedSource) -> None:
    octets, _ = collect("raw", 65_536 + 40, text=False)
    source.served.clear()
    text, _ = collect("raw", 65_536 + 40, text=True)
    lines = text.decode().splitlines()
    assert bytes.fromhex("".join(lines)) == octets
    assert {len(line) for line in lines[:-1]} == {64}
    assert len(lines[-1]) == 16


def test_draws_and_deals_are_the_generators_own(source: ScriptedSource) -> None:
    generator = Generator("export")
    transcripts = [generator.draw().transcript for _ in range(20)]
    forms = {
        ("draws", True): b"".join(t.hex().encode() + b"\n" for t in transcripts),
        ("draws", False): b"".join(transcripts),
        ("deals", True): b"".join(" ".join(map(str, transcript_to_deck(t))).encode() + b"\n" for t in transcripts),
        ("deals", False): b"".join(bytes(transcript_to_deck(t)) for t in transcripts),
    }
    for (what, text), expected in forms.items():
        source.served.clear()
        assert collect(what, 20, text=text)[0] == expected
    assert len(forms["deals", False]) == 20 * 52


def test_progress_is_told_at_most_twenty_times_and_ends_with_the_whole() -> None:
    assert collect("deals", 3, text=True)[1] == ["deals: 1 of 3", "deals: 2 of 3", "deals: 3 of 3"]
    lines = collect("deals", 100, text=True)[1]
    assert len(lines) == 20
    assert lines[-1] == "deals: 100 of 100"
    assert collect("raw", 100_000, text=False)[1] == ["raw: 65536 of 100000", "raw: 100000 of 100000"]


def test_raw_requests_are_numbered_from_one_and_reseeded_from_the_source(source: ScriptedSource) -> None:
    octets, _ = collect("raw", 65_536 + 40, text=False)
    seed, nonce, first, second = source.served[-4:]
    serial = (0).to_bytes(8, "big")  # of the instantiation, see known_serials
    own_nonce = nonce[:16] + os.getpid().to_bytes(8, "big") + serial
    drbg = ReferenceHashDrbg("sha512", seed, own_nonce, b"rgs/rng/v1|export")
    drbg.reseed(first, b"")
    expected = drbg.generate(65_536, (1).to_bytes(8, "big"))
    drbg.reseed(second, b"")
    assert octets == expected + drbg.generate(40, (2).to_bytes(8, "big"))


def test_progress_and_output_are_pushed_out_at_once() -> None:
    pushed: list[str] = []

    class Out(io.BytesIO):
        def flush(self) -> None:
            pushed.append("out")

    class Progress(io.StringIO):
        def flush(self) -> None:
            pushed.append("progress")

    export("deals", 2, text=True, out=Out(), progress=Progress())
    assert pushed == ["progress", "progress", "out"]


@pytest.mark.parametrize("count", [0, -1])
def test_nothing_is_no_collection(count: int) -> None:
    with pytest.raises(ValueError, match="count"):
        collect("raw", count, text=False)


@pytest.mark.parametrize("what", ["raw", "draws", "deals"])
def test_a_failing_source_gives_no_output(what: str, source: ScriptedSource) -> None:
    source.block = lambda _: bytes(64)
    out = io.BytesIO()
    with pytest.raises(HealthTestError):
        export(what, 9, text=False, out=out, progress=io.StringIO())
    assert out.getvalue() == b""


def test_raw_too_runs_the_self_test_first(source: ScriptedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_DECK", bytes(52))
    with pytest.raises(SelfTestError):
        collect("raw", 1, text=False)
    assert source.served == []
