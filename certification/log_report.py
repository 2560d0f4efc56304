"""The report of `certify log`: one document, as JSON, as rows for a terminal, as a page that stands alone.

Refuses to show anything that the document does not hold; every value on the page is escaped by the template engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from certification.auditing import Audit
from rgs.core.times import format_time

TEMPLATES: Final = Path(__file__).parent / "templates"
_SUMMARY: Final = (
    *("lines", "rounds_verified", "rounds_failed", "rounds_open", "seats_void", "sessions", "instances"),
    *("draws_in_rounds", "draws_discarded", "draws_exposed"),
)


def document_of(
    found: Audit, own: AbstractSet[str], verdict: str, root: str, bare_s: tuple[float, float]
) -> dict[str, Any]:
    """The report. `own` are the witnesses of the house; `bare_s` what a bare verification costs, in CPU seconds."""
    document: dict[str, Any] = {
        "failed": found.failed,
        "failures": found.failures,
        "format": "rgs/log-audit/v1",
        "read_again": found.read_again,
        "root_key": root,
        "tree_is_sound": found.is_sound,
        "verdict": verdict,
    }
    if found.accepted is not None:
        checkpoint = found.accepted.checkpoint
        document["checkpoint"] = {
            "origin": checkpoint.origin,
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
        document["money"] = [
            {"currency": name, "returned_minor": summary.returned_minor[name], "staked_minor": staked}
            for name, staked in sorted(summary.staked_minor.items())
        ]
        document["key_statements"] = {"in_bundle": found.key_statements, "in_log": findings.keys_logged}
        document["development_keys"] = summary.has_development_keys
        document["newest_statement"] = findings.newest
        document["exposure"] = [
            dict(zip(("node", "day", "draws"), (*key.split(" "), most), strict=True))
            for key, most in sorted(findings.exposure.items())
        ]
        document["voids"] = findings.voids
        document["voids_by_session"] = dict(findings.voids_by_session.most_common())
        document["voids_by_admin"] = dict(findings.voids_by_admin.most_common())
        document["overdue"] = findings.overdue()
    if found.entries and found.sample:
        cpu_s = found.cpu_s / found.entries
        document["speed"] = {
            "entries": found.entries,
            "records_per_cpu_second": round(1 / cpu_s),
            "times_bare_libsodium": round(cpu_s / bare_s[0], 2),
            "times_bare_openssl": round(cpu_s / bare_s[1], 2),
        }
    return document


def rows_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The report in short."""
    if checkpoint := document.get("checkpoint"):
        before = checkpoint["verified_before"]
        yield "log", f"{checkpoint['origin']}, {checkpoint['size']} entries, {before or 0} of them verified before"
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
        exposed = f"at most {summary['draws_exposed']} unknown"
        yield "draws", f"{summary['draws_in_rounds']} in rounds, {summary['draws_discarded']} discarded, {exposed}"
        for row in document["exposure"]:
            yield "exposure", f"{row['node']} {row['day']}: at most {row['draws']} draws"
        for admin, count in document["voids_by_admin"].items():
            yield "voids", f"{count} approved by {admin}"
        for row in document["overdue"]:
            yield "overdue", f"round {row['round_id']} of session {row['session_id']}, opened {row['time']}"
        bundle = document["key_statements"]
        yield "key bundle", f"{bundle['in_log']} of {bundle['in_bundle']} statements are in the log"
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


def render_html(document: Mapping[str, Any]) -> str:
    """The report as a page: no script, nothing is loaded."""
    return _template().render(report=document, rows=list(rows_of(document)))


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("log.html.j2")
