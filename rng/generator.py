"""The one stateful object of the unit: a Hash_DRBG that reseeds before every draw, counts draws and fails closed.

Each draw: 64 fresh health-tested bytes of the operating system reseed the DRBG (SP 800-90A 9.2), one request gives
bytes with the draw number as additional input, Fisher-Yates consumes some. The bytes consumed, rejected ones included,
are the transcript; bytes left over are dropped, never kept: a read-ahead would hold bytes of future cards in memory.

It refuses: any input from outside (a draw takes no argument), any draw after a failure of any kind, use in a forked
child, and being copied or pickled. Nothing secret stands in a repr or an error text. Life events are returned
unsigned; the server signs and commits them before the first draw is used.
"""

import itertools
import os
import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Never, TypeVar

from rng import selftest
from rng.drbg import HashDrbg
from rng.entropy import BLOCK_BYTES, EntropySource
from rng.errors import GeneratorFailedError, RngError
from rng.shuffle import DECK_SIZE, shuffle

PERSONALIZATION_PREFIX: Final = b"rgs/rng/v1|"
DRAW_REQUEST_BYTES: Final = 64
"""One SHA-512 block: a 52-card shuffle takes 53.6 bytes on average, and more than 64 once in about 164,000."""
DRAW_REQUESTS_MAX: Final = 16
"""Bound of the requests of one draw, enforced as the DRBG's reseed interval."""

_NAME = re.compile(r"[!-~]{1,128}")  # printable ASCII without the space
_T = TypeVar("_T")
_serials = itertools.count()


@dataclass(frozen=True, slots=True)
class Draw:
    """One shuffle: the `draw_no`-th of `instance`, counted from 1 without gaps.

    `reseed_counter`: reseeds since instantiation, this draw's included. `transcript`: the bytes consumed, rejected
    ones included, secret until revealed. `rejected`: how many of them were rejected.
    """

    instance: str
    draw_no: int
    reseed_counter: int
    transcript: bytes = field(repr=False)
    rejected: int


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """`kind` is instantiated | uninstantiated | failed; `draws` made until then; `reason` is a code, no free text."""

    kind: str
    instance: str
    draws: int
    reason: str


def instantiate(instance: str, entropy: EntropySource) -> HashDrbg:
    """Make the DRBG of `instance` (1..128 printable ASCII characters), seeded with 64 bytes of entropy.

    The personalization string is "rgs/rng/v1|" and the name. The nonce (SP 800-90A 8.6.7) holds 16 bytes of the same
    source, the process id and a number never used twice in this process. Raises EntropyError, or ValueError for the
    name.
    """
    if not _NAME.fullmatch(instance):
        raise ValueError("an instance name is 1..128 printable ASCII characters without spaces")
    return HashDrbg(
        entropy_input=entropy.read(BLOCK_BYTES),
        nonce=entropy.read(16) + os.getpid().to_bytes(8, "big") + next(_serials).to_bytes(8, "big"),
        personalization=PERSONALIZATION_PREFIX + instance.encode("ascii"),
        reseed_interval=DRAW_REQUESTS_MAX,
    )


def reseeded_bytes(drbg: HashDrbg, entropy: EntropySource, n_bytes: int, serial: int) -> bytes:
    """Reseed with 64 bytes of entropy, then generate `n_bytes` with `serial` (8 bytes) as additional input."""
    drbg.reseed(entropy.read(BLOCK_BYTES))
    return drbg.generate(n_bytes, serial.to_bytes(8, "big"))


