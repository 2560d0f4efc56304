"""Links of an operator: https only, at most 1,024 bytes, with nothing in them that a browser could read otherwise."""

from __future__ import annotations

import pytest

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.links import LINK_BYTES_MAX, OperatorLinks, check_link, format_links, parse_links

GOOD = (
    "https://example.com",
    "https://example.com/",
    "https://pay.example.com:8443/cashier?lang=it&x=%20#top",
    "https://xn--spiel-hka.example/a(b)'c;d,e~f",
    "https://example.com/" + "a" * (LINK_BYTES_MAX - len("https://example.com/")),
)
BAD = (
    "http://example.com/",
    "HTTPS://example.com/",
    "javascript:alert(1)",
    "data:text/html,x",
    "//example.com/",
    "/cashier",
    "https://",
    "https:///cashier",
    "https:example.com",
    "https://example.com@evil.example/",
    "https://user:word@example.com/",
    "https://exa mple.com/",
    "https://example.com/a b",
    'https://example.com/"onclick=',
    "https://example.com/<script>",
    "https://example.com\\evil",
    "https://example.com/%zz",
    "https://example.com/\n",
    " https://example.com/",
    "https://-example.com/",
    "https://example..com/",
    "https://spiel-ö.example/",
    "https://example.com:x/",
    "https://example.com/\udcff",
)


@pytest.mark.parametrize("link", GOOD)
def test_a_link_is_taken_as_it_is(link: str) -> None:
    assert check_link(link, "cashier") == link


@pytest.mark.parametrize("link", BAD)
def test_what_is_no_https_link_is_refused(link: str) -> None:
    with pytest.raises(InvalidFieldError, match="is not an https URL such as") as caught:
        check_link(link, "cashier")
    assert (caught.value.field, caught.value.metadata["limit"]) == ("cashier", "https")


def test_a_link_that_is_too_long_is_refused_with_its_length() -> None:
    with pytest.raises(InvalidFieldError, match="has 1025 bytes, at most 1024") as caught:
        check_link(GOOD[-1] + "a", "help")
    assert caught.value.metadata == {"limit": "1024", "value": "1025"}


def test_links_are_stored_and_read_again() -> None:
    links = OperatorLinks(cashier=GOOD[0], help=GOOD[2])
    assert parse_links(format_links(links)) == links
    assert parse_links("") == OperatorLinks()
    insecure = format_links(OperatorLinks(responsible_play="http://example.com"))
    for malformed in ("{", "[]", '{"other": "https://example.com"}', "7", '{"help": 7}', insecure):
        with pytest.raises(FormatError, match="malformed"):
            parse_links(malformed)
