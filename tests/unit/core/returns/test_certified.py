"""Certificates as the server reads them: found by the hash, strict, and the measure of what is offered (IT-03)."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest

from rgs.core.errors import FormatError, GameNotOfferedError, RulesetError
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.returns.certified import (
    LABEL,
    _read,
    load_certified_returns,
    parse_certified_returns,
    parse_return,
    verify_offered,
    why_not,
)
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset, parse_canonical_ruleset

CASINO, ITALY = load_ruleset("casino-holdem"), load_jurisdiction("it-adm")
TEXT = (resources.files("rgs.core") / "certificate_data" / f"{CASINO.sha256}.json").read_text("ascii")


def test_the_returns_of_a_ruleset_are_found_by_its_hash() -> None:
    certificate = load_certified_returns(CASINO)
    assert certificate is not None
    assert certificate.ruleset_sha256 == CASINO.sha256
    assert certificate.return_initial == Fraction(61849287523, 63213204600)
    assert certificate.side_bets == {"aa": Fraction(87011, 92820)}
    assert certificate.return_total > certificate.return_initial
    assert LABEL == "certified"


@pytest.mark.parametrize("ruleset_id", SHIPPED_RULESETS)
@pytest.mark.parametrize("jurisdiction_id", SHIPPED_JURISDICTIONS)
def test_every_shipped_game_is_offered_everywhere(ruleset_id: str, jurisdiction_id: str) -> None:
    verify_offered(load_ruleset(ruleset_id), load_jurisdiction(jurisdiction_id))


def test_a_changed_ruleset_has_no_certificate_and_is_not_offered() -> None:
    changed = parse_canonical_ruleset(CASINO.canonical.replace(b'"100:1"', b'"90:1"', 1))
    assert load_certified_returns(changed) is None
    with pytest.raises(GameNotOfferedError, match="casino-holdem has no certificate"):
        verify_offered(changed, load_jurisdiction("gb-ukgc"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe{}", "'ascii' codec"),
        (b"{", "not JSON"),
        (TEXT.replace('"return": "87011/92820"', '"return": "99/100"').encode(), "side_bets.aa.return: 99/100 is not"),
        (TEXT.replace(CASINO.sha256, "0" * 64).encode(), "ruleset_sha256"),
    ],
)
def test_a_game_whose_certificate_is_damaged_is_not_offered_and_no_other_is_touched(
    content: bytes, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "certificate_data").mkdir()
    (tmp_path / "certificate_data" / f"{CASINO.sha256}.json").write_bytes(content)
    monkeypatch.setattr("rgs.core.returns.certified.resources.files", lambda _: tmp_path)
    monkeypatch.setattr("rgs.core.returns.certified._read", _read.__wrapped__)  # what was read before does not count
    assert load_certified_returns(CASINO) is None
    with pytest.raises(GameNotOfferedError, match=f"that can be used: {CASINO.sha256}.json: .*{problem}"):
        verify_offered(CASINO, ITALY)
    assert why_not(load_ruleset("uth-solo")) == "uth-solo has no certificate of its returns"
    (tmp_path / "certificate_data" / f"{CASINO.sha256}.json").write_text(TEXT, encoding="ascii")
    verify_offered(CASINO, ITALY)


@pytest.mark.parametrize(("floor", "bet"), [(9_784, ""), (9_785, "main")])
def test_a_return_below_the_floor_is_not_offered(floor: int, bet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = load_certified_returns(CASINO)
    assert certificate is not None
    better = replace(certificate, side_bets={"aa": Fraction(1)})
    monkeypatch.setattr("rgs.core.returns.certified.load_certified_returns", lambda _: better)
    strict = replace(ITALY, return_floor_basis_points=floor)
    if not bet:
        verify_offered(CASINO, strict)  # 97.8424 %
        return
    with pytest.raises(GameNotOfferedError) as caught:
        verify_offered(CASINO, strict)
    assert caught.value.metadata["bet"] == bet
    assert caught.value.metadata["limit"] == "1957/2000"


def test_a_side_bet_below_the_floor_is_not_offered() -> None:
    with pytest.raises(GameNotOfferedError, match="aa returns 87011/92820, the floor of it-adm is 47/50") as caught:
        verify_offered(CASINO, replace(ITALY, return_floor_basis_points=9_400))
    assert caught.value.metadata["bet"] == "aa"
    verify_offered(load_ruleset("uth-solo"), replace(ITALY, return_floor_basis_points=9_400))


@pytest.mark.parametrize("text", ["1", "2/4", "-1/2", "1/0", "01/2", "1/2 ", "0/2", "x", "1.5/2", f"1/{10**40}", ""])
def test_other_fractions_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_return(text)
    assert parse_return("0/1") == 0
    assert parse_return("87011/92820") == Fraction(87011, 92820)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_certified_returns(text, CASINO)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("ruleset_sha256", "0" * 64, "ruleset_sha256"),
        ("return_initial", "2/4", "return_initial"),
        ("return_initial", 1, "return_initial"),
        ("return_total", "", "return_total"),
        ("side_bets", {}, "side_bets.aa"),
        ("side_bets", {"aa": {"value": "-5809/92820", "return": "0.9"}}, "side_bets.aa.return"),
        ("side_bets", {"aa": {}}, "side_bets.aa.value"),
        # Each is a fraction in lowest terms, and not what the values beside it come to.
        ("return_initial", "99/100", "return_initial"),
        ("return_total", "1/1", "return_total"),
        ("side_bets", {"aa": {"value": "-5809/92820", "return": "99/100"}}, "side_bets.aa.return"),
        ("expected_value_per_ante", "1363917077/63213204600", "return_initial"),
        ("expected_value_per_ante", "-2/4", "expected_value_per_ante"),
        ("expected_total_wager", "0/1", "expected_total_wager"),
        ("expected_total_wager", "-42039/15925", "expected_total_wager"),
    ],
)
def test_a_certificate_with_another_row_is_refused(key: str, value: object, named: str) -> None:
    with pytest.raises(RulesetError) as caught:
        parse_certified_returns(json.dumps({**json.loads(TEXT), key: value}), CASINO)
    assert caught.value.field == named
