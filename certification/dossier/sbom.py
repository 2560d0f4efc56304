"""The software bill of materials as CycloneDX 1.5 JSON, from the hash-locked requirements and installed metadata.

One component for each locked version of a package, with its package URL, the SHA-256 of every file that the lock
accepts, and the licence that the installed package declares. A locked package that is not installed here (it is for
another platform) says so and has no licence. `validate_sbom` checks the fields that the specification demands among
those used here; the whole schema is not shipped. FormatError for a line of a lock that cannot be read.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any, Final, cast

from certification.dossier.work import tree_sha256
from rgs.core.errors import FormatError
from rng import __version__ as rng_version

LOCKS: Final = (("runtime", "requirements/runtime.txt"), ("development", "requirements/dev.txt"))
"""The narrower lock first: a package of both belongs to the first."""
_PINNED: Final = re.compile(r"([a-z0-9][a-z0-9.-]*)(?:\[[a-z0-9,-]+\])?==([A-Za-z0-9.!+_-]+)(?: ; ([^\\]+?))? \\")
_HASHED: Final = re.compile(r"    --hash=sha256:([0-9a-f]{64})(?: \\)?")
_REQUESTED: Final = re.compile(r"    #(?: via)? +(?!via)((?:-[cr] )?[A-Za-z0-9./_-]+)")
"""`# via NAME` on one line, or `#   NAME` on those behind `# via`: who asks for the package."""
_NAMESPACE: Final = uuid.UUID("6f1f3f0e-6d3c-5f5a-9a55-3a1f0c1d7b42")
_SPDX: Final = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*")
_CLASSIFIED: Final[Mapping[str, str]] = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""The last words of a package's licence classifier, in short. "BSD" alone is no SPDX name, and is given as a name."""
_SPDX_NAMES: Final = frozenset({*_CLASSIFIED.values(), "BSD-3-Clause"} - {"BSD"})


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of a lock: name, version, the marker that limits it to some platforms, SHA-256 of its files, and who
    asks for it ("" is this project itself).
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    requested_by: tuple[str, ...]


def read_lock(text: str) -> Iterator[Locked]:
    """The packages of a lock; FormatError for a line that does not belong in a lock."""
    head: tuple[str, str, str] | None = None
    hashes: list[str] = []
    requested_by: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        pinned, hashed, requested = _PINNED.fullmatch(line), _HASHED.fullmatch(line), _REQUESTED.fullmatch(line)
        if pinned:
            if head:
                yield Locked(*head, tuple(hashes), tuple(requested_by))
            head, hashes, requested_by = (pinned[1], pinned[2], pinned[3] or ""), [], []
        elif hashed and head:
            hashes.append(hashed[1])
        elif requested:
            requested_by += (
                [] if requested[1].startswith("-c ") else ["" if requested[1].startswith("-r ") else requested[1]]
            )
        elif line.strip() and not line.lstrip().startswith("#"):
            raise FormatError(
                f"line {number} of the lock is neither a package nor a hash", field="lock", value=line[:80]
            )
    if head:
        yield Locked(*head, tuple(hashes), tuple(requested_by))


def make_sbom(root: Path) -> dict[str, Any]:
    """The document; the same for the same locks and the same installation."""
    components: dict[str, dict[str, Any]] = {}
    requested_for: dict[str, set[str]] = {}
    for scope, path in LOCKS:
        for locked in read_lock((root / path).read_text(encoding="utf-8")):
            part = _component(locked, scope)
            components.setdefault(part["bom-ref"], part)
            for name in locked.requested_by:
                requested_for.setdefault(name, set()).add(part["bom-ref"])
    ordered = [components[ref] for ref in sorted(components)]
    serial = uuid.uuid5(_NAMESPACE, "".join(tree_sha256(root / path) for _, path in LOCKS))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "rgs",
                "name": "rgs",
                "version": _version_of("rgs"),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "components": [{"type": "library", "bom-ref": "rng", "name": "rng", "version": rng_version}],
            }
        },
        "components": ordered,
        "dependencies": [
            {"ref": part["bom-ref"] if part else "rgs", "dependsOn": sorted(requested_for.get(name, ()))}
            for name, part in [("", None), *((part["name"], part) for part in ordered)]
        ],
    }


