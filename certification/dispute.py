"""`certify dispute ZIP [--root FINGERPRINT] [--policy FILE] [--html FILE]`: verifies and shows the file of a complaint.

The zip holds `session.jsonl` (every statement of the session, as `rgs export --session` writes it), `keys.json`,
`opening.json` and `final.json` of the seat in question, their `.tlog-proof` where the log has them, `ruleset.json`, and
a page that the server rendered. That page is not read: `--html` renders a new one. Of a seat at a table `session.jsonl`
also has what all seats share: `table_round`, `table_deal` and `table_final` of each round, and the path beside the
seat's opening.

Exit 0: it verifies; 1: it does not; 2: usage, no such zip, a file in it with an unknown name, or one that unpacks to
more than its limit.
"""

from __future__ import annotations

import argparse
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from certification.dispute_page import Dispute, render_dispute
from certification.log import Trust, read_trust
from certification.receipt import verify_receipt
from certification.replay import FileError, fingerprint, refused
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.replay.reading import Statement
from rgs.core.rulesets import parse_canonical_ruleset
from rgs.core.statements import leaf_hash
from rgs.core.statements.envelope import ENVELOPE_BYTES_MAX
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX
from rgs.core.tables.joined import Body, joined_final, joined_opening
from rgs.core.tlog.proofs import PROOF_BYTES_MAX, parse_log_proof

_SESSION_BYTES_MAX: Final = 1 << 28
FILES: Final[Mapping[str, int]] = {
    "session.jsonl": _SESSION_BYTES_MAX,
    "keys.json": KEY_BUNDLE_BYTES_MAX,
    "opening.json": ENVELOPE_BYTES_MAX,
    "final.json": ENVELOPE_BYTES_MAX,
    "ruleset.json": 1 << 18,
    "opening.tlog-proof": PROOF_BYTES_MAX,
    "final.tlog-proof": PROOF_BYTES_MAX,
    "page.html": 1 << 22,
    "README.txt": 1 << 16,
}
"""What may be in the zip, and how long it may be."""
NEEDED: Final = ("session.jsonl", "keys.json", "opening.json", "final.json", "ruleset.json")

_BAD_ZIP: Final = (OSError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, ValueError)
"""What the library raises for a file that is not a zip, or is damaged; a NotImplementedError is a RuntimeError."""


def read_zip(path: Path) -> dict[str, bytes]:
    """The files of a zip. FileError."""
    try:
        with zipfile.ZipFile(path) as zipped:
            files = {}
            for info in zipped.infolist():
                if info.filename not in FILES or info.filename in files:
                    raise FileError(f"{path}: {info.filename[:80]!r} does not belong in it, or comes twice")
                if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # others may ask for gigabytes
                    raise FileError(f"{path}: {info.filename} is packed by method {info.compress_type}, not 0 or 8")
                with zipped.open(info) as file:
                    data = file.read(FILES[info.filename] + 1)
                if len(data) > FILES[info.filename]:
                    raise FileError(f"{path}: {info.filename} is longer than {FILES[info.filename]} bytes")
                files[info.filename] = data
    except FileError:
        raise
    except _BAD_ZIP as error:
        raise FileError(f"{path}: {error}") from error
    if missing := [name for name in NEEDED if name not in files]:
        raise FileError(f"{path}: {', '.join(missing)} is missing")
    return files


