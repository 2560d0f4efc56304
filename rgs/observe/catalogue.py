"""Every metric of the server: name, labels, kind and meaning. docs/metrics.md is made from it.

A metric of a process has the label `worker`, the number of the process, so that its counters begin again only where
that process did. A metric of a node comes once from each node. A metric of the store is the same whichever node
answers: every node serves it, so a query takes the largest of them, never their sum.

No label may hold what names a person or opens anything: a player, nickname, session, round, card, key or certificate.
`LABELS` is the whole list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from rgs.observe.histogram import LATENCY_S, SIZES

LATENESS_S: Final[tuple[float, ...]] = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds of how late a table's step is taken, in seconds."""
WORKER: Final = "worker"
LABELS: Final = {
    WORKER: "the number of the process, 0 for the only one",
    "method": "`Service/Method` of `rgs.v1`; of calls to a peer, its method",
    "reason": "`OK`, the reason of the error ([errors.md](errors.md)), or `CANCELLED`",
    "guard": "a guard ([node.md](node.md))",
    "peer": "`regulator`, or `wallet of ` and the operator",
    "game": "the id of a ruleset",
    "currency": "ISO 4217",
    "kind": "what waits: `open`, `purchase`, `start`, `act`, `end`, `close`, `credit`, or `stages` for reports",
    "state": "the state of a table ([tables.md](tables.md))",
    "step": "the step that a table takes",
    "figure": "the figure of a return ([monitoring.md](monitoring.md))",
    "series": "`life` or `block` ([monitoring.md](monitoring.md))",
    "witness": "the name in a witness's key",
    "certificate": "`server`, `ca`, `regulator`, or `wallet of ` and the operator; `ca of ` before these for their CA",
    "party": "a party of the allow-list; never a player",
    "role": "its role",
    "version": "the version of the software",
    "node": "the setting `node`",
    "folder": "what a server writes there: `translog`, `log`, `reconciliation`, or `store` for a store that is a file",
}


@unique
class Kind(StrEnum):
    """COUNTER grows until the process ends, GAUGE is what is now, HISTOGRAM counts values by upper bound."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@unique
class Scope(StrEnum):
    """Of what a metric speaks. Of a PROCESS it has the label `worker`; of the STORE it comes alike from every node."""

    PROCESS = "process"
    NODE = "node"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. `bounds` are those of a histogram."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    scope: Scope = Scope.PROCESS
    bounds: tuple[float, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The labels as they are served."""
        return (WORKER, *self.labels) if self.scope is Scope.PROCESS else self.labels


def _gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, help_, labels)


def _counter(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, help_, labels)


def _histogram(name: str, help_: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, help_, labels, bounds=bounds)


def _of_node(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, help_, labels, Scope.NODE)


def _of_store(name: str, help_: str, *labels: str, kind: Kind = Kind.GAUGE) -> Metric:
    return Metric(name, kind, help_, labels, Scope.STORE)


