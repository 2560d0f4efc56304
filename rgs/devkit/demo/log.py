"""The demo's transparency log: a witness beside the server, the log that is left behind, and its audit.

The witness is run by the house that it watches, and the policy says so in its own words (`# self-witness`): it shows
the protocol and proves nothing to others, which the verdict says as well. Refuses an audit that has not seen exactly
what was played.
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
from rgs.devkit.processes.witness import WitnessProcess
from rgs.node.config import CONFIG_FILE, Config
from rgs.node.files import PUBLIC_MODE, write_new, write_whole
from rgs.node.log_folder import leave_log, vkey_now
from rgs.node.witness_folder import make_witness

WITNESS: Final = "demo-witness"
VERDICT: Final = "PASSED SELF-WITNESSED ANCHORED"
_POLICY: Final = """\
# Whom to trust about this log, as a C2SP tlog-policy. Yours names witnesses that the house does not run.
# The one here is run by the house that it watches, by `rgs demo`: its word is no more than the house's.
# self-witness {name}
log {log}
witness {name} {vkey} http://{address}
quorum {name}
"""


def start_witness(evidence: Evidence, config: Config, running: ExitStack) -> WitnessProcess:
    """A witness of the home's log, until `running` ends, and the policy by which the server asks it."""
    log = vkey_now(config)
    vkey = make_witness(evidence.witness, f"{WITNESS}.example", [log])
    witness = running.enter_context(WitnessProcess(evidence.witness, evidence.witness_said))
    policy = _POLICY.format(name=WITNESS, log=log, vkey=vkey, address=witness.address)
    write_new(evidence.policy, policy.encode("ascii"), PUBLIC_MODE)
    settings = (evidence.home / CONFIG_FILE).read_text("utf-8")
    # Relative to the home, so that the whole folder can be moved.
    told = f'{settings}log_policy = "{Path("..") / evidence.policy.name}"\n'
    write_whole(evidence.home / CONFIG_FILE, told.encode("utf-8"), PUBLIC_MODE)
    return witness


def audit_log(evidence: Evidence, config: Config, root: str) -> Mapping[str, Any]:
    """Leave the log, and what `certify log` reports of it. DemoError if it has not passed."""
    leave_log(config, evidence.log, evidence.log_vkey)
    done = run_command(*command(evidence, root), "--json", str(evidence.audit), may_fail=True)
    verdict = done.stdout.splitlines()[-1]
    if verdict != VERDICT:
        raise DemoError(f"the audit of the log says {verdict}, expected is {VERDICT}")
    document: Mapping[str, Any] = json.loads(evidence.audit.read_bytes())
    return document


def command(evidence: Evidence, root: str) -> list[str]:
    """What audits the log, behind `python -m`."""
    files = {"--policy": evidence.policy, "--state": evidence.log_state, "--keys": evidence.keys}
    options = [part for option, path in files.items() for part in (option, str(path))]
    return ["certification", "log", str(evidence.log), *options, "--root", root]


def verify_audit(document: Mapping[str, Any], sessions: Sequence[PlayedSession]) -> None:
    """DemoError unless the audit has seen in the log exactly what was played, and every draw of it."""
    rounds = sum(len(session.rounds) for session in sessions)
    due = {
        "rounds_verified": rounds,
        "rounds_failed": 0,
        "rounds_open": 0,
        "sessions": len(sessions),
        "draws_in_rounds": rounds,
        "draws_exposed": 0,
        "lines": document["checkpoint"]["size"],
    }
    verify_figures("the log", document["summary"], due)
