"""A real Prometheus watches a real server over the rules of deploy/prometheus as they are: peers and server go away,
and its own interface is asked which alerts are pending, firing and gone. It answers each query of the dashboards, too.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from rgs.node.files import SECRET_MODE, write_new
from tests.gamedays.scene import Doing, Scene, until
from tests.gamedays.transcript import Transcript
from tests.integration.test_dashboards import (
    ALERTS,
    EXPRESSIONS,
    PROMETHEUS,
    filled,
    needs_promtool,
    queries,
    until_ready,
)
from tests.support.ports import free_ports

pytestmark = pytest.mark.slow

TOKEN = "watched-" + "t" * 32
CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: rgs
    authorization: {{credentials_file: "{token}"}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
SILENT = re.compile(r"database|Table|table|return_alarm|refused|held|contradict|NOT_ALLOWED|draws_unknown|rounds?_open")
"""What has nothing to say of a house over SQLite, without tables, in which nothing but peers goes wrong; and whether a
round is open while Prometheus looks is chance.
"""


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, path: str, **parameters: str | float) -> Any:
        """What its own interface answers, which has to be a success."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=20)) as connection:
            connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        assert answer["status"] == "success", (path, parameters, answer)
        return answer["data"]

    def alerts(self) -> dict[str, str]:
        """Each alert that is not quiet, with what it is about: pending or firing."""
        found = {}
        for alert in self.ask("alerts")["alerts"]:
            labels = alert["labels"]
            about = labels.get("peer") or labels.get("guard") or labels.get("folder") or ""
            found[f"{labels['alertname']} {about}".strip()] = alert["state"]
        return found

    def await_alert(self, name: str, state: str) -> float:
        """How long it took until the alert was in this state; `quiet`: neither pending nor firing. What is firing has
        been pending.
        """
        began = time.monotonic()
        states = {state, "firing"} if state == "pending" else {state}
        until(lambda: self.alerts().get(name, "quiet") in states, 180, f"alert {name} {state}")
        return time.monotonic() - began


@contextmanager
def watching(folder: Path, target: int, token: Path) -> Iterator[Prometheus]:
    """Debian's Prometheus over the rules of deploy/, until the end of the block."""
    folder.mkdir()
    (folder / "prometheus.yml").write_text(CONFIG.format(rules=ALERTS, token=token, port=target), "utf-8")
    (port,) = free_ports(1)
    command = [PROMETHEUS or "", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "said").open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            until_ready(port)
            one = Prometheus(port)
            until(lambda: one.ask("query", query='up{job="rgs"} == 1')["result"], what="a scrape of the server")
            yield one
        finally:
            process.kill()


@needs_promtool
def test_watched(scene: Scene, written: Transcript, tmp_path: Path) -> None:
    """Prometheus watches: wallet and regulator go away, then the server"""
    (port,) = free_ports(1)
    token = tmp_path / "metrics.token"
    write_new(token, TOKEN.encode(), SECRET_MODE)
    scene.begin(settings=f'metrics_listen = "127.0.0.1:{port}"\nmetrics_token = "{token}"\n')
    players = scene.seat(4, scene.client())
    scene.play(2)
    with watching(tmp_path / "prometheus", port, token) as prometheus:
        written.did("began a Prometheus over deploy/prometheus/alerts.yml; it reads the server's metrics each second")
        of_the_machine = set(prometheus.alerts())
        assert all(name.startswith("RgsDisk") for name in of_the_machine), of_the_machine
        wallet, regulator = "RgsCircuitOpen wallet of demo-operator", "RgsGuardClosed regulator"
        with scene.playing(players[2:]):
            scene.wallet.kill()
            buying = Doing(lambda player: player._buy(5_000), players[:2])
            scene.await_line("circuit_open", peer="wallet of demo-operator")
            scene.regulator.kill()
            written.did("killed wallet and regulator (SIGKILL); two players buy, two play on")
            for name in (wallet, regulator):
                prometheus.await_alert(name, "pending")
                written.alarm(f"alert {name}: pending")
            for name in (regulator, wallet):
                prometheus.await_alert(name, "firing")
                written.alarm(f"alert {name}: firing")
            answered = answers(prometheus)
            figures = sum(answered.values())
            written.saw(f"{len(answered)} queries of dashboards and alerts: each answered, {figures} with figures")
            scene.start_wallet()
            scene.start_regulator()
            written.operator("has wallet and regulator back, at their addresses, over their books")
            buying.join()
            for name in (regulator, wallet):
                prometheus.await_alert(name, "quiet")
                written.alarm(f"alert {name}: quiet again")
        scene.kill_server()
        written.did("killed the server (SIGKILL)")
        prometheus.await_alert("RgsDown", "pending")
        seconds = prometheus.await_alert("RgsDown", "firing")
        assert seconds > 50, "the rule says: for a minute"
        written.alarm("alert RgsDown: pending, and firing a minute later")
        scene.start_server()
        written.operator("starts the server again")
        prometheus.await_alert("RgsDown", "quiet")
        scene.play(1, players[2:])
        until(lambda: set(prometheus.alerts()) <= of_the_machine, 180, "a Prometheus without an alert")
        written.after("no alert is pending or firing any more, but what the disk of this machine gives cause for")
    scene.prove()


def answers(prometheus: Prometheus) -> dict[str, bool]:
    """Each query of dashboards and alerts -> whether the last minutes have figures for it, as Grafana asks for them."""
    found = {}
    for query in set(map(filled, queries())):
        now = time.time()
        data = prometheus.ask("query_range", query=query, start=now - 60, end=now, step=5)
        found[query] = bool(data["result"])
    alerts = set(map(filled, EXPRESSIONS.findall(ALERTS.read_text("utf-8"))))
    silent = {query for query, has_figures in found.items() if not has_figures and not SILENT.search(query)}
    assert silent <= alerts, silent - alerts
    return found
