"""What `peers.toml` sets for an operator beside its wallet: currencies, and limits on bets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError, JurisdictionError, RgsError
from rgs.core.games.types import StakeLimits
from rgs.core.sessions import Funding
from rgs.node.peers import NodePeers, load_peers

LIMITS = "[operator.op-1.bet_limits.EUR.ante]\nmin_minor = 100\nmax_minor = 20000\n"


def loaded(folder: Path, text: str) -> NodePeers:
    (folder / "peers.toml").write_text(text, "utf-8")
    return load_peers(folder / "peers.toml", folder)


def test_limits_and_currencies_of_an_operator(tmp_path: Path) -> None:
    text = (
        '[operator.op-1]\ncurrencies = ["EUR", "CHF"]\n' + LIMITS + LIMITS.replace("ante", "aa").replace("20000", "200")
    )
    peers = loaded(tmp_path, text + '[operator.op-2]\nfunding = "seamless"\n')
    catalog = peers.catalog()
    assert catalog.bet_limits_of("op-1", "EUR") == (("aa", StakeLimits(100, 200)), ("ante", StakeLimits(100, 20_000)))
    assert catalog.bet_limits_of("op-1", "CHF") == catalog.bet_limits_of("op-2", "EUR") == ()
    assert catalog.fundings == {"op-1": Funding.PARTICIPATION, "op-2": Funding.SEAMLESS}
    catalog.verify_currency("op-1", "CHF")
    catalog.verify_currency("op-2", "GBP")
    with pytest.raises(JurisdictionError, match="currency: 'GBP' is not one of op-1, which plays in EUR, CHF"):
        catalog.verify_currency("op-1", "GBP")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[operator.op-1]\ncurrencies = "EUR"', "operator.op-1.currencies"),
        ("[operator.op-1]\ncurrencies = []", "operator.op-1.currencies"),
        ("[operator.op-1]\ncurrencies = [1]", "operator.op-1.currencies"),
        ('[operator.op-1]\ncurrencies = ["euro"]', "operator.op-1.currencies"),
        ('[operator.op-1]\ncurrencies = ["EUR", "EUR"]', "operator.op-1.currencies"),
        ("[operator.op-1]\nbet_limits = 1", "operator.op-1.bet_limits"),
        (LIMITS.replace("EUR", "eur"), "operator.op-1.bet_limits"),
        (LIMITS.replace("ante", "poker"), "operator.op-1.bet_limits.EUR.poker"),
        (LIMITS.replace("ante", "blind"), "operator.op-1.bet_limits.EUR.blind"),
        (LIMITS.replace("= 100\n", "= 8\n"), "operator.op-1.bet_limits.EUR.ante.min_minor"),
        (LIMITS.replace("20000", "100002"), "operator.op-1.bet_limits.EUR.ante.max_minor"),
        (LIMITS.replace("20000", "20001"), "operator.op-1.bet_limits.EUR.ante.max_minor"),
        (LIMITS.replace("20000", "50"), "operator.op-1.bet_limits.EUR.ante.min_minor"),
        (LIMITS.replace("20000", '"20000"'), "operator.op-1.bet_limits.EUR.ante.max_minor"),
        (LIMITS.replace("max_minor = 20000\n", ""), "operator.op-1.bet_limits.EUR.ante.max_minor"),
        (LIMITS + "step = 1\n", "operator.op-1.bet_limits.EUR.ante.step"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(RgsError) as caught:
        loaded(tmp_path, text)
    assert caught.value.field == field


def test_an_off_step_limit_is_refused_for_the_game_that_has_the_step(tmp_path: Path) -> None:
    # 20001 is right for casino-holdem, whose step is 1, and wrong for the games whose odds of 3:2 need a step of 2.
    with pytest.raises(InvalidFieldError, match="20001 is not a multiple of 2, the step of uth-online"):
        loaded(tmp_path, LIMITS.replace("20000", "20001"))
