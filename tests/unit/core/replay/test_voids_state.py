"""What voids stand on is remembered between two runs of an audit."""

from __future__ import annotations

import json

from rgs.core.errors import VerificationError
from rgs.core.replay.voids import Voids


def test_an_approval_of_nobody_known_is_remembered_with_its_words() -> None:
    voids, again = Voids(), Voids()
    voids._approvals.append(("mallory", "2026-11-21T22:30:00.123Z", VerificationError("no admin", value="mallory")))
    again.restore(json.loads(json.dumps(voids.state())))
    assert again.state() == voids.state()
    ((party, time, error),) = again._approvals
    assert (party, time, error.message, error.metadata) == (
        "mallory",
        "2026-11-21T22:30:00.123Z",
        "no admin",
        {"value": "mallory"},
    )
