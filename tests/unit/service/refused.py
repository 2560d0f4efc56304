"""The definite error that a request is told."""

from __future__ import annotations

import pytest

from rgs.core.errors import RgsError, UnavailableError
from tests.house import House, Player, Request


async def refused(house: House, player: Player, request: Request) -> RgsError:
    """Send the request; what it is refused with."""
    with pytest.raises(RgsError) as told:
        await house.send(request, player.caller)
    assert not isinstance(told.value, UnavailableError)
    return told.value
