"""A scripted operating system: what `getrandom(2)` gives is decided by the test, and everything given is kept."""

import hashlib
import os
from collections.abc import Callable

import pytest


class ScriptedSource:
    """Stands in for `os.getrandom`. By default block i is SHA-512(i): known, and not to be told from random bytes."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.flags: set[int] = set()
        self.block: Callable[[int], bytes] = lambda i: hashlib.sha512(i.to_bytes(8, "big")).digest()

    def getrandom(self, n_bytes: int, flags: int = 0) -> bytes:
        self.flags.add(flags)
        self.served.append(self.block(len(self.served)))
        return self.served[-1][:n_bytes]


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> ScriptedSource:
    scripted = ScriptedSource()
    monkeypatch.setattr(os, "getrandom", scripted.getrandom)
    return scripted
