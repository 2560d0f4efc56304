"""Console and keyboard in the player's language: texts, menus and questions.

A menu takes the names of choices (`rgs.devkit.terminal.i18n`) and answers with the name that was chosen; the language
decides on the letter of each. Two choices with the same letter are a ValueError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from rgs.devkit.terminal.i18n import Choice, Words
from rgs.devkit.terminal.screen import Screen, line
from rgs.devkit.terminal.terminal import Keyboard

TICK_S: Final = 1.0
"""How often a screen with a running clock is drawn."""
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


class Prompt:
    """A console and a keyboard, in one language."""

    def __init__(self, console: Console, keyboard: Keyboard, words: Words) -> None:
        self._console = console
        self._keyboard = keyboard
        self.words = words
        self.screen = Screen(words, plain=not console.encoding.lower().startswith("utf"), width=console.width)
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

    def take_notes(self) -> list[RenderableType]:
        """The notes, once."""
        notes, self._notes = self._notes, []
        return notes

    def frame(self, parts: Sequence[tuple[int, RenderableType]]) -> None:
        """Show the parts as the whole screen, in a terminal over the last one. Where they need more lines than it has,
        those with the highest numbers are left out, the first ones first; 0 stays.
        """
        if not self._console.is_terminal:
            self.say(*(part for _, part in parts))
            return
        shown = [(number, self._rendered(part)) for number, part in parts]
        while (spare := max(number for number, _ in shown)) and _lines(shown) >= self._console.height:
            del shown[[number for number, _ in shown].index(spare)]
        text = "".join(text for _, text in shown).replace("\n", f"{_CLEAR_LINE}\n")
        self._console.file.write(f"{_HOME}{text}{_CLEAR_BELOW}")
        self._console.file.flush()

    def _rendered(self, part: RenderableType) -> str:
        with self._console.capture() as captured:
            self.say(part)
        return captured.get()

    # --- live questions -----------------------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether keys can be waited for beside other things: in a terminal."""
        return self._keyboard.is_terminal

    def listen(self, choices: Mapping[str, Choice], default: str, wake: int) -> str:
        """In a terminal: the name of the choice whose key is pressed within a second. Empty if there was none, another
        key, or something to read at the file `wake`. InputEndedError.
        """
        names = {choice.key: name for name, choice in choices.items()}
        if len(names) < len(choices):
            raise ValueError(f"two choices have one letter: {' '.join(map(str, choices.values()))}")
        if default:
            names["\n"] = default
        return names.get(self._keyboard.listen(wake, TICK_S), "")

    def forget_ahead(self) -> None:
        """Discard the keys that were pressed before: they were not meant for what is shown next."""
        self._keyboard.forget_ahead()

    # --- questions ----------------------------------------------------------------------------------------------------

    def choose(self, *names: str, default: str = "", **values: object) -> str:
        """Show the choices and wait. Returns the name of the choice. InputEndedError."""
        choices = {name: self.words.choice(name, **values) for name in names}
        self.say(self.screen.choices(Text(str(choice)) for choice in choices.values()))
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


def _lines(shown: Sequence[tuple[int, str]]) -> int:
    return sum(text.count("\n") for _, text in shown)
