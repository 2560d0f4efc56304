"""Addresses of stores: what names one, and that no password is ever printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.node.config import load_config
from rgs.store.address import PostgresAddress, parse_address

PLANTED = "hunter-2"
URLS = {
    f"postgresql://rgs:{PLANTED}@db/rgs": "postgresql://rgs@db/rgs",
    f"postgres://rgs:{PLANTED}@one:5432,two:5433/rgs?target_session_attrs=read-write": (
        "postgresql://rgs@one:5432,two:5433/rgs?target_session_attrs=read-write"
    ),
    f"postgresql:///rgs?user=rgs&password={PLANTED}&host=/run/pg": "postgresql:///rgs?user=rgs&host=/run/pg",
    "postgresql://db": "postgresql://db",
    f"postgresql://:{PLANTED}@db": "postgresql://db",
}


@pytest.mark.parametrize("url", URLS)
def test_no_password_is_printed(url: str, tmp_path: Path) -> None:
    address = parse_address(url)
    assert isinstance(address, PostgresAddress)
    assert (str(address), address.url) == (URLS[url], url)
    config = load_config(tmp_path, {"store": url})
    for text in (f"{address}", repr(address), repr(config), str({"where": address})):
        assert PLANTED not in text


def test_the_password_is_not_in_the_hash_of_the_settings(tmp_path: Path) -> None:
    hashes = {
        load_config(tmp_path, {"store": f"postgresql://rgs{secret}@db/rgs"}).sha256 for secret in ("", ":a", ":b")
    }
    assert len(hashes) == 1
    assert load_config(tmp_path, {"store": "postgresql://rgs@other/rgs"}).sha256 not in hashes


@pytest.mark.parametrize(
    "url",
    [f"mysql://rgs:{PLANTED}@db", f"postgresql://{PLANTED}@a@b/c", "postgresql://" + PLANTED * 200, "postgresql://a#b"],
)
def test_another_url_is_refused_without_a_word_of_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        load_config(tmp_path, {"store": url})
    assert PLANTED not in f"{refused.value} {refused.value.metadata} {refused.value.message}"


def test_anything_else_is_a_path() -> None:
    assert parse_address("store/rgs.db") == Path("store/rgs.db")
