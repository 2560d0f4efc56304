"""The operating system's entropy, health-tested: the only file of the house that touches it.

`getrandom(2)` with GRND_NONBLOCK, one 64-byte block a system call: before the kernel's pool is first initialized it
fails instead of waiting (fail closed, and never a stalled server); afterwards a request of at most 256 bytes is
neither short nor interrupted. Every block passes `rng.health` before a byte of it is given out.

The first failure of any kind shuts the source for good: error state, no output (SP 800-90B 4.3). A forked child is
refused and makes a source of its own. There is no second source, no fallback, no mixing and no way to inject one.
"""

import os
import threading
from typing import Final

from rng.errors import EntropyError
from rng.health import HealthTests

BLOCK_BYTES: Final = 64
STARTUP_BYTES: Final = 1024  # SP 800-90B 4.3: start-up tests on at least 1,024 consecutive samples
MAX_READ_BYTES: Final = 1 << 16


class EntropySource:
    """The health-tested source of one process. Thread-safe. Shut for good (latched) by its first failure."""

    def __init__(self) -> None:
        """Run the start-up test on 1,024 bytes, which are thrown away. Raises EntropyError."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._tests = HealthTests()
        self._failure: str | None = None
        self.read(STARTUP_BYTES)

    @property
    def healthy(self) -> bool:
        """Whether the source has never failed and belongs to this process."""
        return self._failure is None and self._pid == os.getpid()

    def read(self, n_bytes: int) -> bytes:
        """Return 1..65,536 fresh bytes. Whole blocks are read and tested; the rest of the last one is thrown away.

        Raises EntropyError (HealthTestError when a test fails), then and at every later call. A wrong length or the
        wrong process is refused without shutting the source.
        """
        if self._pid != os.getpid():  # asked before the lock, which a thread of the parent may hold for ever
            raise EntropyError("FORKED", "this source belongs to another process")
        if not 1 <= n_bytes <= MAX_READ_BYTES:
            raise EntropyError("READ_LENGTH", f"{n_bytes} bytes asked, 1..{MAX_READ_BYTES} allowed")
        with self._lock:
            if self._failure is not None:
                raise EntropyError(self._failure, "this source has failed before and stays shut")
            try:
                blocks = [self._tested_block() for _ in range(0, n_bytes, BLOCK_BYTES)]
            except BaseException as error:
                self._failure = error.reason if isinstance(error, EntropyError) else "INTERRUPTED"
                raise
        return b"".join(blocks)[:n_bytes]

    def _tested_block(self) -> bytes:
        block = _os_block()
        self._tests.check(block)
        return block


def _os_block() -> bytes:
    try:
        block = os.getrandom(BLOCK_BYTES, os.GRND_NONBLOCK)
    except BlockingIOError:
        raise EntropyError("ENTROPY_NOT_READY", "the kernel's pool is not yet initialized") from None
    except (OSError, AttributeError):
        raise EntropyError("ENTROPY_UNAVAILABLE", "getrandom(2) failed or is not offered here") from None
    if len(block) != BLOCK_BYTES:
        raise EntropyError("ENTROPY_SHORT", f"{len(block)} of {BLOCK_BYTES} bytes")
    return block
