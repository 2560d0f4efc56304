"""Wallet and regulator behind a script: peers that fall silent before or after their effect, or refuse."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from rgs.core.errors import IdempotencyConflictError, RgsError, UnavailableError, WalletRefusedError
from rgs.ports.regulator import (
    DayAlignment,
    ModuleReport,
    ParticipationEnd,
    Purchase,
    Regulator,
    RegulatorParticipation,
    RegulatorReceipt,
    RegulatorSession,
    SessionClose,
    SessionOpening,
    StageReport,
)
from rgs.ports.wallet import Balance, Receipt, Transfer, Wallet

_Result = TypeVar("_Result")


class Script:
    """What a peer does next, by method: "ok", silent "before" or "after" its effect, or an error to raise.

    Besides: a debit "refused" for good, unless it was taken before; "twice" delivered, "late" delivered behind the next
    call of its transaction, and a "conflict" over a call that came before.
    """

    def __init__(self, unavailable: type[UnavailableError]) -> None:
        self._unavailable = unavailable
        self._plans: defaultdict[str, deque[str | RgsError]] = defaultdict(deque)
        self.is_down = False
        self.calls: list[tuple[str, str]] = []
        """(method, transaction id) of every call, whatever became of it."""
        self.otherwise: Callable[[str], str | RgsError] = lambda _: "ok"
        """What is done where nothing is planned."""
        self._held: list[tuple[str, Callable[[], Awaitable[Any]]]] = []

    def plan(self, method: str, *steps: str | RgsError) -> None:
        """Append steps; when they are used up the peer answers."""
        self._plans[method].extend(steps)

    async def deliver(self, transaction_id: str = "") -> None:
        """What was held back arrives, of this transaction or of all."""
        held, self._held = self._held, []
        for name, call in held:
            if transaction_id in ("", name):
                with suppress(RgsError):  # nobody is there to be told
                    await call()
            else:
                self._held.append((name, call))

    def forget(self) -> None:
        """Nothing is planned any more."""
        self._plans.clear()

    def count(self, method: str) -> int:
        """How often the method was called."""
        return sum(name == method for name, _ in self.calls)

    async def run(
        self,
        method: str,
        transaction_id: str,
        call: Callable[[], Awaitable[_Result]],
        refuse: Callable[[], Awaitable[_Result]] | None = None,
    ) -> _Result:
        """One call, as planned; `refuse` is what is done where it is to be refused for good."""
        is_repeat = (method, transaction_id) in self.calls
        self.calls.append((method, transaction_id))
        plan = self._plans[method]
        step = "before" if self.is_down else plan.popleft() if plan else self.otherwise(method)
        if isinstance(step, RgsError):
            raise step
        if step == "conflict" and is_repeat:
            raise IdempotencyConflictError("stands for another transfer")
        if step == "late":
            self._held.append((transaction_id, call))
        if step in ("before", "late"):
            raise self._unavailable("silent before the effect")
        if step == "twice":
            await call()
        result = await (refuse() if step == "refused" and refuse is not None else call())
        await self.deliver(transaction_id)
        if step == "after":
            raise self._unavailable("silent after the effect")
        return result


class ScriptedWallet:
    """A wallet that follows its script."""

    def __init__(self, inner: Wallet, script: Script) -> None:
        self._inner = inner
        self._run = script.run

    async def debit(self, transfer: Transfer, *, session_token: str = "") -> Receipt:
        return await self._run(
            "debit",
            transfer.transaction_id,
            lambda: self._inner.debit(transfer, session_token=session_token),
            lambda: self._refuse(transfer, session_token),
        )

    async def _refuse(self, transfer: Transfer, session_token: str) -> Receipt:
        """As docs/wallet.md says: what was taken is answered as before; of what was not, no late copy takes money."""
        if await self.get_transaction(
            operator=transfer.operator, player=transfer.player, transaction_id=transfer.transaction_id
        ):
            return await self._inner.debit(transfer, session_token=session_token)
        await self._inner.rollback(transfer)
        raise WalletRefusedError("no", refusal="LIMIT_REACHED")

    async def credit(self, transfer: Transfer) -> Receipt:
        return await self._run("credit", transfer.transaction_id, lambda: self._inner.credit(transfer))

    async def rollback(self, transfer: Transfer) -> Receipt:
        return await self._run("rollback", transfer.transaction_id, lambda: self._inner.rollback(transfer))

    async def get_transaction(self, *, operator: str, player: str, transaction_id: str) -> Receipt | None:
        return await self._inner.get_transaction(operator=operator, player=player, transaction_id=transaction_id)

    async def get_balance(self, *, operator: str, player: str, currency: str) -> Balance:
        return await self._inner.get_balance(operator=operator, player=player, currency=currency)

    async def close(self) -> None:
        await self._inner.close()


class ScriptedRegulator:
    """A regulator that follows its script."""

    def __init__(self, inner: Regulator, script: Script) -> None:
        self._inner = inner
        self._run = script.run

    async def open_session(self, opening: SessionOpening) -> RegulatorSession:
        return await self._run("open_session", opening.transaction_id, lambda: self._inner.open_session(opening))

    async def buy_participation(self, purchase: Purchase, issued: str = "") -> RegulatorParticipation:
        return await self._run(
            "buy_participation", purchase.transaction_id, lambda: self._inner.buy_participation(purchase, issued)
        )

    async def report_stages(self, transaction_id: str, stages: Sequence[StageReport]) -> RegulatorReceipt:
        return await self._run(
            "report_stages", transaction_id, lambda: self._inner.report_stages(transaction_id, stages)
        )

    async def end_participation(self, end: ParticipationEnd) -> RegulatorReceipt:
        return await self._run("end_participation", end.transaction_id, lambda: self._inner.end_participation(end))

    async def close_session(self, close: SessionClose) -> RegulatorReceipt:
        return await self._run("close_session", close.transaction_id, lambda: self._inner.close_session(close))

    async def align_day(self, alignment: DayAlignment) -> RegulatorReceipt:
        return await self._run("align_day", alignment.transaction_id, lambda: self._inner.align_day(alignment))

    async def report_modules(self, report: ModuleReport) -> RegulatorReceipt:
        return await self._run("report_modules", report.transaction_id, lambda: self._inner.report_modules(report))

    async def close(self) -> None:
        await self._inner.close()
