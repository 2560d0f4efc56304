"""The whole server at the wire: a player's life, repeats that are the first answer byte for byte, what stays hidden."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest

from rgs.core.statements import parse_envelope
from rgs.node.logging import Log
from rgs.service.callers import Role
from rgs.service.play.play import Play
from rgs.v1 import audit_pb2, catalog_pb2, common_pb2, history_pb2, play_pb2, session_pb2
from tests.support.api.client import ANTE_MINOR, BOUGHT_MINOR, ApiClient, cards_in, no_update, refused, request_id
from tests.support.api.harness import info_in, reason_in, serving, status_in
from tests.support.service.harness import read_statement

CHECK, PLAY_1X, PLAY_4X, FOLD = (
    common_pb2.ACTION_CHECK,
    common_pb2.ACTION_PLAY_1X,
    common_pb2.ACTION_PLAY_4X,
    common_pb2.ACTION_FOLD,
)


async def test_a_players_life(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        opened = await player.open()
        assert opened.session.status == common_pb2.SESSION_STATUS_OPEN
        assert opened.session.game_name == "Ultimate Texas Hold'em"
        assert read_statement(opened.statement)["kind"] == "session_open"
        bought = await player.buy()
        assert bought.session.balance_minor == BOUGHT_MINOR
        started = await player.start()
        assert read_statement(started.opening)["kind"] == "round_opening"
        assert started.session.balance_minor == BOUGHT_MINOR - 2 * ANTE_MINOR
        first = await player.act(CHECK)
        assert (first.final, len(first.round.board)) == (b"", 3)
        found = await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
        assert (found.session.open_round, found.opening) == (first.round, started.opening)
        await player.act(CHECK)
        last = await player.act(FOLD)
        final = read_statement(last.final)
        assert (final["kind"], final["staked_minor"]) == ("round_final", str(2 * ANTE_MINOR))
        assert last.round.outcome == common_pb2.OUTCOME_FOLD
        got = await player.play.GetRound(
            play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id)
        )
        assert (got.round, got.opening, got.final) == (last.round, started.opening, last.final)
        ids = (bought.session.regulator_session_id, bought.session.regulator_participation_id)
        assert all(ids)
        assert (got.regulator_session_id, got.regulator_participation_id) == ids
        ended = await player.sessions.EndParticipation(
            session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
        )
        assert ended.session.paid_out_minor == BOUGHT_MINOR - 2 * ANTE_MINOR
        closed = await player.sessions.CloseSession(
            session_pb2.CloseSessionRequest(request_id=request_id(), session_id=player.session_id)
        )
        assert closed.session.status == common_pb2.SESSION_STATUS_CLOSED
        assert read_statement(closed.statement)["kind"] == "session_close"

        listed = await player.sessions.ListSessions(session_pb2.ListSessionsRequest(player="player-1"))
        assert [view.session_id for view in listed.sessions] == [player.session_id]
        rounds = await player.history.ListRounds(history_pb2.ListRoundsRequest(player="player-1"))
        (summary,) = rounds.rounds
        assert (summary.round_id, summary.staked_minor, summary.currency) == (player.round_id, 200, "EUR")
        by_code = await player.history.GetRoundRecord(
            history_pb2.GetRoundRecordRequest(
                player="player-1",
                date=summary.start_time.ToDatetime().date().isoformat(),
                game_code=summary.game_code,
            )
        )
        by_id = await player.history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=player.round_id))
        assert by_code == by_id
        assert (by_id.records[0].opening, by_id.records[0].final) == (started.opening, last.final)
        statements = await player.audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=player.session_id))
        assert [row.kind for row in statements.statements] == [
            "session_open",
            "purchase",
            "round_opening",
            "round_final",
            "participation_end",
            "session_close",
        ]
        assert statements.statements[3].envelope == last.final
        again = await player.audit.GetStatement(audit_pb2.GetStatementRequest(hash=statements.statements[3].hash))
        assert again.statement == statements.statements[3]
        keys = await player.audit.ListKeyStatements(audit_pb2.ListKeyStatementsRequest())
        assert [read_statement(envelope)["kind"] for envelope in keys.envelopes] == ["root_key", "node_key"]


async def test_the_catalog(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        operator, lab = ApiClient(harness.channel()), ApiClient(harness.channel("demo-lab"))
        games = (await operator.catalog.ListGames(catalog_pb2.ListGamesRequest())).games
        assert [game.ruleset.id for game in games] == [
            "uth-online",
            "uth-seven-box",
            "uth-lugano",
            "uth-solo",
            "casino-holdem",
        ]
        solo = (await operator.catalog.GetGame(catalog_pb2.GetGameRequest(ruleset_id="uth-solo"))).game
        assert solo == games[3]
        assert (solo.family, solo.table_only, solo.seats_max, solo.currency) == (
            "ultimate_texas_holdem",
            False,
            1,
            "EUR",
        )
        assert [(limits.bet, limits.min_minor, limits.step_minor, limits.required) for limits in solo.limits] == [
            ("ante", 10, 2, True),
            ("trips", 10, 2, False),
        ]
        blind = next(table for table in solo.paytables if table.bet == "blind")
        assert [(row.category, row.pays) for row in blind.rows][:5] == [
            ("royal_flush", "500:1"),
            ("straight_flush", "50:1"),
            ("quads", "10:1"),
            ("full_house", "3:1"),
            ("flush", "3:2"),
        ]
        online = games[0]
        assert [(figure.name, figure.percent, figure.basis) for figure in online.returns][:2] == [
            ("main, per initial stake", "97.82", "certified"),
            ("main, per total stake", "99.47", "certified"),
        ]
        assert (await lab.catalog.ListGames(catalog_pb2.ListGamesRequest())).games[3].currency == ""
        error = await refused(operator.catalog.GetGame(catalog_pb2.GetGameRequest(ruleset_id="x")))
        assert reason_in(status_in(error)) == "UNKNOWN_RULESET"


# --- repeats ----------------------------------------------------------------------------------------------------------


def raw(player: ApiClient, service: str, method: str) -> Any:
    return player.channel.unary_unary(f"/rgs.v1.{service}/{method}")


async def test_a_repeat_is_the_first_answer_byte_for_byte_whatever_came_between(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        sent: list[tuple[str, str, bytes, bytes]] = []

        async def send(service: str, method: str, request: Any, kind: Any) -> Any:
            data = request.SerializeToString()
            answer = await raw(player, service, method)(data)
            assert await raw(player, service, method)(data) == answer
            sent.append((service, method, data, answer))
            return kind.FromString(answer)

        opened = await send("SessionService", "OpenSession", player.open_request(), session_pb2.OpenSessionResponse)
        player.session_id = opened.session.session_id
        await send("SessionService", "BuyParticipation", player.buy_request(), session_pb2.BuyParticipationResponse)
        player.seen(await send("PlayService", "StartRound", player.start_request(), play_pb2.StartRoundResponse))
        for action in (CHECK, CHECK, FOLD):
            player.seen(await send("PlayService", "Act", player.act_request(action), play_pb2.ActResponse))
        ids = {"session_id": player.session_id}
        end = session_pb2.EndParticipationRequest(request_id=request_id(), **ids)
        await send("SessionService", "EndParticipation", end, session_pb2.EndParticipationResponse)
        close = session_pb2.CloseSessionRequest(request_id=request_id(), **ids)
        await send("SessionService", "CloseSession", close, session_pb2.CloseSessionResponse)

        harness.clock.ahead_ms = 5_000
        for _ in range(2):
            for service, method, data, answer in sent:
                assert await raw(player, service, method)(data) == answer
            await harness.restart()
            player = ApiClient(harness.channel())


async def test_a_request_id_with_other_content_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        first = player.start_request()
        await player.play.StartRound(first)
        other = player.start_request(
            request_id=first.request_id, bets=[common_pb2.Bet(bet="ante", amount_minor=2 * ANTE_MINOR)]
        )
        error = await refused(player.play.StartRound(other))
        assert error.code() is grpc.StatusCode.ALREADY_EXISTS
        assert reason_in(status_in(error)) == "IDEMPOTENCY_CONFLICT"


async def test_a_request_id_belongs_to_one_party_and_one_method(tmp_path: Path) -> None:
    """One id for all six methods: six requests, six effects, and each of them is the answer to its own repeat. Another
    operator's request under the same id is another one.
    """
    same = request_id()
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        sent: list[tuple[Any, Any, Any]] = []

        async def send(method: Any, request: Any) -> Any:
            sent.append((method, request, await method(request)))
            return sent[-1][2]

        opened = await send(player.sessions.OpenSession, player.open_request(request_id=same))
        player.session_id = opened.session.session_id
        ids = {"request_id": same, "session_id": player.session_id}
        bought = await send(player.sessions.BuyParticipation, player.buy_request(**ids))
        assert bought.session.bought_minor == BOUGHT_MINOR
        player.seen(await send(player.play.StartRound, player.start_request(**ids)))
        acted = await send(player.play.Act, player.act_request(PLAY_4X, **ids))
        assert acted.round.status == common_pb2.ROUND_STATUS_SETTLED
        ended = await send(player.sessions.EndParticipation, session_pb2.EndParticipationRequest(**ids))
        assert ended.session.participation_ended
        closed = await send(player.sessions.CloseSession, session_pb2.CloseSessionRequest(**ids))
        assert closed.session.status == common_pb2.SESSION_STATUS_CLOSED
        for method, request, answer in sent:
            assert await method(request) == answer
        links = await player.audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=player.session_id))
        assert [row.kind for row in links.statements] == [
            *("session_open", "purchase", "round_opening", "round_final", "participation_end", "session_close"),
        ]
        certificate = harness.issue(Role.OPERATOR, "op-9")
        await harness.allow(certificate, Role.OPERATOR, "op-9", "demo")
        await asyncio.sleep(0.3)  # the list is read again
        other = ApiClient(harness.channel(certificate))
        elsewhere = await other.sessions.OpenSession(other.open_request(request_id=same))
        assert elsewhere.session.session_id != player.session_id


async def test_stream_and_unary_calls_are_the_same_calls(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play()

        async def ask(**request: Any) -> Any:
            await stream.write(play_pb2.PlayRequest(**request))
            return await no_update(stream)

        start = player.start_request()
        by_stream = await ask(start_round=start)
        assert by_stream.request_id == start.request_id
        assert by_stream.start_round == await player.play.StartRound(start)
        player.seen(by_stream.start_round)
        act = player.act_request(PLAY_4X)
        by_unary = await player.play.Act(act)
        assert (await ask(act=act)).act == by_unary
        get = play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id)
        assert (await ask(get_round=get)).get_round == await player.play.GetRound(get)
        late = await ask(act=player.act_request(CHECK))
        assert reason_in(late.error) == "ROUND_CHANGED"
        await stream.done_writing()
        assert await no_update(stream) is grpc.aio.EOF


async def test_a_page_token_is_good_for_its_own_list_only(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        anna, berta = ApiClient(harness.channel(), "anna"), ApiClient(harness.channel(), "berta")
        for player in (anna, berta):
            for _ in range(3):
                await player.open()
        certificate = harness.issue(Role.OPERATOR, "op-9")
        await harness.allow(certificate, Role.OPERATOR, "op-9", "demo")
        await asyncio.sleep(0.3)  # the list is read again
        stranger = ApiClient(harness.channel(certificate), "anna")

        def requested(**fields: Any) -> session_pb2.ListSessionsRequest:
            return session_pb2.ListSessionsRequest(**{"player": "anna", "page_size": 2, **fields})

        page = await anna.sessions.ListSessions(requested())
        token = page.next_page_token
        rest = await anna.sessions.ListSessions(requested(page_token=token, page_size=50))
        found = [view.session_id for view in (*page.sessions, *rest.sessions)]
        assert (len(set(found)), rest.next_page_token) == (3, "")
        for call in (
            anna.sessions.ListSessions(requested(page_token=token, player="berta")),
            anna.sessions.ListSessions(requested(page_token=token, player="")),
            anna.sessions.ListSessions(requested(page_token=token, open_only=True)),
            anna.sessions.ListOpenRounds(session_pb2.ListOpenRoundsRequest(page_token=token)),
            stranger.sessions.ListSessions(requested(page_token=token)),
        ):
            error = await refused(call)
            info = info_in(status_in(error))
            assert (error.code().name, info.reason) == ("INVALID_ARGUMENT", "INVALID_FIELD")
            assert info.metadata["field"] == "page_token"
        for size, limit in ((201, "200"), (-1, "1")):
            info = info_in(status_in(await refused(anna.sessions.ListSessions(requested(page_size=size)))))
            assert (info.metadata["field"], info.metadata["limit"]) == ("page_size", limit)


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_clash_of_versions_brings_the_fresh_view(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        await player.start()
        stale = player.act_request(PLAY_4X)
        await player.act(CHECK)
        found = await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
        error = await refused(player.play.Act(stale))
        assert error.code() is grpc.StatusCode.ABORTED
        result = status_in(error)
        assert reason_in(result) == "ROUND_CHANGED"
        fresh = play_pb2.ActResponse()
        assert [detail.Unpack(fresh) for detail in result.details].count(True) == 1
        assert fresh.round == found.session.open_round
        assert fresh.session.balance_minor == found.session.balance_minor


async def test_states_that_do_not_allow_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        for changes, reason, code in (
            ({"game": "uth-online"}, "TABLE_ONLY", grpc.StatusCode.FAILED_PRECONDITION),
            ({"game": "uth-moon"}, "UNKNOWN_RULESET", grpc.StatusCode.NOT_FOUND),
            ({"currency": "SEK"}, "JURISDICTION_REFUSES", grpc.StatusCode.FAILED_PRECONDITION),
        ):
            error = await refused(player.sessions.OpenSession(player.open_request(**changes)))
            assert (reason_in(status_in(error)), error.code()) == (reason, code)
        await player.open()
        error = await refused(player.play.StartRound(player.start_request()))
        assert reason_in(status_in(error)) == "PARTICIPATION_MISSING"
        error = await refused(player.sessions.BuyParticipation(player.buy_request(purchase_no=2)))
        assert dict(info_in(status_in(error)).metadata) == {"field": "purchase_no", "value": "2", "limit": "1"}
        await player.buy()
        for bets, reason in (
            ([("ante", 8)], "STAKE_BELOW_MINIMUM"),
            ([("ante", 100_002)], "STAKE_ABOVE_MAXIMUM"),
            ([("ante", 11)], "STAKE_NOT_MULTIPLE_OF_STEP"),
            ([("ante", 10), ("blind", 10)], "UNKNOWN_BET"),
            ([("trips", 10)], "INVALID_FIELD"),
            ([("ante", 40_000)], "INSUFFICIENT_BALANCE"),
        ):
            placed = [common_pb2.Bet(bet=bet, amount_minor=amount) for bet, amount in bets]
            error = await refused(player.play.StartRound(player.start_request(bets=placed)))
            assert reason_in(status_in(error)) == reason
        await player.start()
        error = await refused(player.play.StartRound(player.start_request()))
        assert info_in(status_in(error)).metadata["round_id"] == player.round_id
        error = await refused(player.play.Act(player.act_request(FOLD)))
        assert info_in(status_in(error)).metadata["legal"] == "ACTION_CHECK ACTION_PLAY_4X ACTION_PLAY_3X"
        lost = play_pb2.GetRoundRequest(session_id=player.session_id, round_id="01" + "0" * 24)
        assert (await refused(player.play.GetRound(lost))).code() is grpc.StatusCode.NOT_FOUND


async def test_reads_that_do_not_say_what_they_want(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        sessions, history, audit = player.sessions, player.history, player.audit
        ulid = "01" + "0" * 24
        for call, field in (
            (sessions.GetSession(session_pb2.GetSessionRequest(session_id="x")), "session_id"),
            (sessions.ListSessions(session_pb2.ListSessionsRequest(page_size=201)), "page_size"),
            (sessions.ListSessions(session_pb2.ListSessionsRequest(page_token="x")), "page_token"),  # noqa: S106
            (sessions.ListSessions(session_pb2.ListSessionsRequest(player="a b")), "player"),
            (history.ListRounds(history_pb2.ListRoundsRequest()), "player"),
            (history.ListRounds(history_pb2.ListRoundsRequest(player="p", page_size=-1)), "page_size"),
            (history.GetRoundRecord(history_pb2.GetRoundRecordRequest()), "round_id"),
            (history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=ulid, player="p")), "round_id"),
            (audit.GetStatement(audit_pb2.GetStatementRequest(hash=bytes(32), statement_no=1)), "hash"),
            (audit.GetStatement(audit_pb2.GetStatementRequest(hash=b"x")), "hash"),
            (audit.ListStatements(audit_pb2.ListStatementsRequest()), "session_id"),
            (audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=ulid, first_no=1)), "first_no"),
            (audit.ListStatements(audit_pb2.ListStatementsRequest(instance="n-b1-w0", last_no=-1)), "last_no"),
            (player.play.GetRound(play_pb2.GetRoundRequest(session_id="x")), "session_id"),
        ):
            error = await refused(call)
            result = status_in(error)
            assert (error.code(), info_in(result).metadata["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
            violations = BadRequest()
            assert [detail.Unpack(violations) for detail in result.details].count(True) == 1
            assert [violation.field for violation in violations.field_violations] == [field]


# --- what stays hidden ------------------------------------------------------------------------------------------------


async def test_nothing_that_is_sealed_is_said_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path) as harness:
        with Log(harness.config.log, "debug", harness.clock, people=None):
            player = await ApiClient(harness.channel()).seated()
            auditor = ApiClient(harness.channel("demo-auditor"))
            said = [await player.start()]
            assert set(cards_in(said[0])) == set(said[0].round.hole_cards)
            stream = player.play.Play()
            for _ in range(2):
                for request in (player.act_request(CHECK, round_version=99), player.act_request(PLAY_1X)):
                    said += views_in(await refused(player.play.Act(request)))
                with monkeypatch.context() as patched:
                    patched.setattr(Play, "get_round", broken_with_secrets)
                    get = play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id)
                    said += views_in(await refused(player.play.GetRound(get)))
                    await stream.write(play_pb2.PlayRequest(get_round=get))
                    said.append(await stream.read())
                said += await all_that_can_be_read(player, auditor)
                said.append(await player.act(CHECK))
            await stream.done_writing()
            final = read_statement((await player.act(FOLD)).final)
        log = harness.config.log.read_text("ascii")
    assert log.count('"event":"fault"') == 4
    assert len(said) > 20
    unseen = set(final["deck"][2:4] + final["deck"][9:])  # the dealer's two, and all that was never on the table
    secrets = [SECRET, final["salt"], final["transcript"], "".join(final["deck"])]
    forms = [form for secret in secrets for form in (secret.encode(), secret.upper().encode(), *from_hex(secret))]
    for message in said:
        data = message.SerializeToString()
        assert not set(cards_in(message)) & unseen, message
        assert not [form for form in forms if form in data], message
    assert not [form for form in forms if form in log.encode()]


SECRET = "5ec3e7" * 8


async def all_that_can_be_read(player: ApiClient, auditor: ApiClient) -> list[Any]:
    """What the contract offers for reading while the round is open, statements opened."""
    ids = {"session_id": player.session_id, "round_id": player.round_id}
    page = await auditor.audit.ListStatements(audit_pb2.ListStatementsRequest(session_id=player.session_id))
    record = history_pb2.GetRoundRecordRequest(round_id=player.round_id)
    return [
        await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id)),
        await player.sessions.ListSessions(session_pb2.ListSessionsRequest()),
        await player.play.GetRound(play_pb2.GetRoundRequest(**ids)),
        await player.history.GetRoundRecord(record),
        await auditor.history.GetRoundRecord(record),
        page,
        *(audit_pb2.Statement(private=parse_envelope(row.envelope).payload) for row in page.statements),
    ]


def from_hex(text: str) -> list[bytes]:
    return [] if set(text) - set("0123456789abcdef") else [bytes.fromhex(text)]


async def broken_with_secrets(_play: Play, _caller: Any, _session_id: str, _round_id: str) -> Any:
    salt = SECRET
    raise ValueError(salt)


def views_in(error: grpc.aio.AioRpcError) -> list[Any]:
    result = status_in(error)
    view = play_pb2.ActResponse()
    return [result, *[view for detail in result.details if detail.Unpack(view)]]
