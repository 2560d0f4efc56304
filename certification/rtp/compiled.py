"""`compiled`: numba's compiler, with typed functions and machine code cached on disk; and a timer of compilation.

The cache lies in the user's cache folder and not beside our source, where numba would put it: a file there that no
manifest lists keeps a server from starting (docs/manifest.md).

The loops of the enumeration are plain Python functions over integer arrays. Without numba they would give the same
numbers in a day. No loop of this package makes a float.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config, event

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.int16]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


_LOCATORS: Final = "UserProvidedCacheLocator,UserWideCacheLocator"
"""`NUMBA_CACHE_DIR`, then the user's folder for caches."""


def compiled(function: Compiled) -> Compiled:
    """Return the function, compiled at its first call; where no folder for the cache can be written, at each start."""
    config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES or _LOCATORS  # type: ignore[attr-defined]
    try:
        return cast("Compiled", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no locator has a folder
        return cast("Compiled", numba.njit(nogil=True)(function))


class CompileTimer(event.Listener):
    """CPU seconds of a block, apart from those in which numba compiled or loaded what it had compiled."""

    def __init__(self) -> None:
        self.cpu_s = self.compile_s = 0.0
        self._depth = 0
        self._since = 0.0

    def on_start(self, event: object) -> None:  # noqa: ARG002
        if not self._depth:  # a function compiles those that it calls
            self._since = time.process_time()
        self._depth += 1

    def on_end(self, event: object) -> None:  # noqa: ARG002
        self._depth -= 1
        if not self._depth:
            self.compile_s += time.process_time() - self._since

    def __enter__(self) -> Self:
        event.register("numba:compiler_lock", self)  # type: ignore[no-untyped-call]
        self._started = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        event.unregister("numba:compiler_lock", self)  # type: ignore[no-untyped-call]
        self.cpu_s = time.process_time() - self._started - self.compile_s
