"""Values of shapes for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rgs.core.statements.shapes import Array, Record, Shape, Text


def values_of(shape: Shape) -> st.SearchStrategy[Any]:
    """Any value of the shape."""
    if isinstance(shape, Text):
        return st.from_regex(shape.compiled, fullmatch=True)
    if isinstance(shape, Array):
        return st.lists(values_of(shape.of), max_size=min(shape.most, 4))
    if isinstance(shape, Record):
        return st.fixed_dictionaries(
            {key: values_of(inner) for key, inner in shape.required.items()},
            optional={key: values_of(inner) for key, inner in shape.optional.items()},
        )
    return st.booleans()


JSON = st.recursive(
    st.booleans() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
"""Any value that canonical JSON can hold."""
