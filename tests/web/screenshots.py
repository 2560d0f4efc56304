"""Takes a picture of every screen of the page, for docs/page:

    .venv/bin/python -m tests.web.screenshots [--out docs/page] [--scenes tables,holdem] [--looks phone,desktop-dark]

It starts game server, wallet and platform with state that is thrown away, and plays the scenes of `scenes.py` in
Chromium. Pictures are PNGs of few colours; README.md beside them shows them all.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Final

from tests.web import conftest
from tests.web.page_browser import DESKTOP, Visitor, chromium, why_not
from tests.web.scenes import AT_TABLES, SCENES, Stage, set_up_tables

DOCS: Final = Path("docs/page")
COLOURS: Final = 64
FAR: Final = 48
"""Colours further apart than this are two."""
DESKTOP_WIDTH: Final = 960
SIZES: Final = {"desktop": DESKTOP, "phone": {"width": 390, "height": 844}}
LOOKS: Final = {
    "solo": ("phone", "desktop", "phone-dark", "desktop-dark", "phone-it", "phone-de"),
    "holdem": ("phone", "desktop", "phone-it"),
    "states": ("phone",),
    "free-bet": ("phone", "desktop"),
    "office": ("desktop",),
    "verify": ("phone", "desktop"),
    "table": ("phone", "desktop", "phone-dark"),
    "boxes": ("phone", "desktop", "phone-de"),
    "tables": ("phone", "desktop", "desktop-dark"),
}
"""In which looks each scene is played."""


CAPTIONS: Final = {
    "sign-in": "Signing in",
    "lobby": "The lobby",
    "menu": "The menu of a phone",
    "buy": "Buying the right of participation",
    "betting": "Placing bets",
    "decision": "The first decision",
    "result": "The result",
    "result-details": "The result with its details",
    "proof": "The proof of the round",
    "history": "The history",
    "round": "One round of the history",
    "rules": "The rules",
    "limits": "Limits and exclusion",
    "settings": "The settings",
    "cashier": "The cashier, a page of the platform",
    "responsible-play": "Limits and exclusion without a script, a page of the platform",
    "holdem-betting": "Casino Hold'em: placing bets",
    "holdem-decision": "Casino Hold'em: call or fold",
    "holdem-aa": "Casino Hold'em: AA is paid, and the five cards are shown that it was paid for",
    "free-bet-lobby": "A free bet in the lobby",
    "free-bet": "A free bet on the felt",
    "table-betting": "A shared table: placing bets",
    "table-decision": "A shared table: the decision, and what silence does",
    "table-result": "A shared table: the result",
    "chat": "The chat of a table",
    "other-device": "The seat is played on another device",
    "boxes": "Seven boxes: choosing one",
    "boxes-decision": "Seven boxes: the decision. This felt is lettered in English in every language",
    "boxes-result": "Seven boxes: the result",
    "two-tables": "Two tables",
    "four-tables": "Four tables: a phone has tabs",
    "four-tables-result": "Four tables: the results",
    "paused": "Paused by a malfunction",
    "void": "A void round",
    "reality-check": "The reality check",
    "reconnecting": "The connection is lost",
    "ended": "The page after an exclusion",
    "office": "The back office: looking for a round or a player",
    "office-player": "The back office: a player",
    "office-round": "The back office: a round",
    "verify": "verify.html: a receipt that verifies",
    "verify-failed": "verify.html: a receipt that was altered",
}
_PHONE: Final = (
    *("sign-in", "lobby", "menu", "buy", "betting", "decision", "result", "result-details", "proof", "history"),
    *("round", "rules", "limits", "settings", "cashier", "responsible-play", "holdem-betting", "holdem-decision"),
    *("holdem-aa", "free-bet", "table-betting", "table-decision", "table-result", "chat", "other-device", "boxes"),
    *("boxes-decision", "four-tables", "paused", "void", "reality-check", "reconnecting", "ended", "verify"),
)
_DESKTOP: Final = (
    *("lobby", "betting", "decision", "result", "holdem-aa", "free-bet-lobby", "table-result", "boxes-result"),
    *("two-tables", "four-tables", "four-tables-result", "office", "office-player", "office-round"),
    *("verify", "verify-failed"),
)
KEPT: Final[dict[str, tuple[str, ...]]] = {
    "phone": _PHONE,
    "desktop": _DESKTOP,
    "phone-dark": ("decision", "result", "settings", "table-betting"),
    "desktop-dark": ("lobby", "result", "four-tables"),
    "phone-it": ("decision", "result", "holdem-decision"),
    "phone-de": ("limits", "boxes-decision"),
}
"""The pictures that docs/page keeps. Elsewhere all are written."""
TITLES: Final = {
    "phone": "On a phone",
    "desktop": "On a desktop",
    "phone-dark": "Dark, on a phone",
    "desktop-dark": "Dark, on a desktop",
    "phone-it": "In Italian",
    "phone-de": "In German",
}


def index() -> str:
    """README.md beside the pictures that are there."""
    text = (
        "# Every screen of the operator's page\n\n"
        "Taken by `.venv/bin/python -m tests.web.screenshots`, which writes this file, too: see\n"
        "[the page's README](../../examples/operator/page/README.md#pictures).\n"
    )
    for look, kept in KEPT.items():
        screens = [one for one in kept if (DOCS / f"{look}-{one}.png").exists()]
        text += f"\n## {TITLES[look]}\n"
        columns = 2 if look.startswith("desktop") else 3
        for at in range(0, len(screens), columns):
            row = screens[at : at + columns]
            text += f"\n| {' | '.join(CAPTIONS[one] for one in row)} |\n|{'---|' * len(row)}\n"
            text += f"| {' | '.join(f'![{CAPTIONS[one]}]({look}-{one}.png)' for one in row)} |\n"
    return text


def small(shot: bytes) -> Any:
    """The picture with few colours; a desktop's is made smaller."""
    from PIL import Image  # noqa: PLC0415 - of the development environment only

    image = Image.open(io.BytesIO(shot)).convert("RGB")
    if image.width > DESKTOP_WIDTH:
        height = image.height * DESKTOP_WIDTH // image.width
        image = image.resize((DESKTOP_WIDTH, height), Image.Resampling.LANCZOS)
    # The colours that cover most, and those far from them that stand out: a lamp is small, and has to keep its colour.
    most = colours(image.quantize(COLOURS, Image.Quantize.MEDIANCUT))
    rare = colours(image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE))
    rare = [one for one in rare if min(distance(one, other) for other in most) > FAR]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for one in most + rare for value in one])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def colours(image: Any) -> list[tuple[int, ...]]:
    """The palette of a picture."""
    values = image.getpalette() or []
    return [tuple(values[at : at + 3]) for at in range(0, len(values), 3)]


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How far apart two colours are."""
    return max(abs(first - second) for first, second in zip(one, other, strict=True))


def main(arguments: list[str]) -> int:
    """Take the pictures; the exit status says whether all scenes could be played."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of the pictures (%(default)s)")
    parser.add_argument("--scenes", default=",".join(SCENES), help="which of them (%(default)s)")
    parser.add_argument("--looks", default="", help="only these looks, such as phone,desktop-dark")
    options = parser.parse_args(arguments)
    if why := why_not() or ("the platform's packages are missing: run `make web-setup`" if conftest.MISSING else ""):
        sys.stderr.write(f"screenshots: {why}\n")
        return 2
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, Whole(Path(folder)) as whole, chromium() as browser:
        has_tables = False
        for name in sorted(options.scenes.split(","), key=lambda one: one in AT_TABLES):
            if name in AT_TABLES and not has_tables:
                set_up_tables(whole)  # now: a picture of the lobby shows the tables that the project ships
                has_tables = True
            for look in LOOKS[name]:
                if options.looks and look not in options.looks.split(","):
                    continue

                def keep(visitor: Visitor, screen: str, look: str = look) -> None:
                    if options.out != DOCS or screen in KEPT.get(look, ()):
                        small(visitor.page.screenshot()).save(options.out / f"{look}-{screen}.png", optimize=True)

                try:
                    SCENES[name](Stage(browser, whole, SIZES, keep), look)
                except Exception:  # noqa: BLE001 - the other scenes are worth having
                    failed += 1
                    sys.stderr.write(f"{name} in {look} failed:\n{traceback.format_exc()}\n")
    if options.out == DOCS:
        (DOCS / "README.md").write_text(index(), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
