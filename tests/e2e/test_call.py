"""`rgs call` against a real server: a whole round in JSON, streams both ways, refusals, and what is told on stderr.

A round is started and ended from processes of their own, as from a shell; the rest is asked within this one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from rgs.cli.call import CONTRACT, described, find, methods
from rgs.core.errors import InvalidFieldError
from rgs.core.statements import parse_envelope
from tests.support.process.served import Served, rgs, rgs_here, serving

Command = Callable[..., CompletedProcess[str]]

REQUEST_ID = re.compile(r"rgs: request_id ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("call")) as one:
        yield one


def call(served: Served, *arguments: str, said: str = "", command: Command = rgs_here) -> tuple[int, str, str]:
    """Exit status, stdout, stderr."""
    done = command("call", *arguments, "--home", str(served.home), "--server", served.address, said=said)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def answered(served: Served, method: str, command: Command = rgs_here, **fields: object) -> Any:
    status, out, err = call(served, method, json.dumps(fields), command=command)
    assert status == 0, err
    return json.loads(out)


def seated(served: Served, player: str) -> Any:
    """A session with 50.00 in it."""
    fields: dict[str, Any] = {
        "game": "casino-holdem",
        "player": player,
        "currency": "EUR",
        "operator_reference": player,
    }
    session = answered(served, "SessionService/OpenSession", **fields)["session"]
    named = {"session_id": session["session_id"], "purchase_no": session["next_purchase_no"]}
    return answered(served, "SessionService/BuyParticipation", **named, amount_minor=5000)["session"]


def test_a_round_from_a_shell(served: Served) -> None:
    session = seated(served, "round")
    assert (session["balance_minor"], session["status"]) == ("5000", "SESSION_STATUS_OPEN")
    bets = [{"bet": "ante", "amount_minor": 500}]
    named = {"session_id": session["session_id"]}
    started = answered(served, "PlayService/StartRound", rgs, **named, round_no=1, bets=bets)
    assert parse_envelope(base64.b64decode(started["opening"])).payload_type.startswith("application/vnd.rgs.round-op")
    round_ = started["round"]
    named |= {"round_id": round_["round_id"]}
    done = answered(served, "Act", rgs, **named, round_version=round_["round_version"], action="ACTION_FOLD")
    assert done["round"]["status"] == "ROUND_STATUS_SETTLED"
    shown = answered(served, "GetRound", **named)
    assert (shown["opening"], shown["final"]) == (started["opening"], done["final"])


def test_a_request_id_is_told_and_makes_a_repeat_the_same(served: Served) -> None:
    fields = {"game": "uth-solo", "player": "again", "currency": "EUR", "operator_reference": "ref-1"}
    status, first, err = call(served, "OpenSession", json.dumps(fields))
    assert status == 0
    found = REQUEST_ID.fullmatch(err.strip())
    assert found is not None
    status, second, err = call(served, "OpenSession", json.dumps(fields | {"request_id": found[1]}))
    assert (status, second, err) == (0, first, "")
    status, _, err = call(served, "OpenSession", "-", said=json.dumps(fields))  # under an id of its own
    assert status == 1
    assert "[OPERATOR_REFERENCE_USED]" in err
    status, third, _ = call(served, "OpenSession", "-", said=json.dumps(fields | {"operator_reference": "ref-2"}))
    assert status == 0
    assert json.loads(third)["session"]["session_id"] != json.loads(first)["session"]["session_id"]


def test_a_refusal_is_told_with_reason_and_metadata(served: Served) -> None:
    session = seated(served, "refused")
    fields = {"session_id": session["session_id"], "round_no": 1, "bets": [{"bet": "ante", "amount_minor": 1}]}
    status, out, err = call(served, "StartRound", json.dumps(fields))
    assert (status, out) == (1, "")
    result, *facts = err.splitlines()[1:]
    assert result.startswith("rgs: ")
    assert result.endswith("[STAKE_BELOW_MINIMUM]")
    assert facts == sorted(facts)
    assert any(re.fullmatch(r"  limit\w*: 10", fact) for fact in facts)


def test_who_calls_is_chosen(served: Served) -> None:
    session = seated(served, "roles")
    fields = json.dumps({"session_id": session["session_id"]})
    status, out, _ = call(served, "ListStatements", fields, "--as", "auditor")
    assert status == 0
    assert [one["kind"] for one in json.loads(out)["statements"]] == ["session_open", "purchase"]
    status, _, err = call(served, "GetSession", fields, "--as", "auditor")
    assert (status, "[ROLE_NOT_ALLOWED]\n" in err) == (1, True)
    status, _, err = call(served, "GetSession", fields, "--party", "demo-lab")
    assert (status, "[ROLE_NOT_ALLOWED]\n" in err) == (1, True)
    status, _, err = call(served, "GetSession", fields, "--party", "nobody")
    assert (status, "[FILE_REFUSED]\n" in err) == (1, True)


# --- streams -----------------------------------------------------------------------------------------------------


def test_play_reads_and_writes_lines(served: Served) -> None:
    session = seated(served, "stream")
    start = {"session_id": session["session_id"], "round_no": 1, "bets": [{"bet": "ante", "amount_minor": 500}]}
    lines = [{"start_round": start}, {"start_round": start | {"round_no": 7}}]
    status, out, err = call(served, "Play", said="".join(f"{json.dumps(line)}\n\n" for line in lines))
    assert status == 1  # one was refused, in band
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["start_round"]["round"]["status"] == "ROUND_STATUS_OPEN"
    assert [detail["reason"] for detail in second["error"]["details"] if "reason" in detail] == ["ROUND_OPEN"]
    assert [first["request_id"], second["request_id"]] == REQUEST_ID.findall(err)
    round_id = first["start_round"]["round"]["round_id"]
    poll = {"get_round": {"session_id": session["session_id"], "round_id": round_id}}
    status, out, err = call(served, "Play", "-", said=json.dumps(poll))  # no line feed at the end
    assert (status, err) == (0, "")
    assert json.loads(out)["get_round"]["round"]["round_id"] == round_id


def test_a_line_that_is_no_request_ends_the_stream(served: Served) -> None:
    poll = {"get_round": {"session_id": "x", "round_id": "y"}}
    status, out, err = call(served, "Play", said=f"{json.dumps(poll)}\n{{]\n{json.dumps(poll)}\n")
    assert (status, out.count("\n")) == (2, 1)  # what came before it was answered, what came after it was not sent
    assert re.fullmatch(r"rgs: cannot read a PlayRequest: .* \[MALFORMED field=json\]\n", err)


def test_a_stream_of_answers_is_one_a_line(served: Served) -> None:
    status, out, err = call(served, "Health/Watch", "{}", "--timeout", "5")
    assert json.loads(out) == {"status": "SERVING"}
    assert (status, "[DEADLINE_EXCEEDED]\n" in err) == (1, True)


# --- wrong usage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("NoSuch", "{}"), "there is no method NoSuch (see `rgs call --list`) [INVALID_FIELD field=method"),
        (("GetSession", "{"), "cannot read a GetSessionRequest: Failed to load JSON"),
        (("GetSession", '{"nothing": 1}'), 'has no field named "nothing"'),
        (("GetSession", '{"session_id": 1}'), "cannot read a GetSessionRequest: Failed to parse session_id field"),
        (("StartRound", '{"round_no": 1.5}'), "cannot read a StartRoundRequest"),
        (("Play", "{}"), "PlayService/Play reads its requests from stdin, one a line [INVALID_FIELD field=json]"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else value[0] + value[1],
)
def test_what_is_not_understood_is_said(served: Served, arguments: tuple[str, ...], said: str) -> None:
    status, out, err = call(served, *arguments)
    assert (status, out) == (2, "")
    assert said in err


def test_no_server_is_said_with_what_it_means(served: Served) -> None:
    done = rgs_here("call", "ListGames", "--home", str(served.home), "--server", "127.0.0.1:1", "--timeout", "5")
    assert (done.returncode, done.stdout) == (1, "")
    assert "[UNAVAILABLE]\n" in done.stderr
    assert "may have taken effect" in done.stderr


def test_the_list_is_the_contract() -> None:
    done = rgs_here("call", "--list")
    every = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(every) == sum(
        len(service.methods) for module in CONTRACT for service in module.DESCRIPTOR.services_by_name.values()
    )
    assert "PlayService/Play(stream PlayRequest) -> stream PlayResponse" in every
    assert "SessionService/GetSession(GetSessionRequest) -> GetSessionResponse" in every
    assert rgs_here("call").returncode == 2
    fields = rgs_here("call", "--list", "PlayService/StartRound").stdout.splitlines()
    assert fields[0] == "PlayService/StartRound(StartRoundRequest) -> StartRoundResponse"
    assert "  bets: repeated Bet" in fields
    assert "    amount_minor: int64" in fields


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_method_is_found_and_described(name: str) -> None:
    method = find(name)
    assert find(method.path).path == method.path
    assert find(method.path[1:]).name == name
    assert described(method)[0] == str(method)


def test_a_name_that_several_methods_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = find("Act"), find("GetRound")
    monkeypatch.setattr("rgs.cli.call.methods", lambda: {"a": one, "b": one, "c": other})
    with pytest.raises(InvalidFieldError, match="more than one method"):
        find("Act")
    assert find("GetRound") == other
