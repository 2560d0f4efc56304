"""`@rgs/client` in Node against a real server: `sdk/typescript/client/live`, one file a subject.

Node's test runner has the assertions; here is the server, and what is true of it afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.demo.tables import with_timers
from rgs.devkit.shipped_tables import set_up, shipped_table
from rgs.node.config import load_config
from tests.support.process.served import Served, serving
from tests.support.sdk import PACKAGES, missing, run_node

PACKAGE = PACKAGES / "client"
BUILT = "dist/src/index.js"
TABLE = "uth-online"
TIMERS = {"betting_ms": 2_000, "amber_ms": 500, "decision_ms": 5_000, "result_ms": 1_000}
SUBJECTS = {"solo": 2, "stream": 2, "refused": 2, "lost_reply": 2, "table": 2}
"""Files of the folder `live`, and how many tests each has."""

WHY_NOT = missing("client", BUILT)
pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here"), pytest.mark.slow]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("sdk")) as one:
        with Client(one.address, ClientIdentity.of_party(load_config(one.home), "demo-admin")) as admin:
            set_up(admin, [with_timers(shipped_table(TABLE), TIMERS)], "NEW_TABLE")
        yield one


def test_each_file_of_the_folder_is_run() -> None:
    assert {path.name.removesuffix(".test.ts") for path in (PACKAGE / "live").glob("*.test.ts")} == set(SUBJECTS)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_against_a_real_server(served: Served, subject: str) -> None:
    ca, certificate, key = map(str, served.identity)
    address = served.address.replace("127.0.0.1", "localhost")
    settings = {"RGS_CA": ca, "RGS_CERTIFICATE": certificate, "RGS_KEY": key, "RGS_TABLE": TABLE}
    done = run_node(
        PACKAGE, "--test", "--test-reporter=tap", f"dist/live/{subject}.test.js", RGS_ADDRESS=address, **settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {
        name: int(count)
        for name, count in re.findall(r"^# (tests|pass|skipped|todo) (\d+)$", done.stdout, re.MULTILINE)
    }
    assert counts == {"tests": SUBJECTS[subject], "pass": SUBJECTS[subject], "skipped": 0, "todo": 0}, done.stdout


def test_its_own_tests_pass() -> None:
    done = run_node(PACKAGE, "--test", "--test-reporter=tap", *sorted(_unit_tests()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout


def _unit_tests() -> Iterator[str]:
    for path in Path(PACKAGE / "dist" / "test").glob("*.test.js"):
        yield str(path)
