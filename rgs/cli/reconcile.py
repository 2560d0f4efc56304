"""`rgs reconcile`: compares the record with the operator's and the regulator's books, from files alone.

Exit status: 0 clean, 2 open breaks, 1 it could not run or refused rows without `--allow-rejects`. `resolve` appends to
a file of resolutions, `countersign` adds the operator's signature to a signed report, `verify` checks both
(docs/reconciliation.md). No home is needed: `--home` only names the node key that signs.
"""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs import __version__
from rgs.cli.options import grouped, new_app, note
from rgs.cli.reconcile_job import JobInputs, run_job
from rgs.core.amounts import format_money
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.ids import check_name
from rgs.core.jurisdictions import parse_jurisdiction
from rgs.core.reconcile.classes import CLOCK_LIMIT_S, MEANINGS, BreakClass
from rgs.core.reconcile.lines import RowRefusedError
from rgs.core.reconcile.mapping import parse_rfc3339
from rgs.core.reconcile.resolutions import Resolution, format_entry, read_resolutions
from rgs.core.replay import Rulebook
from rgs.core.rulesets import parse_ruleset
from rgs.core.statements import Ed25519Signer, Signer
from rgs.core.times import format_time, parse_date
from rgs.node.clock import now_ms
from rgs.node.config import open_home
from rgs.node.files import FileRefusedError, read_whole
from rgs.node.keyring import load_bundle, load_node_signer, parse_private_key
from rgs.service.reconciliation.countersigning import countersign, verify_report
from rgs.service.reconciliation.reconciliation import MEMORY_MB, Reconciled, ReconcileRequest, Reconciliation
from rgs.store.address import parse_address

app: Final = new_app()
_SOURCES: Final = ("receipts", "wallet", "regulator")
_EXIT: Final = {"clean": 0, "breaks": 2, "incomplete": 1}
_RULES_MAX: Final = 1 << 18
LOWEST_PRIORITY: Final = 19


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that are compared, and how they are read."""

    statements: Annotated[Path | None, typer.Option(help="The export of the record.")] = None
    keys: Annotated[Path | None, typer.Option(help="The key bundle.")] = None
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, or a file that holds it.")] = None
    receipts: Annotated[Path | None, typer.Option(help="The openings that the operator stored.")] = None
    wallet: Annotated[Path | None, typer.Option(help="The operator's wallet statement: CSV, JSONL, Parquet.")] = None
    regulator: Annotated[Path | None, typer.Option(help="The regulator's book: JSONL, CSV, Parquet.")] = None
    mapping: Annotated[
        list[str] | None, typer.Option(help="SOURCE=FILE: the layout of that source (repeat for more).")
    ] = None
    allow_rejects: Annotated[
        bool, typer.Option(help="Compare the rows that can be read; rejects.csv lists the others.")
    ] = False


@dataclass(frozen=True, slots=True)
class ReportScope:
    """What part of the record is compared, and with which time limits."""

    period: Annotated[
        tuple[str, str] | None, typer.Option(help="FROM TO: dates or RFC 3339 times in UTC, TO excluded.")
    ] = None
    as_of: Annotated[
        str | None, typer.Option(help="The time of the report; default: the time of the newest statement.")
    ] = None
    cut_off: Annotated[
        int | None,
        typer.Option(help="Seconds before the report's time: what is missing there may only be late.", min=0),
    ] = None
    overdue: Annotated[
        int | None,
        typer.Option(help="Seconds after which an open round is overdue, instead of the jurisdiction's.", min=0),
    ] = None
    clock_limit: Annotated[
        int, typer.Option(help="Seconds by which the wallet's and the regulator's clock may differ from ours.", min=0)
    ] = CLOCK_LIMIT_S
    operator: Annotated[str | None, typer.Option(help="Only this operator's sessions.")] = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules beyond those that this version ships."""

    ruleset: Annotated[list[Path] | None, typer.Option(help="A further ruleset (repeat for more).")] = None
    jurisdiction: Annotated[list[Path] | None, typer.Option(help="A further jurisdiction (repeat for more).")] = None

    def rulebook(self) -> Rulebook:
        """The shipped rules and these. FormatError and FileRefusedError for a file that is not one."""
        return Rulebook(
            [parse_ruleset(_text(path)) for path in self.ruleset or ()],
            [parse_jurisdiction(_text(path)) for path in self.jurisdiction or ()],
        )


