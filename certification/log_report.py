"""The report of `certify log`: one document, shown as JSON, as rows for a terminal, and as a page that stands alone.

The rows and the page show only what is in the document. The template engine escapes every value on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from certification.auditing import LogAudit
from certification.findings import AuditFindings
from certification.pages import template
from rgs.core.amounts import format_money
from rgs.core.replay import KeyBook, Replay, Summary
from rgs.core.statements import KeyRole
from rgs.core.times import format_time

_SUMMARY: Final = (
    *("lines", "rounds_verified", "rounds_failed", "rounds_open", "seats_void", "sessions", "instances"),
    *("draws_in_rounds", "draws_discarded", "draws_exposed", "seats_unrecoverable"),
)


def document_of(
    found: LogAudit, own: AbstractSet[str], verdict: str, root: str, bare_s: tuple[float, float]
) -> dict[str, Any]:
    """The report. `own` are the operator's witnesses; `bare_s` is the CPU time of a bare verification."""
    document: dict[str, Any] = {
        "failed": found.failed,
        "failures": found.failures,
        "format": "rgs/log-audit/v1",
        "read_again": found.read_again,
        "root_key": root,
        "tree_is_sound": found.is_sound,
        "verdict": verdict,
    }
    if found.accepted is not None and found.published is not None:
        checkpoint = found.accepted.checkpoint
        document["checkpoint"] = {
            "origin": checkpoint.origin,
            "published": found.published.size,
            "root": checkpoint.root.hex(),
            "size": checkpoint.size,
            "verified_before": None if found.before is None else found.before.size,
            "witnesses": [
                {"name": name, "self_witness": name in own, "time": format_time(time_s * 1000)}
                for name, time_s in found.accepted.witnessed.items()
            ],
        }
    if found.replay is not None and found.findings is not None:
        summary, findings = found.replay.summary, found.findings
        document["summary"] = {name: getattr(summary, name) for name in _SUMMARY}
        document["statements"] = dict(sorted(summary.statements.items()))
        document["games"] = dict(sorted(summary.games.items()))
        document["money"] = list(_money(summary, findings))
        document["instances"] = list(_instances(found.replay))
        in_bundle = 0 if found.keys is None else len(found.keys.statements)
        document["key_statements"] = {"in_bundle": in_bundle, "in_log": findings.keys_logged}
        document["development_keys"] = summary.has_development_keys
        document["newest_statement"] = findings.newest
        document["artifacts"] = [
            {"bytes": int(bytes_), "name": name, "sha256": digest}
            for (digest, _, bytes_), name in sorted(
                ((reported.partition(" "), name) for reported, name in findings.artifacts.items()),
                key=lambda one: one[1],
            )
        ]
        document["artifacts_unreported"] = [
            {"name": name, "sha256": digest}
            for digest, name in sorted(findings.named.items(), key=lambda one: (one[1], one[0]))
            if digest not in findings.reported
        ]
        document["exposure"] = [
            dict(zip(("node", "day", "draws"), (*key.split(" "), most), strict=True))
            for key, most in sorted(findings.exposure.items())
        ]
        document["voids"] = findings.voids
        document["voids_by_session"] = _ranked("session_id", findings.voids_by_session)
        document["voids_by_admin"] = _ranked("approved_by", findings.voids_by_admin)
        document["overdue"] = findings.overdue()
    if found.keys is not None:
        document["keys"] = list(_keys(found.keys))
    if found.entries and found.sample and found.cpu_s and all(bare_s):  # a clock with coarse steps may see nothing
        cpu_s = found.cpu_s / found.entries
        document["speed"] = {
            "entries": found.entries,
            "records_per_cpu_second": round(1 / cpu_s),
            "times_bare_libsodium": round(cpu_s / bare_s[0], 2),
            "times_bare_openssl": round(cpu_s / bare_s[1], 2),
        }
    return document


def _money(summary: Summary, findings: AuditFindings) -> Iterator[dict[str, Any]]:
    """The participation identity over all of the log: what was bought, granted and won, less what was staked, given
    back to campaigns and paid out, is still in play.
    """
    for currency in sorted(summary.staked_minor.keys() | findings.bought_minor.keys()):
        moved = {
            "bought_minor": findings.bought_minor[currency],
            "staked_minor": summary.staked_minor[currency],
            "returned_minor": summary.returned_minor[currency],
            "paid_out_minor": findings.paid_out_minor[currency],
            "granted_minor": findings.granted_minor[currency],
            "reclaimed_minor": findings.reclaimed_minor[currency],
        }
        bought, staked, returned, paid_out, granted, reclaimed = moved.values()
        in_play = bought + granted - staked + returned - reclaimed - paid_out
        yield {"currency": currency, **moved, "in_play_minor": in_play}


def _instances(replay: Replay) -> Iterator[dict[str, Any]]:
    """The account of each boot's draws."""
    for one in replay.instances:
        is_lost = replay.instances.is_lost(one)
        yield {
            "instance": one.name,
            "node": one.node,
            "worker": one.worker,
            "boot_no": one.boot_no,
            "state": "lost" if is_lost else "ended" if one.has_ended else "running",
            "statements": one.numbers.last,
            "last_draw_no": one.draws.highest,
            "draws_accounted": one.draws.highest - one.draws.missing,
            "draws_unknown_at_most": one.draws_in_flight_max if is_lost else 0,
        }


