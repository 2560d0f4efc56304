"""Three-way reconciliation: reads files and writes a folder with the report. It knows no server and no command line.

The signed record counts as far as it verifies. The operator's receipts and wallet statement and the regulator's rows
are matched with it by id. The same inputs give the same bytes of the report, which is signed as a `report` statement if
a key is given. The output folder must be empty or absent: it is filled under another name and put in place whole.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rgs.core.errors import InvalidFieldError, VerificationError
from rgs.core.reconcile.balances import match_balances
from rgs.core.reconcile.classes import CLOCK_LIMIT_S
from rgs.core.reconcile.extract import NO_BLOCK, Extract
from rgs.core.reconcile.facts import Break
from rgs.core.reconcile.lines import escape_cell
from rgs.core.reconcile.matching import Terms, match_money
from rgs.core.reconcile.records import (
    match_identity,
    match_overdue,
    match_receipt,
    match_round,
    match_sessions,
    match_total,
)
from rgs.core.reconcile.report import (
    FORMAT,
    LISTED_MAX,
    BreakFindings,
    Input,
    Sources,
    break_document,
    format_report,
    identity_rows,
    independence,
    priority_of,
    verdict_of,
)
from rgs.core.reconcile.resolutions import Resolution, read_resolutions
from rgs.core.reconcile.rows import read_receipt, read_regulator, read_wallet
from rgs.core.replay import KeyBook, Rulebook
from rgs.core.statements import KINDS, ExportLine, Signer, format_canonical, format_line, seal_envelope
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX
from rgs.core.times import format_date, format_time, parse_date
from rgs.service.reconciliation import files
from rgs.service.reconciliation.page import render_page
from rgs.service.reconciliation.sources import Outside, RowFiles, VerifiedExport, read_mapping
from rgs.store.reconciliation import MEMORY_MB_MIN, BookComparison

MEMORY_MB: Final = 2048
FOREVER_MS: Final = 1 << 62
DAY_MS: Final = 86_400_000
_BREAK_COLUMNS: Final = (
    *("break_id", "class", "state", "owed", "subject", "operator", "player", "currency", "game", "amount_minor"),
    *("time", "age", "action", "found", "resolved_by", "approved_by", "reason", "evidence"),
)
_TOTAL_COLUMNS: Final = (
    *("date", "operator", "currency", "game", "source", "rounds", "bought_minor", "paid_out_minor", "staked_minor"),
    "returned_minor",
)
_VERIFIED: Final = ("failures", "is_cut", "lines", "rounds_failed", "rounds_open", "rounds_verified", "sessions")


@dataclass(frozen=True, slots=True)
class ReconcileRequest:
    """What to compare. Times are milliseconds since 1970; `period` is (from, to), its end excluded."""

    statements: Path
    keys: Path
    out: Path
    root: str | None = None
    receipts: Path | None = None
    wallet: Path | None = None
    regulator: Path | None = None
    mappings: dict[str, Path] = field(default_factory=dict)
    period: tuple[int, int] | None = None
    as_of_ms: int | None = None
    cut_off_s: int | None = None
    overdue_s: int | None = None
    clock_limit_s: int = CLOCK_LIMIT_S
    operator: str | None = None
    memory_mb: int = MEMORY_MB
    allow_rejects: bool = False
    earlier: Path | None = None
    resolutions: Path | None = None
    keep_extract: bool = False


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The result of a run; `document` is the report."""

    verdict: str
    open_breaks: int
    resolved_breaks: int
    rejected: int
    document: dict[str, Any]
    report_sha256: str