@dataclass(frozen=True, slots=True)
class Output:
    """The report: where it goes, what it is compared with, and who signs it."""

    out: Annotated[Path | None, typer.Option(help="A new or empty folder for the report.")] = None
    earlier: Annotated[
        Path | None, typer.Option(help="The folder of an earlier report; the new one shows the difference.")
    ] = None
    resolutions: Annotated[Path | None, typer.Option(help="The file that `resolve` appends to.")] = None
    keep_extract: Annotated[bool, typer.Option(help="Keep the verified transfers as Parquet files, too.")] = False
    memory_mb: Annotated[int, typer.Option(help="Memory limit of the run, in MB.")] = MEMORY_MB
    signing_key: Annotated[Path | None, typer.Option(help="A node's private key (PEM), which signs the report.")] = None
    home: Annotated[Path | None, typer.Option(help="A node's home, whose key signs the report.")] = None

    def signer(self) -> Signer | None:
        """The key that signs the report; None if neither --signing-key nor --home is given."""
        if self.signing_key is not None:
            return _load_key(self.signing_key)
        return None if self.home is None else load_node_signer(open_home(self.home))


@app.callback(invoke_without_command=True)
@grouped
def reconcile(context: typer.Context, inputs: Inputs, scope: ReportScope, rules: Rules, output: Output) -> int:
    """Compare signed statements, the operator's wallet and the regulator's book, transaction by transaction."""
    if context.invoked_subcommand is not None:
        return 0
    request = _request(inputs, scope, output)
    done = Reconciliation(version=__version__, signer=output.signer(), rulebook=rules.rulebook()).run(request)
    _print_result(done, request.out)
    return _EXIT[done.verdict]


def _request(inputs: Inputs, scope: ReportScope, output: Output) -> ReconcileRequest:
    """The options as the reconciliation takes them. InvalidFieldError for what is missing or malformed."""
    period = scope.period
    return ReconcileRequest(
        out=_required(output.out, "out"),
        statements=_required(inputs.statements, "statements"),
        keys=_required(inputs.keys, "keys"),
        root=_fingerprint(inputs.root),
        receipts=inputs.receipts,
        wallet=inputs.wallet,
        regulator=inputs.regulator,
        mappings=_mappings(inputs.mapping or []),
        period=None if period is None else (_moment(period[0], "period"), _moment(period[1], "period")),
        as_of_ms=None if scope.as_of is None else _moment(scope.as_of, "as_of"),
        cut_off_s=scope.cut_off,
        overdue_s=scope.overdue,
        clock_limit_s=scope.clock_limit,
        operator=None if scope.operator is None else check_name(scope.operator, "operator"),
        memory_mb=output.memory_mb,
        allow_rejects=inputs.allow_rejects,
        earlier=output.earlier,
        resolutions=output.resolutions,
        keep_extract=output.keep_extract,
    )


def _print_result(done: Reconciled, out: Path) -> None:
    document = done.document
    verified = document["verification"]
    anchored = "ANCHORED" if document["key_path"]["anchored"] else "UNANCHORED"
    print(f"{verified['rounds_verified']} rounds verified, {verified['failures']} checks failed, {anchored}")
    for row in document["inputs"]:
        print(f"{row['source']:<11} {row['rows']:>9} rows, {row['rejected']} rejected, SHA-256 {row['sha256']}")
    for row in document["classes"]:
        if row["open"] or row["resolved"]:
            title = MEANINGS[BreakClass(row["class"])].title
            print(f"{row['open']:>9} open  {row['resolved']:>6} resolved  {title}")
    for currency, amount in document["owed"].items():
        print(f"owed to players: {format_money(amount, currency)}")
    for date in document["days_in_part"]:
        note(f"the regulator's totals of {date} are not compared: the period covers only a part of that day")
    if left_out := document["play_money"]["sessions"]:
        note(f"{left_out} sessions with play money are left out, with {document['play_money']['rounds']} rounds")
    if not document["is_signed"]:
        note("the report is not signed: no --signing-key and no --home")
    print(f"{done.verdict}: {done.open_breaks} open breaks, {done.rejected} rejected rows; report in {out}")


