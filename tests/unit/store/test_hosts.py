"""Addresses of several hosts, and which words of an address are secret."""

from __future__ import annotations

import pytest

from rgs.store.address import PostgresAddress, parse_address

SCHEME = "postgresql://"


@pytest.mark.parametrize(
    ("hosts", "number", "reported"),
    [
        ("one", 0, "one"),
        ("one", 1, "one"),
        ("one:1,two:2", 0, "one:1,two:2"),
        ("one:1,two:2", 1, "two:2,one:1"),
        ("one:1,two:2", 2, "one:1,two:2"),
        ("a,b,c", 1, "b,c,a"),
        ("a,b,c", 5, "c,a,b"),
    ],
)
def test_each_worker_begins_at_another_host(hosts: str, number: int, reported: str) -> None:
    for before, after in (("", ""), ("rgs:pw@", "/rgs?target_session_attrs=read-write")):
        address = PostgresAddress(f"{SCHEME}{before}{hosts}{after}")
        assert address.beginning_at(number) == f"{SCHEME}{before}{reported}{after}"


def test_what_is_no_address_stays_as_it_is() -> None:
    assert PostgresAddress("a,b").beginning_at(1) == "a,b"
    assert str(PostgresAddress("a,b")) == SCHEME


@pytest.mark.parametrize("secret", ["password", "passfile", "sslpassword", "sslkey"])
def test_a_secret_of_the_query_is_not_told(secret: str) -> None:
    address = PostgresAddress(f"{SCHEME}db/rgs?user=anna&{secret}=hunter-2&sslmode=require")
    assert str(address) == f"{SCHEME}db/rgs?user=anna&sslmode=require"
    assert str(PostgresAddress(f"{SCHEME}db/rgs?{secret}=hunter-2")) == f"{SCHEME}db/rgs"
    assert repr(address) == f"PostgresAddress({SCHEME}db/rgs?user=anna&sslmode=require)"


@pytest.mark.parametrize(
    ("rest", "reported"),
    [
        ("rgs:hunter-2@db/rgs", "rgs@db/rgs"),
        (":hunter-2@db", "db"),
        ("db", "db"),
        ("rgs@one:5432,two:5433/rgs?&a=b&", "rgs@one:5432,two:5433/rgs?a=b"),
        ("db/rgs?", "db/rgs"),
    ],
)
def test_an_address_is_told_without_its_password(rest: str, reported: str) -> None:
    for scheme in (SCHEME, "postgres://"):
        address = parse_address(scheme + rest)
        assert isinstance(address, PostgresAddress)
        assert str(address) == SCHEME + reported
        assert address.url == scheme + rest
