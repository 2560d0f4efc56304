"""rgs.core.values: a copy with changes is what `dataclasses.replace` gives, and refuses what it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.values import changed, check_range


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2


@dataclass(frozen=True)
class Checked:
    x: int

    def __post_init__(self) -> None:
        assert self.x


def test_a_changed_copy_is_what_replace_gives() -> None:
    point = Point(1)
    assert changed(point, y=5) == replace(point, y=5) == Point(1, 5)
    assert point == Point(1, 2), "the value itself stays"
    assert changed(point) == point
    assert changed(point) is not point
    with pytest.raises(FrozenInstanceError):
        changed(point, x=3).x = 4  # type: ignore[misc]


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(TypeError):
        changed(Point(1), z=1)
    with pytest.raises(TypeError):
        changed(Checked(1), x=0)


@pytest.mark.parametrize("value", [1, 2, 200])
def test_a_number_within_its_bounds(value: int) -> None:
    assert check_range(value, "page_size", 1, 200) == value


@pytest.mark.parametrize(
    ("value", "limit", "message"),
    [
        (0, 1, "page_size 0 is below 1"),
        (-(2**63), 1, f"page_size {-(2**63)} is below 1"),
        (201, 200, "page_size 201 is above 200"),
        (True, 1, "page_size True is not a whole number"),
        (1.0, 1, "page_size 1.0 is not a whole number"),
    ],
)
def test_a_number_outside_its_bounds_is_told_with_the_one_that_it_breaks(value: int, limit: int, message: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_range(value, "page_size", 1, 200)
    assert (caught.value.message, caught.value.field) == (message, "page_size")
    assert caught.value.metadata == {"limit": str(limit), "value": str(value)}
