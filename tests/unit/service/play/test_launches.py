"""Launches: a one-use token opens the session that was prepared, once, in its time, for its operator, and is nowhere
to be read.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from rgs.core.errors import (
    IdempotencyConflictError,
    InvalidFieldError,
    JurisdictionError,
    LaunchExpiredError,
    LaunchUsedError,
    NotFoundError,
    RegulatorRefusedError,
    RegulatorUnavailableError,
    RgsError,
    UnknownRulesetError,
)
from rgs.core.games.types import StakeLimits
from rgs.core.limits import SessionLimits
from rgs.core.sessions import Mode
from rgs.node.logging import Log
from rgs.service.callers import Caller, Reply, Role
from rgs.service.idempotency import Answers
from rgs.service.play.launches import LAUNCH_MS, launch_hash
from rgs.service.play.requests import CreateLaunch, OpenSession
from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreError
from tests.support.clocks import ManualClock
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.leaks import files
from tests.support.service.oracles import export_lines, table
from tests.support.service.player import Player
from tests.unit.service.money.test_refused import database, living

__all__ = ["database"]

STRANGER = Caller("op-9", Role.OPERATOR, "demo")
ANTE = (("ante", StakeLimits(20, 400)),)


def creating(harness: ServiceHarness, **fields: Any) -> CreateLaunch:
    given: dict[str, Any] = {
        "game": "uth-solo",
        "player": "anna",
        "currency": "CHF",
        "operator_reference": "ref:1",
        "limits": SessionLimits(loss_minor=5_000),
        "session_token": "of-the-operator",
        "bet_limits": ANTE,
        "language": "it",
        "return_url": "https://casino.example/back?table=3",
    }
    return CreateLaunch(harness.request_id(), **given | fields)


def redeeming(harness: ServiceHarness, token: str, **fields: Any) -> OpenSession:
    return OpenSession(harness.request_id(), **{**dict.fromkeys(BARE, ""), **fields}, launch_token=token)


OTHER_TOKEN = "another"  # noqa: S105 - of a test
BARE = ("game", "player", "currency", "operator_reference")


async def refusal(call: Any, error: type[RgsError]) -> RgsError:
    with pytest.raises(RgsError) as caught:
        await call
    assert type(caught.value) is error, caught.value
    return caught.value


async def test_a_token_opens_the_session_that_was_prepared(tmp_path: Path, database: PostgresAddress | None) -> None:
    async with living(tmp_path, database, ManualClock()) as harness:
        token, expire_ms = await harness.launches.create(OPERATOR, creating(harness))
        assert expire_ms == harness.clock.now_ms() + LAUNCH_MS
        assert len(token) == 43
        anna = Player(harness)
        await anna.send(redeeming(harness, token))
        session = (await anna.view()).session
        assert (session.ruleset_id, session.player, session.currency) == ("uth-solo", "anna", "CHF")
        assert (session.operator_reference, session.language) == ("ref:1", "it")
        assert session.return_url == "https://casino.example/back?table=3"
        assert (session.limits, session.bet_limits, session.mode) == (SessionLimits(loss_minor=5_000), ANTE, Mode.REAL)
        sealed = await harness.store.session_token(session.session_id)
        assert harness.instance.sealer.unseal_token(session.session_id, sealed) == "of-the-operator"


async def test_it_opens_one_session_and_a_repeat_gets_the_same(
    tmp_path: Path, database: PostgresAddress | None
) -> None:
    async with living(tmp_path, database, ManualClock()) as harness:
        token, _ = await harness.launches.create(OPERATOR, creating(harness))
        request = redeeming(harness, token)
        calls = [harness.send(request), harness.send(request), harness.send(redeeming(harness, token))]
        done = await asyncio.gather(*calls, return_exceptions=True)
        opened = {reply.envelope for reply in done if isinstance(reply, Reply)}
        assert len(opened) == 1
        errors = [error for error in done if not isinstance(error, Reply)]
        assert all(isinstance(error, LaunchUsedError) for error in errors), errors
        first = next(reply for reply in done if isinstance(reply, Reply))
        harness.clock.tick(10 * LAUNCH_MS)
        await refusal(harness.send(redeeming(harness, token)), LaunchUsedError)
        if isinstance(done[0], Reply):
            assert await harness.send(request) == first
            other = replace(request, launch_token="A" * 43)
            await refusal(harness.send(other), IdempotencyConflictError)


@pytest.mark.parametrize("count", [2, 8])
async def test_many_at_once_open_one(tmp_path: Path, database: PostgresAddress | None, count: int) -> None:
    async with living(tmp_path, database, ManualClock()) as harness:
        token, _ = await harness.launches.create(OPERATOR, creating(harness))
        calls = [harness.send(redeeming(harness, token)) for _ in range(count)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(one, Reply) for one in done) == 1
        assert sum(isinstance(one, LaunchUsedError) for one in done) == count - 1, done
        page, _ = await harness.sessions.list(OPERATOR, "anna", open_only=False, page_size=50, page_token="")
        assert len(page) == 1


async def test_what_opens_nothing(harness: ServiceHarness) -> None:
    token, _ = await harness.launches.create(OPERATOR, creating(harness))
    unknown = await refusal(harness.send(redeeming(harness, "A" * 43)), NotFoundError)
    stolen = await refusal(harness.send(redeeming(harness, token), STRANGER), NotFoundError)
    assert (unknown.message, unknown.metadata) == (stolen.message, stolen.metadata)
    assert stolen.metadata == {"kind": "launch"}
    for text in ("x", token[:-1], token + "A", token[:-1] + "=", token[:-1] + "é"):
        error = await refusal(harness.send(redeeming(harness, text)), InvalidFieldError)
        assert (error.field, error.metadata["limit"]) == ("launch_token", "43")
    harness.clock.tick(LAUNCH_MS - 1)
    other, _ = await harness.launches.create(OPERATOR, creating(harness))
    harness.clock.tick(1)
    late = await refusal(harness.send(redeeming(harness, token)), LaunchExpiredError)
    assert late.metadata == {"limit": "60000", "value": "60000"}
    assert table(harness.folder, "SELECT * FROM sessions") == []
    await harness.send(redeeming(harness, other))
    used = await refusal(harness.send(redeeming(harness, other)), LaunchUsedError)
    assert used.metadata == {}
    assert "anna" not in used.message


async def test_the_last_millisecond_counts(harness: ServiceHarness) -> None:
    token, _ = await harness.launches.create(OPERATOR, creating(harness))
    harness.clock.tick(LAUNCH_MS - 1)
    await harness.send(redeeming(harness, token))


async def test_a_repeat_of_the_launch_gets_another_token_of_the_same_launch(harness: ServiceHarness) -> None:
    request = creating(harness)
    first, expire_ms = await harness.launches.create(OPERATOR, request)
    harness.clock.tick(1_000)
    second, again_ms = await harness.launches.create(OPERATOR, replace(request, session_token=OTHER_TOKEN))
    assert (expire_ms, first != second) == (again_ms, True)
    await refusal(harness.send(redeeming(harness, first)), NotFoundError)
    await refusal(harness.launches.create(OPERATOR, replace(request, player="bert")), IdempotencyConflictError)
    await harness.send(redeeming(harness, second))
    await refusal(harness.launches.create(OPERATOR, request), LaunchUsedError)
    expired = creating(harness)
    await harness.launches.create(OPERATOR, expired)
    harness.clock.tick(LAUNCH_MS)
    await refusal(harness.launches.create(OPERATOR, expired), LaunchExpiredError)


async def test_two_of_one_request_at_once_make_one_launch(tmp_path: Path, database: PostgresAddress | None) -> None:
    async with living(tmp_path, database, ManualClock()) as harness:
        request = creating(harness)
        made = await asyncio.gather(*(harness.launches.create(OPERATOR, request) for _ in range(4)))
        tokens = {token for token, _ in made}
        assert len(tokens) == 4
        valid = [token for token in tokens if await harness.store.launch_of_token(launch_hash(token)) is not None]
        assert len(valid) == 1


async def test_what_the_request_says_must_be_what_the_launch_says(harness: ServiceHarness) -> None:
    request = creating(harness)
    token, _ = await harness.launches.create(OPERATOR, request)
    others: dict[str, Any] = {
        "game": "casino-holdem", "player": "bert", "currency": "EUR", "operator_reference": "ref:2",
        "limits": SessionLimits(loss_minor=6_000), "session_token": "stolen-one", "table": "t-1",
        "mode": Mode.DEMO, "bet_limits": (("ante", StakeLimits(20, 402)),), "language": "de",
        "return_url": "https://elsewhere.example/",
    }  # fmt: skip
    for name, value in others.items():
        error = await refusal(harness.send(redeeming(harness, token, **{name: value})), InvalidFieldError)
        assert error.field == name
        assert str(value) not in error.message
    same = {name: getattr(request, name) for name in others} | {"mode": Mode.REAL}
    await harness.send(redeeming(harness, token, **same))


REFUSED: list[tuple[dict[str, Any], type[RgsError], str]] = [
    ({"game": "poker"}, UnknownRulesetError, "game"),
    ({"currency": "SEK"}, JurisdictionError, "currency"),
    ({"language": "fr"}, JurisdictionError, "language"),
    ({"player": ""}, InvalidFieldError, "player"),
    ({"operator_reference": "a/b"}, InvalidFieldError, "operator_reference"),
    ({"limits": SessionLimits(loss_minor=-1)}, InvalidFieldError, "limits.loss_minor"),
    ({"bet_limits": (("ante", StakeLimits(8, 400)),)}, InvalidFieldError, "bet_limits.ante.min_minor"),
    ({"bet_limits": (("ante", StakeLimits(20, 401)),)}, InvalidFieldError, "bet_limits.ante.max_minor"),
    ({"bet_limits": (("ante", StakeLimits(400, 20)),)}, InvalidFieldError, "bet_limits.ante.min_minor"),
    ({"bet_limits": (("blind", StakeLimits(20, 40)),)}, InvalidFieldError, "bet_limits"),
    ({"mode": Mode.DEMO, "table": "t-1"}, InvalidFieldError, "mode"),
    *(
        ({"return_url": url}, InvalidFieldError, "return_url")
        for url in (
            "http://casino.example/", "ftp://casino.example/", "javascript:alert(1)", "https://", "//casino.example",
            "https://user@casino.example/", "https://casino.example/#part", "https://casino.example/ x",
            "https://[::1]/", "http://localhost.example/", "http://localhost@casino.example/", "https://a\n.example/",
            "https://casino.example:0/", "https://casino.example\\@x/", "HTTPS://casino.example/", "https://-a.example/",
            "https://casino.example/" + "a" * 1_024, "https://caf\u00e9.example/",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "error", "field"), REFUSED)
async def test_a_launch_is_refused_as_its_session_would_be(
    harness: ServiceHarness, fields: dict[str, Any], error: type[RgsError], field: str
) -> None:
    request = creating(harness, **fields)
    caught = await refusal(harness.launches.create(OPERATOR, request), error)
    assert caught.field == field
    assert table(harness.folder, "SELECT * FROM launches") == []
    opened = await refusal(harness.send(request.wanted()), error)
    assert opened.field == field
    if field == "return_url":
        assert "example" not in caught.message


BACK = ("", "https://casino.example", "https://casino.example:8443/a/b?c=%20d&e=f", "http://localhost:5173/")


@pytest.mark.parametrize("url", BACK)
async def test_addresses_that_lead_back(harness: ServiceHarness, url: str) -> None:
    await harness.launches.create(OPERATOR, creating(harness, return_url=url))


async def test_an_address_of_this_machine_is_for_development_only(harness: ServiceHarness) -> None:
    italian = Caller("op-it", Role.OPERATOR, "it-adm")
    request = creating(harness, currency="EUR", return_url="http://localhost:5173/")
    assert (await refusal(harness.launches.create(italian, request), InvalidFieldError)).field == "return_url"


async def test_an_opening_without_an_answer_goes_on_under_its_request(harness: ServiceHarness) -> None:
    token, _ = await harness.launches.create(OPERATOR, creating(harness))
    request = redeeming(harness, token)
    harness.regulator_script.plan("open_session", "after")
    await refusal(harness.send(request), RegulatorUnavailableError)
    await refusal(harness.send(redeeming(harness, token)), LaunchUsedError)
    harness.clock.tick(10 * LAUNCH_MS)
    anna = Player(harness)
    await anna.send(request)
    assert (await anna.view()).session.currency == "CHF"


async def test_an_opening_that_is_refused_uses_its_token(harness: ServiceHarness) -> None:
    token, _ = await harness.launches.create(OPERATOR, creating(harness))
    request = redeeming(harness, token)
    harness.regulator_script.plan("open_session", RegulatorRefusedError("no", rejection="X"))
    await refusal(harness.send(request), RegulatorRefusedError)
    await refusal(harness.send(request), RegulatorRefusedError)
    await refusal(harness.send(redeeming(harness, token)), LaunchUsedError)


async def test_a_store_that_fails_leaves_the_token_unused(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = await harness.launches.create(OPERATOR, creating(harness))
    with monkeypatch.context() as patched:

        async def fails(_change: object) -> None:
            raise StoreError("no")

        patched.setattr(harness.store, "commit", fails)
        await refusal(harness.send(redeeming(harness, token)), StoreError)
    await harness.send(redeeming(harness, token))


async def test_launches_go_after_the_retry_window(harness: ServiceHarness) -> None:
    await harness.launches.create(OPERATOR, creating(harness))
    answers = Answers(harness.store, harness.clock, 24, "test")
    for hours in range(40):
        await answers.poll()
        count = len(table(harness.folder, "SELECT * FROM launches"))
        assert count == 1 or hours >= 24
        harness.clock.tick(3_600_000)
    assert table(harness.folder, "SELECT * FROM launches") == []


async def test_a_token_is_nowhere_to_be_read(tmp_path: Path) -> None:
    """Files, logs, errors, statements, exports, reprs of our objects: the hash is there, and nothing else of it."""
    errors: list[RgsError] = []
    with Log(tmp_path / "rgs.log", "debug", ManualClock(), people=None):
        async with open_harness(tmp_path) as harness:
            commit = harness.store.commit

            async def watch(change: Any) -> Any:
                structlog.get_logger().info("commit", change=change, seen=repr(change), text=str(change))
                return await commit(change)

            harness.store.commit = watch  # type: ignore[method-assign]
            wanted = [creating(harness, operator_reference=f"ref:{number}") for number in range(3)]
            tokens = [(await harness.launches.create(OPERATOR, one))[0] for one in wanted]
            for token in tokens[:2]:
                request = redeeming(harness, token)
                structlog.get_logger().info("request", request=request, seen=repr(request))
                await harness.send(request)
                errors.append(await refusal(harness.send(redeeming(harness, token)), LaunchUsedError))
                errors.append(await refusal(harness.send(redeeming(harness, token), STRANGER), NotFoundError))
                errors.append(await refusal(harness.send(redeeming(harness, token + "A")), InvalidFieldError))
            harness.clock.tick(LAUNCH_MS)
            errors.append(await refusal(harness.send(redeeming(harness, tokens[2])), LaunchExpiredError))
            for error in errors:
                structlog.get_logger().warning("refused", exc_info=error)
            ours = [
                repr(value)
                for value in gc.get_objects()
                if str(getattr(type(value), "__module__", "")).split(".")[0] == "rgs" and not isinstance(value, type)
            ]
            places = {
                **files(tmp_path),
                "reprs": "\n".join(ours).encode("utf-8", "replace"),
                "errors": "\n".join(f"{error!r} {error} {error.metadata}" for error in errors).encode(),
            }
            kept = {row[0] for row in table(tmp_path, "SELECT token_hash FROM launches")}
    places |= {f"{name} at the end": data for name, data in files(tmp_path).items()}
    places["export"] = b"\n".join(export_lines(tmp_path))
    assert places.keys() >= {"rgs.db", "rgs.db-wal", "rgs.log", "export"}
    forms = [form for token in tokens for form in (token.encode(), token[:20].encode(), token[-20:].encode())]
    forms += [b"of-the-operator"]
    assert [(name, form) for name, data in places.items() for form in forms if form in data] == []
    assert kept == {hashlib.sha256(b"rgs/launch/v1\0" + token.encode()).digest() for token in tokens}


async def test_tokens_come_from_the_tested_source(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    genuine = harness.instance.random_bytes

    def watched(count: int) -> bytes:
        sizes.append(count)
        return genuine(count)

    monkeypatch.setattr(harness.instance, "random_bytes", watched)
    await harness.launches.create(OPERATOR, creating(harness))
    assert 32 in sizes
