"""The verifier in TypeScript, which shares no code with ours, says what `certify replay` says: the same checks on the
same lines, the same counts and the same last line, on good files and on planted ones.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from certification import replay
from rgs.core.replay import Summary
from tests.integration import test_table_rounds_twice as twice
from tests.integration.test_replay_agreement import HONEST
from tests.support.records.changing import (
    STORIES,
    Export,
    cut_at_links,
    cut_with_holes,
    with_changed_fields,
    with_changed_lines,
)
from tests.support.records.cutting import cut_session, sessions_of
from tests.support.records.factory import RecordFactory, join
from tests.support.records.granted import free_bets
from tests.support.records.lies import Planted, lie_at, put
from tests.support.records.lying import named_by_an_ended_root
from tests.support.records.planted import PLANTED
from tests.support.records.planted_ids import clock_set_back, turned, turned_after_set_back
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.ready_made import small_factory
from tests.support.records.table_stories import OF_A_ROUND, cut, every_kind
from tests.support.seeded import turn
from tests.unit.core.replay.test_instances_exact import cut_of
from tests.vectors.statements.generate import FOLDER as SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sdk/typescript/verifier"
BEFORE = ROOT / "tests/vectors/before-0.1.0"
NODE, NPM = shutil.which("node"), shutil.which("npm")
if NODE is None or NPM is None:
    MISSING = "node and npm are not installed"
elif not (PACKAGE / "node_modules/typescript").is_dir():
    MISSING = "its compiler is not installed: make sdk"
else:
    MISSING = ""
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"the verifier in TypeScript: {MISSING}"),
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test builds, and runs the tests of the package
]
COUNTS = {
    "drawsDiscarded": "draws_discarded",
    "drawsExposed": "draws_exposed",
    "hasDevelopmentKeys": "has_development_keys",
    "idsAbsent": "ids_absent",
    "instances": "instances",
    "isCut": "is_cut",
    "lines": "lines",
    "privateAbsent": "private_absent",
    "privateVerified": "private_verified",
    "returnedMinor": "returned_minor",
    "roundsDemo": "rounds_demo",
    "roundsFailed": "rounds_failed",
    "roundsOpen": "rounds_open",
    "roundsVerified": "rounds_verified",
    "seatsUnrecoverable": "seats_unrecoverable",
    "seatsVoid": "seats_void",
    "sessions": "sessions",
    "stakedMinor": "staked_minor",
    "statements": "statements",
}
"""The counts of the verifier, and of `Summary`."""
SUMS = ("returned_minor", "staked_minor")
"""Those that are amounts by currency: the verifier in TypeScript has them as text."""

Verdict = dict[str, Any]


@pytest.fixture(scope="module")
def built() -> None:
    assert NPM is not None
    for command in ("build", "test"):
        done = subprocess.run(
            [NPM, "run", command], cwd=PACKAGE, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"npm run {command}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}"


class Verifiers:
    """Both, on files in one folder. Node runs once for all of them."""

    def __init__(self, folder: Path) -> None:
        assert NODE is not None
        self._export, self._keys = folder / "export.jsonl", folder / "keys.json"
        self._judge = subprocess.Popen(
            [NODE, str(PACKAGE / "tests/judge.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self) -> None:
        assert self._judge.stdin is not None
        assert self._judge.stdout is not None
        self._judge.stdin.close()
        self._judge.stdout.close()
        assert self._judge.wait(60) == 0

    def theirs(self, export: bytes, keys: bytes, root: str) -> Verdict:
        assert self._judge.stdin is not None
        assert self._judge.stdout is not None
        request = {"export": base64.b64encode(export).decode(), "keys": base64.b64encode(keys).decode(), "root": root}
        self._judge.stdin.write(json.dumps(request).encode() + b"\n")
        self._judge.stdin.flush()
        verdict: Verdict = json.loads(self._judge.stdout.readline())
        verdict["failures"] = sorted((check, str(place)) for check, place in verdict["failures"])
        counts = verdict["counts"]
        verdict["counts"] = counts and {ours: counts[name] for name, ours in COUNTS.items()}
        for name in SUMS if counts else ():
            verdict["counts"][name] = {currency: int(amount) for currency, amount in verdict["counts"][name].items()}
        return verdict

    def ours(self, export: bytes, keys: bytes, root: str, capsys: pytest.CaptureFixture[str]) -> Verdict:
        self._export.write_bytes(export)
        self._keys.write_bytes(keys)
        status = replay.main(
            [str(self._export), "--keys", str(self._keys), "--json", *(["--root", root] if root else [])]
        )
        said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        summary = said.pop()["summary"]
        verified, failed = summary.get("rounds_verified", 0), summary.get("rounds_failed", 0)
        return {
            "counts": {name: summary[name] for name in COUNTS.values()} if "lines" in summary else None,
            "failures": sorted((one["failure"]["check"], self._place(one["failure"]["place"])) for one in said),
            "lastLine": f"{verified} rounds verified, {failed} failed, {summary['verdict']}",
            "passed": status == 0,
        }

    def _place(self, place: str) -> str:
        """As the verifier names it: the number of a line, `keys` or `end`."""
        if place == str(self._keys):
            return "keys"
        return place.removeprefix(f"{self._export}:") if place.startswith(str(self._export)) else "end"


@pytest.fixture(scope="module")
def verifiers(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verifiers]:
    both = Verifiers(tmp_path_factory.mktemp("exports"))
    yield both
    both.close()


Agree = Callable[..., Verdict]


@pytest.fixture
def agree(verifiers: Verifiers, capsys: pytest.CaptureFixture[str]) -> Agree:
    """The verdict of both on an export, demanded to be one."""

    def judged(export: bytes, keys: bytes, root: str) -> Verdict:
        ours, theirs = verifiers.ours(export, keys, root, capsys), verifiers.theirs(export, keys, root)
        assert theirs == ours
        return ours

    return judged


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.json")))
def test_they_agree_on_a_scenario(name: str, agree: Agree) -> None:
    scenario = json.loads((SCENARIOS / f"{name}.json").read_text("ascii"))
    export = "".join(f"{line}\n" for line in scenario["lines"]).encode()
    verdict = agree(export, scenario["keys"].encode(), scenario["root"])
    assert verdict["lastLine"] == scenario["expect"]
    assert verdict["passed"] == (not scenario["checks"])


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_they_agree_on_a_planted_fault(planted: Planted, agree: Agree) -> None:
    factory = planted.build()
    verdict = agree(planted.exporting(factory), factory.keys(), factory.root.keyid)
    assert not verdict["passed"]


@pytest.mark.parametrize("planted", PLANTED_AT_TABLES, ids=str)
def test_they_agree_on_a_planted_fault_at_a_table(planted: Planted, agree: Agree) -> None:
    factory = planted.build()
    verdict = agree(planted.exporting(factory), factory.keys(), factory.root.keyid)
    assert planted.check in {check for check, _ in verdict["failures"]}


def test_they_agree_that_an_ended_root_names_no_further_key(agree: Agree) -> None:
    factory = named_by_an_ended_root()
    verdict = agree(factory.export(), factory.keys(), factory.root.keyid)
    assert verdict["failures"] == [("3 key", "keys")]


@pytest.mark.parametrize("build", HONEST.values(), ids=HONEST)
def test_they_agree_on_honest_files(build: Callable[[], RecordFactory], agree: Agree) -> None:
    factory = build()
    assert agree(factory.export(), factory.keys(), factory.root.keyid)["passed"]
    assert not agree(factory.export(), factory.keys(), "0" * 64)["passed"]


@pytest.mark.parametrize("ruleset", twice.RULESETS)
def test_they_agree_on_tables(ruleset: str, agree: Agree) -> None:
    factory = every_kind(ruleset)
    sessions = [cut(factory, player=player) for player in range(3)]
    for export in (factory.export(), *sessions, cut(factory, *OF_A_ROUND, "table_seats")):
        verdict = agree(export, factory.keys(), factory.root.keyid)
        assert verdict["lastLine"] == "4 rounds verified, 0 failed, ANCHORED"
        assert verdict["passed"]


class Changed(twice.Verifiers):
    """Takes the place of the two verifiers whose tests change lines and fields."""

    def __init__(self, agree: Agree) -> None:
        self._agree, self.count = agree, 0

    def agree(self, factory: RecordFactory, export: bytes | None = None) -> tuple[int, str, set[str]]:
        self.count += 1
        verdict = self._agree(factory.export() if export is None else export, factory.keys(), factory.root.keyid)
        return int(not verdict["passed"]), verdict["lastLine"], {check for check, _ in verdict["failures"]}


@pytest.mark.parametrize(("changes", "step"), [(twice.agree_on_lines, 20), (twice.agree_on_fields, 40)])
def test_they_agree_on_lines_and_fields_that_were_changed(
    changes: Callable[[twice.Verifiers, int, int], None], step: int, agree: Agree, pytestconfig: pytest.Config
) -> None:
    changed = Changed(agree)
    changes(changed, turn(pytestconfig, step), step)
    assert changed.count > 20


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("changes", [twice.agree_on_lines, twice.agree_on_fields])
def test_they_agree_on_every_line_and_field_that_was_changed(
    changes: Callable[[twice.Verifiers, int, int], None], agree: Agree
) -> None:
    changes(Changed(agree), 0, 1)


CHANGES = (with_changed_lines, with_changed_fields, cut_at_links, cut_with_holes)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize(("changes", "step"), list(zip(CHANGES, (10, 20, 10, 8), strict=True)))
def test_they_agree_on_changed_free_bets_and_play_money(
    changes: Callable[[Callable[..., RecordFactory]], Iterator[Export]],
    step: int,
    story: str,
    agree: Agree,
    pytestconfig: pytest.Config,
) -> None:
    visited = 0
    for factory, export in islice(changes(STORIES[story]), turn(pytestconfig, step), None, step):
        agree(export, factory.keys(), factory.root.keyid)
        visited += 1
    assert visited >= 5


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("changes", CHANGES)
def test_they_agree_on_free_bets_and_play_money_however_changed(
    changes: Callable[[Callable[..., RecordFactory]], Iterator[Export]], story: str, agree: Agree
) -> None:
    for factory, export in changes(STORIES[story]):
        agree(export, factory.keys(), factory.root.keyid)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("reason", ["KEYS_CHANGED", "SHUTDOWN"])
def test_they_agree_on_dates_before_an_instance_whose_boot_before_is_cut(
    reason: str, agree: Agree, *, ends: bool
) -> None:
    factory = turned(reason)
    verdict = agree(join(cut_of(factory, ends=ends)), factory.keys(), factory.root.keyid)
    assert verdict["passed"] == (reason == "KEYS_CHANGED" or not ends)


@pytest.mark.parametrize(("ranges", "passed"), [([(1, 9)], False), ([(1, 4), (5, 9)], True)])
def test_they_agree_on_dates_before_an_instance_whose_time_jump_may_be_cut(
    ranges: list[tuple[int, int]], agree: Agree, *, passed: bool
) -> None:
    factory = clock_set_back(is_reported=False)
    scope = factory.scope([{"first": str(first), "instance": "rgs-1", "last": str(last)} for first, last in ranges])
    verdict = agree(join([scope, *factory.lines]), factory.keys(), factory.root.keyid)
    assert ("3 key" not in {check for check, _ in verdict["failures"]}) == passed


@pytest.mark.parametrize("build", [clock_set_back, turned, turned_after_set_back])
def test_they_agree_on_each_session_of_a_process_whose_clock_was_set(
    build: Callable[[], RecordFactory], agree: Agree
) -> None:
    factory = build()
    for session, last in sessions_of(factory):
        assert agree(cut_session(factory, session, (1, last)), factory.keys(), factory.root.keyid)["passed"]


def test_they_agree_that_no_seat_at_a_table_is_funded_bet_by_bet(agree: Agree) -> None:
    factory = twice.all_ends(lie_at("session_open", 1, put("funding", value="seamless")))
    verdict = agree(factory.export(), factory.keys(), factory.root.keyid)
    assert "7 session" in {check for check, _ in verdict["failures"]}


@pytest.mark.parametrize("limit", ["loss_minor", "stake_minor"])
def test_they_agree_that_what_a_campaign_pays_is_outside_of_limits(limit: str, agree: Agree) -> None:
    verdicts = set()
    for amount in (1, 49, 50, 99, 100, 399, 400, 499, 500, 899, 900, 949, 950, 10_000):
        factory = free_bets(lie_at("session_open", 1, put("limits", value={limit: str(amount)})))
        verdicts.add(agree(factory.export(), factory.keys(), factory.root.keyid)["lastLine"])
    assert len(verdicts) > 2
    assert "5 rounds verified, 0 failed, ANCHORED" in verdicts


def test_they_agree_on_flipped_bits(agree: Agree) -> None:
    factory = small_factory()
    export = factory.export()
    for bit in range(0, 8 * len(export), 1009):
        place, shift = divmod(bit, 8)
        changed = export[:place] + bytes([export[place] ^ (1 << shift)]) + export[place + 1 :]
        assert not agree(changed, factory.keys(), factory.root.keyid)["passed"], bit


def test_they_agree_that_a_record_from_before_has_other_shapes(agree: Agree) -> None:
    """Version 0.1.0 gave fields other names: only the verifier of its time reads it (vectors/before-0.1.0)."""
    verdict = agree((BEFORE / "statements.jsonl").read_bytes(), (BEFORE / "keys.json").read_bytes(), "")
    assert not verdict["passed"]
    assert any(check == "4 schema" for check, _ in verdict["failures"])


def test_every_count_of_the_summary_is_compared_but_games() -> None:
    compared = {*COUNTS.values(), "draws_in_rounds", "failures", "games"}
    assert set(Summary().fields()) == compared
