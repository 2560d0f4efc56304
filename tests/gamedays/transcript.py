"""What is written down on a game day: what was done and seen, what told of it, what the operator does, what is left.

Each line has the seconds since the day began. The lines go to standard output, and with RGS_GAMEDAYS into a file of
that folder, too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SETTING = "RGS_GAMEDAYS"


class Transcript:
    """The lines of one day. Names of folders that a line holds are replaced by what they are."""

    def __init__(self, title: str, folder: Path) -> None:
        self._began = time.monotonic()
        self._folder = folder
        self._lines: list[str] = []
        self._write(f"# {title}")

    def did(self, what: str) -> None:
        """Something that the drill has done."""
        self._add("did", what)

    def saw(self, what: str) -> None:
        """What players or callers have seen."""
        self._add("saw", what)

    def alarm(self, what: str) -> None:
        """The guard, alert, log line or exit status that tells an operator."""
        self._add("told by", what)

    def operator(self, what: str) -> None:
        """What the operator does."""
        self._add("operator", what)

    def after(self, what: str) -> None:
        """What is left at the end, and proved."""
        self._add("after", what)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def keep(self, name: str) -> None:
        """Write the lines into the folder that the setting names."""
        if SETTING in os.environ:
            folder = Path(os.environ[SETTING])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.txt").write_text(self.text, "utf-8")

    def _add(self, who: str, what: str) -> None:
        for line in what.replace(str(self._folder), "…").splitlines():
            self._write(f"{time.monotonic() - self._began:7.1f} s  {who:<8}  {line}")
            who = ""

    def _write(self, line: str) -> None:
        self._lines.append(line)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def transcript(name: str, title: str, folder: Path) -> Iterator[Transcript]:
    """A transcript until the end of the block, kept whether the day goes well or not."""
    written = Transcript(title, folder)
    try:
        yield written
    finally:
        written.keep(name)
