"""`rgs reconcile`: compare the record with the operator's and the regulator's books, from files alone.

Exit 0: clean; 2: open breaks; 1: it could not run, is not understood, or rows were refused without `--allow-rejects`.
`resolve` appends to a file of resolutions, `countersign` adds the operator's signature to a signed report, `verify`
checks both. Everything is told in docs/reconciliation.md.

Refuses to need a home: keys, statements and books come as files. `--home` is only for the node key that signs.
"""

from __future__ import annotations

import fcntl
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rgs import __version__
from rgs.cli.options import note
from rgs.cli.reconcile_job import Ground, run_job
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
from rgs.node.files import FileRefusedError, read_whole
from rgs.node.home import open_home
from rgs.node.keyring import load_bundle, load_node_signer, parse_private_key
from rgs.service.reconciliation.countersigning import countersign, verify_report
from rgs.service.reconciliation.reconciliation import MEMORY_MB, Reconciled, ReconcileRequest, Reconciliation
from rgs.store.address import parse_address
from rgs.store.opening import open_reads

app: Final = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_SOURCES: Final = ("receipts", "wallet", "regulator")
_EXIT: Final = {"clean": 0, "breaks": 2, "incomplete": 1}
_RULES_MAX: Final = 1 << 18
LOWEST_PRIORITY: Final = 19


