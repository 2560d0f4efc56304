"""The command `certify dossier [--quick] [--out DIR] [--resume] …` and `certify dossier verify DIR` (docs/dossier.md).

Making runs the steps of the plan, keeps each result in the work folder, and writes the bundle into OUT and OUT.zip.
Exit 0: everything ran and passed; 1: something failed; 2: usage; 3: nothing failed, but not everything ran (it names
what did not), as always with --quick. A dossier that failed or is incomplete is written and signed all the same.
Verifying: exit 0: files and signature hold; 1: they do not; 2: usage.

OUT must be empty, missing or an earlier dossier: other files are never overwritten.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from certification.dossier import bundle
from certification.dossier.document import document_of
from certification.dossier.figures import figures_of
from certification.dossier.page import render_page
from certification.dossier.plan import DossierPlan, full_plan, quick_plan, steps_of
from certification.dossier.work import ROOT, Done, Work
from certification.replay import FileError, fingerprint, read_file, refused, whole_number
from certification.statistics import progress
from rgs.core.errors import RgsError
from rgs.core.statements import Ed25519Signer
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX
from rgs.core.times import parse_time

_WORDS: Final = {
    "passed": "passed: everything ran and nothing failed",
    "incomplete": "incomplete: nothing failed, but not everything ran",
    "failed": "FAILED",
}
_STATUS: Final = {"passed": 0, "failed": 1, "incomplete": 3}
_count = whole_number(1, 10**10)
_APART: Final = {"manifest": "content", "sbom": "document"}
"""Results of which one field stands in a file of its own, not twice."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make or verify a dossier; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _verify(arguments[1:]) if arguments[:1] == ["verify"] else _make(arguments)
    except (OSError, RgsError, FileError) as error:
        return refused("dossier", error)


def _make(arguments: Sequence[str]) -> int:
    requested = _parser().parse_args(arguments)
    time_ms = parse_time(requested.time) if requested.time else time.time_ns() // 1_000_000
    signer = _signer(requested, time_ms)
    plan = (
        quick_plan(requested.seed) if requested.quick else full_plan(requested.decks, requested.rounds, requested.seed)
    )
    document = make_dossier(plan, requested.out, requested.work, signer, time_ms, resume=requested.resume)
    sys.stdout.writelines(f"{row['verdict']:<15}{row['title']:<44}{row['reported']}\n" for row in document["steps"])
    clauses = ", ".join(f"{count} {word}" for word, count in document["counts"]["clauses"].items())
    sys.stdout.write(f"clauses: {clauses}\n")
    if signer is None:
        sys.stdout.write("the dossier is NOT SIGNED: no --signing-key and no --home\n")
    sys.stdout.write(f"{_WORDS[document['verdict']]}; {requested.out / 'index.html'}, {_zip_of(requested.out)}\n")
    return _STATUS[document["verdict"]]


def make_dossier(
    plan: DossierPlan, out: Path, work: Path | None, signer: Ed25519Signer | None, time_ms: int, *, resume: bool = False
) -> dict[str, Any]:
    """Run the plan and write the bundle; its document. FileError for a folder that holds something else."""
    if out.exists() and any(out.iterdir()) and not (out / bundle.SUMS).is_file():
        raise FileError(f"{out} holds files and is not a dossier")
    kept = Work(work or out.with_name(f"{out.name}.work"), time_ms, resume=resume)
    steps = steps_of(plan)
    done: list[Done] = []
    for number, step in enumerate(steps, 1):
        sys.stderr.write(f"[{number:>2}/{len(steps)}] {step.title} …\n")
        found = kept.do(step, progress.show)
        how = "kept" if found.is_kept else f"{found.took_s:.1f} s"
        sys.stderr.write(f"        {found.result['verdict']} ({how}): {found.result['reported']}\n")
        done.append(found)
    document = document_of(plan, done, time_ms)
    files = _files(document, done)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as name:
        fresh = Path(name) / out.name
        fresh.mkdir(mode=0o755)
        bundle.write_bundle(fresh, files, signer, time_ms)
        if out.exists():
            shutil.rmtree(out)
        fresh.rename(out)
    bundle.write_zip(out, _zip_of(out))
    return document


