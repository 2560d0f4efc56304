"""What a purchase may amount to, at the test regulator and over gRPC alike: the words are the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from tests.support.adapters.books import make_regulator, opening, purchase, ulid
from tests.support.adapters.simulators import running_regulator


@pytest.fixture(params=["embedded", "grpc"])
async def regulator(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """A regulator in which session 1 is open, and that session's id."""
    if request.param == "embedded":
        regulator, _ = make_regulator(tmp_path / "regulator.sqlite")
        yield regulator, (await regulator.open_session(opening(ulid(1)))).regulator_session_id
        await regulator.close()
        return
    async with running_regulator(tmp_path) as running:
        yield running.client, (await running.client.open_session(opening(ulid(1)))).regulator_session_id


@pytest.mark.parametrize("amount_minor", [0, -1])
async def test_a_purchase_of_nothing_is_refused_in_the_regulators_own_words(regulator: Any, amount_minor: int) -> None:
    client, session = regulator
    with pytest.raises(InvalidFieldError) as refused:
        await client.buy_participation(purchase(ulid(2), session, amount_minor=amount_minor))
    assert refused.value.message == f"the amount of a purchase must be positive, not {amount_minor}"
    assert refused.value.field == "amount_minor"
    assert refused.value.metadata == {"rejection": "AMOUNT_NOT_POSITIVE", "value": str(amount_minor)}


@pytest.mark.parametrize("no_number", ["1", "", None, False, True, 0.0, 1.0], ids=repr)
async def test_what_is_no_number_is_no_amount(regulator: Any, no_number: Any) -> None:
    client, session = regulator
    with pytest.raises(InvalidFieldError) as refused:
        await client.buy_participation(purchase(ulid(2), session, amount_minor=no_number))
    assert refused.value.field == "amount_minor"
    assert "rejection" not in refused.value.metadata


async def test_one_minor_unit_is_a_purchase(regulator: Any) -> None:
    client, session = regulator
    bought = await client.buy_participation(purchase(ulid(2), session, amount_minor=1))
    assert bought.regulator_participation_id.startswith("N")