@app.callback(invoke_without_command=True)
def reconcile(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: typer.Context,
    statements: Annotated[Path | None, typer.Option(help="The export of the record.")] = None,
    keys: Annotated[Path | None, typer.Option(help="The key bundle.")] = None,
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, or a file of it.")] = None,
    receipts: Annotated[Path | None, typer.Option(help="The openings that the operator stored.")] = None,
    wallet: Annotated[Path | None, typer.Option(help="The operator's wallet statement: CSV, JSONL, Parquet.")] = None,
    regulator: Annotated[Path | None, typer.Option(help="The regulator's register: JSONL, CSV, Parquet.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new or empty folder for the report.")] = None,
    mapping: Annotated[
        list[str] | None, typer.Option(help="SOURCE=FILE: how that source's layout is read (repeat for more).")
    ] = None,
    period: Annotated[
        tuple[str, str] | None, typer.Option(help="FROM TO: dates or RFC 3339 times in UTC, TO excluded.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="The report's moment; default: the newest statement's.")] = None,
    cut_off: Annotated[
        int | None, typer.Option(help="Seconds before the report's moment in which what is missing may be late.", min=0)
    ] = None,
    overdue: Annotated[
        int | None, typer.Option(help="Seconds after which an open round is overdue, not the jurisdiction's.", min=0)
    ] = None,
    clock_limit: Annotated[
        int, typer.Option(help="Seconds by which the clocks of wallet and register may differ from ours.", min=0)
    ] = CLOCK_LIMIT_S,
    operator: Annotated[str | None, typer.Option(help="Only this operator's sessions.")] = None,
    earlier: Annotated[Path | None, typer.Option(help="The folder of an earlier report, for the difference.")] = None,
    resolutions: Annotated[Path | None, typer.Option(help="The file that `resolve` appends to.")] = None,
    ruleset: Annotated[list[Path] | None, typer.Option(help="A further ruleset (repeat for more).")] = None,
    jurisdiction: Annotated[list[Path] | None, typer.Option(help="A further jurisdiction (repeat for more).")] = None,
    memory_mb: Annotated[int, typer.Option(help="What the run may take, in MB.")] = MEMORY_MB,
    allow_rejects: Annotated[bool, typer.Option(help="Go by what could be read; rejects.csv names the rest.")] = False,
    keep_extract: Annotated[bool, typer.Option(help="Leave the verified legs as Parquet, too.")] = False,
    signing_key: Annotated[Path | None, typer.Option(help="A node's private key, PEM, that signs the report.")] = None,
    home: Annotated[Path | None, typer.Option(help="A node's home, whose key signs the report.")] = None,
) -> int:
    """Compare signed statements, the operator's books and the regulator's register, transaction by transaction."""
    if context.invoked_subcommand is not None:
        return 0
    folder = _due(out, "out")
    request = ReconcileRequest(
        statements=_due(statements, "statements"),
        keys=_due(keys, "keys"),
        out=folder,
        root=_fingerprint(root),
        receipts=receipts,
        wallet=wallet,
        regulator=regulator,
        mappings=_mappings(mapping or []),
        period=None if period is None else (_moment(period[0], "period"), _moment(period[1], "period")),
        as_of_ms=None if as_of is None else _moment(as_of, "as_of"),
        cut_off_s=cut_off,
        overdue_s=overdue,
        clock_limit_s=clock_limit,
        operator=None if operator is None else check_name(operator, "operator"),
        memory_mb=memory_mb,
        allow_rejects=allow_rejects,
        earlier=earlier,
        resolutions=resolutions,
        keep_extract=keep_extract,
    )
    rulebook = Rulebook(
        [parse_ruleset(_text(path)) for path in ruleset or ()],
        [parse_jurisdiction(_text(path)) for path in jurisdiction or ()],
    )
    reconciliation = Reconciliation(version=__version__, signer=_signer(signing_key, home), rulebook=rulebook)
    done = reconciliation.run(request)
    _told(done, folder)
    return _EXIT[done.verdict]


def _told(done: Reconciled, out: Path) -> None:
    """What was found, on stdout."""
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
        note(f"the register's totals of {date} are not compared: the period covers a part of that day")
    if not document["is_signed"]:
        note("the report is not signed: no --signing-key and no --home")
    print(f"{done.verdict}: {done.open_breaks} open breaks, {done.rejected} rejected rows; report in {out}")


@app.command("resolve")
def resolve(
    file: Annotated[Path, typer.Option(help="The file of resolutions; made if there is none.")],
    break_id: Annotated[str, typer.Option("--break", help="The break's id.")],
    reason: Annotated[str, typer.Option(help="A code, such as REFUNDED or RESENT.")],
    evidence: Annotated[str, typer.Option(help="Where the proof lies: a ticket, a transaction id.")],
    by: Annotated[str, typer.Option(help="Who settled it.")],
    approved_by: Annotated[str, typer.Option(help="Who looked at it: another person.")],
) -> int:
    """Append a resolution of one break. Entries are never changed; a later one of the same break goes before."""
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
    """Add the operator's signature to a report whose files are those that it names."""
    signer = _load_key(signing_key)
    countersign(report, signer, check_name(party, "party"), now_ms())
    print(f"countersigned by {party} with key {signer.keyid}")
    return 0


@app.command("verify")
def verify_command(
    report: Annotated[Path, typer.Argument(help="The folder of a signed report.")],
    keys: Annotated[Path, typer.Option(help="The key bundle.")],
    root: Annotated[str | None, typer.Option(help="The root's fingerprint, or a file of it.")] = None,
    countersigner: Annotated[list[str] | None, typer.Option(help="The keyid of an operator's key (repeat).")] = None,
) -> int:
    """Check the files of a report, its signature, and its countersignatures."""
    bundle = read_whole(keys, "key bundle")
    verified = verify_report(report, bundle, _fingerprint(root), frozenset(countersigner or ()))
    for line in verified:
        print(line)
    return 0


@app.command("job", hidden=True)
def job_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    home: Annotated[Path, typer.Option(help="The node's home.")],
    memory_mb: Annotated[int, typer.Option(help="What the run may take, in MB.")],
) -> int:
    """Run what was asked over the wire. The store is named on standard input, for its address may hold a password."""
    os.nice(LOWEST_PRIORITY)
    store = sys.stdin.read()
    config = open_home(home, {"store": parse_address(store)} if store else None)
    bundle = load_bundle(config)
    ground = Ground(
        partial(open_reads, config.store),
        config.register,
        bundle,
        load_node_signer(config, bundle),
        now_ms(),
        memory_mb,
    )
    return run_job(ground, folder)


# --- options --------------------------------------------------------------------------------------------------------


def _due(path: Path | None, name: str) -> Path:
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


def _signer(signing_key: Path | None, home: Path | None) -> Signer | None:
    if signing_key is not None:
        return _load_key(signing_key)
    return None if home is None else load_node_signer(open_home(home))


def _load_key(path: Path) -> Ed25519Signer:
    return Ed25519Signer(parse_private_key(read_whole(path, "signing key", secret=True), "the signing key"))


def main(arguments: list[str], _manifest: Any) -> int:
    """Run the command; the exit status. A command that is not understood is 1 here: 2 says that breaks were found."""
    command = typer.main.get_command(app)
    try:
        status = command.main(args=arguments, prog_name="rgs reconcile", standalone_mode=False)
    except typer.TyperException as error:
        print(f"rgs: {error.format_message().rstrip('.')} (see `rgs reconcile --help`)", file=sys.stderr)
        return 1
    return status if isinstance(status, int) else 0
