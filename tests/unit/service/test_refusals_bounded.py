"""A refusal repeats no more of what was sent than so many characters, each to the one."""

from __future__ import annotations

import pytest

from rgs.core.errors import InvalidFieldError, JurisdictionError, UnknownRulesetError
from rgs.service.game_catalog import GameCatalog
from rgs.service.pages import parse_key_token, parse_page_token, verify_alone
from rgs.service.play.catalog import Catalog

LONG = "".join(chr(97 + number % 26) for number in range(120))


def test_a_currency_that_is_not_the_operator_s() -> None:
    games = GameCatalog(currencies={"op-1": ("CHF", "EUR")})
    games.verify_currency("op-1", "EUR")
    games.verify_currency("op-2", LONG)
    with pytest.raises(JurisdictionError) as refused:
        games.verify_currency("op-1", LONG)
    assert refused.value.field == "currency"
    assert refused.value.metadata == {"value": LONG[:8], "limit": "CHF, EUR"}
    assert LONG[:8] in refused.value.message
    assert LONG[:9] not in refused.value.message


def test_a_game_that_is_not_shipped() -> None:
    with pytest.raises(UnknownRulesetError) as refused:
        Catalog(GameCatalog()).get(LONG, "game")
    assert (refused.value.field, refused.value.metadata) == ("game", {"value": LONG[:40]})
    assert refused.value.message == f"no game {LONG[:40]}"


def test_a_filter_that_stands_beside_another_one() -> None:
    verify_alone("session_id", player="", game="")
    with pytest.raises(InvalidFieldError, match="player stands beside session_id") as refused:
        verify_alone("session_id", game="", player=LONG, date="2026")
    assert (refused.value.field, refused.value.metadata) == ("player", {"limit": "session_id", "value": LONG[:80]})


def test_a_token_of_another_list() -> None:
    for parse in (parse_page_token, parse_key_token):
        with pytest.raises(InvalidFieldError) as refused:
            parse(LONG, 1)
        assert (refused.value.field, refused.value.metadata) == ("page_token", {"value": LONG[:40]})
