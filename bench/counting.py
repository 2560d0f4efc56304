"""Counts what a thread of this process runs: calls of Python functions and of C functions, by function.

These counts do not depend on the speed of the machine. A coroutine that goes on after a wait counts as a call again.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


@dataclass(slots=True)
class CallCounts:
    """The calls of one thread while it is counted."""

    python: Counter[CodeType] = field(default_factory=Counter)
    c: Counter[str] = field(default_factory=Counter)

    def take(self, frame: FrameType, event: str, argument: Any) -> None:
        """An event of `sys.setprofile`."""
        if event == "call":
            self.python[frame.f_code] += 1
        elif event == "c_call":
            self.c[getattr(argument, "__qualname__", "?")] += 1

    def begin(self) -> None:
        """Count the calling thread from here on."""
        sys.setprofile(self.take)

    def end(self) -> None:
        """Count it no more. The call of this method is not counted."""
        sys.setprofile(None)
        self.python[CallCounts.end.__code__] -= 1
        self.c["setprofile"] -= 1

    async def begin_in(self, thread: Executor) -> None:
        """Count the one thread of an executor."""
        await asyncio.get_running_loop().run_in_executor(thread, self.begin)

    async def end_in(self, thread: Executor) -> None:
        """Count it no more."""
        await asyncio.get_running_loop().run_in_executor(thread, self.end)

    def lines(self, per: int, most: int) -> list[str]:
        """The functions that are called most, for people: calls per `per`, name, place."""
        found = [
            (count, f"{code.co_qualname if sys.version_info >= (3, 11) else code.co_name} {_place_of(code)}")
            for code, count in self.python.items()
        ]
        found += [(count, f"{name} (C)") for name, count in self.c.items()]
        found.sort(key=lambda one: -one[0])
        return [f"{count / per:8.2f}  {name}" for count, name in found[:most]]


def _place_of(code: CodeType) -> str:
    path = Path(code.co_filename)
    return f"{path.parent.name}/{path.name}:{code.co_firstlineno}"


@dataclass(frozen=True, slots=True)
class Written:
    """What this process has written so far, by the kernel's count: bytes and calls of `write` and its like; and the
    calls of `read` and its like.
    """

    bytes: int
    calls: int
    reads: int

    @classmethod
    def now(cls) -> Written:
        """Read /proc/self/io."""
        entries = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
        return cls(int(entries["wchar"]), int(entries["syscw"]), int(entries["syscr"]))
