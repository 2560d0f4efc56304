"""Wallet messages in any order and any number give the same end state; no order makes or loses money."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.core.errors import (
    IdempotencyConflictError,
    InsufficientFundsError,
    RgsError,
    TransactionRolledBackError,
    WalletRefusedError,
)
from rgs.ports.wallet import TransactionStatus, Transfer, TransferPurpose
from rgs.store.wallet import EnteredTransfer, WalletEntry, WalletStore
from tests.support.adapters.books import NOW_MS, ulid

_operators = count(1)


@pytest.fixture(scope="module")
def store() -> Iterator[WalletStore]:
    """One file for all examples: each is an operator of its own in it, and all of them are added up at the end."""
    with tempfile.TemporaryDirectory() as folder:
        store = WalletStore(Path(folder) / "wallet.sqlite")
        yield store
        store.verify()
        store.close()


@dataclass(frozen=True)
class Message:
    """A call of the wallet; `number` stands for its transaction id."""

    method: str
    number: int
    amount_minor: int
    player: str = "anna"

    def send(self, wallet: EmbeddedWallet, operator: str) -> Awaitable[Any]:
        call: Callable[..., Awaitable[Any]] = getattr(wallet, self.method)
        purpose = TransferPurpose.PAYOUT if self.method == "credit" else TransferPurpose.PURCHASE
        return call(
            Transfer(operator, self.player, "EUR", self.amount_minor, ulid(self.number), "participation-1", purpose)
        )


async def with_account(
    store: WalletStore, balance_minor: int, play: Callable[[EmbeddedWallet, str], Awaitable[None]]
) -> list[WalletEntry]:
    """Play on an account of its own; its entries."""
    wallet, operator = EmbeddedWallet(store, lambda: NOW_MS), f"op-{next(_operators)}"
    await wallet.open_account(operator=operator, player="anna", currency="EUR", balance_minor=balance_minor)
    await play(wallet, operator)
    await wallet._thread.close()  # the store stays open for the next example
    return [entry for entry in store.rows() if entry.operator == operator]


# --- any permutation and duplication --------------------------------------------------------------------------------


@st.composite
def deliveries(draw: st.DrawFn) -> list[Message]:
    """Debits, some with their rollback, and credits; each message once or more, in any order."""
    messages: list[Message] = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        kind = draw(st.sampled_from(["debit", "credit", "debit and rollback"]))
        amount_minor = draw(st.integers(1, 100))
        for method in kind.split(" and "):
            messages += [Message(method, number, amount_minor)] * draw(st.integers(1, 3))
    return draw(st.permutations(messages))


def meant(messages: list[Message]) -> dict[int, tuple[TransactionStatus, int]]:
    """What each transaction comes to, whatever the order: a rolled-back debit to nothing, the rest to itself once."""
    rolled_back = {message.number for message in messages if message.method == "rollback"}
    return {
        message.number: (TransactionStatus.ROLLED_BACK, 0)
        if message.number in rolled_back
        else (TransactionStatus.ACCEPTED, message.amount_minor * (1 if message.method == "credit" else -1))
        for message in messages
    }


def check_delivery(store: WalletStore, messages: list[Message]) -> None:
    """The end state is the one that is meant, and sending everything again changes nothing."""
    expected = meant(messages)

    async def deliver(wallet: EmbeddedWallet, operator: str, delivered: list[Message]) -> None:
        for message in delivered:
            try:
                receipt = await message.send(wallet, operator)
            except TransactionRolledBackError:
                assert message.method == "debit"
                assert expected[message.number][0] is TransactionStatus.ROLLED_BACK
            else:
                assert receipt.transaction_id == ulid(message.number)
        for number, (status, _) in expected.items():
            stands = await wallet.get_transaction(operator=operator, player="anna", transaction_id=ulid(number))
            assert stands is not None
            assert stands.status is status
        balance = await wallet.get_balance(operator=operator, player="anna", currency="EUR")
        assert balance.balance_minor == 10_000 + sum(moved for _, moved in expected.values())

    async def play(wallet: EmbeddedWallet, operator: str) -> None:
        await deliver(wallet, operator, messages)
        await deliver(wallet, operator, messages[::-1])

    entries = asyncio.run(with_account(store, 10_000, play))
    moved: Counter[str] = Counter()
    for entry in entries[1:]:
        moved[entry.transaction_id or ""] += entry.transfer_minor
    assert moved == {ulid(number): amount_minor for number, (_, amount_minor) in expected.items()}


@given(messages=deliveries())
def test_any_order_and_number_of_messages_gives_the_same_end_state(store: WalletStore, messages: list[Message]) -> None:
    check_delivery(store, messages)


# --- scarce money and conflicting messages, against a second implementation ---------------------------------------


class Model:
    """The seam's promises over plain dictionaries, written from its docstring."""

    def __init__(self, balance_minor: int) -> None:
        self.balances = {"anna": balance_minor}
        self.first: dict[int, tuple[Message, str]] = {}
        self.rolled_back: dict[int, Message] = {}

    def answer(self, message: Message) -> type[RgsError] | TransactionStatus:
        number = message.number
        first, outcome = self.first.get(number, (None, ""))
        undone = self.rolled_back.get(number)
        of_debit = message.method != "credit"
        data = (message.player, message.amount_minor)
        if undone is not None and (not of_debit or data != (undone.player, undone.amount_minor)):
            return IdempotencyConflictError
        if first is not None and ((first.method != "credit") != of_debit or data != (first.player, first.amount_minor)):
            return IdempotencyConflictError
        if message.method == "rollback":
            if undone is None:
                self.rolled_back[number] = message
                if outcome == "moved":
                    self.balances[message.player] += message.amount_minor
            return TransactionStatus.ROLLED_BACK
        if undone is not None:
            return TransactionRolledBackError
        if first is None:
            outcome = self.move(message)
            if outcome != "unknown account" or of_debit:
                self.first[number] = (message, outcome)
        if outcome != "moved":
            return InsufficientFundsError if outcome == "too little" else WalletRefusedError
        return TransactionStatus.ACCEPTED if first is None else TransactionStatus.DUPLICATE

    def move(self, message: Message) -> str:
        if message.player not in self.balances:
            return "unknown account"
        after = self.balances[message.player] + message.amount_minor * (1 if message.method == "credit" else -1)
        if after < 0:
            return "too little"
        self.balances[message.player] = after
        return "moved"


