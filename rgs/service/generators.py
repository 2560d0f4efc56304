"""What an instance asks of its generator, and the generator in this process.

`RunningGenerator` is the whole surface: the instance does not know whether the certified unit runs here
(`EmbeddedGenerator`, the default) or in a process of its own (`rgs.node.generator`). Draws are answered in the order in
which they were asked for, and whoever is cancelled while a draw is made gets it all the same: a draw that was made must
be accounted for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

from rng.entropy import EntropySource
from rng.generator import Draw, Generator, LifeEvent


class RunningGenerator(Protocol):
    """The generator of one instance. The first failure is final."""

    @property
    def instance(self) -> str:
        """The name under which it draws."""

    @property
    def entropy(self) -> EntropySource:
        """The health-tested source of this process, for salts, ids and keys."""

    @property
    def failure(self) -> str:
        """Why it draws no more, as a code; empty while it can draw."""

    async def draw(self) -> Draw:
        """The next draw. RngError after a failure, then and at every later call."""

    async def selftest(self) -> object:
        """Run the known answers again. A failure ends the generator: RngError."""

    async def close(self) -> LifeEvent:
        """End it. Returns the event that ended it, also when it had ended before. Never fails."""

    def events(self) -> tuple[LifeEvent, ...]:
        """The life events so far, oldest first."""


BeginGenerator = Callable[[str], Awaitable[RunningGenerator]]
"""Makes the generator of an instance. RngError: it does not start."""


class EmbeddedGenerator:
    """The certified unit in this process. None of its calls waits, so a draw is made and taken in one step."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    @classmethod
    async def begin(cls, instance: str) -> Self:
        """Run the power-up self-test beside the event loop, and instantiate. RngError."""
        return cls(await asyncio.to_thread(Generator, instance))

    @property
    def instance(self) -> str:
        return self._generator.instance

    @property
    def entropy(self) -> EntropySource:
        return self._generator.entropy

    @property
    def failure(self) -> str:
        return "" if self._generator.healthy else "GENERATOR_ENDED"

    async def draw(self) -> Draw:
        return self._generator.draw()

    async def selftest(self) -> object:
        return self._generator.selftest()

    async def close(self) -> LifeEvent:
        return self._generator.close()

    def events(self) -> tuple[LifeEvent, ...]:
        return self._generator.events()
