"""The demo's transparency log: a witness beside the server, the log's files, and their audit.

The same machine runs the witness and the log, so the witness shows the protocol and proves nothing to others. The
policy (`# self-witness`) and the verdict say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.player import DemoError, PlayedSession, verify_figures
from rgs.devkit.demo.reconcile import run_command
from rgs.devkit.processes.server import WitnessProcess
from rgs.node.config import CONFIG_FILE, Config
from rgs.node.files import PUBLIC_MODE, write_new, write_whole
from rgs.node.log_folder import leave_log, vkey_now
from rgs.node.witness_folder import make_witness

WITNESS: Final = "demo-witness"
VERDICT: Final = "PASSED SELF-WITNESSED ANCHORED"
_POLICY: Final = """\
# Whom to trust about this log, as a C2SP tlog-policy. Yours names witnesses that the log's operator does not run.
# `rgs demo` runs this witness beside the log: its cosignature is worth no more than the log's own signature.
# self-witness {name}
log {log}
witness {name} {vkey} http://{address}
quorum {name}
"""


def start_witness(evidence: Evidence, config: Config, running: ExitStack) -> WitnessProcess:
    """Start a witness of the home's log, until `running` ends, and write the server's policy for it."""
    log = vkey_now(config)
    vkey = make_witness(evidence.witness, f"{WITNESS}.example", [log])
    witness = running.enter_context(WitnessProcess(evidence.witness, evidence.witness_said))
    policy = _POLICY.format(name=WITNESS, log=log, vkey=vkey, address=witness.address)
    write_new(evidence.policy, policy.encode("ascii"), PUBLIC_MODE)
    settings = (evidence.home / CONFIG_FILE).read_text("utf-8")
    # The path is relative to the home, so that the whole folder can be moved.
    result = f'{settings}log_policy = "{Path("..") / evidence.policy.name}"\n'
    write_whole(evidence.home / CONFIG_FILE, result.encode("utf-8"), PUBLIC_MODE)
    return witness


def audit_log(evidence: Evidence, config: Config, root: str) -> Mapping[str, Any]:
    """Write the log's files, and audit them with `certify log`. Returns its report. DemoError if it has not passed."""
    leave_log(config, evidence.log, evidence.log_vkey)
    done = run_command(*command(evidence, root), "--json", str(evidence.audit), may_fail=True)
    verdict = done.stdout.splitlines()[-1]
    if verdict != VERDICT:
        raise DemoError(f"the audit of the log says {verdict}, expected is {VERDICT}")
    document: Mapping[str, Any] = json.loads(evidence.audit.read_bytes())
    return document


def command(evidence: Evidence, root: str) -> list[str]:
    """The arguments of `python -m` that audit the log."""
    files = {"--policy": evidence.policy, "--state": evidence.log_state, "--keys": evidence.keys}
    options = [part for option, path in files.items() for part in (option, str(path))]
    return ["certification", "log", str(evidence.log), *options, "--root", root]


def verify_audit(document: Mapping[str, Any], sessions: Sequence[PlayedSession]) -> None:
    """DemoError unless the audit saw in the log exactly the rounds and draws that were played."""
    verify_figures("the log", document["summary"], sessions, {"lines": document["checkpoint"]["size"]})
