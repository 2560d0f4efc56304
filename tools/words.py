"""The words that this project no longer uses, and their replacements (docs/glossary.md, docs/decisions/0014-words.md).

`tools/tidy.py` refuses them as parts of names in all Python code, and a short list of them in prose. It does not read
`rng` (its bytes stay as they were certified), decisions and the change log (they describe the past), and test names
(they are sentences).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tools.syntax import nodes_of

PARTS: Final = {
    "affair": "operation",
    "movement": "transfer",
    "leg": "transfer, or its purpose",
    "central": "regulator",
    "outward": "peers",
    "told": "result, or what was reported",
    "tell": "emit or report",
    "untold": "unreported",
    "asked": "requested",
    "desk": "prompt",
    "house": "the server, the operator or the host",
}
"""A part of a name, in the singular, and its replacement."""

NAMES: Final = {
    "Books": "GameCatalog",
    "Ground": "NodeContext",
    "Permits": "Availability",
    "Watch": "HealthMonitor",
    "Turn": "InstanceHandover",
    "Asked": "RequestContext",
    "Opened": "UnsealedDeck",
    "Outward": "NodePeers",
    "RoundMovedError": "RoundChangedError",
    "OwedCredit": "PendingCredit",
    "CentralSystem": "Regulator",
    "EmbeddedRegister": "EmbeddedRegulator",
    "admission": "tls_identity",
    "logkeeping": "transparency_log",
    "composition": "wiring",
}
"""A whole name and its replacement."""

PROSE: Final = {
    "affair": "operation",
    "central system": "regulator",
    "money leg": "transfer",
    "test register": "test regulator",
    "the house": "the server, the operator or the host",
}
"""Words of prose, in the singular, and their replacements."""

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PROSE: Final = re.compile(r"\b(" + "|".join(PROSE).replace(" ", r"\s+") + r")s?\b", re.IGNORECASE)
_KEPT: Final = (
    "rng/",
    "tests/unit/rng/",
    "docs/decisions/",
    "CHANGELOG.md",
    "tests/vectors/",
    "tools/words.py",
    "tests/unit/test_words.py",
)
_POKER: Final = re.compile("full_?house", re.IGNORECASE)


def check_names(path: str, tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Check the names that a file defines."""
    if path.startswith(_KEPT):
        return
    for line, name in _given(tree):
        if name in NAMES:
            yield line, "old word", f"{name}: say {NAMES[name]}"
        elif not name.startswith("test_"):
            for part in _PART.findall(_POKER.sub("", name)):
                if (said := PARTS.get(part.lower().removesuffix("s"))) is not None:
                    yield line, "old word", f"{name}: say {said}"


def check_prose(path: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Check the words of prose, in pages, comments and texts."""
    if path.startswith(_KEPT):
        return
    for found in _PROSE.finditer(source):
        word = " ".join(found[1].lower().split())
        yield source.count("\n", 0, found.start()) + 1, "old word", f"{word}: say {PROSE[word]}"


def _given(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in nodes_of(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
