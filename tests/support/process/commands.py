"""Runs the command line within the test process, and keeps all that it said."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rgs.cli import run
from rgs.integrity.manifest import Manifest, ManifestEntry

USAGE = re.compile(r"\[(INVALID_FIELD|UNKNOWN_FIELD|MALFORMED) field=")
"""An option, argument or setting that is not understood: status 2."""
MANIFEST = Manifest((ManifestEntry("rng/x.py", "0" * 64, 1),), locked=True)


@dataclass
class Cli:
    """`status`, `out` and `err` are those of the last call; `said` is everything since the beginning."""

    home: Path
    capture: pytest.CaptureFixture[str]
    status: int = -1
    out: str = ""
    err: str = ""
    said: list[str] = field(default_factory=list)

    def __call__(self, *arguments: str, status: int | None = 0, manifest: Manifest = MANIFEST) -> str:
        """Run `rgs` with these arguments, expect this status (None: any), return what it wrote to stdout."""
        self.status = run(list(arguments), manifest)
        self.out, self.err = self.capture.readouterr()
        self.said += [self.out, self.err]
        assert status is None or self.status == status, (arguments, self.out, self.err)
        assert "Traceback" not in self.err
        return self.out

    def refused(self, *arguments: str, status: int | None = None) -> str:
        """Run a command that must be refused: nothing on stdout, one line on stderr, which is returned.

        Its status is 2 where the line names what was not understood, else 1.
        """
        self(*arguments, status=status)
        assert self.status == (status or (2 if USAGE.search(self.err) else 1)), (arguments, self.err)
        assert self.out == ""
        assert self.err.startswith("rgs: ")
        assert self.err.count("\n") == 1
        return self.err


def secrets_of(home: Path) -> list[str]:
    """Texts that no output or log may hold: what is in the secret files, and other spellings of the keys in them."""
    texts: list[str] = []
    for path in [*home.rglob("*.key"), *home.rglob("kek.json")]:
        content = path.read_text("ascii")
        lines = [line for line in content.splitlines() if not line.startswith("-----")]
        texts += lines
        if path.name == "kek.json":
            texts += [part for part in content.split('"') if len(part) == 64]
    assert len(texts) > 10
    return texts
