"""The terminal: single keys, or lines if input is piped, and the console on stdout.

In a terminal, keys pressed before a question are discarded, so that a second press decides nothing that was not seen.
An arrow key does not count as a letter. The end of input is an InputEndedError.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from io import TextIOWrapper
from typing import Any, Final, Self, TextIO

from rich.console import Console

_KEY_BYTES: Final = 64
_END: Final = b"\x04"
WIDTH_MAX: Final = 100


def open_console() -> Console:
    """The console on stdout. Characters that it cannot show become question marks."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH_MAX)
    return console


class InputEndedError(Exception):
    """Input has ended: nobody answers any more."""


class Keyboard:
    """Reads keys and lines. In a terminal, keys are not echoed while the context is open."""

    def __init__(self, console: Console, source: TextIO | None = None, *, prompt: str = "{keys}") -> None:
        """`prompt` is the text after a wrong key; `{keys}` in it becomes the keys allowed."""
        self._console = console
        self._prompt = prompt
        self._source = sys.stdin if source is None else source
        self.is_terminal = self._source.isatty()
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        if self.is_terminal:
            self._before = termios.tcgetattr(self._source.fileno())
            tty.setcbreak(self._source.fileno(), termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_terminal:
            termios.tcsetattr(self._source.fileno(), termios.TCSADRAIN, self._before)

    def key(self, allowed: str, default: str = "") -> str:
        """Read one of the `allowed` letters; Enter, or an empty line, is the default if there is one."""
        while True:
            self.forget_ahead()
            self._console.print("[bold]>[/] ", end="")
            pressed = (self._pressed() if self.is_terminal else self._line()[:1]).lower() or default
            self._console.print(pressed if pressed.isprintable() else "", highlight=False, markup=False)
            if pressed and pressed in allowed:
                return pressed
            self._console.print(self._prompt.format(keys=" ".join(allowed)), style="dim", highlight=False, markup=False)

    def line(self, question: str, default: str) -> str:
        """Read a line; an empty one is the default."""
        self.forget_ahead()
        if self.is_terminal:
            termios.tcsetattr(self._source.fileno(), termios.TCSADRAIN, self._before)
        try:
            self._console.print(f"{question} [dim]\\[{default}][/] ", end="")
            answer = self._line()
        finally:
            if self.is_terminal:
                tty.setcbreak(self._source.fileno(), termios.TCSADRAIN)
        if not self.is_terminal:
            self._console.print(answer, highlight=False, markup=False)
        return answer or default

    def listen(self, wake: int, timeout_s: float) -> str:
        """In a terminal: the key that is pressed, a line feed for Enter. Empty once there is something to read at the
        file `wake`, or the time is over. InputEndedError.
        """
        ready, _, _ = select.select([self._source, wake], [], [], timeout_s)
        return (self._pressed().lower() or "\n") if self._source in ready else ""

    def forget_ahead(self) -> None:
        """Discard the keys that a terminal has read ahead."""
        if self.is_terminal:
            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def _line(self) -> str:
        line = self._source.readline()
        if not line:
            raise InputEndedError
        return line.strip()

    def _pressed(self) -> str:
        read = os.read(self._source.fileno(), _KEY_BYTES)
        if read in {b"", _END}:
            raise InputEndedError
        if read in {b"\r", b"\n"}:
            return ""
        return read.decode("ascii", "replace") if len(read) == 1 else "\0"
