"""What a node declares of itself at its start: the hash of its configuration, its software modules, the artifacts that
it runs by; and what it looks at again, so that this stays true (GLI-19 2.3.2; ADM guidelines 2.2.7).

Refuses to start where a `certified.json` in the home says that the software is another.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

from rgs import __version__
from rgs.integrity import manifest_verify
from rgs.integrity.isolation import SurroundingsError, measure_surroundings
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.integrity.manifest_verify import Finding, Surroundings
from rgs.node.config import Config
from rgs.node.peers import Outward
from rgs.ports.regulator import SoftwareModule
from rgs.service.books import Books
from rgs.service.instance import Artifact

SURROUNDINGS_FORMAT = "rgs/surroundings/v1"
SURROUNDINGS_CHANGED = "SURROUNDINGS_CHANGED"
_TOLD_MAX = 12
"""So many differences are told in one line."""


def configured(config: Config, outward: Outward) -> str:
    """What tells of a change of the settings, of the outside or of the log's policy, without telling what."""
    policy = "" if config.log_policy is None else hashlib.sha256(config.log_policy.read_bytes()).hexdigest()
    told = [part for part in (config.sha256, outward.sha256, policy) if part]
    return told[0] if len(told) == 1 else hashlib.sha256(" ".join(told).encode("ascii")).hexdigest()


def modules_of(manifest: Manifest) -> list[SoftwareModule]:
    """The certified software as the central system is told of it: the manifest, and its files by package."""
    sha1 = hashlib.sha1(manifest.content, usedforsecurity=False).hexdigest()  # message 830/831 asks for it
    found = [SoftwareModule("manifest", __version__, manifest.sha256, sha1)]
    for package in ("rgs/core", "rng"):
        files = {entry.path: entry.sha256 for entry in manifest.entries if entry.path.startswith(f"{package}/")}
        sha256, sha1 = (manifest_verify.hash_of(files, name) for name in ("sha256", "sha1"))
        found.append(SoftwareModule(package.replace("/", "."), __version__, sha256, sha1))
    return found


def artifacts_of(books: Books, manifest: Manifest) -> list[Artifact]:
    """What the house runs by, each under the hash that rounds and statements name."""
    return [
        Artifact("manifest", manifest.sha256, manifest.content),
        *_surroundings(manifest),
        *(Artifact(ruleset.id, ruleset.sha256, ruleset.canonical) for ruleset in books.rulesets.values()),
        *(Artifact(rules.id, rules.sha256, rules.canonical) for rules in books.jurisdictions.values()),
    ]


def _surroundings(manifest: Manifest) -> list[Artifact]:
    """Interpreter, libraries and the rest of the server, one hash a part; nothing where no launcher has measured."""
    if manifest.surroundings is None:
        return []
    told = {"format": SURROUNDINGS_FORMAT, **condensed(manifest.surroundings)}
    content = json.dumps(told, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii")
    return [Artifact("surroundings", hashlib.sha256(content).hexdigest(), content)]


def condensed(found: Surroundings) -> dict[str, object]:
    """One hash a part, for a signed statement."""
    return {
        "dependencies": {name: manifest_verify.hash_of(files) for name, files in sorted(found.dependencies.items())},
        "machine": dict(sorted(found.machine.items())),
        "objects": dict(sorted(found.objects.items())),
        "python": found.python,
        "server": manifest_verify.hash_of(found.server),
        "started": dict(sorted(found.started.items())),
        "stdlib": manifest_verify.hash_of(found.stdlib),
    }


# --- held against what was certified, and against the start -----------------------------------------------------------


def verify_certified(path: Path, manifest: Manifest) -> None:
    """ManifestError where there is a manifest that the launcher did not compare with, before anything was imported."""
    found = manifest.surroundings
    if os.path.lexists(path) and (found is None or found.certified != str(path)):
        compared = found.certified if found is not None and found.certified else "nothing"
        raise ManifestError(f"{path} is there, and the launcher has compared with {compared}: name the home by --home")


def changed_software(manifest: Manifest, measure: Callable[[], Manifest]) -> str:
    """Hash the certified files again: a code if they are not what was measured at the start; the log says which."""
    try:
        again = measure()
    except ManifestError:
        return "SOFTWARE_UNREADABLE"
    if again.sha256 == manifest.sha256:
        return ""
    first, now = ({entry.path: entry.sha256 for entry in one.entries} for one in (manifest, again))
    structlog.get_logger().error("software_changed", what=_told(manifest_verify.differences(first, now)))
    return "SOFTWARE_CHANGED"


def changed_surroundings(manifest: Manifest) -> str:
    """Hash everything else again: a code, as above. Shared objects are those that were there at the start."""
    first = manifest.surroundings
    if first is None:
        return ""
    try:
        again = measure_surroundings(list(first.objects))
    except SurroundingsError as error:
        structlog.get_logger().error("surroundings_changed", what=str(error))
        return SURROUNDINGS_CHANGED
    if condensed(again) == condensed(first):
        return ""
    findings = manifest_verify.compare_surroundings({"surroundings": first.listed()}, again)
    what = _told([*findings, *manifest_verify.differences(first.server, again.server)])
    structlog.get_logger().error("surroundings_changed", what=what)
    return SURROUNDINGS_CHANGED


def _told(findings: Iterable[Finding]) -> str:
    """The first of them, in one line."""
    every = sorted(set(findings))
    more = f"; and {len(every) - _TOLD_MAX} more" if len(every) > _TOLD_MAX else ""
    return "; ".join(" ".join(str(finding).split()) for finding in every[:_TOLD_MAX]) + more