class Generator:
    """The generator of one instance. Thread-safe; every failure is final."""

    def __init__(self, instance: str, *, entropy: EntropySource | None = None) -> None:
        """Run the power-up self-test, then make a source (its start-up test runs), then instantiate.

        A source handed over has passed its start-up test when it was made. Raises SelfTestError, EntropyError, or
        ValueError for the name (see `instantiate`).
        """
        selftest.run()
        self.instance: Final = instance
        self._entropy = EntropySource() if entropy is None else entropy
        self._drbg = instantiate(instance, self._entropy)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._draws = 0
        self._reseeds = 0
        self._ended: LifeEvent | None = None
        self._events = [LifeEvent("instantiated", instance, 0, "POWER_UP")]
        _inherited_by_children.add(self)

    @property
    def entropy(self) -> EntropySource:
        """The health-tested source, for salts and ids."""
        return self._entropy

    @property
    def healthy(self) -> bool:
        """Whether a draw may be asked for: in its own process, not ended, its source not shut."""
        return self._pid == os.getpid() and self._ended is None and self._entropy.healthy

    def draw(self) -> Draw:
        """Make one 52-card shuffle from fresh entropy. Raises GeneratorFailedError, then and at every later call."""
        return self._latched(self._draw)

    def selftest(self) -> tuple[str, ...]:
        """Run the self-test on demand (SP 800-90A 11.3); a failure ends this generator with GeneratorFailedError."""
        return self._latched(selftest.run)

    def close(self) -> LifeEvent:
        """Uninstantiate. Returns the event that ended this generator, also when it had ended before."""
        self._require_own_process()
        with self._lock:
            return self._ended or self._end("uninstantiated", "CLOSED")

    def events(self) -> tuple[LifeEvent, ...]:
        """Return the life events so far, unsigned, oldest first."""
        self._require_own_process()
        with self._lock:
            return tuple(self._events)

    def __repr__(self) -> str:
        return f"<Generator {self.instance} {'healthy' if self.healthy else 'ended'}>"

    def __reduce__(self) -> Never:
        raise TypeError("a generator is never copied or pickled")

    def _draw(self) -> Draw:
        draw_no = self._draws + 1
        tape = reseeded_bytes(self._drbg, self._entropy, DRAW_REQUEST_BYTES, draw_no)
        self._reseeds += 1
        while True:
            unread = iter(tape)
            try:
                shuffle(unread.__next__)
                break
            except StopIteration:  # the shuffle is pure: it begins again on the longer tape and takes the same bytes
                tape += self._drbg.generate(DRAW_REQUEST_BYTES, draw_no.to_bytes(8, "big"))
        transcript = tape[: len(tape) - len(bytes(unread))]
        draw = Draw(self.instance, draw_no, self._reseeds, transcript, len(transcript) - (DECK_SIZE - 1))
        self._draws = draw_no
        return draw

    def _latched(self, step: Callable[[], _T]) -> _T:
        self._require_own_process()
        with self._lock:
            ended = self._ended
            if ended is None:
                try:
                    return step()
                except BaseException as error:
                    ended = self._end("failed", error.reason if isinstance(error, RngError) else "INTERRUPTED")
                    if not isinstance(error, Exception):
                        raise
            # Raised out here, so that neither its context nor a frame of its traceback holds bytes of the draw.
            raise GeneratorFailedError(ended.reason, f"{self.instance} draws no more")

    def _end(self, kind: str, reason: str) -> LifeEvent:
        self._drbg.uninstantiate()
        self._ended = LifeEvent(kind, self.instance, self._draws, reason)
        self._events.append(self._ended)
        return self._ended

    def _require_own_process(self) -> None:
        if self._pid != os.getpid():  # asked before the lock, which a thread of the parent may hold for ever
            raise GeneratorFailedError("FORKED", f"{self.instance} belongs to another process")


_inherited_by_children: Final["weakref.WeakSet[Generator]"] = weakref.WeakSet()


def _disown() -> None:
    """In a forked child: zeroize the inherited states. No process has id 0, so their owner check fails for ever."""
    for generator in list(_inherited_by_children):
        generator._pid = 0  # noqa: SLF001 - the same module
        generator._drbg.uninstantiate()  # noqa: SLF001


os.register_at_fork(after_in_child=_disown)