def _files(document: dict[str, Any], done: Sequence[Done]) -> dict[str, bytes]:
    """Every file of the bundle but sums and signature."""
    results = {found.step.name: found.result for found in done}
    figures = figures_of(results)
    files = {f"figures/{name}": content for name, content in figures.items()}
    for name, result in results.items():
        shown = {key: value for key, value in result.items() if key != _APART.get(name)}
        files[f"results/{name}.json"] = _json(shown)
        if result.get("certificate"):
            files[f"certificates/{result['ruleset']}.json"] = _json(result["certificate"])
    if results["manifest"].get("content"):
        files["software-manifest.json"] = results["manifest"]["content"].encode()
        files["manifest_verify.py"] = (ROOT / "rgs/integrity/manifest_verify.py").read_bytes()
    if results["sbom"].get("document"):
        files["sbom.cdx.json"] = _json(results["sbom"]["document"])
    files["times.json"] = _json({"made": document["made"], "took_s": {row.step.name: row.took_s for row in done}})
    files["dossier.json"] = _json(document)
    files["index.html"] = render_page(document, results, frozenset(figures)).encode()
    return files


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _zip_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.zip")


def _signer(requested: argparse.Namespace, time_ms: int) -> Ed25519Signer | None:
    if requested.signing_key:
        return bundle.load_signer(requested.signing_key)
    return bundle.load_node_signer(requested.home, time_ms) if requested.home else None


def _verify(arguments: Sequence[str]) -> int:
    parser = _verify_parser()
    requested = parser.parse_args(arguments)
    if requested.root is not None and requested.keys is None:
        parser.error("--root names the root of a key bundle: give the bundle, too, with --keys")
    if not requested.folder.is_dir():
        raise FileError(f"{requested.folder} is not a folder")
    keys = None if requested.keys is None else read_file(requested.keys, KEY_BUNDLE_BYTES_MAX)
    try:
        for line in bundle.verify(requested.folder, bundle=keys, root=requested.root, keyid=requested.keyid):
            sys.stdout.write(f"{line}\n")
    except RgsError as error:
        sys.stdout.write(f"FAILED: {error}\n")
        return 1
    return 0


# --- options ----------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="certify dossier",
        description="Run the certification and bundle it, signed.",
        epilog="certify dossier verify DIR checks a bundle.",
    )
    parser.add_argument("--quick", action="store_true", help="small samples, for continuous integration")
    parser.add_argument("--out", type=Path, default=Path("var/dossier"), metavar="DIR", help="default: var/dossier")
    parser.add_argument("--work", type=Path, metavar="DIR", help="results of the steps; default: OUT.work")
    parser.add_argument("--resume", action="store_true", help="use results in the work folder that are still valid")
    parser.add_argument("--decks", type=_count, default=10_000_000, metavar="N", help="of the longest battery")
    parser.add_argument("--rounds", type=_count, default=10_000_000, metavar="N", help="simulated of each ruleset")
    parser.add_argument(
        "--seed", default="", metavar="HEX", help="chance from this seed: for a run that can be repeated"
    )
    parser.add_argument("--time", metavar="TIME", help="when it was made, as 2026-11-21T22:30:00.123Z; default: now")
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--signing-key", type=Path, metavar="FILE", help="an Ed25519 private key, PEM, that signs")
    key.add_argument("--home", type=Path, metavar="DIR", help="a node's home, whose key signs")
    return parser


def _verify_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="certify dossier verify", description="Check the files and signature of a dossier."
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--keys", type=Path, metavar="KEYS", help="the server's key bundle")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    parser.add_argument(
        "--keyid", type=fingerprint, metavar="KEYID", help="the signing key's name, brought from outside"
    )
    return parser
