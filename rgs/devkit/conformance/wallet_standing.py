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
    PAYOUT,
    REFUSED,
    ROLLED_BACK,
    WalletKit,
    receipt_of,
)

# --- lookups ----------------------------------------------------------------------------------------------------------


async def lookup_transaction(kit: WalletKit) -> None:
    """GetTransaction answers with the entry of a transaction."""
    taken, undone, given = await kit.taken(), await kit.taken(), await kit.given()
    receipt_of(await kit.rollback(undone), undone, ROLLED_BACK)
    for transfer, status in ((taken, ACCEPTED), (undone, ROLLED_BACK), (given, ACCEPTED)):
        receipt_of(await kit.stands(transfer), transfer, status)


async def lookup_refused(kit: WalletKit) -> None:
    """GetTransaction finds a refused debit."""
    transfer = await kit.refused()
    receipt_of(await kit.stands(transfer), transfer, REFUSED)


async def lookup_tombstone(kit: WalletKit) -> None:
    """GetTransaction finds a tombstone."""
    transfer = kit.transfer()
    await kit.rollback(transfer)
    receipt_of(await kit.stands(transfer), transfer, ROLLED_BACK)


async def lookup_unknown(kit: WalletKit) -> None:
    """GetTransaction answers TRANSACTION_UNKNOWN for an unknown id."""
    demand_reason(await kit.stands(kit.transfer()), "TRANSACTION_UNKNOWN")


async def lookup_other_player(kit: WalletKit) -> None:
    """GetTransaction shows no transaction of another player."""
    transfer = await kit.taken()
    answered = await kit.stands(transfer, player=kit.second_player)
    demand_reason(answered, "TRANSACTION_CONFLICT", "TRANSACTION_UNKNOWN")


# --- concurrent calls -------------------------------------------------------------------------------------------------


async def parallel_repeats(kit: WalletKit) -> None:
    """The same debit sent several times at once moves money once."""
    before = await kit.balance()
    transfer = kit.transfer()
    answers = await asyncio.gather(*(kit.debit(transfer) for _ in range(PARALLEL)))
    statuses = [receipt_of(answered, transfer, ACCEPTED, DUPLICATE).status for answered in answers]
    accepted = statuses.count(ACCEPTED)
    await kit.demand_moved(before, -AMOUNT_MINOR)
    demand(accepted == 1, f"{accepted} of {PARALLEL} say that their call moved the money")


async def parallel_debits(kit: WalletKit) -> None:
    """Different debits at once are all entered."""
    before = await kit.balance()
    transfers = [kit.transfer() for _ in range(PARALLEL)]
    for transfer, answered in zip(
        transfers, await asyncio.gather(*(kit.debit(transfer) for transfer in transfers)), strict=True
    ):
        receipt_of(answered, transfer, ACCEPTED)
    await kit.demand_moved(before, -PARALLEL * AMOUNT_MINOR)
    back = [kit.transfer(PAYOUT) for _ in range(PARALLEL)]
    await asyncio.gather(*(kit.credit(transfer) for transfer in back))
    await kit.demand_moved(before, 0)


async def parallel_overdraw(kit: WalletKit) -> None:
    """Debits at once never take more than the balance."""
    before = await kit.balance()
    amount_minor = (before // 2) // 100 * 100 + 100
    transfers = [kit.transfer(amount_minor=amount_minor) for _ in range(PARALLEL)]
    answers = await asyncio.gather(*(kit.debit(transfer) for transfer in transfers))
    accepted = [transfer for transfer, answered in zip(transfers, answers, strict=True) if not answered.reason]
    for answered in answers:
        if answered.reason:
            demand_reason(answered, "INSUFFICIENT_FUNDS")
    left = await kit.balance()
    for transfer in accepted:
        receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)
    demand(len(accepted) == 1, f"{len(accepted)} debits of {amount_minor} were accepted on a balance of {before}")
    demand(left == before - amount_minor, f"the balance was {left} after one debit of {amount_minor} on {before}")


async def parallel_rollback(kit: WalletKit) -> None:
    """A debit and its rollback at once move nothing in the end."""
    async with kit.moves(0):
        for _ in range(4):
            transfer = kit.transfer()
            _, undone = await asyncio.gather(kit.debit(transfer), kit.rollback(transfer))
            receipt_of(undone, transfer, ROLLED_BACK)


# --- tokens -----------------------------------------------------------------------------------------------------------


async def token_expired(kit: WalletKit) -> None:
    """An expired token stops a new debit."""
    if not kit.expired_token:
        raise CheckSkippedError("needs --expired-token")
    async with kit.moves(0):
        demand_reason(await kit.debit(kit.transfer(), token=kit.expired_token), "TOKEN_EXPIRED")


async def token_expired_repeat(kit: WalletKit) -> None:
    """An expired token does not stop the repeat of an accepted debit."""
    if not kit.expired_token:
        raise CheckSkippedError("needs --expired-token")
    transfer = await kit.taken()
    async with kit.moves(0):
        receipt_of(await kit.debit(transfer, token=kit.expired_token), transfer, DUPLICATE)


STANDING: Final[tuple[ConformanceCheck[WalletKit], ...]] = (
    *checks(lookup_transaction, lookup_refused, lookup_tombstone, lookup_unknown, lookup_other_player),
    *checks(parallel_repeats, parallel_debits, parallel_overdraw, parallel_rollback),
    *checks(token_expired, token_expired_repeat),
)
