"""`certify manifest [--json] [--home DIR]`, `certify manifest verify MANIFEST --root DIR`: lists and finds again the
software that a lab has examined (GLI-19 2.3.2, 2.3.3; ADM 2.2.7, messages 830, 831).

It holds SHA-256, and SHA-1 for the Italian message, of every file of our own with its class of change; the dependencies
as the lock pins them and as they are installed, file by file; rulesets, jurisdictions, database schema, contract;
interpreter, standard library, shared objects; of a node's settings the hash alone. Verifying is a file of its own
(`rgs.integrity.manifest_verify`), which needs nothing of this. UnverifiableError where an installation contradicts its
lock or a RECORD: nothing can be certified then.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from certification.replay import refused
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.integrity import manifest_machine, manifest_verify
from rgs.integrity.manifest_verify import DEVKIT, FORMAT, LOCK, PROTOS, Surroundings, UnverifiableError

CLASSES: Final = {
    "rng": ("rng/",),
    "math": ("rgs/core/games/rulesets/", "rgs/core/games/published_returns.toml", "rgs/core/certificate_data/"),
    "game": (
        *("rgs/core/games/", "rgs/core/cards.py", "rgs/core/hands.py", "rgs/core/money.py", "rgs/core/rulesets.py"),
        *("rgs/core/ledger.py", "rgs/core/limits.py", "rgs/core/rounds.py", "rgs/core/sessions.py"),
        *("rgs/core/jurisdictions.py", "rgs/core/jurisdiction_data/", "rgs/core/returns/certified.py"),
    ),
}
"""Class of change -> what it is a change of; the first that fits holds. Each of them is MAJOR: certified again, as
CHANGELOG.md says of the class. Everything else is `none`.
"""
APART: Final = "devkit"
"""The class of files that no server can import: a change of one changes no hash of the server."""
NO_CLASS: Final = "none"
_MODULES: Final = ("rgs/core", "rng")


def class_of(path: str) -> str:
    """The class of a change of this file: `rng`, `math`, `game`, `devkit` or `none`."""
    for name, places in CLASSES.items():
        if any(path == place or (place.endswith("/") and path.startswith(place)) for place in places):
            return name
    return APART if path.startswith(DEVKIT) else NO_CLASS


def make_manifest(root: Path, home: Path | None = None) -> dict[str, Any]:
    """The whole manifest of what runs now, its own files below `root`; UnverifiableError."""
    files, findings = manifest_verify.own_files(root)
    lock = files[LOCK].read_text("utf-8") if LOCK in files else ""
    found = surroundings_here(root, lock)
    findings += found.findings
    if not lock:
        findings.append(manifest_verify.Finding("missing", LOCK))
    if findings:
        raise UnverifiableError("this is nothing to certify: " + "; ".join(map(str, findings[:10])))
    entries = [
        {
            "bytes": str(path.stat().st_size),
            "class": class_of(name),
            "path": name,
            "sha1": manifest_verify.digest(path, "sha1"),
            "sha256": manifest_verify.digest(path),
        }
        for name, path in sorted(files.items())
    ]
    hashes = {entry["path"]: entry["sha256"] for entry in entries}
    return {
        "configuration": None if home is None else _configuration(home),
        "contract": _part(hashes, f"{PROTOS}/"),
        "devkit": _part(hashes, DEVKIT),
        "files": entries,
        "format": FORMAT,
        "jurisdictions": {name: load_jurisdiction(name).sha256 for name in SHIPPED_JURISDICTIONS},
        "locked": {
            name: {"archives": archives, "version": version}
            for name, (version, archives) in manifest_verify.parse_lock(lock).items()
        },
        "modules": {name.replace("/", "."): _module(hashes, f"{name}/") for name in _MODULES},
        "rulesets": {name: load_ruleset(name).sha256 for name in SHIPPED_RULESETS},
        "server": manifest_verify.hash_of({path: hashes[path] for path in hashes if manifest_verify.is_server(path)}),
        "schema": {name: _part(hashes, f"rgs/store/migrations/{name}/") for name in ("postgres", "sqlite")},
        "surroundings": found.listed(),
        "versions": {name: _version(files[f"{name}/__init__.py"]) for name in ("rgs", "rng")},
    }


def _version(path: Path) -> str:
    """The version that a package states, without running it."""
    found = re.search(r'^__version__ = "([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise UnverifiableError(f"{path} names no version")
    return found[1]


def surroundings_here(root: Path, lock: str) -> Surroundings:
    """What this process runs on."""
    site = _site(root)
    stdlib = Path(os.__file__).parent
    python = manifest_machine.folder_of_python()  # which brings its OpenSSL into the process
    objects = manifest_machine.mapped_objects([site, stdlib])
    found = manifest_verify.measure([site], lock, sys.executable, stdlib, objects)
    try:
        places, refused = manifest_machine.examine([*python, *found.openssl])
    except OSError as error:
        raise UnverifiableError(f"{error.filename} cannot be read: {error.strerror}") from None
    found.machine = manifest_verify.machine_of(places)
    found.findings += [manifest_verify.Finding("odd", result) for result in refused]
    found.findings += manifest_verify.misled(Path(sys.executable), stdlib)
    return found


def _site(root: Path) -> Path:
    """The folder of packages: where we are installed, or for a checkout the one on the path."""
    if any(root.glob("*.dist-info")):
        return root
    for entry in sys.path:
        if Path(entry).name == "site-packages" and any(Path(entry).glob("*.dist-info")):
            return Path(entry)
    raise UnverifiableError("no folder of installed packages is on the path")


def _module(hashes: Mapping[str, str], prefix: str) -> dict[str, str]:
    """A module as it is reported to the regulator (`ReportModules`): two hashes of one listing."""
    files = {path: sha256 for path, sha256 in hashes.items() if path.startswith(prefix)}
    return {name: manifest_verify.hash_of(files, name) for name in ("sha1", "sha256")}


def _part(hashes: Mapping[str, str], prefix: str) -> str | None:
    """One hash for the files below a folder, as `sha256sum` would list them; None if there are none."""
    files = {path: sha256 for path, sha256 in hashes.items() if path.startswith(prefix)}
    return manifest_verify.hash_of(files) if files else None


def _configuration(home: Path) -> dict[str, str | None]:
    """The hashes of a node's settings: they show a change, but not its content."""
    if not home.is_dir():
        raise NotADirectoryError(f"{home} is not a folder")
    names = ("rgs.toml", "peers.toml")
    return {name: manifest_verify.digest(home / name) if (home / name).exists() else None for name in names}


