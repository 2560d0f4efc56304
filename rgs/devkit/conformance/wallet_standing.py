"""More checks of a wallet, part of `rgs.devkit.conformance.wallet.CHECKS`: lookups, concurrent calls, old tokens."""

from __future__ import annotations

import asyncio
from typing import Final

from rgs.devkit.conformance.kit import CheckSkippedError, ConformanceCheck, checks, demand, demand_reason
from rgs.devkit.conformance.wallet_kit import (
    ACCEPTED,
    AMOUNT_MINOR,
    DUPLICATE,
    PARALLEL,
    REFUSED,
    ROLLED_BACK,
    WalletKit,
    receipt_of,
)
from rgs.wallet.v1 import wallet_pb2 as pb

# --- lookups ----------------------------------------------------------------------------------------------------------


async def lookup_transaction(kit: WalletKit) -> None:
    """GetTransaction answers with the entry of a transaction."""
    taken, undone, given = await kit.taken(), await kit.taken(), kit.movement(pb.LEG_PAYOUT)
    receipt_of(await kit.rollback(undone), undone, ROLLED_BACK)
    receipt_of(await kit.credit(given), given, ACCEPTED)
    for movement, status in ((taken, ACCEPTED), (undone, ROLLED_BACK), (given, ACCEPTED)):
        receipt_of(await kit.stands(movement), movement, status)


async def lookup_refused(kit: WalletKit) -> None:
    """GetTransaction finds a refused debit."""
    before = await kit.balance()
    movement = kit.movement(amount_minor=before - before % 100 + 100)
    demand_reason(await kit.debit(movement), "INSUFFICIENT_FUNDS")
    receipt_of(await kit.stands(movement), movement, REFUSED)


async def lookup_tombstone(kit: WalletKit) -> None:
    """GetTransaction finds a tombstone."""
    movement = kit.movement()
    await kit.rollback(movement)
    receipt_of(await kit.stands(movement), movement, ROLLED_BACK)


async def lookup_unknown(kit: WalletKit) -> None:
    """GetTransaction answers TRANSACTION_UNKNOWN for an unknown id."""
    demand_reason(await kit.stands(kit.movement()), "TRANSACTION_UNKNOWN")


async def lookup_other_player(kit: WalletKit) -> None:
    """GetTransaction shows no transaction of another player."""
    movement = await kit.taken()
    answered = await kit.stands(movement, player=kit.second_player)
    demand_reason(answered, "TRANSACTION_CONFLICT", "TRANSACTION_UNKNOWN")


# --- concurrent calls -------------------------------------------------------------------------------------------------


async def parallel_repeats(kit: WalletKit) -> None:
    """The same debit sent several times at once moves money once."""
    before = await kit.balance()
    movement = kit.movement()
    answers = await asyncio.gather(*(kit.debit(movement) for _ in range(PARALLEL)))
    statuses = [receipt_of(answered, movement, ACCEPTED, DUPLICATE).status for answered in answers]
    accepted = statuses.count(ACCEPTED)
    await kit.demand_moved(before, -AMOUNT_MINOR)
    demand(accepted == 1, f"{accepted} of {PARALLEL} say that their call moved the money")


async def parallel_debits(kit: WalletKit) -> None:
    """Different debits at once are all entered."""
    before = await kit.balance()
    movements = [kit.movement() for _ in range(PARALLEL)]
    for movement, answered in zip(
        movements, await asyncio.gather(*(kit.debit(movement) for movement in movements)), strict=True
    ):
        receipt_of(answered, movement, ACCEPTED)
    await kit.demand_moved(before, -PARALLEL * AMOUNT_MINOR)
    back = [kit.movement(pb.LEG_PAYOUT) for _ in range(PARALLEL)]
    await asyncio.gather(*(kit.credit(movement) for movement in back))
    await kit.demand_moved(before, 0)


async def parallel_overdraw(kit: WalletKit) -> None:
    """Debits at once never take more than the balance."""
    before = await kit.balance()
    amount_minor = (before // 2) // 100 * 100 + 100
    movements = [kit.movement(amount_minor=amount_minor) for _ in range(PARALLEL)]
    answers = await asyncio.gather(*(kit.debit(movement) for movement in movements))
    accepted = [movement for movement, answered in zip(movements, answers, strict=True) if not answered.reason]
    for answered in answers:
        if answered.reason:
            demand_reason(answered, "INSUFFICIENT_FUNDS")
    left = await kit.balance()
    for movement in accepted:
        receipt_of(await kit.rollback(movement), movement, ROLLED_BACK)
    demand(len(accepted) == 1, f"{len(accepted)} debits of {amount_minor} were accepted on a balance of {before}")
    demand(left == before - amount_minor, f"the balance was {left} after one debit of {amount_minor} on {before}")


async def parallel_rollback(kit: WalletKit) -> None:
    """A debit and its rollback at once move nothing in the end."""
    async with kit.moves(0):
        for _ in range(4):
            movement = kit.movement()
            _, undone = await asyncio.gather(kit.debit(movement), kit.rollback(movement))
            receipt_of(undone, movement, ROLLED_BACK)


# --- tokens -----------------------------------------------------------------------------------------------------------


async def token_expired(kit: WalletKit) -> None:
    """An expired token stops a new debit."""
    if not kit.expired_token:
        raise CheckSkippedError("needs --expired-token")
    async with kit.moves(0):
        demand_reason(await kit.debit(kit.movement(), token=kit.expired_token), "TOKEN_EXPIRED")


async def token_expired_repeat(kit: WalletKit) -> None:
    """An expired token does not stop the repeat of an accepted debit."""
    if not kit.expired_token:
        raise CheckSkippedError("needs --expired-token")
    movement = await kit.taken()
    async with kit.moves(0):
        receipt_of(await kit.debit(movement, token=kit.expired_token), movement, DUPLICATE)


STANDING: Final[tuple[ConformanceCheck[WalletKit], ...]] = (
    *checks(lookup_transaction, lookup_refused, lookup_tombstone, lookup_unknown, lookup_other_player),
    *checks(parallel_repeats, parallel_debits, parallel_overdraw, parallel_rollback),
    *checks(token_expired, token_expired_repeat),
)
