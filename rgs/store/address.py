"""Where a store lies: a file (SQLite), or a database server by its URL (PostgreSQL).

An address is never printed with its password: `str` and `repr` leave it out, and only the driver gets the whole `url`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from rgs.core.errors import InvalidFieldError

URL_MAX = 1024
_URL = re.compile(r"(postgres(?:ql)?)://(?:([^/@?#]*)@)?([^/@?#]*)(/[^/@?#]*)?(?:\?([^#]*))?", re.ASCII)
_SECRETS = frozenset({"password", "passfile", "sslpassword", "sslkey"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A PostgreSQL URL as libpq knows it, more than one host too: `postgresql://user@one,two/name?key=value`.

    The password may stand in it, in the file named by PGPASSFILE, or in PGPASSWORD.
    """

    url: str = field(repr=False)
    """The whole URL, with its password."""

    @property
    def hosts(self) -> list[str]:
        """The hosts that the URL names, each with its port."""
        matched = _URL.fullmatch(self.url)
        return matched[3].split(",") if matched is not None else []

    def beginning_at(self, number: int) -> str:
        """The URL with its hosts in turn: for one host always the same."""
        matched, hosts = _URL.fullmatch(self.url), self.hosts
        if matched is None or len(hosts) < 2:
            return self.url
        at = number % len(hosts)
        return "".join([self.url[: matched.start(3)], ",".join([*hosts[at:], *hosts[:at]]), self.url[matched.end(3) :]])

    def __str__(self) -> str:
        matched = _URL.fullmatch(self.url)
        if matched is None:
            return "postgresql://"
        _, user, hosts, database, query = matched.groups(default="")
        user = user.partition(":")[0]
        result = "&".join(pair for pair in query.split("&") if pair and pair.partition("=")[0] not in _SECRETS)
        return "".join(["postgresql://", user, "@" if user else "", hosts, database, "?" if result else "", result])

    def __repr__(self) -> str:
        return f"PostgresAddress({self})"


StoreAddress = Path | PostgresAddress


def parse_address(text: str, field_name: str = "store") -> StoreAddress:
    """The address that a text names; InvalidFieldError, without the text, for a URL that is not PostgreSQL's."""
    if "://" not in text:
        return Path(text)
    if len(text) > URL_MAX or _URL.fullmatch(text) is None:
        limit = "a path, or postgresql://user@host/name"
        raise InvalidFieldError(f"{field_name} must be {limit}", field=field_name, limit=limit)
    return PostgresAddress(text)
