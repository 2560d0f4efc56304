"""What the parts of a load take of the processors and of the disk, read from /proc and /sys between two looks.

A part is a thread, or a process of the database. Its share is the time that it ran, and the time that it was ready to
run and waited for a processor, over the time between the looks: a part with a share of 1 is full, whether it had a
processor for itself or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

PROC: Final = Path("/proc")
FULL: Final = 0.9
"""A part with this share is full."""
PROCESSORS_FULL: Final = 0.95
DATABASE: Final = "postgres"
"""The name of the database's processes."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FLUSHES: Final = 15
"""Where /sys/dev/block/*/stat counts flushes; the milliseconds that they took stand behind it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds on a processor, and seconds of waiting for one; or both as shares of the time between two looks."""

    cpu_s: float = 0.0
    waited_s: float = 0.0

    @property
    def wanted_s(self) -> float:
        """Both."""
        return self.cpu_s + self.waited_s


@dataclass(frozen=True, slots=True)
class Look:
    """The counts of one moment."""

    time_s: float
    server: Mapping[int, Taken]
    """By thread."""
    load: Mapping[int, Taken]
    database: Mapping[int, Taken]
    """By process."""
    idle_s: float
    flushes: int
    flush_s: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Between two looks. All but the flushes are shares of one processor, `idle` of all of them."""

    parts: Mapping[str, Taken]
    server: float
    load: float
    database: float
    """CPU of all threads of the server, of the load generator, of all processes of the database."""
    idle: float
    flushes_per_s: float
    flushing: float
    """The share of the time in which the disk flushed."""


def look(server: int, folder: Path) -> Look:
    """The counts now of a server's process, of this process, which makes the load, and of databases that it started."""
    flushes, flush_s = flushes_of(folder)
    return Look(
        time_s=perf_counter(),
        server=threads_of(server),
        load=threads_of(os.getpid()),
        database={pid: process_of(pid) for pid in below(os.getpid(), DATABASE)},
        idle_s=_idle_s(),
        flushes=flushes,
        flush_s=flush_s,
    )


def shares(before: Look, after: Look, names: Mapping[int, str]) -> Shares:
    """`names` are those of the server's threads that are parts by themselves; of its other threads, and of the
    database's processes, the busiest one is a part.
    """
    elapsed_s = after.time_s - before.time_s
    server, load, database = (
        _shares(before_one, after_one, elapsed_s)
        for before_one, after_one in (
            (before.server, after.server), (before.load, after.load), (before.database, after.database),
        )
    )  # fmt: skip
    parts = {name: server.get(thread, Taken()) for thread, name in names.items()}
    parts["the server's busiest other thread"] = _busiest(one for thread, one in server.items() if thread not in names)
    parts["the load generator"] = load.get(os.getpid(), Taken())
    if database:
        parts["the busiest process of the database"] = _busiest(database.values())
    return Shares(
        parts=parts,
        server=sum(one.cpu_s for one in server.values()),
        load=sum(one.cpu_s for one in load.values()),
        database=sum(one.cpu_s for one in database.values()),
        idle=(after.idle_s - before.idle_s) / elapsed_s / (os.cpu_count() or 1),
        flushes_per_s=(after.flushes - before.flushes) / elapsed_s,
        flushing=(after.flush_s - before.flush_s) / elapsed_s,
    )


def first_full(taken: Shares) -> str:
    """A sentence that names the part that is full first, by the shares."""
    wanted = {name: part.wanted_s for name, part in taken.parts.items()} | {"the disk (flushes)": taken.flushing}
    (first, most), (second, next_most) = sorted(wanted.items(), key=lambda item: -item[1])[:2]
    found = f"{first} with {most:.0%} of its time, then {second} with {next_most:.0%}"
    if most >= FULL:
        return f"First full is {found}."
    if taken.idle <= 1 - PROCESSORS_FULL:
        return f"No part is full by itself, but all processors of the machine are; nearest is {found}."
    if taken.server >= FULL:
        return (
            f"First full is Python in the server: its threads together run for {taken.server:.0%} of the time, and"
            f" Python runs one at a time. Nearest of them is {found}."
        )
    return f"No part is full: calls wait for each other, or for the disk. Nearest is {found}."


def threads_of(pid: int) -> dict[int, Taken]:
    """What each thread of a process has taken so far."""
    return _found({int(path.name): path for path in (PROC / str(pid) / "task").iterdir()})


def process_of(pid: int) -> Taken:
    """What all threads of a process have taken so far; nothing if it has ended."""
    try:
        parts = threads_of(pid).values()
    except FileNotFoundError:
        return Taken()
    return Taken(sum(one.cpu_s for one in parts), sum(one.waited_s for one in parts))


def below(pid: int, name: str = "") -> list[int]:
    """The process ids below a process, of any depth; those with this name only, if it is given."""
    found = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        try:
            children = [int(child) for child in path.read_text(encoding="ascii").split()]
        except (FileNotFoundError, ProcessLookupError):  # the thread has just ended
            continue
        for child in children:
            found += [child, *below(child)]
    return [one for one in found if not name or _name(one) == name]


def flushes_of(folder: Path) -> tuple[int, float]:
    """Flushes that the disk below a folder has done so far, and the seconds that they took; zeros where it has none."""
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if (block / "partition").exists():  # only the whole disk counts them
        block = block.resolve().parent
    try:
        fields = (block / "stat").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return 0, 0.0
    return (int(fields[_FLUSHES]), int(fields[_FLUSHES + 1]) / 1000) if len(fields) > _FLUSHES + 1 else (0, 0.0)


def _name(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _found(paths: Mapping[int, Path]) -> dict[int, Taken]:
    result = {}
    for number, path in paths.items():
        try:
            ran_ns, waited_ns, _ = map(int, (path / "schedstat").read_text(encoding="ascii").split())
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        result[number] = Taken(ran_ns / 1e9, waited_ns / 1e9)
    return result


def _shares(before: Mapping[int, Taken], after: Mapping[int, Taken], elapsed_s: float) -> dict[int, Taken]:
    """A part that began between the looks had taken nothing before; one that ended is left out."""
    result = {}
    for number, one in after.items():
        other = before.get(number, Taken())
        result[number] = Taken((one.cpu_s - other.cpu_s) / elapsed_s, (one.waited_s - other.waited_s) / elapsed_s)
    return result


def _busiest(parts: Iterable[Taken]) -> Taken:
    return max(parts, key=lambda one: one.wanted_s, default=Taken())


def _idle_s() -> float:
    """Of all processors."""
    fields = (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return int(fields[4]) / _TICKS