class Reconciliation:
    """Runs reconciliations. `version` names the software. Without a signer the report is unsigned, and says so."""

    def __init__(self, *, version: str, signer: Signer | None = None, rulebook: Rulebook | None = None) -> None:
        self.version = version
        self.signer = signer
        self.rulebook = rulebook or Rulebook()

    def run(self, request: ReconcileRequest) -> Reconciled:
        """Compare, and put the report into `request.out`. RgsError if the comparison cannot run."""
        _verify_request(request)
        keys = _read_keys(request)
        unfinished = request.out.with_name(f".{request.out.name}.unfinished")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        work = unfinished / "work"
        work.mkdir(parents=True)
        try:
            done = _ReconciliationRun(request, keys, self, unfinished).run()
            unfinished.rename(request.out)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return done


def _verify_request(request: ReconcileRequest) -> None:
    if request.out.exists() and (not request.out.is_dir() or any(request.out.iterdir())):
        raise InvalidFieldError(f"{request.out} is not an empty folder", field="out", value=request.out.name)
    if request.memory_mb < MEMORY_MB_MIN:
        raise InvalidFieldError(
            f"memory must be at least {MEMORY_MB_MIN} MB", field="memory_mb", limit=MEMORY_MB_MIN,
            value=request.memory_mb,
        )  # fmt: skip
    if request.period and request.period[0] >= request.period[1]:
        raise InvalidFieldError("the period ends before it begins", field="period")
    if not (request.receipts or request.wallet or request.regulator):
        raise InvalidFieldError("nothing to compare with: name receipts, wallet or regulator", field="wallet")


