"""Console and keyboard in the player's language: texts, menus and questions.

A menu takes the names of choices (`rgs.devkit.terminal.i18n`) and answers with the name that was chosen; the language
decides on the letter of each. Two choices with the same letter are a ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, RenderableType

from rgs.devkit.terminal.i18n import Choice, Words
from rgs.devkit.terminal.screen import Screen, line
from rgs.devkit.terminal.terminal import Keyboard


class Prompt:
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

    def clear(self) -> None:
        """Clear the screen of a terminal."""
        if self._console.is_terminal:
            self._console.clear()

    def say_notes(self) -> None:
        """Show the notes, once."""
        self.say(*self._notes)
        self._notes = []

    # --- questions ----------------------------------------------------------------------------------------------------

    def choose(self, *names: str, default: str = "", **values: object) -> str:
        """Show the choices in one line and wait. Returns the name of the choice. InputEndedError."""
        choices = {name: self.words.choice(name, **values) for name in names}
        self.say("   ".join(str(choice) for choice in choices.values()))
        return self.pick(choices, default)

    def pick(self, choices: Mapping[str, Choice], default: str = "") -> str:
        """Wait for one of the choices, which are on screen already. Returns its name. InputEndedError."""
        names = {choice.key: name for name, choice in choices.items()}
        if len(names) < len(choices):
            raise ValueError(f"two choices have one letter: {' '.join(map(str, choices.values()))}")
        return names[self._keyboard.key("".join(names), choices[default].key if default else "")]

    def ask(self, question: str, default: str) -> str:
        """Read a line; an empty one is the default. InputEndedError."""
        return self._keyboard.line(f"  {question}", default)

    def page(self, content: RenderableType) -> None:
        """Show a page until the player goes back."""
        self.clear()
        self.say(content, "")
        self.choose("back", default="back")