def examine(files: Mapping[str, bytes], root: str | None, trust: Trust | None) -> Dispute:
    """Verify everything. VerificationError or FormatError if there is no round to show."""
    verdict: list[str] = []
    ruleset = parse_canonical_ruleset(files["ruleset.json"])
    keys = KeyBook(files["keys.json"], root=root)
    if root is not None and not keys.anchored:
        verdict.append(f"FAILED: the root of the keys is {keys.root}, not {root}")
    replay = Replay(keys, Rulebook([ruleset]))
    links: dict[str, Statement] = {}
    for line in files["session.jsonl"].removesuffix(b"\n").split(b"\n"):
        verdict += [_reported(error) for error in replay.feed(line)]
        if replay.statement is not None:
            links[replay.statement.hash] = replay.statement
    verdict += [_reported(error) for error in replay.finish()]
    found = {name: links.get(leaf_hash(files[f"{name}.json"]).hex()) for name in ("opening", "final")}
    opening, final = found["opening"], found["final"]
    if opening is None or final is None or (opening.kind.name, final.kind.name) not in _ROUNDS:
        raise VerificationError("opening.json and final.json are not a round of session.jsonl", field="final")
    first, last = _in_one_form(opening, final, links)
    if final.body["opening"] != opening.hash:
        verdict.append("FAILED: the final is of another opening")
    if final.body["session_id"] != opening.body["session_id"]:
        verdict.append("FAILED: opening and final are of two sessions")
    if first["deal"]["ruleset"]["sha256"] != ruleset.sha256:
        verdict.append("FAILED: ruleset.json is not the ruleset of the round")
    for name in ("opening", "final"):
        verdict.append(_placed(name, files, root, trust))
    is_good = not any(line.startswith("FAILED") for line in verdict)
    anchored = "ANCHORED" if keys.anchored else "UNANCHORED"
    verdict.insert(
        0, f"{'VERIFIED' if is_good else 'FAILED'} {anchored}: {replay.summary.rounds_verified} rounds of the session"
    )
    begun = next((one.body for one in links.values() if one.kind.name == "session_open"), {})
    currency = begun.get("currency") or next(iter(replay.summary.staked_minor), "")
    is_demo = replay.summary.rounds_demo > 0 or begun.get("mode") == "demo"
    round_id = final.body["round_id"]
    transfers = [
        (one.body, _block(one))
        for one in links.values()
        if one.kind.name in _TRANSFERS or (one.kind.name in _OF_ROUND and one.body["round_id"] == round_id)
    ]
    return Dispute(first, last, ruleset, currency, transfers, verdict, is_good, keys.anchored, is_demo)


_TRANSFERS: Final = ("session_open", "purchase", "participation_end")
_OF_ROUND: Final = ("transfer", "free_bet")
_ROUNDS: Final = (("round_opening", "round_final"), ("seat_opening", "seat_final"))


def _in_one_form(opening: Statement, final: Statement, links: Mapping[str, Statement]) -> tuple[Body, Body]:
    """Opening and final as those of solo play. VerificationError if statements of the seat's table are missing."""
    if opening.kind.name == "round_opening":
        return opening.body, final.body
    deal = _named(links, "table_deal", opening.body["deal"])
    round_ = _named(links, "table_round", deal["deal"]["table_round"])
    end = _named(links, "table_final", final.body["table_final"])
    return joined_opening(round_, deal, opening.body), joined_final(end, final.body)


def _named(links: Mapping[str, Statement], kind: str, name: str) -> Body:
    found = links.get(name)
    if found is None or found.kind.name != kind:
        raise VerificationError(f"session.jsonl lacks {kind} {name}, which the seat names", field="session")
    return found.body


def _block(statement: Statement) -> Mapping[str, str]:
    block: Mapping[str, str] = {} if statement.private is None else statement.private["block"]
    return block


def _reported(error: VerificationError) -> str:
    return f"FAILED {error.metadata['check']}: {error.message}"


def _placed(name: str, files: Mapping[str, bytes], root: str | None, trust: Trust | None) -> str:
    data = files.get(f"{name}.tlog-proof")
    if data is None:
        return f"{name}: no proof that it is in the log"
    if trust is None:
        return f"{name}: its place in the log was not verified, no policy was given"
    try:
        proof = parse_log_proof(data)
        _, witnesses, _ = verify_receipt(files[f"{name}.json"], proof, trust, root)
    except (FormatError, RgsError) as error:
        return f"FAILED {name} in the log: {error}"
    origin = proof.checkpoint.text.split("\n")[0]
    return f"{name}: entry {proof.index} of {origin}, {trust.verdict(witnesses)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify dispute", description="Verify and show the file of a complaint.")
    parser.add_argument("zip", type=Path, metavar="ZIP", help="what `rgs dispute-export` made")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    parser.add_argument("--policy", type=Path, help="whom you trust (C2SP tlog-policy), for the place in the log")
    parser.add_argument("--self-witness", action="append", default=[], metavar="NAME", help="the operator's witness")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the round as a page")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(argv)
    try:
        trust = None if options.policy is None else read_trust(options.policy, options.self_witness)
        files = read_zip(options.zip)
    except FileError as error:
        return refused("dispute", error)
    try:
        dispute = examine(files, options.root, trust)
    except RgsError as error:
        sys.stdout.write(f"FAILED {error}\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in dispute.verdict)
    try:
        if options.html is not None:
            options.html.write_text(render_dispute(dispute), encoding="utf-8")
    except RgsError as error:
        sys.stdout.write(f"FAILED {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"certify dispute: {options.html}: {error.strerror}\n")
        return 2
    return 0 if dispute.is_good else 1