METRICS: Final = (
    # the process
    _gauge("rgs_worker_up", "1 if the process answered this scrape, 0 if it did not."),
    _gauge("rgs_info", "Always 1; the labels say what runs.", "node", "version"),
    _counter("rgs_calls_total", "Calls and messages of streams that were answered.", "method", "reason"),
    _histogram("rgs_call_seconds", "How long they took, in seconds, refused ones too.", LATENCY_S, "method"),
    _gauge("rgs_calls_under_way", "Calls and messages of streams that are being processed."),
    _gauge("rgs_streams_open", "Open streams."),
    _histogram("rgs_commit_group_changes", "Changes in a commit of the store.", SIZES),
    _histogram("rgs_commit_group_seconds", "How long a commit of the store took, in seconds.", LATENCY_S),
    _gauge("rgs_commit_stuck", "1 while a commit takes longer than any caller waits."),
    _gauge("rgs_draws_unknown", "Draws in a commit that is stuck: nobody knows yet whether they count."),
    _gauge("rgs_draws_owed", "Draws that were not used and whose account is not durable yet."),
    _gauge("rgs_draw_window", "Draws that may be in flight at once, as the last signed statement says."),
    _gauge("rgs_guard_closed", "1 while the guard is closed.", "guard"),
    _gauge("rgs_new_rounds", "1 if guards allow new rounds."),
    _gauge("rgs_switches_off", "What admins or alarms have disabled."),
    _gauge("rgs_circuit_open", "1 while no call is sent to the peer, 0.5 while one probes it, else 0.", "peer"),
    _gauge("rgs_circuit_silent_seconds", "How long the peer has answered nothing, in seconds.", "peer"),
    _gauge("rgs_circuit_in_flight", "Calls to the peer that are under way.", "peer"),
    _counter("rgs_circuit_unknown_total", "Calls to the peer without a credible answer.", "peer"),
    _counter("rgs_circuit_turned_away_total", "Calls to the peer that were not sent.", "peer"),
    _counter("rgs_peer_calls_total", "Calls to the peer, `OK` or why not.", "peer", "method", "reason"),
    _histogram("rgs_peer_call_seconds", "How long they took, in seconds.", LATENCY_S, "peer", "method"),
    _gauge("rgs_lease_age_seconds", "Since when this process's lease was not renewed, in seconds."),
    _gauge("rgs_clock_trusted", "1 while time is trusted."),
    _gauge("rgs_clock_apart_seconds", "The database's clock minus this machine's, in seconds; 0 with SQLite."),
    _gauge("rgs_log_leads", "1 in the process that writes the transparency log."),
    _gauge("rgs_log_lag_seconds", "How long the oldest statement has waited for the transparency log, in seconds."),
    _histogram(
        "rgs_table_step_late_seconds", "How late a table's step was taken after it was due.", LATENESS_S, "step"
    ),
    # the node: what one of its processes reads for all
    _of_node("rgs_store_up", "1 if the store answered this scrape."),
    _of_node("rgs_store_read_seconds", "How long it took to read the metrics of the store, in seconds."),
    _of_node("rgs_disk_free_bytes", "Room on the disk of the folder.", "folder"),
    _of_node("rgs_certificate_days_left", "Days until the certificate ends.", "certificate"),
    _of_node("rgs_node_key_days", "Days since this node's key was signed; it has no end of its own."),
    # the store
    _of_store("rgs_rounds_total", "Rounds that ended, without void ones.", "game", "currency", kind=Kind.COUNTER),
    _of_store("rgs_staked_minor_total", "Stakes of these, in minor units.", "game", "currency", kind=Kind.COUNTER),
    _of_store("rgs_returned_minor_total", "Their returns, in minor units.", "game", "currency", kind=Kind.COUNTER),
    _of_store("rgs_void_rounds_total", "Rounds that were voided.", "game", "currency", kind=Kind.COUNTER),
    _of_store("rgs_void_minor_total", "Their stakes, in minor units.", "game", "currency", kind=Kind.COUNTER),
    _of_store("rgs_rounds_open", "Rounds in play; at tables each seat counts.", "game"),
    _of_store("rgs_round_open_oldest_seconds", "How long the oldest of them has been in play.", "game"),
    _of_store("rgs_sessions_open", "Sessions that are not closed."),
    _of_store("rgs_outbox_waiting", "Operations and reports that wait for a wallet or the regulator.", "kind"),
    _of_store("rgs_outbox_oldest_seconds", "How long the oldest of them has waited.", "kind"),
    _of_store("rgs_credits_owed", "Credits that no wallet has taken yet."),
    _of_store("rgs_credit_owed_oldest_seconds", "How long the oldest of them has been owed."),
    _of_store("rgs_reports_held", "Reports that the regulator refused and that wait for an admin."),
    _of_store("rgs_report_held_oldest_seconds", "How long the oldest of them has been held."),
    _of_store("rgs_instances_alive", "RNG instances that have not ended."),
    _of_store("rgs_instances_lapsed", "Of these, those whose lease has ended and that nobody has declared lost yet."),
    _of_store("rgs_database_waits_for_standby", "1 if a commit is reported only when a standby has it."),
    _of_store("rgs_database_standbys", "Standbys that are connected."),
    _of_store("rgs_database_standbys_sync", "Of these, those that a commit waits for."),
    _of_store("rgs_database_replay_lag_seconds", "How far behind the slowest standby is."),
    _of_store("rgs_database_oldest_transaction_seconds", "How long the oldest transaction has run, of any program."),
    _of_store("rgs_database_bytes", "Size of the database."),
    _of_store("rgs_database_connections", "Connections of clients to the database server."),
    _of_store("rgs_database_connections_max", "How many it takes."),
    _of_store("rgs_database_archives", "1 if the database keeps an archive of its changes."),
    _of_store("rgs_database_archive_failures_total", "Attempts to archive that failed.", kind=Kind.COUNTER),
    _of_store("rgs_database_archive_failing", "1 while the newest attempt to archive failed."),
    _of_store("rgs_return_rounds", "Rounds that the monitoring of returns has counted.", "game"),
    _of_store("rgs_return_alarm", "1 while the figure is out of its band.", "game", "figure", "series"),
    _of_store("rgs_tables", "Tables.", "state"),
    _of_store("rgs_table_overdue_seconds", "How late the table is that has waited longest for its step."),
    _of_store("rgs_log_entries", "Entries of the transparency log's newest shard."),
    _of_store("rgs_witness_age_seconds", "For how long the witness of the policy has cosigned nothing new.", "witness"),
    _of_store("rgs_party_certificate_days_left", "Days until an allowed client certificate ends.", "role", "party"),
)
BY_NAME: Final = {metric.name: metric for metric in METRICS}
