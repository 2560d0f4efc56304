"""The tables and columns that the migrations declare."""

from __future__ import annotations

import re

from rgs.store.migrations import steps

DECLARED = re.compile(r"CREATE TABLE (\w+) \(([^;]*);|ALTER TABLE (\w+)\s([^;]*);")
COLUMN = re.compile(r"(?:^|,|ADD COLUMN)\s*(\w+) (?:TEXT|BIGINT|INTEGER|BLOB|BYTEA)\b")

RENAMED = re.compile(r"ALTER TABLE (\w+) RENAME TO (\w+);")


def columns_by_table(kind: str) -> dict[str, set[str]]:
    """What the migrations declare, read from their text."""
    found: dict[str, set[str]] = {}
    for step in steps(kind):
        for made, body, altered, more in DECLARED.findall(re.sub(r"--.*", "", step.script)):
            names = set(COLUMN.findall(body or more))
            found[made or altered] = names if made else found[altered] | names
        for before, after in RENAMED.findall(step.script):
            found[after] = found.pop(before)
    return found