def _ranked(name: str, sums: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """The most voids first; amounts of one currency each."""
    ranked = sorted(sums.items(), key=lambda one: (-one[1]["voids"], one[0]))
    return [{name: of.partition(" ")[0], "currency": of.partition(" ")[2], **row} for of, row in ranked]


def _keys(keys: KeyBook) -> Iterator[dict[str, Any]]:
    """Roots and nodes, and of the instances those that were revoked."""
    for keyid, key in keys.known.items():
        state = keys.state_of(keyid)
        if key.role is not KeyRole.INSTANCE or state != "in force":
            yield {"role": key.role.value, "name": key.name, "keyid": keyid, "state": state}


def rows_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The report in short."""
    if checkpoint := document.get("checkpoint"):
        before = checkpoint["verified_before"]
        yield "log", f"{checkpoint['origin']}, {checkpoint['size']} entries, {before or 0} of them verified before"
        if (more := checkpoint["published"] - checkpoint["size"]) > 0:
            yield "not read", f"{more} entries more, published without the cosignatures that the policy asks for"
        for witness in checkpoint["witnesses"]:
            label = " (self-witness)" if witness["self_witness"] else ""
            yield "witness", f"{witness['name']}{label} at {witness['time']}"
    if again := document["read_again"]:
        yield "read again", f"everything, since {again}"
    if summary := document.get("summary"):
        yield "failures", str(document["failed"])
        yield "statements", ", ".join(f"{name} {count}" for name, count in document["statements"].items())
        rounds = ", ".join(f"{summary[f'rounds_{name}']} {name}" for name in ("verified", "failed", "open"))
        yield "rounds", f"{rounds}, {summary['seats_void']} seats void; {summary['sessions']} sessions"
        for row in document["money"]:
            yield (
                row["currency"] or "money",
                ", ".join(
                    f"{name.replace('_', ' ')} {format_money(row[f'{name}_minor'], row['currency'])}"
                    for name in ("bought", "staked", "returned", "paid_out", "in_play")
                ),
            )
        exposed = f"at most {summary['draws_exposed']} unknown"
        boots = [sum(one["state"] == state for one in document["instances"]) for state in ("running", "ended", "lost")]
        yield "instances", "{} running, {} ended, {} lost".format(*boots)
        yield "draws", f"{summary['draws_in_rounds']} in rounds, {summary['draws_discarded']} discarded, {exposed}"
        yield from _checked(document)
        for row in document["exposure"]:
            yield "exposure", f"{row['node']} {row['day']}: at most {row['draws']} draws"
        for row in document["voids_by_admin"]:
            staked, would_have = (
                format_money(row[name], row["currency"]) for name in ("staked_minor", "would_have_returned_minor")
            )
            would_have = f"{staked} staked, would have returned {would_have}"
            unknown = f", {row['unknown']} of them unknown" if row["unknown"] else ""
            yield "voids", f"{row['voids']} approved by {row['approved_by']}: {would_have}{unknown}"
        for row in document["overdue"]:
            of = f"session {row['session_id']}" if row["session_id"] else f"table {row['table']}"
            yield "overdue", f"round {row['round_id']} of {of}, opened {row['time']}"
        bundle = document["key_statements"]
        yield "key bundle", f"{bundle['in_log']} of {bundle['in_bundle']} statements are in the log"
        for row in document["keys"]:
            if row["state"] != "in force":
                yield "key", f"{row['role']} {row['name']} {row['keyid'][:16]}…: {row['state']}"
        if document["development_keys"]:
            yield "keys", "DEVELOPMENT KEYS"
    if speed := document.get("speed"):
        yield (
            "speed",
            (
                f"{speed['records_per_cpu_second']:,} records per CPU second; a record takes"
                f" {speed['times_bare_libsodium']} x the CPU of a bare Ed25519 verification by libsodium,"
                f" {speed['times_bare_openssl']} x one by OpenSSL"
            ),
        )
    yield "root", document["root_key"]


def _checked(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Files beside the log, and decks that were never shown."""
    yield "artifacts", f"{len(document['artifacts'])} files compared with their statements"
    for row in document["artifacts_unreported"]:
        yield "NO ARTIFACT", f"{row['name']} {row['sha256'][:16]}… is named, and no statement tells its file"
    if hidden := document["summary"]["seats_unrecoverable"]:
        what = "void seats whose deck was never shown (DECK_UNRECOVERABLE)"
        yield "EXPOSED", f"{hidden} {what}: what they would have returned is not known"


def render_html(document: Mapping[str, Any]) -> str:
    """The report as a page: no script, nothing is loaded."""
    page = template(__file__, "log.html.j2", money=_money_text)
    return page.render(report=document, rows=list(rows_of(document)))


def _money_text(amount_minor: int | str, currency: str) -> str:
    """An amount of the report for people; what is not a number (`unknown`) stays as it is."""
    return format_money(int(amount_minor), currency) if str(amount_minor).lstrip("-").isdigit() else str(amount_minor)
