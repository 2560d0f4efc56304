"""Orders of admins: the identity of a mutating request, and its stored answer (ARCHITECTURE 2.16: repeats are safe).

The answer is stored in the commit with the effect, so that a repeat gets it and does nothing. An order over a list has
one answer for each item; its content is stored before the first item, so that its id cannot be used for another list. A
request id that was used with other content is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rgs.core.clock import Clock
from rgs.core.ids import check_request_id
from rgs.core.statements import request_digest
from rgs.service.callers import Caller, Reply, reply_of
from rgs.store.changes import Answer, Change, RequestSeenError
from rgs.store.interface import Store


@dataclass(frozen=True, slots=True)
class Order:
    """An order: caller, method and request id; `digest` covers its whole content."""

    caller: Caller
    method: str
    request_id: str
    digest: bytes

    def answer(self, now_ms: int, body: bytes = b"") -> Answer:
        """The answer to store; the change's last statement travels with it."""
        return Answer(self.caller.party, self.method, self.request_id, self.digest, body, now_ms)

    def item(self, name: str) -> Order:
        """The part of a list that is about one item."""
        return replace(self, method=f"{self.method} {name}")


def order_of(caller: Caller, method: str, request_id: str, **content: object) -> Order:
    """The order, with its digest over method, party, request id and content. InvalidFieldError if the id is no UUID."""
    check_request_id(request_id)
    result = {name: value if isinstance(value, list) else str(value) for name, value in content.items()}
    digest = request_digest({**result, "method": method, "party": caller.party, "request_id": request_id})
    return Order(caller, method, request_id, digest)


class Orders:
    """The stored answers of orders."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def known(self, order: Order) -> Reply | None:
        """The stored answer of an earlier try; None for a new order."""
        answer = await self._store.answer(order.caller.party, order.method, order.request_id)
        return None if answer is None else reply_of(answer, order.digest)

    async def begin(self, order: Order) -> None:
        """Store the content of an order over a list once. IdempotencyConflictError if its id has other content."""
        if await self.known(order) is None:
            try:
                await self._store.commit(Change(answer=order.answer(self._clock.now_ms())))
            except RequestSeenError:
                await self.known(order)