def format_manifest(manifest: Mapping[str, Any]) -> str:
    """The file: JSON, sorted, a line a value, so that two of them can be compared by eye."""
    return json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _table(manifest: Mapping[str, Any]) -> str:
    """The table for people: one line for each fact."""
    lines = [f"{name} {version}" for name, version in manifest["versions"].items()]
    lines += [
        f"{entry['sha256']}  {entry['sha1']}  {entry['class']:<4}  {entry['path']}"
        for entry in manifest["files"]
        if entry["class"] in CLASSES
    ]
    for part, word in (("rulesets", "ruleset"), ("jurisdictions", "jurisdiction"), ("schema", "schema")):
        lines += [f"{sha256}  {word} {name}" for name, sha256 in manifest[part].items()]
    lines += [f"{hashes['sha256']}  {hashes['sha1']}  module {name}" for name, hashes in manifest["modules"].items()]
    lines += [f"{manifest[part]}  {part}" for part in ("contract", "server", "devkit") if manifest[part]]
    for name, sha256 in (manifest["configuration"] or {}).items():
        lines.append(f"{sha256 or 'none'}  configuration {name}")
    around = manifest["surroundings"]
    for name, files in sorted(around["dependencies"].items()):
        lines.append(f"{manifest_verify.hash_of(files)}  dependency {name}")
    lines += [f"{sha256}  object {path}" for path, sha256 in around["objects"].items()]
    lines += [f"{sha256}  machine {path}" for path, sha256 in sorted(around["machine"].items())]
    lines.append(f"{manifest_verify.hash_of(around['stdlib'])}  standard library of Python {around['python']}")
    others = sum(entry["class"] not in CLASSES for entry in manifest["files"])
    lines.append(f"and {others} files of no certified class (--json lists them, and every file of the dependencies)")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the manifest, or verify one; the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["verify"]:
        return manifest_verify.main(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="certify manifest",
        description="Hashes of everything that is certified. `certify manifest verify` compares files with one.",
    )
    parser.add_argument("--json", action="store_true", help="the whole manifest, which `verify` reads")
    parser.add_argument("--home", type=Path, metavar="DIR", help="with the hashes of this node's settings")
    options = parser.parse_args(arguments)
    try:
        manifest = make_manifest(Path(__file__).resolve().parent.parent, options.home)
    except UnverifiableError as error:
        sys.stderr.write(f"certify manifest: {error}\n")
        return 1
    except NotADirectoryError as error:
        return refused("manifest", error)
    sys.stdout.write(format_manifest(manifest) if options.json else f"{_table(manifest)}\n")
    return 0
