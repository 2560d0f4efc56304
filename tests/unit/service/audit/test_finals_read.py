"""The stream of finals: each once and in order, from a number or a token on, and a token only of the same list."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.service.audit import finals as module
from rgs.service.audit.finals import PAGE, PlacedFinal
from rgs.service.callers import Caller, Role
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player

OTHER = Caller("op-2", Role.OPERATOR, "demo")


async def read(harness: ServiceHarness, caller: Caller = OPERATOR, **given: Any) -> list[PlacedFinal]:
    """All that there is from this place on."""
    wanted = {"resume_token": "", "first_no": 0, "follow": False, **given}
    return [one async for one in harness.services.finals.watch(caller, **wanted) if one is not None]


async def refused(harness: ServiceHarness, **given: Any) -> InvalidFieldError:
    with pytest.raises(InvalidFieldError) as caught:
        await read(harness, **given)
    return caught.value


async def played(harness: ServiceHarness, count: int) -> Player:
    """Rounds of one player, listed."""
    anna = Player(harness)
    await anna.sit(100_000)
    for _ in range(count):
        await anna.play()
    assert await harness.services.finals_list.poll() == count
    assert await harness.services.finals_list.poll() == 0
    return anna


async def test_each_final_comes_once_with_its_round_and_session(harness: ServiceHarness) -> None:
    anna = await played(harness, 4)
    found = await read(harness)
    assert [one.listed.final_no for one in found] == [1, 2, 3, 4]
    assert [one.round.round_no for one in found] == [1, 2, 3, 4]
    assert [one.listed.round_id for one in found] == [one.round.round_id for one in found]
    assert {one.session.session_id for one in found} == {anna.session_id}
    assert {one.path for one in found} == {()}
    assert await read(harness, OTHER) == []
    assert [one.listed.final_no for one in await read(harness, first_no=3)] == [3, 4]
    assert await read(harness, first_no=5) == []


async def test_a_session_is_read_once_for_a_page(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    await played(harness, 3)
    genuine, requested = harness.store.session, list[str]()

    async def session(session_id: str, *, fresh: bool = True) -> Any:
        assert fresh
        requested.append(session_id)
        return await genuine(session_id, fresh=fresh)

    monkeypatch.setattr(harness.store, "session", session)
    await read(harness)
    assert len(requested) == 1


async def test_a_stream_goes_on_behind_each_final(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the pages that it reads."""
    assert PAGE == 50
    await played(harness, 4)
    for page in (1, 2, 4, 5):
        monkeypatch.setattr(module, "PAGE", page)
        found = await read(harness)
        assert [one.listed.final_no for one in found] == [1, 2, 3, 4]
        for one in found:
            behind = await read(harness, resume_token=one.resume_token)
            assert [each.listed.final_no for each in behind] == list(range(one.listed.final_no + 1, 5))


async def test_who_follows_gets_later_finals_too_and_none_in_between(harness: ServiceHarness) -> None:
    anna = await played(harness, 2)
    stream = harness.services.finals.watch(OPERATOR, resume_token="", first_no=2, follow=True)
    following: list[Any] = [await anext(stream), await anext(stream)]
    assert [one and one.listed.final_no for one in following] == [2, None]
    await anna.play()
    assert await anext(stream) is None, "it is not listed yet"
    await harness.services.finals_list.poll()
    later = await anext(stream)
    assert later is not None
    assert later.listed.final_no == 3
    await stream.aclose()  # type: ignore[attr-defined]


async def test_a_token_is_of_one_place_in_one_list(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins with a version, and has the number and 32 characters of the mark; any other text is refused."""
    await played(harness, 2)
    first, second = await read(harness)
    text = base64.urlsafe_b64decode(first.resume_token + "=" * (-len(first.resume_token) % 4)).decode()
    assert text == f"f1 1 {first.listed.mark[:32]}"

    def token(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    for other in (
        "x" * 41, "x" * 201, token(text) + "=", token(text.replace("f1", "f2")), token(text + "0"), token(text[:-1]),
        token(text.replace(" 1 ", " 0 ")), token(text.replace(" 1 ", " 01 ")), token(text.replace(" 1 ", " -1 ")),
        token(text.replace(" 1 ", f" {1 << 63} ")), token("f1 1"), token(text + " 1"),
    ):  # fmt: skip
        error = await refused(harness, resume_token=other)
        assert (error.field, error.metadata) == ("resume_token", {"value": other[:40]}), other
    for gone in (text.replace(" 1 ", " 9 "), f"f1 1 {second.listed.mark[:32]}"):
        error = await refused(harness, resume_token=token(gone))
        assert (error.field, error.metadata) == ("resume_token", {"value": gone.split(" ")[1]})
        assert "backup was restored" in error.message
    with pytest.raises(InvalidFieldError):
        await read(harness, OTHER, resume_token=first.resume_token)


async def test_a_place_is_named_in_one_way(harness: ServiceHarness) -> None:
    await played(harness, 1)
    (first,) = await read(harness)
    both = await refused(harness, resume_token=first.resume_token, first_no=1)
    assert (both.field, both.metadata) == ("first_no", {"value": "1"})
    below = await refused(harness, first_no=-1)
    assert (below.field, below.metadata["value"]) == ("first_no", "-1")
