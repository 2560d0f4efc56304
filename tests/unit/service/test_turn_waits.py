"""An instance hands over when every draw under way has landed: it waits to be woken, and looks once a waking."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import RngUnavailableError
from tests.unit.service.test_instance_exact import Store, instance_of


class Landed:
    """Wakes whoever waits; each waking is one draw that has landed."""

    def __init__(self, instance: Any) -> None:
        self._instance = instance
        self._is_clear = False
        self.wakings = 0

    def clear(self) -> None:
        assert not self._is_clear, "it looks again without having waited"
        self._is_clear = True

    async def wait(self) -> None:
        assert self._is_clear
        self._is_clear = False
        self.wakings += 1
        self._instance._in_flight -= 1


class Next:
    """The generator of the next instance."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


async def test_it_waits_for_each_draw_that_is_under_way() -> None:
    instance: Any = instance_of(Store())
    instance._landed = landed = Landed(instance)
    instance._in_flight = 3
    instance._generator = SimpleNamespace(failure="PLANTED")  # so that nothing is committed behind the wait
    following = Next()
    with pytest.raises(RngUnavailableError):
        await instance._hand_over(following, 2, None)
    assert following.is_closed
    assert (landed.wakings, instance._in_flight, instance._handing_over) == (3, 0, None)
