"""The alerts and dashboards as Prometheus reads them: rules checked, every query answered over metrics of a server that
has played; no query names a metric or label that the catalogue does not have; every alert has its section.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from rgs.core.errors import RgsError
from rgs.observe.catalogue import BY_NAME, Kind, Scope
from tests.integration.test_metrics import get
from tests.support.api.client import ApiClient, refused
from tests.support.api.harness import serving
from tests.support.ports import free_ports
from tools.dashboards import DASHBOARDS, dashboard
from tools.metrics_page import updated

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
CASES = ROOT / "deploy/prometheus/alerts_test.yml"
RUNBOOK = (ROOT / "docs/runbook.md").read_text("utf-8")
PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None or PROMETHEUS is None, reason="promtool is missing: install Debian's package prometheus"
)
NAMES = re.compile(r"alert: (\w+)")
EXPRESSIONS = re.compile(r"^        expr: (.*)$", re.MULTILINE)


def queries() -> Iterator[str]:
    """Every query of the dashboards and of the alerts, with Grafana's variables filled in."""
    for name in DASHBOARDS:
        for panel in json.loads((ROOT / f"deploy/grafana/{name}.json").read_text("utf-8"))["panels"]:
            yield from (target["expr"] for target in panel["targets"])
    yield from EXPRESSIONS.findall(ALERTS.read_text("utf-8"))


def filled(query: str) -> str:
    return query.replace("$instance", ".*").replace("$__rate_interval", "5m")


def test_the_files_are_what_the_tools_make() -> None:
    assert {path.stem for path in (ROOT / "deploy/grafana").iterdir()} == set(DASHBOARDS)
    for name in DASHBOARDS:
        assert (ROOT / f"deploy/grafana/{name}.json").read_text("utf-8") == dashboard(name)
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    assert page == updated(page)
    assert "`rgs_calls_total`" in page


def test_every_alert_has_a_section_that_says_what_to_do_and_what_not() -> None:
    text = ALERTS.read_text("utf-8")
    names = NAMES.findall(text)
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
    assert names == list(sections)
    assert re.findall(r"docs/runbook\.md#(\w+)", text) == [name.lower() for name in names]
    for name, section in sections.items():
        for word in ("**Means.**", "**Do.**", "**Do not**"):
            assert word in section, name


def test_no_query_names_what_does_not_exist() -> None:
    reasons = {kind.reason for kind in all_errors(RgsError)} | {"OK", "INTERNAL", "CONTRADICTION"}
    for query in queries():
        for name in re.findall(r"\brgs_\w+", query):
            metric = BY_NAME.get(name) or BY_NAME[re.sub(r"_(bucket|count|sum)$", "", name)]
            assert (metric.name == name) == (metric.kind is not Kind.HISTOGRAM), query
        labels = {label for metric in BY_NAME.values() for label in metric.all_labels} | {"instance", "job", "le"}
        used = re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", query)
        grouped = re.findall(r"(?:by|on|without) \(([^)]*)\)", query)
        assert {*used, *(name.strip() for found in grouped for name in found.split(","))} <= labels, query
        for found in re.findall(r"reason=~?\"([^\"]*)\"", query):
            assert set(found.split("|")) <= reasons, query


ONCE = re.compile(r"max (?:by \(([^)]*)\) |without \(([^)]*)\) )\($|max\($")


def test_what_every_node_serves_is_counted_once() -> None:
    """What the store says comes from each node alike: a sum over nodes, or an alert a node, would be of twice as much.
    `max` stands around each such metric, and keeps every label of it but that of the node.
    """
    wrong = [query for query in queries() for name in set(of_the_store(query)) if not is_once(query, name)]
    assert wrong == []
    rate, total = "rate(rgs_rounds_total[5m])", "rgs_rounds_total"
    assert is_once(f"sum by (game) (max by (game, currency) ({rate}))", total)
    assert is_once("max(rgs_sessions_open) > 1", "rgs_sessions_open")
    for query in (rate, f"sum by (game, currency) ({rate})", f"max by (game) ({rate})", f"max({rate})"):
        assert not is_once(query, total), query


def of_the_store(query: str) -> list[str]:
    return [name for name in re.findall(r"\brgs_\w+", query) if name in BY_NAME and BY_NAME[name].scope is Scope.STORE]


def is_once(query: str, name: str) -> bool:
    for found in re.finditer(rf"\b{name}\b", query):
        around = ONCE.search(re.sub(r"(rate|increase|deriv)\($", "", query[: found.start()]))
        if around is None:
            return False
        by, without = around[1], around[2]
        keeps = set(re.findall(r"\w+", by or ""))
        if "instance" not in without if without else keeps != set(BY_NAME[name].labels):
            return False
    return True


