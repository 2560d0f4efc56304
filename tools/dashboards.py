"""Makes the Grafana dashboards. `python -m tools.dashboards deploy/grafana` writes them; a test compares.

Each panel is a title, a unit and its queries with their legends. All share the variable `instance` and the data source
that the importer chooses.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs.observe.catalogue import BY_NAME, Metric, Scope

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
WHERE: Final = 'instance=~"$instance"'
RATE: Final = "$__rate_interval"


@dataclass(frozen=True)
class Panel:
    """A panel; `queries` are (expression, legend). `stat`: the newest value as a number."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    stat: bool = False


def together(name: str, expression: str, by: str) -> str:
    """What all series of a metric say together, by labels. Every node serves what the store says: the largest of them
    counts, once.
    """
    metric = metric_of(name)
    if metric.scope is not Scope.STORE:
        return f"sum by ({by}) ({expression})"
    labels = ", ".join(metric.labels)
    once = f"max by ({labels}) ({expression})"
    return once if labels == by else f"sum by ({by}) ({once})"


def metric_of(name: str) -> Metric:
    """The metric of a series, also of a histogram's."""
    return BY_NAME.get(name) or BY_NAME[re.sub(r"_(bucket|count|sum)$", "", name)]


def rate(name: str, by: str, where: str = "") -> str:
    """The rates of a counter by labels."""
    return together(name, f"rate({name}{{{WHERE}{where}}}[{RATE}])", by)


def quantile(share: float, name: str, by: str, where: str = "") -> str:
    """A share of a histogram by labels."""
    return f"histogram_quantile({share}, {rate(f'{name}_bucket', f'le, {by}', where)})"


def over(name: str, by: str, window: str) -> str:
    """How much a counter grew in a window, by labels."""
    return together(name, f"increase({name}{{{WHERE}}}[{window}])", by)


def now(name: str) -> str:
    """A gauge as it is: of each process or node, or once of the store."""
    metric = metric_of(name)
    if metric.scope is not Scope.STORE:
        return f"{name}{{{WHERE}}}"
    by = f" by ({', '.join(metric.labels)}) " if metric.labels else ""
    return f"max{by}({name}{{{WHERE}}})"