def _read_keys(request: ReconcileRequest) -> KeyBook:
    try:
        with request.keys.open("rb") as file:
            content = file.read(KEY_BUNDLE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidFieldError(f"{request.keys}: {error.strerror}", field="keys") from None
    keys = KeyBook(content, root=request.root)
    if request.root is not None and not keys.anchored:
        raise VerificationError(
            f"the root of the key bundle is {keys.root}, not {request.root}", check="root", root=keys.root
        )
    return keys


class _ReconciliationRun:
    def __init__(self, request: ReconcileRequest, keys: KeyBook, by: Reconciliation, folder: Path) -> None:
        self._request, self._keys, self._folder = request, keys, folder
        self._version, self._signer, self._rulebook = by.version, by.signer, by.rulebook
        self._work = (folder / "work").resolve()
        self._rows = RowFiles(self._work)
        self._inputs: list[Input] = []
        self._rejects: list[tuple[str, int, str]] = []
        self._days_in_part: set[str] = set()
        """Days that the period covers in part: the regulator's totals of such a day are not compared."""
        given = [path.resolve() for path in (request.wallet, request.receipts, request.regulator) if path is not None]
        self._store = BookComparison(self._work, memory_mb=request.memory_mb, files=given)

    def run(self) -> Reconciled:
        try:
            extract = Extract(self._rulebook, overdue_s=self._request.overdue_s, operator=self._request.operator)
            verified = self._verify(extract)
            self._read_others()
            self._rows.load_into(self._store)
            terms = self._terms(extract, is_cut=verified.summary.is_cut)
            if self._request.operator is not None:
                self._store.keep_operator(self._request.operator)
            self._name_nameless(extract, terms)
            if self._request.keep_extract:
                self._store.write_transfers(self._work / "transfers.parquet")
                (self._work / "transfers.parquet").rename(self._folder / "transfers.parquet")
            self._store.join(terms)
            for found in self._compare(terms):
                self._emit(found)
            self._rows.load_into(self._store)
            earlier = self._load_earlier()
            return self._report(terms, extract, verified, earlier)
        finally:
            self._rows.close()
            self._store.close()
            shutil.rmtree(self._work)

    # --- reading ---

    def _verify(self, extract: Extract) -> VerifiedExport:
        verified = VerifiedExport(self._keys, self._rulebook, extract)
        self._inputs.append(verified.read(self._request.statements, self._rows, self._emit))
        names, operator = ", ".join(sorted(extract.operators)), self._request.operator
        if operator is None and len(extract.operators) > 1:
            raise InvalidFieldError(f"the statements are of {names}: name one operator", field="operator", limit=names)
        if operator is not None and extract.operators and operator not in extract.operators:
            raise InvalidFieldError(
                f"the statements are of {names}, none is of {operator}: nothing would be compared",
                field="operator", limit=names, value=operator,
            )  # fmt: skip
        return verified

    def _name_nameless(self, extract: Extract, terms: Terms) -> None:
        """Find rows without private block by their other ids; those that are not found are rejects."""
        left = self._store.name_nameless(terms)
        nowhere = [
            ("statements", 0, f"{statement}: {NO_BLOCK}")
            for statement, session_id in extract.missing.items()
            if (statement in left and terms.wallet) or (session_id in left and terms.regulator)
        ]
        self._rejects += nowhere
        self._inputs[0] = replace(self._inputs[0], rejected=len(nowhere))

    def _read_others(self) -> None:
        outside = Outside(self._store, self._rows)
        for source, path, read in (
            ("receipts", self._request.receipts, read_receipt),
            ("wallet", self._request.wallet, read_wallet),
            ("regulator", self._request.regulator, read_regulator),
        ):
            if path is not None:
                mapping, zone = read_mapping(self._request.mappings.get(source))
                self._inputs.append(outside.read(source, path.resolve(), mapping, zone, read))
        self._rejects += outside.rejects

    def _terms(self, extract: Extract, *, is_cut: bool) -> Terms:
        request = self._request
        as_of_ms = extract.newest_ms if request.as_of_ms is None else request.as_of_ms
        until_ms = FOREVER_MS if request.cut_off_s is None else as_of_ms - request.cut_off_s * 1000
        from_ms, to_ms = request.period or (0, FOREVER_MS)
        return Terms(
            as_of_ms=as_of_ms,
            from_ms=from_ms,
            to_ms=to_ms,
            wallet=request.wallet is not None,
            regulator=request.regulator is not None,
            receipts=request.receipts is not None,
            wallet_until_ms=until_ms,
            regulator_until_ms=until_ms,
            receipts_until_ms=until_ms,
            is_cut=is_cut,
            clock_limit_ms=request.clock_limit_s * 1000,
        )

    # --- comparing ---

    def _compare(self, terms: Terms) -> Iterator[Break]:
        store = self._store
        unknown = store.unknown_sessions()
        unheard = replace(terms, regulator=False)
        for key, transfers, rows, tickets in store.money():
            is_unknown = any(transfer.regulator_session_id in unknown for transfer in transfers)
            yield from match_money(key, transfers, rows, tickets, unheard if is_unknown else terms)
        if terms.regulator:
            for seats, stages in store.rounds():
                yield from match_round(seats[0] if seats else None, stages, terms)
            for sessions, known, ends in store.sessions():
                yield from match_sessions(sessions, known, ends, terms)
            yield from self._totals_declared(terms)
        if terms.receipts:
            for seats, receipts in store.receipts():
                yield from match_receipt(seats[0] if seats else None, receipts, terms)
        if terms.wallet:
            for account in store.accounts():
                yield from match_balances(account, terms)
        for seat in store.open_seats():
            yield from match_overdue(seat, terms)
        for session in store.ended():
            yield from match_identity(session)

    def _totals_declared(self, terms: Terms) -> Iterator[Break]:
        sums: dict[str, dict[tuple[str, str, str], dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for day, operator, currency, _game, source, *numbers in self._store.totals(terms):
            kept = sums[source][format_date(day * DAY_MS), operator, currency]
            for name, value in zip(("rounds", "bought", "paid_out", "staked", "returned"), numbers, strict=True):
                kept[name] = kept.get(name, 0) + int(value)
        for date, operator, currency, rounds, bought, staked, returned, paid_out in self._store.declared():
            begun_ms = parse_date(date)
            if not terms.is_whole(begun_ms, begun_ms + DAY_MS):
                if terms.is_in_part(begun_ms, begun_ms + DAY_MS):
                    self._days_in_part.add(date)
                continue
            declared = {
                "bought": bought, "paid_out": paid_out, "returned": returned, "rounds": rounds, "staked": staked,
            }  # fmt: skip
            at = (date, operator, currency)
            yield from match_total(
                date, operator, currency, declared, sums["regulator"].get(at, {}), sums["statements"].get(at, {})
            )

    def _emit(self, found: Break) -> None:
        document = json.dumps(break_document(found), separators=(",", ":"))
        subject = found.subject.replace("\t", " ")
        row = (str(priority_of(found)), str(found.time_ms), subject, found.break_id, found.kind.value, document)
        self._rows.add("breaks", row)

    # --- the earlier report, the resolutions ---

    def _load_earlier(self) -> str:
        """Load the breaks of an earlier report; the SHA-256 of that report, empty if none is given."""
        if self._request.earlier is None:
            return ""
        try:
            content = (self._request.earlier / files.REPORT).read_bytes()
            document = json.loads(content)
            due = document["files"][files.BREAKS_CSV]
            if files.sha256_of(self._request.earlier / files.BREAKS_CSV) != due:
                raise VerificationError(
                    f"{files.BREAKS_CSV} of the earlier report is not the one it names", check="earlier"
                )
            with (self._request.earlier / files.BREAKS_CSV).open(encoding="utf-8", newline="") as text:
                for row in csv.DictReader(text):
                    self._rows.add("earlier", (row["break_id"], row["class"], row["subject"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFieldError(
                f"{self._request.earlier} holds no earlier report: {error}", field="earlier"
            ) from None
        self._rows.load_into(self._store)
        return hashlib.sha256(content).hexdigest()

    # --- the report ---

    def _report(self, terms: Terms, extract: Extract, verified: VerifiedExport, earlier: str) -> Reconciled:
        request, store, summary = self._request, self._store, verified.summary
        resolutions: dict[str, Resolution] = {}
        entries, last = 0, ""
        if request.resolutions is not None:
            resolutions, entries, last = _read_resolutions(request.resolutions)
        findings = BreakFindings(terms.as_of_ms, resolutions)
        hashes = {files.BREAKS_CSV: self._write_breaks(findings)}
        totals = [_total_row(row) for row in store.totals(terms)]
        hashes[files.TOTALS_CSV] = self._write_csv(
            files.TOTALS_CSV, _TOTAL_COLUMNS, ([row[name] for name in _TOTAL_COLUMNS] for row in totals)
        )
        hashes[files.REJECTS_CSV] = self._write_csv(files.REJECTS_CSV, ("source", "line", "reason"), self._rejects)
        store.write_participations(self._work / files.PARTICIPATIONS_CSV)
        (self._work / files.PARTICIPATIONS_CSV).rename(self._folder / files.PARTICIPATIONS_CSV)
        hashes[files.PARTICIPATIONS_CSV] = files.sha256_of(self._folder / files.PARTICIPATIONS_CSV)
        counts = store.counts()
        open_breaks, resolved = findings.open.total(), findings.resolved.total()
        verdict = verdict_of(open_breaks, len(self._rejects), allow_rejects=request.allow_rejects)
        sources = Sources(
            wallet=terms.wallet,
            receipts=terms.receipts,
            regulator=terms.regulator,
            has_rounds=summary.rounds_verified > 0,
            seamless=summary.statements["transfer"] > 0,
            embedded_wallet=counts.embedded_wallet > 0,
            test_regulator=extract.test_regulator or counts.test_sessions > 0,
        )
        document: dict[str, Any] = {
            "as_of": format_time(terms.as_of_ms),
            "breaks": findings.listed,
            "breaks_listed_max": LISTED_MAX,
            "checks": independence(sources),
            "classes": findings.classes(),
            "compared": asdict(counts),
            "clock_limit_s": request.clock_limit_s,
            "cut_off_s": request.cut_off_s,
            "days_in_part": sorted(self._days_in_part),
            "difference": None,
            "files": hashes,
            "format": FORMAT,
            "identity": identity_rows(store.identity()),
            "inputs": [asdict(found) for found in self._inputs],
            "is_signed": self._signer is not None,
            "key_path": {
                "anchored": self._keys.anchored,
                "development": summary.has_development_keys,
                "root": self._keys.root,
                "sha256": files.sha256_of(request.keys),
            },
            "open": open_breaks,
            "operator": request.operator or ", ".join(sorted(extract.operators)),
            "overdue_s": request.overdue_s,
            "owed": dict(sorted(findings.owed.items())),
            "play_money": {"rounds": extract.demo_rounds, "sessions": extract.demo_sessions},
            "period": None if request.period is None else [format_time(moment) for moment in request.period],
            "rejected": len(self._rejects),
            "rejects_allowed": request.allow_rejects,
            "resolutions": None if request.resolutions is None else {"entries": entries, "last_hash": last},
            "resolved": resolved,
            "tool": {"name": "rgs reconcile", "version": self._version},
            "totals": totals,
            "verdict": verdict,
            "verification": {name: getattr(summary, name) for name in _VERIFIED},
        }
        if earlier:
            gone = [{"break_id": gone_id, "class": name, "subject": subject} for name, subject, gone_id in store.gone()]
            document["difference"] = {
                "earlier": earlier, "gone": gone[:LISTED_MAX], "gone_total": len(gone), "new": findings.new,
                "still": findings.still,
            }  # fmt: skip
        content = format_report(document)
        sha256 = hashlib.sha256(content).hexdigest()
        (self._folder / files.REPORT).write_bytes(content)
        (self._folder / files.PAGE).write_text(render_page(document, sha256), encoding="utf-8")
        if self._signer is not None:
            self._sign(self._signer, sha256, terms.as_of_ms)
        return Reconciled(verdict, open_breaks, resolved, len(self._rejects), document, sha256)

    def _sign(self, signer: Signer, sha256: str, as_of_ms: int) -> None:
        """Write the `report` statement, dated as of the report: the same inputs give the same envelope."""
        body = {"kind": "report", "name": files.REPORT_NAME, "sha256": sha256, "time": format_time(as_of_ms)}
        envelope = seal_envelope(KINDS["report"].payload_type, format_canonical(body), signer)
        (self._folder / files.SIGNED).write_bytes(format_line(ExportLine(envelope, None)) + b"\n")

    def _write_breaks(self, findings: BreakFindings) -> str:
        def rows() -> Iterator[list[str]]:
            for text, is_known in self._store.breaks():
                result = findings.add(json.loads(text), is_known=is_known)
                resolved = result["resolved"] or {}
                found = "; ".join(f"{name}: {value}" for name, value in result["found"])
                state, owed = ("resolved" if resolved else "open"), ("yes" if result["owed"] else "no")
                said = {**result, **resolved, "state": state, "owed": owed, "found": found, "time": result["time"]}
                yield [said.get(name, "") for name in _BREAK_COLUMNS]

        return self._write_csv(files.BREAKS_CSV, _BREAK_COLUMNS, rows())

    def _write_csv(self, name: str, columns: Sequence[str], rows: Any) -> str:
        path = self._folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for row in rows:
                writer.writerow([escape_cell(str(cell)) for cell in row])
        return files.sha256_of(path)


def _total_row(row: Sequence[Any]) -> dict[str, Any]:
    day, *rest = row
    values = (format_date(day * DAY_MS), *rest[:4], *(int(value) for value in rest[4:]))
    return dict(zip(_TOTAL_COLUMNS, values, strict=True))


def _read_resolutions(path: Path) -> tuple[dict[str, Resolution], int, str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFieldError(f"{path}: {error.strerror}", field="resolutions") from None
    return read_resolutions(content.splitlines())
