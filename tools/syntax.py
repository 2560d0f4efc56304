"""The nodes of a syntax tree, walked once for all rules that look at them."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=1)  # each rule looks at one file before the next is read
def nodes_of(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node, in the order of `ast.walk`."""
    return tuple(ast.walk(tree))