MONEY: Final = "game, currency"
GROUP: Final = "rgs_commit_group_changes"
MEAN: Final = "{{instance}} mean"
NOT_ADMITTED: Final = ', reason=~"CERTIFICATE_NOT_ALLOWED|ROLE_NOT_ALLOWED"'
BETS: Final = ', method=~"TableService/(PlaceBets|Decide)"'
RETURNED: Final = f"{over('rgs_returned_minor_total', MONEY, '1d')} / {over('rgs_staked_minor_total', MONEY, '1d')}"
GREW: Final = f"max(increase(rgs_database_archive_failures_total{{{WHERE}}}[1h]))"
PLAY: Final = ', method=~"PlayService/(StartRound|Act)"'
DASHBOARDS: Final[dict[str, tuple[str, tuple[Panel, ...]]]] = {
    "overview": (
        "RGS overview",
        (
            Panel("New rounds", "none", ((f"min({now('rgs_new_rounds')})", "allowed"),), stat=True),
            Panel("Processes that answer", "none", ((f"sum({now('rgs_worker_up')})", "up"),), stat=True),
            Panel("Store", "none", ((f"min({now('rgs_store_up')})", "up"),), stat=True),
            Panel("Calls", "reqps", ((rate("rgs_calls_total", "method"), "{{method}}"),)),
            Panel("Refused calls", "reqps", ((rate("rgs_calls_total", "reason", ', reason!="OK"'), "{{reason}}"),)),
            Panel(
                "Time of play",
                "s",
                tuple(
                    (quantile(share, "rgs_call_seconds", "method", PLAY), f"{{{{method}}}} p{share}")
                    for share in (0.5, 0.99)
                ),
            ),
            Panel("Sessions open", "none", ((now("rgs_sessions_open"), "sessions"),)),
            Panel("Rounds in play", "none", ((now("rgs_rounds_open"), "{{game}}"),)),
            Panel(
                "Calls under way, streams",
                "none",
                ((f"sum({now('rgs_calls_under_way')})", "calls"), (f"sum({now('rgs_streams_open')})", "streams")),
            ),
            Panel(
                "Time of a commit",
                "s",
                tuple(
                    (quantile(share, "rgs_commit_group_seconds", "instance"), f"{{{{instance}}}} p{share}")
                    for share in (0.5, 0.99)
                ),
            ),
            Panel(
                "Changes in a commit",
                "none",
                ((f"{rate(f'{GROUP}_sum', 'instance')} / {rate(f'{GROUP}_count', 'instance')}", MEAN),),
            ),
            Panel("Guards closed", "none", ((f"max by (guard) ({now('rgs_guard_closed')})", "{{guard}}"),)),
            Panel("Age of leases", "s", ((now("rgs_lease_age_seconds"), "{{instance}} worker {{worker}}"),)),
            Panel("Clocks apart", "s", ((now("rgs_clock_apart_seconds"), "{{instance}} worker {{worker}}"),)),
            Panel(
                "Certificates",
                "d",
                (
                    (now("rgs_certificate_days_left"), "{{instance}} {{certificate}}"),
                    (now("rgs_party_certificate_days_left"), "{{role}} {{party}}"),
                ),
            ),
        ),
    ),
    "money": (
        "RGS money",
        (
            Panel("Rounds", "ops", ((rate("rgs_rounds_total", "game, currency"), "{{game}} {{currency}}"),)),
            Panel(
                "Staked, minor units a second",
                "none",
                ((rate("rgs_staked_minor_total", "game, currency"), "{{game}} {{currency}}"),),
            ),
            Panel(
                "Returned, minor units a second",
                "none",
                ((rate("rgs_returned_minor_total", "game, currency"), "{{game}} {{currency}}"),),
            ),
            Panel(
                "Returned of staked, a day",
                "percentunit",
                (
                    (
                        RETURNED,
                        "{{game}} {{currency}}",
                    ),
                ),
            ),
            Panel(
                "Void rounds, an hour", "none", ((over("rgs_void_rounds_total", MONEY, "1h"), "{{game}} {{currency}}"),)
            ),
            Panel("Oldest round in play", "s", ((now("rgs_round_open_oldest_seconds"), "{{game}}"),)),
            Panel("Credits owed", "none", ((now("rgs_credits_owed"), "credits"),)),
            Panel("Oldest credit owed", "s", ((now("rgs_credit_owed_oldest_seconds"), "oldest"),)),
            Panel("Outbox", "none", ((now("rgs_outbox_waiting"), "{{kind}}"),)),
            Panel("Oldest in the outbox", "s", ((now("rgs_outbox_oldest_seconds"), "{{kind}}"),)),
            Panel("Reports held", "none", ((now("rgs_reports_held"), "held"),)),
            Panel("Circuits open", "none", ((f"max by (peer) ({now('rgs_circuit_open')})", "{{peer}}"),)),
            Panel("Calls to peers", "reqps", ((rate("rgs_peer_calls_total", "peer, method"), "{{peer}} {{method}}"),)),
            Panel(
                "Calls to peers that failed",
                "reqps",
                ((rate("rgs_peer_calls_total", "peer, reason", ', reason!="OK"'), "{{peer}} {{reason}}"),),
            ),
            Panel(
                "Time of calls to peers, p99",
                "s",
                ((quantile(0.99, "rgs_peer_call_seconds", "peer, method"), "{{peer}} {{method}}"),),
            ),
        ),
    ),
    "integrity": (
        "RGS integrity",
        (
            Panel("Log lag", "s", ((f"max({now('rgs_log_lag_seconds')})", "oldest statement"),)),
            Panel("Log entries, a second", "ops", ((f"max(deriv(rgs_log_entries{{{WHERE}}}[5m]))", "entries"),)),
            Panel("Age of cosignatures", "s", ((now("rgs_witness_age_seconds"), "{{witness}}"),)),
            Panel(
                "Draws unknown, owed",
                "none",
                (
                    (now("rgs_draws_unknown"), "unknown, {{instance}} worker {{worker}}"),
                    (now("rgs_draws_owed"), "owed, {{instance}} worker {{worker}}"),
                ),
            ),
            Panel("Draw window", "none", ((now("rgs_draw_window"), "{{instance}} worker {{worker}}"),)),
            Panel(
                "Instances", "none", ((now("rgs_instances_alive"), "alive"), (now("rgs_instances_lapsed"), "lapsed"))
            ),
            Panel(
                "Return alarms",
                "none",
                ((now("rgs_return_alarm"), "{{game}} {{figure}} {{series}}"),),
            ),
            Panel("Rounds counted for returns", "none", ((now("rgs_return_rounds"), "{{game}}"),)),
            Panel("Guards closed", "none", ((f"max by (guard) ({now('rgs_guard_closed')})", "{{guard}}"),)),
            Panel("Calls not admitted", "reqps", ((rate("rgs_calls_total", "reason", NOT_ADMITTED), "{{reason}}"),)),
            Panel("Writer of the log", "none", ((now("rgs_log_leads"), "{{instance}} worker {{worker}}"),)),
            Panel("Age of the node key", "d", ((now("rgs_node_key_days"), "{{instance}}"),)),
        ),
    ),
    "database": (
        "RGS database",
        (
            Panel("Store", "none", ((now("rgs_store_up"), "{{instance}}"),)),
            Panel("Time of reading the store", "s", ((now("rgs_store_read_seconds"), "{{instance}}"),)),
            Panel(
                "Standbys",
                "none",
                (
                    (now("rgs_database_standbys"), "connected"),
                    (now("rgs_database_standbys_sync"), "synchronous"),
                    (now("rgs_database_waits_for_standby"), "a commit waits for one"),
                ),
            ),
            Panel("Slowest standby", "s", ((now("rgs_database_replay_lag_seconds"), "behind"),)),
            Panel("Oldest transaction", "s", ((now("rgs_database_oldest_transaction_seconds"), "runs"),)),
            Panel(
                "Connections",
                "none",
                ((now("rgs_database_connections"), "open"), (now("rgs_database_connections_max"), "most")),
            ),
            Panel(
                "Archive",
                "none",
                ((now("rgs_database_archives"), "kept"), (now("rgs_database_archive_failing"), "failing")),
            ),
            Panel("Archive failures, an hour", "none", ((GREW, "failures"),)),
            Panel("Size of the database", "bytes", ((now("rgs_database_bytes"), "bytes"),)),
            Panel("Room on disks", "bytes", ((now("rgs_disk_free_bytes"), "{{instance}} {{folder}}"),)),
        ),
    ),
    "tables": (
        "RGS tables",
        (
            Panel("Tables", "none", ((now("rgs_tables"), "{{state}}"),)),
            Panel("Latest table", "s", ((now("rgs_table_overdue_seconds"), "overdue"),)),
            Panel(
                "How late steps are, p99", "s", ((quantile(0.99, "rgs_table_step_late_seconds", "step"), "{{step}}"),)
            ),
            Panel("Steps", "ops", ((rate("rgs_table_step_late_seconds_count", "step"), "{{step}}"),)),
            Panel(
                "Calls of tables", "reqps", ((rate("rgs_calls_total", "method", ', method=~"Table.*"'), "{{method}}"),)
            ),
            Panel(
                "Refused calls of tables",
                "reqps",
                (
                    (
                        rate("rgs_calls_total", "method, reason", ', method=~"Table.*", reason!="OK"'),
                        "{{method}} {{reason}}",
                    ),
                ),
            ),
            Panel(
                "Time of bets and decisions, p99",
                "s",
                ((quantile(0.99, "rgs_call_seconds", "method", BETS), "{{method}}"),),
            ),
            Panel("Open streams", "none", ((now("rgs_streams_open"), "{{instance}} worker {{worker}}"),)),
            Panel("Rounds at tables", "ops", ((rate("rgs_rounds_total", "game"), "{{game}}"),)),
        ),
    ),
}


def dashboard(name: str) -> str:
    """The JSON of a dashboard, as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    query = {"query": "label_values(rgs_worker_up, instance)", "refId": "instance"}
    made = {
        "__inputs": [{"name": "source", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"}],
        "uid": f"rgs-{name}",
        "title": title,
        "tags": ["rgs"],
        "timezone": "utc",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"},
                {
                    "name": "instance",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": query,
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": [panel_of(number, panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(made, indent=1) + "\n"


def panel_of(number: int, panel: Panel) -> dict[str, Any]:
    """A panel at its place, three in a row."""
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "stat" if panel.stat else "timeseries",
        "datasource": SOURCE,
        "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    for made in DASHBOARDS:
        (Path(sys.argv[1]) / f"{made}.json").write_text(dashboard(made), "utf-8")
