"""rgs.core.values: a copy with changes is what `dataclasses.replace` gives, and refuses what it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from rgs.core.values import changed


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