anything = st.lists(
    st.builds(
        Message,
        method=st.sampled_from(["debit", "credit", "rollback"]),
        number=st.integers(1, 3),
        amount_minor=st.sampled_from([1, 5, 6]),
        player=st.sampled_from(["anna", "anna", "anna", "bert"]),
    ),
    max_size=12,
)


def check_against_model(store: WalletStore, messages: list[Message], balance_minor: int) -> None:
    """Each answer, and the balance after it, as the model has it."""
    model = Model(balance_minor)

    async def play(wallet: EmbeddedWallet, operator: str) -> None:
        for message in messages:
            try:
                answer: Any = (await message.send(wallet, operator)).status
            except RgsError as error:
                answer = type(error)
            assert answer == model.answer(message)
            balance = await wallet.get_balance(operator=operator, player="anna", currency="EUR")
            assert balance.balance_minor == model.balances["anna"] >= 0

    entries = asyncio.run(with_account(store, balance_minor, play))
    assert sum(entry.transfer_minor for entry in entries) == model.balances["anna"]
    assert max(Counter((entry.transaction_id, entry.kind == "rollback") for entry in entries).values()) == 1


@given(messages=anything, balance_minor=st.integers(0, 12))
def test_every_answer_is_the_models(store: WalletStore, messages: list[Message], balance_minor: int) -> None:
    check_against_model(store, messages, balance_minor)


# --- the checks above can fail --------------------------------------------------------------------------------------


def forgets_tombstones(patch: pytest.MonkeyPatch) -> None:
    """A rollback of an unknown debit is answered and not kept."""
    honest = EmbeddedWallet._rollback

    def rollback(self: EmbeddedWallet, transfer: EnteredTransfer) -> Any:
        with self._store.transaction(NOW_MS) as book:
            first, _ = book.entries_of(transfer.operator, transfer.transaction_id)
        if first is None:
            return type("Answer", (), {"transaction_id": transfer.transaction_id})
        return honest(self, transfer)

    patch.setattr(EmbeddedWallet, "_rollback", rollback)


def accepts_other_data(patch: pytest.MonkeyPatch) -> None:
    """The id alone is looked at."""
    patch.setattr("rgs.adapters.embedded.wallet._verify_same", lambda *_: None)


def accepts_late_debits(patch: pytest.MonkeyPatch) -> None:
    """A rolled-back debit that comes again is answered as if it stood."""
    honest = EmbeddedWallet._debit

    def debit(self: EmbeddedWallet, transfer: EnteredTransfer) -> Any:
        try:
            return honest(self, transfer)
        except TransactionRolledBackError:
            with self._store.transaction(NOW_MS) as book:
                first, _ = book.entries_of(transfer.operator, transfer.transaction_id)
                if first is None:
                    first = book.append("debit", transfer, -transfer.amount_minor)
            return type("Answer", (), {"transaction_id": transfer.transaction_id, "status": "accepted"})

    patch.setattr(EmbeddedWallet, "_debit", debit)


def forgets_refusals(patch: pytest.MonkeyPatch) -> None:
    """A refused debit is not kept, so that a later copy may succeed."""
    honest = EmbeddedWallet._debit

    def debit(self: EmbeddedWallet, transfer: EnteredTransfer) -> Any:
        with self._store.transaction(NOW_MS) as book:
            known = book.entries_of(transfer.operator, transfer.transaction_id) != (None, None)
            balance = book.balance(transfer.operator, transfer.player, transfer.currency)
        if not known and balance is not None and balance < transfer.amount_minor:
            raise InsufficientFundsError("planted")
        return honest(self, transfer)

    patch.setattr(EmbeddedWallet, "_debit", debit)


PLANTED = [
    (forgets_tombstones, check_delivery, ([Message("rollback", 1, 7), Message("debit", 1, 7)],)),
    (accepts_late_debits, check_delivery, ([Message("rollback", 1, 7), Message("debit", 1, 7)],)),
    (accepts_other_data, check_against_model, ([Message("debit", 1, 1), Message("debit", 1, 5)], 10)),
    (forgets_refusals, check_against_model, (
        [Message("debit", 1, 6), Message("credit", 2, 6), Message("debit", 1, 6)], 0)),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "check", "example"), PLANTED, ids=[row[0].__name__ for row in PLANTED])
def test_the_checks_catch_a_planted_defect(
    store: WalletStore,
    plant: Callable[[pytest.MonkeyPatch], None],
    check: Callable[..., None],
    example: tuple[Any, ...],
) -> None:
    check(store, *example)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError):
            check(store, *example)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [forgets_tombstones, accepts_late_debits], ids=["tombstones", "late debits"])
def test_the_search_finds_a_planted_defect(store: WalletStore, plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    @settings(database=None, max_examples=200)
    @given(messages=deliveries())
    def search(messages: list[Message]) -> None:
        check_delivery(store, messages)

    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError):
            search()
