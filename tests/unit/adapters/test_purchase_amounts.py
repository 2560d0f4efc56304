"""What a purchase may amount to, at the test register and over gRPC alike: the words are the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from tests.support.adapters.books import make_register, opening, purchase, ulid
from tests.support.adapters.simulators import running_regulator


@pytest.fixture(params=["embedded", "grpc"])
async def central(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """A central system in which session 1 is open, and that session's id."""
    if request.param == "embedded":
        register, _ = make_register(tmp_path / "register.sqlite")
        yield register, (await register.open_session(opening(ulid(1)))).regulator_session_id
        await register.close()
        return
    async with running_regulator(tmp_path) as running:
        yield running.client, (await running.client.open_session(opening(ulid(1)))).regulator_session_id


@pytest.mark.parametrize("amount_minor", [0, -1])
async def test_a_purchase_of_nothing_is_refused_in_the_registers_own_words(central: Any, amount_minor: int) -> None:
    client, session = central
    with pytest.raises(InvalidFieldError) as refused:
        await client.buy_participation(purchase(ulid(2), session, amount_minor=amount_minor))
    assert refused.value.message == f"the amount of a purchase must be positive, not {amount_minor}"
    assert refused.value.field == "amount_minor"
    assert refused.value.metadata == {"rejection": "AMOUNT_NOT_POSITIVE", "value": str(amount_minor)}


@pytest.mark.parametrize("no_number", ["1", "", None, False, True, 0.0, 1.0], ids=repr)
async def test_what_is_no_number_is_no_amount(central: Any, no_number: Any) -> None:
    client, session = central
    with pytest.raises(InvalidFieldError) as refused:
        await client.buy_participation(purchase(ulid(2), session, amount_minor=no_number))
    assert refused.value.field == "amount_minor"
    assert "rejection" not in refused.value.metadata


async def test_one_minor_unit_is_a_purchase(central: Any) -> None:
    client, session = central
    bought = await client.buy_participation(purchase(ulid(2), session, amount_minor=1))
    assert bought.regulator_participation_id.startswith("N")
