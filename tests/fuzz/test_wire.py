"""Every RPC under fuzz, over mutual TLS, in every role; `make fuzz` for long runs. The oracle sees planted defects."""

from __future__ import annotations

import logging
import sqlite3
from asyncio import Runner
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from rgs.api.auth import ROLES
from rgs.core.errors import InvalidFieldError
from rgs.service.audit.totals import Reports
from rgs.service.play.catalog import Catalog
from rgs.service.play.history import History
from rgs.service.play.play import Play
from tests.support.api.wired import PARTIES, REQUESTS
from tests.support.fuzz import campaign
from tests.support.fuzz.messages import Known, Repeat, Step, right, steps
from tests.support.fuzz.siege import ADMIN, PLAY, Siege, besiege
from tests.support.service.harness import KEK

pytestmark = pytest.mark.slow

EXAMPLES, STEPS = 40, 25


@pytest.mark.timeout(0)  # as long as FUZZ_SECONDS says; EXAMPLES bound the ordinary run
def test_nothing_breaks_and_nothing_moves(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    drawn = st.lists(steps(), min_size=STEPS, max_size=STEPS)

    def examples(runner: Runner, siege: Siege) -> None:
        def live(batch: list[Step | Repeat]) -> None:
            runner.run(siege.run(batch))

        for seed in campaign.seeds(pytestconfig):
            campaign.run(live, {"batch": drawn}, seed, EXAMPLES)

    siege = besiege(tmp_path, examples)
    # It would be no siege if everything was turned away at the door: about 27 methods take something of what is drawn.
    assert len(_accepted(siege)) >= 10


def _accepted(siege: Siege) -> set[str]:
    return {outcome.split()[0] for outcome in siege.counts if outcome.endswith(" 0")}


NEEDS_MORE = {
    *("AddCertificate", "GetRoundRecord", "ListStatements", "SetSwitch"),  # fields that exclude others
    *("CloseSession", "ReleaseReports", "RemoveCertificate", "ResumeRound"),  # a call before it
    *("CancelBets", "ResumeTable", "VoidTableRound"),  # a table that is paused
    *("Countersign", "GetReport", "ListBreaks", "ResolveBreak"),  # a report
    *("SubmitReceipts", "SubmitRegulatorBook", "SubmitWalletStatement"),  # a stream in its order
}
"""Methods that take more than one message in which every field on its own is right."""


def test_what_the_siege_takes_for_right_is_let_through(tmp_path: Path) -> None:
    def every_method(runner: Runner, siege: Siege) -> None:
        for method in sorted(REQUESTS):
            allowed = {party for party, role in PARTIES.items() if role in ROLES[method]}
            party = "op-1" if "op-1" in allowed else min(allowed)
            for _ in range(2):  # with a round in play, and with none
                runner.run(siege.run([Step(party, method, right(REQUESTS[method]))]))

    siege = besiege(tmp_path, every_method)
    assert _accepted(siege) == {method.split("/")[1] for method in REQUESTS} - NEEDS_MORE


READ = Step("op-1", "rgs.v1.HistoryService/ListRounds", {"player": Known("player")})
GAME = Step("op-1", "rgs.v1.CatalogService/GetGame", {"ruleset_id": Known("ruleset_id")})
SWITCHES = Step("admin-1", f"{ADMIN}ListEvents", {})
ROUND = Step("op-1", f"{PLAY}GetRound", {"session_id": Known("session_id"), "round_id": Known("round_id")})


def sees(folder: Path, *batch: Step | Repeat) -> None:
    besiege(folder, lambda runner, siege: runner.run(siege.run(list(batch))))


def test_the_planted_defects_are_planted_in_sound_code(tmp_path: Path) -> None:
    sees(tmp_path, READ, GAME, SWITCHES, ROUND)


def test_the_oracle_sees_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr(Reports, "list_events", broken)
    with pytest.raises(AssertionError, match="ListEvents"):
        sees(tmp_path, SWITCHES)


def test_the_oracle_sees_money_that_a_read_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_rounds = History.list_rounds

    async def generous(*arguments: Any) -> Any:
        with closing(sqlite3.connect(tmp_path / "wallet.db")) as connection:
            connection.execute("UPDATE accounts SET balance_minor = balance_minor + 1")
            connection.commit()
        return await list_rounds(*arguments)

    monkeypatch.setattr(History, "list_rounds", generous)
    with pytest.raises(AssertionError, match="ListRounds"):
        sees(tmp_path, READ)


def test_the_oracle_sees_a_key_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def talkative(*_: Any) -> Any:
        raise InvalidFieldError("no such game", field="ruleset_id", value=KEK.keys[1].hex())

    monkeypatch.setattr(Catalog, "get", talkative)
    with pytest.raises(AssertionError, match="hex"):
        sees(tmp_path, GAME)


def test_the_oracle_sees_a_library_complain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get_round = Play.get_round

    async def spills(*arguments: Any) -> Any:
        logging.getLogger("grpc").error("Unexpected exception")
        return await get_round(*arguments)

    monkeypatch.setattr(Play, "get_round", spills)
    with pytest.raises(AssertionError, match="Unexpected exception"):
        sees(tmp_path, ROUND)
