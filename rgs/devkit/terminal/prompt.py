"""The person's place: what is shown there in their language, and what they choose.

A menu is named by its choices (`rgs.devkit.terminal.i18n`), and answers with the name that was chosen: which letter
stands for it is the language's. Refuses a menu in which two choices have the same letter.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, RenderableType

from rgs.devkit.client import CallError
from rgs.devkit.terminal.i18n import Choice, Words
from rgs.devkit.terminal.screen import Screen, line
from rgs.devkit.terminal.terminal import Keyboard


class Desk:
    """A console and a keyboard, in one language."""

    def __init__(self, console: Console, keyboard: Keyboard, words: Words) -> None:
        self._console = console
        self._keyboard = keyboard
        self.words = words
        self.screen = Screen(words, plain=not console.encoding.lower().startswith("utf"))
        self._notes: list[RenderableType] = []

    # --- showing ------------------------------------------------------------------------------------------------------

    def say(self, *parts: RenderableType) -> None:
        """Show at once."""
        for part in parts:
            self._console.print(line(part) if isinstance(part, str) else part)

    def note(self, *parts: RenderableType) -> None:
        """Show below the next screen."""
        self._notes += parts

    def note_refusal(self, error: CallError) -> None:
        """Show below the next screen what the server refused."""
        self.note(line(f"✗ {self.screen.refusal(error)}", "yellow"))

    def clear(self) -> None:
        """An empty screen, where there is one."""
        if self._console.is_terminal:
            self._console.clear()

    def say_notes(self) -> None:
        """Show what was noted, once."""
        self.say(*self._notes)
        self._notes = []

    # --- asking -------------------------------------------------------------------------------------------------------

    def choose(self, *names: str, default: str = "", **values: object) -> str:
        """Show the choices in one line and wait; the name of the one that was chosen. InputEndedError."""
        choices = {name: self.words.choice(name, **values) for name in names}
        self.say("   ".join(str(choice) for choice in choices.values()))
        return self.pick(choices, default)

    def pick(self, choices: Mapping[str, Choice], default: str = "") -> str:
        """Wait for one of the choices that are shown already; its name. InputEndedError."""
        names = {choice.key: name for name, choice in choices.items()}
        if len(names) < len(choices):
            raise ValueError(f"two choices have one letter: {' '.join(map(str, choices.values()))}")
        return names[self._keyboard.key("".join(names), choices[default].key if default else "")]

    def ask(self, question: str, default: str) -> str:
        """A line that is typed; the default where it is empty. InputEndedError."""
        return self._keyboard.line(f"  {question}", default)

    def page(self, content: RenderableType) -> None:
        """Show a page until the person goes back."""
        self.clear()
        self.say(content, "")
        self.choose("back", default="back")
