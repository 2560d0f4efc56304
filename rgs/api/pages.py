"""Lists in pages (AIP-158): a page token is valid for the method, the party and the filters it was made for.

The services return positions; here each position gets a mark over the request. The mark is not a secret and protects
nothing: a list shows a caller only its own rows, whatever the position. It prevents that a token is used with other
filters, where rows would be left out or repeated. Every field of the request counts except the size of the page.
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
"""Fields of a request that choose the page, not the list."""

_Request = TypeVar("_Request", bound=Message)


def paged(kind: type[_Request], answer: Callable[[Caller, _Request], Awaitable[Any]]) -> Unary[_Request]:
    """The method of a list. `answer` gets and returns messages with the service's own tokens."""

    async def behave(caller: Caller, message: _Request) -> bytes:
        mark = mark_of(caller, message)
        requested: Any = message
        requested.page_token = parse_bound_token(requested.page_token, mark)
        page = await answer(caller, message)
        page.next_page_token = format_bound_token(page.next_page_token, mark)
        given: bytes = page.SerializeToString()
        return given

    return Unary(kind, behave)


def mark_of(caller: Caller, message: Message) -> str:
    """A mark of what a token of this list is bound to: the kind of the request, the party and the filters."""
    filters = type(message)()
    filters.CopyFrom(message)
    for field in _BESIDE:
        filters.ClearField(field)
    head = f"{message.DESCRIPTOR.full_name}\n{caller.role}\n{caller.party}\n".encode()
    digest = hashlib.sha256(head + filters.SerializeToString(deterministic=True)).digest()
    return base64.urlsafe_b64encode(digest[:_MARK_BYTES]).decode("ascii")


def format_bound_token(token: str, mark: str) -> str:
    """The token for callers; empty at the end of the list. Inverse of `parse_bound_token`."""
    return f"{token}.{mark}" if token else ""


def parse_bound_token(token: str, mark: str) -> str:
    """The service's own token; InvalidFieldError if it was made for another list."""
    if not token:
        return ""
    position, _, found = token.rpartition(".")
    if found != mark or not position:
        raise InvalidFieldError(
            "page_token belongs to another list, party or filter",
            field="page_token",
            limit="the next_page_token of the same request",
            value=token[:40],
        )
    return position
