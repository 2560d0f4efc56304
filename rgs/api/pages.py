"""Lists in pages at the wire (AIP-158): a page token is good for the method, the party and the filters it was made for.

The services know positions; here each gets a mark over what was asked. It is no secret and guards none: a list shows a
caller his own rows, whatever the position. It keeps a token from meaning something else: rows left out, or told twice.
Every field of the request counts but the size of the page, so that no new filter can be forgotten.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from rgs.api.calls import Unary
from rgs.core.errors import InvalidFieldError
from rgs.service.callers import Caller

_MARK_BYTES: Final = 12
_BESIDE: Final = ("page_size", "page_token")
"""Fields of a request that say which page, not which list."""

_Request = TypeVar("_Request", bound=Message)


def paged(kind: type[_Request], answer: Callable[[Caller, _Request], Awaitable[Any]]) -> Unary[_Request]:
    """The method of a list: `answer` takes and gives messages whose tokens are the service's own."""

    async def behave(caller: Caller, message: _Request) -> bytes:
        mark = mark_of(caller, message)
        asked: Any = message
        asked.page_token = parse_bound_token(asked.page_token, mark)
        page = await answer(caller, message)
        page.next_page_token = format_bound_token(page.next_page_token, mark)
        given: bytes = page.SerializeToString()
        return given

    return Unary(kind, behave)


def mark_of(caller: Caller, message: Message) -> str:
    """What a token of this list is bound to: kind of the request, party and filters."""
    filters = type(message)()
    filters.CopyFrom(message)
    for field in _BESIDE:
        filters.ClearField(field)
    head = f"{message.DESCRIPTOR.full_name}\n{caller.role}\n{caller.party}\n".encode()
    digest = hashlib.sha256(head + filters.SerializeToString(deterministic=True)).digest()
    return base64.urlsafe_b64encode(digest[:_MARK_BYTES]).decode("ascii")


def format_bound_token(token: str, mark: str) -> str:
    """The token as callers get it; empty at the end of the list. Inverse of `parse_bound_token`."""
    return f"{token}.{mark}" if token else ""


def parse_bound_token(token: str, mark: str) -> str:
    """The service's own token; InvalidFieldError if it was made for another list."""
    if not token:
        return ""
    position, _, found = token.rpartition(".")
    if found != mark or not position:
        raise InvalidFieldError(
            "page_token was not made by this list for this party under these filters",
            field="page_token",
            limit="the next_page_token of the same request",
            value=token[:40],
        )
    return position
