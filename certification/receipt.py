"""`certify receipt ENVELOPE PROOF --policy FILE [--root FINGERPRINT]`: verifies one statement and its place in the log,
offline.

ENVELOPE is the signed statement, PROOF its `.tlog-proof` (C2SP tlog-proof). The key path stands in the proof's extra
data, where `rgs receipt` puts it (docs/formats.md, section 17). The log does not sign it, and need not: it verifies
from the root. `--keys` gives a key bundle instead; the newest one knows which keys were revoked since. Under a revoked
key the receipt needs what the revocation asks for (docs/keys.md): a place below its position, in a tree that an outside
witness had cosigned by then.

Exit 0: it verifies; 1: it does not (also under a quorum of `none`); 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from certification.cosigned import CosignedCheckpoints
from certification.log import Trust, read_trust
from certification.replay import FileError, fingerprint, read_file, refused
from certification.tree import verify_note_and_quorum
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.receipts import parse_key_path
from rgs.core.replay import HashedEntry, KeyBook, Place
from rgs.core.replay.reading import Statement, read_entry
from rgs.core.statements import leaf_hash, parse_envelope
from rgs.core.statements.envelope import ENVELOPE_BYTES_MAX
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX
from rgs.core.tlog.note import format_note
from rgs.core.tlog.proofs import PROOF_BYTES_MAX, LogProof, parse_log_proof, verify_log_proof


def verify_receipt(
    envelope: bytes, proof: LogProof, trust: Trust, root: str | None, bundle: bytes | None = None
) -> tuple[Statement, list[str], bool]:
    """The statement, the witnesses that saw it, and whether the root is the one given. VerificationError,
    FormatError.
    """
    if proof.extra is None:
        raise VerificationError("the proof has no key path in its extra data", field="extra")
    carried, start = parse_key_path(proof.extra)
    accepted = verify_note_and_quorum(proof.checkpoint, trust.policy)
    verify_log_proof(proof, leaf_hash(envelope))
    cosigned = CosignedCheckpoints(trust.policy, trust.own, [format_note(proof.checkpoint).decode()])
    keys = KeyBook(carried if bundle is None else bundle, root=root, witnessed=cosigned.witnessed)
    if root is not None and not keys.anchored:
        raise VerificationError(f"the root of the keys is {keys.root}, not {root}", field="root")
    place = Place(accepted.checkpoint.origin, proof.index)
    # The start of an instance stands before everything that its key has signed.
    started = read_entry(HashedEntry(leaf_hash(start), parse_envelope(start), place, is_signed=False), keys)
    if started.kind.name == "instance_start" and start != envelope:
        keys.add_instance(started.body, started.keyid)
    statement = read_entry(HashedEntry(leaf_hash(envelope), parse_envelope(envelope), place, is_signed=False), keys)
    return statement, sorted(accepted.witnessed), keys.anchored


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify receipt", description="Verify a receipt from its two files.")
    parser.add_argument("envelope", type=Path, metavar="ENVELOPE", help="the statement as it was signed")
    parser.add_argument("proof", type=Path, metavar="PROOF", help="its .tlog-proof")
    parser.add_argument("--policy", required=True, type=Path, help="whom you trust (C2SP tlog-policy)")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    parser.add_argument("--keys", type=Path, metavar="KEYS", help="a key bundle, instead of the one in the proof")
    parser.add_argument("--self-witness", action="append", default=[], metavar="NAME", help="the operator's witness")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(argv)
    try:
        trust = read_trust(options.policy, options.self_witness)
        envelope = read_file(options.envelope, ENVELOPE_BYTES_MAX + 1).removesuffix(b"\n")
        bundle = None if options.keys is None else read_file(options.keys, KEY_BUNDLE_BYTES_MAX)
        proof_file = read_file(options.proof, PROOF_BYTES_MAX)
    except FileError as error:
        return refused("receipt", error)
    try:
        proof = parse_log_proof(proof_file)
        statement, witnesses, anchored = verify_receipt(envelope, proof, trust, options.root, bundle)
    except (FormatError, RgsError) as error:
        sys.stdout.write(f"FAILED {error}\n")
        return 1
    sys.stdout.write(
        f"{statement.kind.name} {statement.hash} of {statement.body['time']}, signed by {statement.key.name},"
        f" is entry {proof.index} of {proof.checkpoint.text.split(chr(10))[0]}\n"
        f"INCLUDED {trust.verdict(witnesses)} {'ANCHORED' if anchored else 'UNANCHORED'}\n"
    )
    return 0
