"""Collection for a test lab: raw bytes, transcripts or decks, through the very functions that deal cards.

`raw` bytes come from `generator.instantiate` and `generator.reseeded_bytes`, `draws` and `deals` from `Generator.draw`.
Differences from production: a raw request is up to 65,536 bytes instead of 64, and nothing exported is ever dealt.
It refuses to choose, filter or repeat output, and takes no seed.
"""

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, TextIO

from rng import selftest
from rng.drbg import MAX_REQUEST_BYTES
from rng.entropy import EntropySource
from rng.generator import Generator, instantiate, reseeded_bytes
from rng.shuffle import transcript_to_deck

INSTANCE: Final = "export"
PROGRESS_STEPS: Final = 20


def export(what: str, count: int, *, text: bool, out: BinaryIO, progress: TextIO) -> None:
    """Write `count` bytes (`raw`), transcripts (`draws`) or decks (`deals`) to `out`, progress to `progress`.

    Text: raw as hex, 32 bytes a line; a transcript in hex a line; a deck as 52 integers a line, top first, card
    0..51 in the order suits c d h s, ranks 2..A (0 = 2c, 12 = Ac, 13 = 2d). Binary: the bytes themselves, transcripts
    run together, a deck as 52 bytes. Raises RngError, OSError, or ValueError when `count` < 1.
    """
    if count < 1:
        raise ValueError("count is at least 1")
    records, line = _KINDS[what]
    done = 0
    for record in records(count):
        out.write(line(record) if text else record)
        before, done = done, done + (len(record) if what == "raw" else 1)
        if done * PROGRESS_STEPS // count > before * PROGRESS_STEPS // count:
            print(f"{what}: {done} of {count}", file=progress, flush=True)
    out.flush()


def _raw(count: int) -> Iterator[bytes]:
    selftest.run()
    entropy = EntropySource()
    drbg = instantiate(INSTANCE, entropy)
    for serial, start in enumerate(range(0, count, MAX_REQUEST_BYTES), 1):
        yield reseeded_bytes(drbg, entropy, min(MAX_REQUEST_BYTES, count - start), serial)


def _draws(count: int) -> Iterator[bytes]:
    generator = Generator(INSTANCE)
    for _ in range(count):
        yield generator.draw().transcript


def _deals(count: int) -> Iterator[bytes]:
    for transcript in _draws(count):
        yield bytes(transcript_to_deck(transcript))


_KINDS: Final[dict[str, tuple[Callable[[int], Iterator[bytes]], Callable[[bytes], bytes]]]] = {
    "raw": (_raw, lambda chunk: chunk.hex("\n", -32).encode() + b"\n"),
    "draws": (_draws, lambda transcript: transcript.hex().encode() + b"\n"),
    "deals": (_deals, lambda deck: " ".join(map(str, deck)).encode() + b"\n"),
}