@needs_promtool
def test_two_nodes_are_counted_once(tmp_path: Path) -> None:
    """Two nodes over one store: Prometheus' own engine answers the queries of the dashboard."""
    panels = json.loads((ROOT / "deploy/grafana/money.json").read_text("utf-8"))["panels"]
    rounds, outbox = (
        next(one for panel in panels if panel["title"] == title for one in panel["targets"])["expr"]
        for title in ("Rounds", "Outbox")
    )
    nodes = [f'instance="{node}",job="rgs"' for node in ("a", "b")]
    series = [f'rgs_rounds_total{{{node},game="uth-solo",currency="EUR"}}' for node in nodes]
    waiting = [f'rgs_outbox_waiting{{{node},kind="credit"}}' for node in nodes]
    expected = [
        (filled(rounds), '{game="uth-solo", currency="EUR"}', 2),
        (filled(outbox), '{kind="credit"}', 7),
    ]
    tests = {
        "tests": [
            {
                "interval": "15s",
                "input_series": [
                    *({"series": one, "values": "0+30x40"} for one in series),
                    *({"series": one, "values": "7+0x40"} for one in waiting),
                ],
                "promql_expr_test": [
                    {"expr": query, "eval_time": "8m", "exp_samples": [{"labels": labels, "value": value}]}
                    for query, labels, value in expected
                ],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(tests), "utf-8")
    done = subprocess.run(
        [PROMTOOL or "", "test", "rules", str(tmp_path / "tests.yml")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def all_errors(kind: type[RgsError]) -> Iterator[type[RgsError]]:
    for below in kind.__subclasses__():
        yield below
        yield from all_errors(below)


@needs_promtool
def test_promtool_takes_the_rules() -> None:
    subprocess.run([PROMTOOL or "", "check", "rules", str(ALERTS)], check=True, capture_output=True)


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    """What the store says is tried with two nodes, which both say it: the alert fires once; and in a quiet case."""
    loud: dict[str, dict[str, Any]] = {}
    quiet: dict[str, dict[str, Any]] = {}
    for case in yaml.safe_load(CASES.read_text("utf-8"))["tests"]:
        (rule,) = case["alert_rule_test"]
        (loud if rule["exp_alerts"] else quiet)[rule["alertname"]] = case
        assert len(rule["exp_alerts"]) <= 1, rule["alertname"]
    assert list(loud) == NAMES.findall(ALERTS.read_text("utf-8"))
    for name, case in loud.items():
        written = " ".join(one["series"] for one in case["input_series"])
        assert 'instance="a"' in written, name
        assert 'instance="b"' in written, f"{name}: the other node"
        fires = case["alert_rule_test"][0]["exp_alerts"][0]["exp_labels"]
        if of_the_store(written):
            assert "instance" not in fires, name
            assert name in quiet, name
        else:
            assert fires["instance"] == "a", name


@needs_promtool
def test_promtool_runs_the_cases() -> None:
    done = subprocess.run([PROMTOOL or "", "test", "rules", str(CASES)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(
    ("alert", "rule", "wrong"),
    [
        ("RgsLeaseOld", "rgs_lease_age_seconds > 8", "rgs_lease_age_seconds > 80"),
        ("RgsReportHeld", "max without (instance) (rgs_reports_held) > 0", "rgs_reports_held > 0"),
        ("RgsDiskFull", "rgs_disk_free_bytes < 1073741824\n", "rgs_disk_free_bytes < 10737418240\n"),
    ],
)
def test_a_rule_that_does_not_do_what_its_case_says_is_found(alert: str, rule: str, wrong: str, tmp_path: Path) -> None:
    """By the cases of its own alert, which pass with the rule as it is."""
    text, cases = ALERTS.read_text("utf-8"), yaml.safe_load(CASES.read_text("utf-8"))
    assert text.count(rule) == 1
    cases["tests"] = [case for case in cases["tests"] if case["alert_rule_test"][0]["alertname"] == alert]
    own = tmp_path / CASES.name
    own.write_text(yaml.safe_dump(cases), "utf-8")
    for rules, is_found in ((text, False), (text.replace(rule, wrong), True)):
        (tmp_path / "alerts.yml").write_text(rules, "utf-8")
        done = subprocess.run([PROMTOOL or "", "test", "rules", str(own)], check=False, capture_output=True)
        assert bool(done.returncode) == is_found


@needs_promtool
def test_promtool_finds_a_rule_that_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "alerts.yml"
    wrong.write_text(ALERTS.read_text("utf-8").replace("rgs_worker_up == 0", "rgs_worker_up ==== 0"), "utf-8")
    assert subprocess.run([PROMTOOL or "", "check", "rules", str(wrong)], check=False, capture_output=True).returncode


async def played(folder: Path) -> list[str]:
    """What three scrapes of a server say while it plays."""
    scrapes = []
    async with serving(folder, metrics_listen="127.0.0.1:0") as harness:
        player = await ApiClient(harness.channel()).seated()
        for number in range(3):
            await player.round_to_the_end()
            if number == 2:
                await player.start()
            await refused(player.play.StartRound(player.start_request(round_no=99)))
            await asyncio.sleep(1.1)  # what the store says is kept for a second
            wanted = "application/openmetrics-text; version=1.0.0"
            scrapes.append((await get(harness.server.metrics_port, token="", Accept=wanted))[1])
    return scrapes


@pytest.mark.slow
@needs_promtool
def test_every_query_is_answered_over_metrics_of_a_server_that_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scrapes become a block of samples (OpenMetrics with times), which Prometheus' own engine answers about."""
    monkeypatch.setattr("rgs.node.server.RETURNS_S", 0.2)
    scrapes = asyncio.run(played(tmp_path))
    check = subprocess.run(
        [PROMTOOL or "", "check", "metrics"], input=plain(scrapes[-1]), text=True, check=False, capture_output=True
    )
    assert check.returncode in {0, 3}, check.stderr  # 3: only lint
    assert "error" not in check.stderr.lower(), check.stderr
    (tmp_path / "samples").write_text(timed(scrapes), "utf-8")
    command = [PROMTOOL or "", "tsdb", "create-blocks-from", "openmetrics"]
    command += [str(tmp_path / "samples"), str(tmp_path / "tsdb")]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    answers = answers_of(tmp_path)
    assert len(answers) == len(set(map(filled, queries())))
    failed = {query: answer for query, answer in answers.items() if answer["status"] != "success"}
    assert failed == {}
    answered = {query for query, answer in answers.items() if answer["data"]["result"]}
    silent = set(map(filled, queries())) - answered
    # What has nothing to say in a server without peers, tables, witnesses and malfunctions, and the alerts.
    silent_queries = [
        query
        for query in silent
        if not re.search(r"circuit|peer|table|Table|witness|return_alarm|database|open_oldest|NOT_ALLOWED", query)
    ]
    rules = set(map(filled, EXPRESSIONS.findall(ALERTS.read_text("utf-8"))))
    assert set(silent_queries) <= rules, set(silent_queries) - rules
    assert answered & rules == set()


START_S = 1_700_000_000


def answers_of(folder: Path) -> dict[str, Any]:
    """The answer of a Prometheus over the samples to each query, a minute after the first scrape."""
    (folder / "prometheus.yml").write_text("{}", "utf-8")
    (port,) = free_ports(1)
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "tsdb",
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    command = [PROMETHEUS or "", *(f"--{name}={value}" for name, value in options.items())]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_ready(port)
            return {query: ask(port, query) for query in map(filled, queries())}
        finally:
            process.kill()


def until_ready(port: int) -> None:
    for _ in range(200):
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                connection.request("GET", "/-/ready")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("Prometheus does not begin")


def ask(port: int, query: str) -> Any:
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/api/v1/query?" + urlencode({"query": query, "time": START_S + 45}))
        return json.loads(connection.getresponse().read())


def plain(text: str) -> str:
    return text.replace("# EOF\n", "")


def timed(scrapes: list[str]) -> str:
    """The scrapes a quarter of a minute apart, family by family as OpenMetrics wants them."""
    families: dict[str, tuple[list[str], dict[str, list[str]]]] = {}
    for at, text in enumerate(scrapes):
        family = ""
        for line in plain(text).splitlines():
            if line.startswith("#"):
                family = line.split()[2]
                head = families.setdefault(family, ([], {}))[0]
                if line not in head:
                    head.append(line)
            else:
                series, _, value = line.rpartition(" ")
                series = (
                    series.replace("{", '{instance="a",job="rgs",')
                    if "{" in series
                    else series + '{instance="a",job="rgs"}'
                )
                families[family][1].setdefault(series, []).append(f"{series} {value} {START_S + 15 * at}")
    lines = [
        line for head, rows in families.values() for line in (*head, *(row for many in rows.values() for row in many))
    ]
    return "\n".join([*lines, "# EOF", ""])
