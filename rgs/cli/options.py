"""What the commands share: their common option, the process's clock and entropy, and how they speak to people.

Refuses to make randomness or to read the time: both come from their one place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rgs.node.config import DEFAULT_HOME
from rng.entropy import EntropySource

HomeOption = Annotated[
    Path, typer.Option("--home", envvar="RGS_HOME", help="The node's home directory.", file_okay=False)
]
HOME = DEFAULT_HOME


def entropy() -> EntropySource:
    """The tested source of this process, started afresh. Raises EntropyError."""
    return EntropySource()


def note(text: str) -> None:
    """A remark for people: on stderr, so that output can be piped."""
    print(text, file=sys.stderr)
