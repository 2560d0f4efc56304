"""Methods that take an order of an admin and answer with its signed event (`rgs.service.admin.orders`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import Message

from rgs.api.calls import Unary
from rgs.api.mapping import reply_bytes, same_fields
from rgs.service.admin.orders import order_of
from rgs.service.callers import Caller, Reply


def ordered(request: type[Message], give: Callable[..., Awaitable[Reply]], *fields: str) -> Unary[Any]:
    """The method of this request. `give` gets the order and, by their names, these fields, which are its content."""
    method = request.DESCRIPTOR.name.removesuffix("Request")

    async def behave(caller: Caller, message: Any) -> bytes:
        content = same_fields(message, *fields)
        order = order_of(caller, method, message.request_id, **content)
        return reply_bytes(method, await give(order, **content))

    return Unary(request, behave)
