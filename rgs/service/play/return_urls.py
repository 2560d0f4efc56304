"""The address to which a player's page leads when the player leaves it."""

from __future__ import annotations

import re
from typing import Final

from rgs.core.errors import InvalidFieldError

RETURN_URL_MAX: Final = 1_024
_HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_REST: Final = r"(:[1-9][0-9]{0,4})?([/?][A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*)?"
_HTTPS: Final = re.compile(rf"https://{_HOST}{_REST}", re.ASCII)
_LOCAL: Final = re.compile(rf"http://localhost{_REST}", re.ASCII)


def verify_return_url(url: str, *, local: bool) -> None:
    """InvalidFieldError unless it is empty, https, or http on this machine where `local` is set.

    Refused too: a user, a fragment, an address of IPv6, other characters. The error does not repeat the address.
    """
    if not url or (len(url) <= RETURN_URL_MAX and (_HTTPS.fullmatch(url) or (local and _LOCAL.fullmatch(url)))):
        return
    also = ", or http://localhost" if local else ""
    raise InvalidFieldError(
        f"return_url is not an address of https{also}, of at most {RETURN_URL_MAX} characters of ASCII, without user"
        " and fragment",
        field="return_url",
        value=f"{len(url)} characters",
        limit=f"https{also}, {RETURN_URL_MAX} characters",
    )
