"""Pages of an operator that every page of a game links to: cashier, responsible play, help (RULEBOOK F-9).

A link is an https URL of at most 1,024 bytes. What a browser could read otherwise is refused: other schemes, a name
before the host, and every character that RFC 3986 does not allow.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Final

from rgs.core.errors import FormatError, InvalidFieldError

LINK_BYTES_MAX: Final = 1_024
_LINK: Final = re.compile(
    r"https://(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:[/?#](?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class OperatorLinks:
    """The links of one operator; empty where it has set none."""

    cashier: str = ""
    responsible_play: str = ""
    help: str = ""

    def verify(self) -> None:
        """InvalidFieldError for the first link that is none."""
        for row in fields(self):
            if link := getattr(self, row.name):
                check_link(link, row.name)


def check_link(link: str, field: str) -> str:
    """The link as it is; InvalidFieldError, naming the field, where it is not an https URL within the limit."""
    size = len(link.encode(errors="surrogatepass"))
    if size > LINK_BYTES_MAX:
        raise InvalidFieldError(
            f"{field}: the link has {size} bytes, at most {LINK_BYTES_MAX} are allowed",
            field=field,
            limit=LINK_BYTES_MAX,
            value=size,
        )
    if not _LINK.fullmatch(link):
        raise InvalidFieldError(
            f"{field}: {link[:80]!r} is not an https URL such as https://example.com/cashier",
            field=field,
            limit="https",
            value=link[:80],
        )
    return link


def format_links(links: OperatorLinks) -> str:
    """The links as they are stored. Inverse of `parse_links`."""
    return json.dumps(asdict(links), sort_keys=True)


def parse_links(text: str) -> OperatorLinks:
    """The stored links, checked again; no text is no links. FormatError."""
    if not text:
        return OperatorLinks()
    try:
        links = OperatorLinks(**json.loads(text))
        links.verify()
    except (ValueError, TypeError, AttributeError, InvalidFieldError) as error:
        raise FormatError(f"the stored links are malformed: {type(error).__name__}", field="links") from None
    return links
