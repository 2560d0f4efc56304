"""What a node declares of itself at its start: the hash of its configuration, its software modules, and the artifacts
that it runs by.
"""

from __future__ import annotations

import hashlib

from rgs import __version__
from rgs.clients.regulator import SoftwareModule
from rgs.config import Config
from rgs.manifest import Manifest
from rgs.outward import Outward
from rgs.service.books import Books
from rgs.service.instance import Artifact


def configured(config: Config, outward: Outward) -> str:
    """What tells of a change of the settings, of the outside or of the log's policy, without telling what."""
    policy = "" if config.log_policy is None else hashlib.sha256(config.log_policy.read_bytes()).hexdigest()
    told = [part for part in (config.sha256, outward.sha256, policy) if part]
    return told[0] if len(told) == 1 else hashlib.sha256(" ".join(told).encode("ascii")).hexdigest()


def modules_of(manifest: Manifest) -> list[SoftwareModule]:
    """The certified software as the central system is told of it: the manifest, and its files by package."""
    found = [SoftwareModule("manifest", __version__, manifest.sha256)]
    for package in ("rgs/core", "rng"):
        files = "".join(f"{e.sha256} {e.path}\n" for e in manifest.entries if e.path.startswith(f"{package}/"))
        found.append(
            SoftwareModule(package.replace("/", "."), __version__, hashlib.sha256(files.encode("utf-8")).hexdigest())
        )
    return found


def artifacts_of(books: Books, manifest: Manifest) -> list[Artifact]:
    """What the house runs by, each under the hash that rounds and statements name."""
    return [
        Artifact("manifest", manifest.sha256, manifest.content),
        *(Artifact(ruleset.id, ruleset.sha256, ruleset.canonical) for ruleset in books.rulesets.values()),
        *(Artifact(rules.id, rules.sha256, rules.canonical) for rules in books.jurisdictions.values()),
    ]
