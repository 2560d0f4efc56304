"""What a node declares about itself at its start: hash of the configuration, software modules, artifacts; and the
checks that this stays true (GLI-19 2.3.2; ADM guidelines 2.2.7: software integrity).

A node does not start if `certified.json` in its home names other software.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import structlog

from rgs import __version__
from rgs.integrity import manifest_verify
from rgs.integrity.isolation import SurroundingsError, in_one_line, measure_surroundings
from rgs.integrity.manifest import Manifest, ManifestError
from rgs.integrity.manifest_verify import Surroundings
from rgs.node.config import Config
from rgs.node.peers import NodePeers
from rgs.ports.regulator import SoftwareModule
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Artifact

SURROUNDINGS_FORMAT = "rgs/surroundings/v1"
SURROUNDINGS_CHANGED = "SURROUNDINGS_CHANGED"


def configured(config: Config, peers: NodePeers) -> str:
    """A hash over settings, peers and the log's policy: it shows that something changed, not what."""
    policy = "" if config.log_policy is None else hashlib.sha256(config.log_policy.read_bytes()).hexdigest()
    hashes = [part for part in (config.sha256, peers.sha256, policy) if part]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode("ascii")).hexdigest()


def modules_of(manifest: Manifest) -> list[SoftwareModule]:
    """The certified software for the regulator: the manifest, and its files by package."""
    sha1 = hashlib.sha1(manifest.content, usedforsecurity=False).hexdigest()  # message 830/831 asks for it
    found = [SoftwareModule("manifest", __version__, manifest.sha256, sha1)]
    for package in ("rgs/core", "rng"):
        files = {entry.path: entry.sha256 for entry in manifest.entries if entry.path.startswith(f"{package}/")}
        sha256, sha1 = (manifest_verify.hash_of(files, name) for name in ("sha256", "sha1"))
        found.append(SoftwareModule(package.replace("/", "."), __version__, sha256, sha1))
    return found


def artifacts_of(games: GameCatalog, manifest: Manifest) -> list[Artifact]:
    """Manifest, surroundings, rulesets and jurisdictions, each under the hash that rounds and statements name."""
    return [
        Artifact("manifest", manifest.sha256, manifest.content),
        *_surroundings(manifest),
        *(Artifact(ruleset.id, ruleset.sha256, ruleset.canonical) for ruleset in games.rulesets.values()),
        *(Artifact(rules.id, rules.sha256, rules.canonical) for rules in games.jurisdictions.values()),
    ]


def _surroundings(manifest: Manifest) -> list[Artifact]:
    """Interpreter, libraries and the rest of the server, one hash for each; empty if no launcher has measured them."""
    if manifest.surroundings is None:
        return []
    found = {"format": SURROUNDINGS_FORMAT, **condensed(manifest.surroundings)}
    content = json.dumps(found, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode("ascii")
    return [Artifact("surroundings", hashlib.sha256(content).hexdigest(), content)]


def condensed(found: Surroundings) -> dict[str, object]:
    """One hash for each part, for a signed statement."""
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
    """ManifestError if there is a certified manifest that the launcher did not compare before anything was imported."""
    found = manifest.surroundings
    if os.path.lexists(path) and (found is None or found.certified != str(path)):
        compared = found.certified if found is not None and found.certified else "nothing"
        raise ManifestError(f"{path} exists, but the launcher compared with {compared}: name the home with --home")


def changed_software(manifest: Manifest, measure: Callable[[], Manifest]) -> str:
    """Hash the certified files again. Returns a code if they changed since the start, and logs which."""
    try:
        again = measure()
    except ManifestError:
        return "SOFTWARE_UNREADABLE"
    if again.sha256 == manifest.sha256:
        return ""
    first, now = ({entry.path: entry.sha256 for entry in one.entries} for one in (manifest, again))
    structlog.get_logger().error("software_changed", what=in_one_line(manifest_verify.differences(first, now)))
    return "SOFTWARE_CHANGED"


def changed_surroundings(manifest: Manifest) -> str:
    """Hash everything else again, as above. Only the shared objects that were loaded at the start are compared."""
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
    what = in_one_line([*findings, *manifest_verify.differences(first.server, again.server)])
    structlog.get_logger().error("surroundings_changed", what=what)
    return SURROUNDINGS_CHANGED
