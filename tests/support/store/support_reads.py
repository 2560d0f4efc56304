"""The reads of support staff, each once."""

from __future__ import annotations

from rgs.store.support_reads import SupportReads


async def read_for_support(store: SupportReads) -> None:
    """Every method of `SupportReads`, with and without an operator."""
    await store.operators()
    for operator in ("", "op-1"):
        await store.sessions_of_regulator("x", operator, before=0, limit=10)
        await store.sessions_of_participation("x", operator, before=0, limit=10)
    await store.payout_of_transaction("01K4ZQ7M2J8T5V9X3B6C1D0EFG")
    await store.rounds_of_code("op-1", "#12:00:00", (0, 1), 2, before=(1, 1), limit=10)
    await store.open_rounds_of_code("op-1", "#12:00:00", (0, 1), before=9, limit=10)
    await store.bars_of_player("op-1", "anna", 10)
