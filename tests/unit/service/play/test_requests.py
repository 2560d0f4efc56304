"""The digest of each request, field by field as docs/formats.md has it, and the operation that each request begins."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.games.types import Action
from rgs.core.limits import SessionLimits
from rgs.core.statements import request_digest
from rgs.service.play.requests import (
    Act,
    BuyParticipation,
    CloseSession,
    Digested,
    EndParticipation,
    OpenSession,
    StartRound,
    intent_of,
)
from rgs.store.changes import Operation

REQUESTS: list[tuple[Any, str, str, dict[str, Any]]] = [
    (
        OpenSession("r-1", "uth-solo", "anna", "EUR", "ref:1", SessionLimits(loss_minor=500), "a token"),
        "open",
        "OpenSession",
        {"game": "uth-solo", "player": "anna", "currency": "EUR", "operator_reference": "ref:1",
         "limits": {"loss_minor": "500"}},
    ),
    (BuyParticipation("r-1", "s-1", 2, 700), "purchase", "BuyParticipation",
     {"session_id": "s-1", "purchase_no": "2", "amount_minor": "700"}),
    (EndParticipation("r-1", "s-1"), "end", "EndParticipation", {"session_id": "s-1"}),
    (CloseSession("r-1", "s-1"), "close", "CloseSession", {"session_id": "s-1"}),
    (StartRound("r-1", "s-1", 3, {"trips": 5, "ante": 100}), "start", "StartRound",
     {"session_id": "s-1", "round_no": "3",
      "bets": [{"amount_minor": "100", "bet": "ante"}, {"amount_minor": "5", "bet": "trips"}]}),
    (Act("r-1", "s-1", "round-1", 4, Action.CHECK), "act", "Act",
     {"session_id": "s-1", "round_id": "round-1", "round_version": "4", "action": "check"}),
]  # fmt: skip


def test_a_decision_writes_each_of_its_fields_by_hand() -> None:
    act = Act("r-1", "s-1", "round-1", 4, Action.CHECK)
    assert act._own() == Digested._own(act)


@pytest.mark.parametrize(("request_sent", "kind", "method", "content"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_a_digest_covers_every_field_but_the_token_and_the_intent_names_its_request(
    request_sent: Any, kind: str, method: str, content: dict[str, Any]
) -> None:
    digest = request_digest({**content, "request_id": "r-1", "method": method, "party": "op-1"})
    assert request_sent.digest("op-1") == digest
    assert request_sent.digest("op-2") != digest
    assert intent_of(request_sent, "s-1", "o-1", "op-1", digest, 77, 100) == Operation(
        operation_id="o-1",
        session_id="s-1",
        kind=kind,
        status="pending",
        party="op-1",
        method=method,
        request_id="r-1",
        digest=digest,
        amount_minor=100,
        purchase_no=0,
        created_ms=77,
    )
    assert intent_of(request_sent, "s-1", "o-1", "op-1", digest, 77).amount_minor == 0
