"""The journal of mutants. Each mutant gets a line of JSON when it ends, so that a stopped run can be resumed.

A verdict holds while its files are unchanged. For a killed mutant these are the target and the file of the test that
killed it. For any other mutant they are the target and all files that the tests of its group read. The last line of a
mutant counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

from tools.forks import KILLED, Verdict
from tools.mutations import Mutant

HASH_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Line:
    """How one mutant ended. `target` and `tests` are the first digits of SHA-256 of the target and of its judges."""

    path: str
    line: int
    function: str
    before: str
    after: str
    outcome: str
    test: str
    target: str
    tests: str

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """Identifies the mutant in this state of the file."""
        return self.path, self.function, self.line, self.before, self.after


def key_of(mutant: Mutant) -> tuple[str, str, int, str, str]:
    """As `Line.key`."""
    return mutant.path, mutant.function, mutant.line, mutant.before, mutant.after


class Journal:
    """The lines of the journal. A parameter `read` lists the files that the tests of the mutant's group read."""

    def __init__(self, file: Path, root: Path) -> None:
        self._file = file
        self._hash = cache(partial(_hash, root))

    def lines(self) -> dict[tuple[str, str, int, str, str], Line]:
        """The last line of each mutant. A line that was cut off when the run was stopped does not count."""
        text = self._file.read_text("utf-8") if self._file.exists() else ""
        read = [Line(**json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()]
        return {line.key: line for line in read}

    def write(self, mutant: Mutant, verdict: Verdict, read: Sequence[str]) -> None:
        """Add the verdict on a mutant of a group whose tests read these files."""
        line = Line(
            path=mutant.path,
            line=mutant.line,
            function=mutant.function,
            before=mutant.before,
            after=mutant.after,
            outcome=verdict.outcome,
            test=verdict.test,
            target=self._hash((mutant.path,)),
            tests=self._hash(_judges(verdict.outcome, verdict.test, read)),
        )
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")

    def stands(self, line: Line, read: Sequence[str]) -> bool:
        """Whether all files of the verdict are unchanged."""
        judges = _judges(line.outcome, line.test, read)
        return line.target == self._hash((line.path,)) and line.tests == self._hash(judges)

    def keep(self, lines: Iterable[Line]) -> None:
        """Write the file again with only these lines, sorted by place."""
        rows = sorted(lines, key=lambda line: line.key)
        text = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, "utf-8")


def _judges(outcome: str, test: str, read: Sequence[str]) -> tuple[str, ...]:
    return (test.partition("::")[0],) if outcome == KILLED and test else tuple(read)


def _hash(root: Path, paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        file = root / path
        digest.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
    return digest.hexdigest()[:HASH_CHARACTERS]
