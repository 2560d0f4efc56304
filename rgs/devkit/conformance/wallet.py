"""The checks of an operator's wallet, over `rgs.wallet.v1.WalletService` (docs/wallet.md).

Every check moves hundreds of minor units of one test player. Give the player some ten thousand, and use it for nothing
else meanwhile. If the contract allows two answers, both pass.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rgs.devkit.conformance.kit import (
    CheckSkippedError,
    ConformanceCheck,
    checks,
    demand,
    demand_accepted,
    demand_reason,
)
from rgs.devkit.conformance.wallet_free_bets import FREE_BETS
from rgs.devkit.conformance.wallet_kit import (
    ACCEPTED,
    AMOUNT_MINOR,
    DUPLICATE,
    PARALLEL,
    PAYOUT,
    REFUSED,
    ROLLED_BACK,
    WalletKit,
    changed,
    receipt_of,
)
from rgs.ports.amounts import AMOUNT_MINOR_MAX
from rgs.wallet.v1 import wallet_pb2 as pb

# --- money moves once -------------------------------------------------------------------------------------------------


async def balance_is_reported(kit: WalletKit) -> None:
    """GetBalance answers with balance, player and currency of the account."""
    result = demand_accepted(await kit.reported_balance())
    demand((result.player, result.currency) == (kit.player, kit.currency), "the answer names another account")
    demand(
        result.balance_minor >= 10 * AMOUNT_MINOR, f"the test player has {result.balance_minor}, too little to go on"
    )


async def debit_takes_money(kit: WalletKit) -> None:
    """A debit is accepted, takes its amount, and its receipt says so."""
    before = await kit.balance()
    transfer = kit.transfer()
    receipt = receipt_of(await kit.debit(transfer), transfer, ACCEPTED)
    expected = before - AMOUNT_MINOR
    demand(receipt.balance_after_minor == expected, f"balance_after {receipt.balance_after_minor}, not {expected}")
    await kit.demand_moved(before, -AMOUNT_MINOR)


async def credit_gives_money(kit: WalletKit) -> None:
    """A credit is accepted, gives its amount, and its receipt says so."""
    before = await kit.balance()
    transfer = kit.transfer(PAYOUT)
    receipt = receipt_of(await kit.credit(transfer), transfer, ACCEPTED)
    expected = before + AMOUNT_MINOR
    demand(receipt.balance_after_minor == expected, f"balance_after {receipt.balance_after_minor}, not {expected}")
    await kit.demand_moved(before, AMOUNT_MINOR)


async def credit_of_nothing(kit: WalletKit) -> None:
    """A credit of 0 is entered like any other."""
    async with kit.moves(0):
        await kit.given(amount_minor=0)


async def debit_repeat(kit: WalletKit) -> None:
    """A repeated debit is DUPLICATE and takes nothing more."""
    transfer = await kit.taken()
    async with kit.moves(0):
        for _ in range(3):
            receipt_of(await kit.debit(transfer), transfer, DUPLICATE)


async def credit_repeat(kit: WalletKit) -> None:
    """A repeated credit is DUPLICATE and gives nothing more."""
    transfer = await kit.given()
    async with kit.moves(0):
        for _ in range(3):
            receipt_of(await kit.credit(transfer), transfer, DUPLICATE)


async def repeat_same_answer(kit: WalletKit) -> None:
    """A repeat gives the balance and reference of the first answer."""
    transfer = kit.transfer()
    first = receipt_of(await kit.debit(transfer), transfer, ACCEPTED)
    await kit.taken()
    again = receipt_of(await kit.debit(transfer), transfer, DUPLICATE)
    result, due = again.balance_after_minor, first.balance_after_minor
    demand(result == due, f"the repeat says balance_after {result}, the first answer said {due}")
    same = again.wallet_reference == first.wallet_reference
    demand(same, f"the repeat is called {again.wallet_reference}, the first answer {first.wallet_reference}")


async def attempt_id_ignored(kit: WalletKit) -> None:
    """No rule depends on the attempt id."""
    attempt = kit.new_id()
    async with kit.moves(-2 * AMOUNT_MINOR):
        for transfer in (kit.transfer(), kit.transfer()):
            receipt_of(await kit.debit(transfer, attempt_id=attempt), transfer, ACCEPTED)


async def seamless_purposes(kit: WalletKit) -> None:
    """Bets and returns of a round move money."""
    round_reference = kit.new_id()
    async with kit.moves(0):
        await kit.taken(purpose=pb.TRANSFER_PURPOSE_BET, round_reference=round_reference)
        await kit.given(pb.TRANSFER_PURPOSE_RETURN, round_reference=round_reference)


async def round_ended(kit: WalletKit) -> None:
    """A return of 0 reports the end of a round: it is entered once, however often it is repeated."""
    bet = await kit.taken(purpose=pb.TRANSFER_PURPOSE_BET, round_reference=kit.new_id())
    async with kit.moves(0):
        lost = {"amount_minor": 0, "reference": bet.reference, "round_reference": bet.round_reference}
        back = await kit.given(pb.TRANSFER_PURPOSE_RETURN, **lost)
        receipt_of(await kit.credit(back), back, DUPLICATE)


async def balances_add_up(kit: WalletKit) -> None:
    """Each balance is the one before it plus the transfer."""
    running = await kit.balance()
    for number in range(1, 4):
        debit, credit = (
            kit.transfer(amount_minor=number * 100),
            kit.transfer(PAYOUT, amount_minor=number * 200),
        )
        for answered, transfer, moved in (
            (await kit.debit(debit), debit, -debit.amount_minor),
            (await kit.credit(credit), credit, credit.amount_minor),
        ):
            running += moved
            result = receipt_of(answered, transfer, ACCEPTED).balance_after_minor
            demand(result == running, f"balance_after {result} where the transfers before it come to {running}")
    await kit.demand_moved(running, 0)


# --- one id, one meaning ----------------------------------------------------------------------------------------------


def conflict(
    name: str,
    says: str,
    send: str = "debit",
    first: pb.TransferPurpose.ValueType = pb.TRANSFER_PURPOSE_PURCHASE,
    **fields: Any,
) -> ConformanceCheck[WalletKit]:
    """The check that a known id with other values is refused and moves nothing.

    `first` is the purpose of the first transfer, `send` the method that gets the other values. "" stands for a value of
    the kit.
    """

    async def tried(kit: WalletKit) -> None:
        named = {"player": kit.second_player, "currency": kit.other_currency, "reference": kit.new_id()}
        transfer = kit.transfer(first, round_reference=kit.new_id() if first == pb.TRANSFER_PURPOSE_BET else "")
        accepted = await (kit.credit if first == PAYOUT else kit.debit)(transfer)
        receipt_of(accepted, transfer, ACCEPTED)
        other = {field: value or named.get(field, kit.new_id()) for field, value in fields.items()}
        async with kit.moves(0):
            demand_reason(await getattr(kit, send)(changed(transfer, **other)), "TRANSACTION_CONFLICT")

    return ConformanceCheck(f"conflict_{name}", says, tried)


_OTHER: Final = 2 * AMOUNT_MINOR
CONFLICTS: Final = (
    conflict("amount", "A debit's id with another amount is a conflict", amount_minor=_OTHER),
    conflict("player", "A debit's id with another player is a conflict", player=""),
    conflict("currency", "A debit's id with another currency is a conflict", currency=""),
    conflict("reference", "A debit's id with another reference is a conflict", reference=""),
    conflict("round", "A bet's id with another round is a conflict", first=pb.TRANSFER_PURPOSE_BET, round_reference=""),
    conflict("purpose", "A purchase's id for a bet is a conflict", purpose=pb.TRANSFER_PURPOSE_BET, round_reference=""),
    conflict(
        "credit_amount",
        "A credit's id with another amount is a conflict",
        "credit",
        PAYOUT,
        amount_minor=_OTHER,
    ),
    conflict("debit_as_credit", "A debit's id in a credit is a conflict", "credit", purpose=PAYOUT),
    conflict(
        "credit_as_debit",
        "A credit's id in a debit is a conflict",
        first=PAYOUT,
        purpose=pb.TRANSFER_PURPOSE_PURCHASE,
    ),
    conflict(
        "rollback_amount",
        "A rollback must restate the debit; otherwise the debit stands",
        "rollback",
        amount_minor=_OTHER,
    ),
    conflict(
        "rollback_credit",
        "A credit cannot be rolled back",
        "rollback",
        PAYOUT,
        purpose=pb.TRANSFER_PURPOSE_PURCHASE,
    ),
)


# --- rollbacks --------------------------------------------------------------------------------------------------------


async def rollback_debit(kit: WalletKit) -> None:
    """A rollback gives the debit back."""
    async with kit.moves(0):
        transfer = await kit.taken()
        receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)


async def rollback_repeat(kit: WalletKit) -> None:
    """A repeated rollback gives nothing more."""
    transfer = await kit.taken()
    receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)
    async with kit.moves(0):
        for _ in range(3):
            receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)


async def rollback_unknown(kit: WalletKit) -> None:
    """A rollback of an unknown debit is ROLLED_BACK and moves nothing."""
    async with kit.moves(0):
        transfer = kit.transfer()
        receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)


async def tombstone(kit: WalletKit) -> None:
    """A debit that arrives after its rollback takes nothing."""
    async with kit.moves(0):
        transfer = kit.transfer()
        await kit.rollback(transfer)
        demand_reason(await kit.debit(transfer), "TRANSACTION_ROLLED_BACK")


async def debit_after_rollback(kit: WalletKit) -> None:
    """A debit that is sent again after its rollback takes nothing."""
    async with kit.moves(0):
        transfer = await kit.taken()
        receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)
        demand_reason(await kit.debit(transfer), "TRANSACTION_ROLLED_BACK")


async def rollback_refused_debit(kit: WalletKit) -> None:
    """A rollback of a refused debit gives nothing."""
    async with kit.moves(0):
        transfer = await kit.refused()
        receipt_of(await kit.rollback(transfer), transfer, ROLLED_BACK)


# --- amounts, currencies, names ---------------------------------------------------------------------------------------


async def amount_zero(kit: WalletKit) -> None:
    """A debit or rollback of 0 is refused."""
    demand_reason(await kit.debit(kit.transfer(amount_minor=0)), "INVALID_FIELD")
    demand_reason(await kit.rollback(kit.transfer(amount_minor=0)), "INVALID_FIELD")


async def amount_negative(kit: WalletKit) -> None:
    """Amounts below 0 are refused."""
    async with kit.moves(0):
        demand_reason(await kit.debit(kit.transfer(amount_minor=-AMOUNT_MINOR)), "INVALID_FIELD")
        demand_reason(await kit.credit(kit.transfer(PAYOUT, amount_minor=-AMOUNT_MINOR)), "INVALID_FIELD")
        demand_reason(await kit.rollback(kit.transfer(amount_minor=-AMOUNT_MINOR)), "INVALID_FIELD")


async def amount_18_digits(kit: WalletKit) -> None:
    """An amount of 18 digits is read exactly."""
    async with kit.moves(0):
        largest = kit.transfer(amount_minor=AMOUNT_MINOR_MAX - AMOUNT_MINOR_MAX % 100)
        demand_reason(await kit.debit(largest), "INSUFFICIENT_FUNDS", "LIMIT_REACHED")


async def amount_19_digits(kit: WalletKit) -> None:
    """An amount of 19 digits is refused."""
    demand_reason(await kit.debit(kit.transfer(amount_minor=AMOUNT_MINOR_MAX + 1)), "INVALID_FIELD")


async def precision(kit: WalletKit) -> None:
    """Every minor unit counts."""
    async with kit.moves(101 - 101 - 333 - 199):
        for amount_minor in (101, 333, 199):
            await kit.taken(amount_minor=amount_minor)
        await kit.given(amount_minor=101)


async def currency_other(kit: WalletKit) -> None:
    """A currency that the account has not is refused."""
    async with kit.moves(0):
        reasons = ("CURRENCY_MISMATCH", "ACCOUNT_UNKNOWN")
        demand_reason(await kit.debit(kit.transfer(currency=kit.other_currency)), *reasons)
        demand_reason(await kit.credit(kit.transfer(PAYOUT, currency=kit.other_currency)), *reasons)


async def currency_malformed(kit: WalletKit) -> None:
    """A currency that is no ISO 4217 code is refused."""
    for currency in ("", "eur", "EURO"):
        demand_reason(await kit.debit(kit.transfer(currency=currency)), "INVALID_FIELD")


async def ids_malformed(kit: WalletKit) -> None:
    """Malformed or missing ids are refused."""
    malformed: tuple[dict[str, Any], ...] = (
        {"transaction_id": ""},
        {"transaction_id": "x" * 26},
        {"reference": ""},
        {"player": ""},
    )
    for wrong in malformed:
        demand_reason(await kit.debit(kit.transfer(**wrong)), "INVALID_FIELD")


async def purpose_malformed(kit: WalletKit) -> None:
    """A purpose that the message cannot have, or a round in the wrong place, is refused."""
    round_reference = kit.new_id()
    for purpose, round_ in (
        (pb.TRANSFER_PURPOSE_UNSPECIFIED, ""),
        (PAYOUT, ""),
        (pb.TRANSFER_PURPOSE_BET, ""),
        (pb.TRANSFER_PURPOSE_FREE_BET, round_reference),
        (pb.TRANSFER_PURPOSE_PURCHASE, "r-1"),
    ):
        demand_reason(await kit.debit(kit.transfer(purpose, round_reference=round_)), "INVALID_FIELD")
    demand_reason(
        await kit.credit(kit.transfer(pb.TRANSFER_PURPOSE_BET, round_reference=round_reference)), "INVALID_FIELD"
    )


async def player_unknown(kit: WalletKit) -> None:
    """An unknown player is refused."""
    demand_reason(await kit.debit(kit.transfer(player=kit.unknown_player)), "ACCOUNT_UNKNOWN")
    demand_reason(await kit.credit(kit.transfer(PAYOUT, player=kit.unknown_player)), "ACCOUNT_UNKNOWN")
    demand_reason(await kit.reported_balance(player=kit.unknown_player), "ACCOUNT_UNKNOWN")


async def funds_insufficient(kit: WalletKit) -> None:
    """A debit that is not covered is refused and takes nothing."""
    async with kit.moves(0):
        await kit.refused()


async def refusal_final(kit: WalletKit) -> None:
    """A refused debit takes nothing later, even if it is covered then."""
    async with kit.moves(100):
        transfer = await kit.refused()
        await kit.given(amount_minor=100)
        again = await kit.debit(transfer)
        if not again.reason:
            await kit.rollback(transfer)  # a wallet that fails here must not leave the player without money
        demand_reason(again, "INSUFFICIENT_FUNDS")


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


CHECKS: Final[tuple[ConformanceCheck[WalletKit], ...]] = (
    *checks(balance_is_reported, debit_takes_money, credit_gives_money, credit_of_nothing),
    *checks(debit_repeat, credit_repeat, repeat_same_answer, attempt_id_ignored),
    *checks(seamless_purposes, round_ended, balances_add_up),
    *CONFLICTS,
    *checks(rollback_debit, rollback_repeat, rollback_unknown, rollback_refused_debit, tombstone, debit_after_rollback),
    *checks(amount_zero, amount_negative, amount_18_digits, amount_19_digits, precision),
    *checks(currency_other, currency_malformed, ids_malformed, purpose_malformed),
    *checks(player_unknown, funds_insufficient, refusal_final),
    *checks(lookup_transaction, lookup_refused, lookup_tombstone, lookup_unknown, lookup_other_player),
    *checks(parallel_repeats, parallel_debits, parallel_overdraw, parallel_rollback),
    *checks(token_expired, token_expired_repeat),
    *FREE_BETS,
)
