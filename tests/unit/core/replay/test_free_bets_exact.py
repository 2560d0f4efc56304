"""A free bet's own statement: what a debit has to name, and what it may not be for."""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import Rulebook
from rgs.core.replay.keys import SigningKey
from rgs.core.replay.reading import Statement
from rgs.core.replay.scope import NumberSequence
from rgs.core.replay.sessions import Chain, verify_free_bet
from rgs.core.statements import KINDS, KeyRole

TIME = "2026-11-18T00:00:00.000Z"
KEY = SigningKey(KeyRole.INSTANCE, bytes(32), "i", "", False, TIME)
DEBIT = {"amount_minor": "5", "campaign": "C", "direction": "debit", "expiry_time": TIME, "grant_id": "G"}
CREDIT = {"amount_minor": "5", "direction": "credit", "grant_id": "G", "round_id": "R"}


def verified(body: dict[str, Any]) -> str:
    statement = Statement(KINDS["free_bet"], body, "h", KEY, "k", None, "R")
    try:
        verify_free_bet(statement, Chain("S", NumberSequence(is_whole=False, head=0)), Rulebook())
    except VerificationError as error:
        return error.metadata["check"]
    return ""


@pytest.mark.parametrize(
    ("body", "check"),
    [
        (DEBIT, ""),
        (CREDIT, ""),
        ({**DEBIT, "amount_minor": "0"}, "18 balance"),
        ({key: value for key, value in DEBIT.items() if key != "campaign"}, "7 session"),
        ({key: value for key, value in DEBIT.items() if key != "expiry_time"}, "7 session"),
        ({**CREDIT, "campaign": "C"}, "7 session"),
        ({**CREDIT, "expiry_time": TIME}, "7 session"),
    ],
)
def test_terms_stand_in_the_debit_and_only_there_and_it_pays_something(body: dict[str, Any], check: str) -> None:
    assert verified(body) == check