def _component(locked: Locked, scope: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{locked.name}@{locked.version}"
    installed = _distribution(locked.name)
    licences = _licences(installed) if installed else []
    is_same = installed is not None and installed.version == locked.version
    properties = [
        {"name": "rgs:lock", "value": scope},
        {"name": "rgs:installed", "value": "yes" if is_same else "another version" if installed else "no"},
        *({"name": "rgs:accepted-file-sha256", "value": hash_} for hash_ in locked.hashes),
    ]
    if locked.marker:
        properties.append({"name": "rgs:marker", "value": locked.marker})
    return {
        "type": "library",
        "bom-ref": purl,
        "name": locked.name,
        "version": locked.version,
        "purl": purl,
        "scope": "required" if scope == "runtime" else "optional",
        **({"licenses": licences} if licences else {}),
        "properties": properties,
    }


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _version_of(name: str) -> str:
    found = _distribution(name)
    return found.version if found else "0"


def _licences(distribution: metadata.Distribution) -> list[dict[str, Any]]:
    """What the package declares: an SPDX expression if it has one, else its classifier, else its field in one line."""
    result = cast("Message", distribution.metadata)
    expression = result.get("License-Expression")
    if expression:
        return [{"expression": expression}]
    classified = [row.rsplit(" :: ", 1)[1] for row in result.get_all("Classifier", []) if row.startswith("License ::")]
    names = [_CLASSIFIED.get(row, row) for row in classified if row not in ("OSI Approved", "DFSG approved")]
    if not names:
        field = (result.get("License") or "").strip()
        names = [field] if field and len(field) <= 64 and "\n" not in field else []
    return [{"license": {"id" if name in _SPDX_NAMES else "name": name}} for name in names]


def validate_sbom(document: Mapping[str, Any]) -> list[str]:
    """What is missing or wrong of the fields that CycloneDX 1.5 demands where they are used here; empty if nothing."""
    faults = []
    if document.get("bomFormat") != "CycloneDX" or document.get("specVersion") != "1.5":
        faults.append("bomFormat is CycloneDX, specVersion 1.5")
    if not re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(document.get("serialNumber"))):
        faults.append("serialNumber is a urn:uuid")
    if type(document.get("version")) is not int or document["version"] < 1:
        faults.append("version is a whole number from 1")
    parts = document.get("components")
    components = parts if isinstance(parts, list) else []
    refs = ["rgs", *(str(part.get("bom-ref")) for part in components)]
    faults += [f"bom-ref {ref} stands twice" for ref in sorted({ref for ref in refs if refs.count(ref) > 1})]
    for part in components:
        faults += _component_faults(part)
    for row in document.get("dependencies", ()):
        faults += [f"dependency {ref} is not a component" for ref in (row["ref"], *row["dependsOn"]) if ref not in refs]
    return faults


def _component_faults(part: Mapping[str, Any]) -> list[str]:
    name = part.get("name")
    faults = []
    if part.get("type") not in ("application", "library", "framework") or not name:
        faults.append(f"component {name}: type and name are due")
    if not str(part.get("purl", "")).startswith("pkg:"):
        faults.append(f"component {name}: a package URL is due")
    for row in part.get("licenses", ()):
        if "expression" in row:
            if len(part["licenses"]) != 1 or not _SPDX.fullmatch(row["expression"].replace("(", "").replace(")", "")):
                faults.append(f"component {name}: one SPDX expression, alone")
        elif not (row.get("license", {}).get("id") or row.get("license", {}).get("name")):
            faults.append(f"component {name}: a licence has an id or a name")
    return faults