@app.command("resolve")
def resolve(
    file: Annotated[Path, typer.Option(help="The file of resolutions; created if it does not exist.")],
    break_id: Annotated[str, typer.Option("--break", help="The break's id.")],
    reason: Annotated[str, typer.Option(help="A code, such as REFUNDED or RESENT.")],
    evidence: Annotated[str, typer.Option(help="Where the proof is: a ticket, a transaction id.")],
    by: Annotated[str, typer.Option(help="Who settled it.")],
    approved_by: Annotated[str, typer.Option(help="Who approved it: another person.")],
) -> int:
    """Append the resolution of one break. Entries never change; the last entry of a break counts."""
    resolution = Resolution(break_id, reason, evidence, by, approved_by, format_time(now_ms()))
    with file.open("a+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.seek(0)
        _, count, last = read_resolutions(held.read().splitlines())
        held.write(format_entry(resolution, count + 1, last) + b"\n")
    print(f"entry {count + 1} of {file}")
    return 0


@app.command("countersign")
def countersign_command(
    report: Annotated[Path, typer.Argument(help="The folder of a signed report.")],
    signing_key: Annotated[Path, typer.Option(help="The operator's private key, Ed25519, PEM.")],
    party: Annotated[str, typer.Option(help="The operator's name.")],
) -> int:
    """Add the operator's signature to a report. Its files must be those that the report names."""
    signer = _load_key(signing_key)
    countersign(report, signer, check_name(party, "party"), now_ms())
    print(f"countersigned by {party} with key {signer.keyid}")
    return 0


@app.command("verify")
def verify_command(
    report: Annotated[Path, typer.Argument(help="The folder of a signed report.")],
    keys: Annotated[Path, typer.Option(help="The key bundle.")],
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, or a file that holds it.")] = None,
    countersigner: Annotated[list[str] | None, typer.Option(help="The keyid of an operator's key (repeat).")] = None,
) -> int:
    """Check a report: its files, its signature and its countersignatures."""
    bundle = read_whole(keys, "key bundle")
    verified = verify_report(report, bundle, _fingerprint(root), frozenset(countersigner or ()))
    for line in verified:
        print(line)
    return 0


@app.command("job", hidden=True)
def job_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    home: Annotated[Path, typer.Option(help="The node's home.")],
    memory_mb: Annotated[int, typer.Option(help="Memory limit of the run, in MB.")],
) -> int:
    """Run a reconciliation that was requested over gRPC. The address of the store comes on standard input, because it
    may hold a password.
    """
    os.nice(LOWEST_PRIORITY)
    store = sys.stdin.read()
    config = open_home(home, {"store": parse_address(store)} if store else None)
    bundle = load_bundle(config)
    signer = load_node_signer(config, bundle)
    inputs = JobInputs(config.store, config.regulator, bundle, signer, now_ms(), memory_mb, config.archive)
    return run_job(inputs, folder)


# --- options --------------------------------------------------------------------------------------------------------


def _required(path: Path | None, name: str) -> Path:
    if path is None:
        raise InvalidFieldError(f"--{name} is missing", field=name)
    return path


def _text(path: Path) -> str:
    content = read_whole(path, "rules")
    if len(content) > _RULES_MAX:
        raise FileRefusedError(f"{path} is longer than {_RULES_MAX} bytes", path=path, limit=_RULES_MAX)
    return content.decode("utf-8", errors="replace")


def _fingerprint(text: str | None) -> str | None:
    if text is None:
        return None
    if len(text) != 64 and Path(text).is_file():
        text = read_whole(Path(text), "fingerprint").decode("ascii", errors="replace").strip()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise InvalidFieldError("root must be 64 lowercase hex digits", field="root", limit=64, value=text[:80])
    return text


def _mappings(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        source, mark, path = text.partition("=")
        if source not in _SOURCES or not mark or not path or source in found:
            limit = f"SOURCE=FILE, each of {', '.join(_SOURCES)} at most once"
            raise InvalidFieldError(f"mapping must be {limit}", field="mapping", limit=limit, value=text[:80])
        found[source] = Path(path)
    return found


def _moment(text: str, field: str) -> int:
    try:
        return parse_date(text) if len(text) == 10 else parse_rfc3339(text)
    except (FormatError, RowRefusedError) as error:
        raise InvalidFieldError(error.message, field=field, value=text[:40]) from None


def _load_key(path: Path) -> Ed25519Signer:
    return Ed25519Signer(parse_private_key(read_whole(path, "signing key", secret=True), "the signing key"))
