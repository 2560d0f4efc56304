"""The definite error that a request is told."""

from __future__ import annotations

import pytest

from rgs.core.errors import RgsError, UnavailableError
from tests.support.service.harness import Request, ServiceHarness
from tests.support.service.player import Player


async def refused(harness: ServiceHarness, player: Player, request: Request) -> RgsError:
    """Send the request; what it is refused with."""
    with pytest.raises(RgsError) as told:
        await harness.send(request, player.caller)
    assert not isinstance(told.value, UnavailableError)
    return told.value
