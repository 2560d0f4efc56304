"""`certify manifest verify`: compares files with a manifest, and names each that is changed, missing or unlisted.

Standard library only and one file: carry it away, and run it with an interpreter that you trust:

    python3 -I -S -B manifest_verify.py MANIFEST --root DIR [--venv DIR] [--json]

`--root` is the folder of `rng`, `rgs` and `certification` (a checkout, or site-packages). With `--venv`, the virtual
environment, dependencies, standard library, interpreter and its shared objects are compared too. The output names what
was not compared. The server's launcher measures with the same functions before it imports anything else.

Every file in a listed folder counts, except in `__pycache__`, which an interpreter with a `pycache_prefix` does not
read. This finds careless and clumsy changes, not a host that lies: whoever can change this file, the interpreter or the
kernel can make it say anything. Exit 0: as listed; 1: differences; 2: cannot be compared.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "rgs/certified/v1"
PACKAGES: Final = ("certification", "rgs", "rng")
"""The folders of our own code."""
PROTOS: Final = "protos"
"""The folder of the contract; a wheel does not have it."""
DEVKIT: Final = "rgs/devkit/"
"""Demo, simulators, terminal client: hashed apart from the server, which cannot import them."""
LOCK: Final = "requirements/runtime.txt"
"""Logical path of the lock of the installation: a checkout has it there, a wheel inside `rgs`."""
BESIDE: Final = frozenset(
    {*PACKAGES, PROTOS}
    | {"bench", "build", "dist", "docs", "dossier", "env", "examples", "requirements", "tests", "tools", "var", "venv"}
)
"""Folders at the top of a checkout that may hold modules: the server imports nothing by such a name."""
CACHE: Final = "__pycache__"
CACHED: Final = (".pyc", ".nbi", ".nbc")
"""Files that a checkout may have there: bytecode, and old caches of numba. Our programs read neither."""
IMPORTABLE: Final = (".py", ".pyc", ".pyd", ".so", ".pth", ".egg", ".egg-link", ".zip")
"""Files that an interpreter may run, or that lead it to other code."""
COMPILED: Final = (".so", ".pyd", ".dylib")
ARCHIVES: Final = (".egg", ".egg-link", ".zip")
VIRTUALENV: Final = frozenset({"_virtualenv.py", "_virtualenv.pth"})
"""Files that virtualenv and uv put beside packages, in no RECORD. An interpreter under -S does not run them."""
ABSENT: Final = "absent"
"""Stands for the hash of a missing file."""
INSTALLER: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files in a distribution's own folder that say how it was installed."""
_NAME: Final = re.compile(r"[-_.]+")
_OPENSSL: Final = b'OPENSSLDIR: "'
"""Stands before the folder of the configuration in every build of OpenSSL."""
_PIECE: Final = 1 << 17
"""Bytes that are read and hashed at once: they stay in the processor's cache."""


class UnverifiableError(Exception):
    """A file or folder to compare cannot be read."""


@dataclass(frozen=True, order=True)
class Finding:
    """One difference and its path: `changed`, `missing`, `unlisted`; `twice` for two files or packages of one name;
    `odd` for what is neither file nor folder, and for what leads an interpreter elsewhere.
    """

    what: str
    path: str

    def __str__(self) -> str:
        shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in self.path)
        return f"{self.what:<9} {shown}"


@dataclass
class Surroundings:
    """What the server runs on: path -> SHA-256 in hex, by part."""

    python: str
    objects: dict[str, str] = field(default_factory=dict)
    """The interpreter and the shared objects in its process, by their absolute path."""
    stdlib: dict[str, str] = field(default_factory=dict)
    dependencies: dict[str, dict[str, str]] = field(default_factory=dict)
    """`name==version` -> its files."""
    server: dict[str, str] = field(default_factory=dict)
    """Our own files (`is_server`), if the server measures itself."""
    findings: list[Finding] = field(default_factory=list)
    """Contradictions to the lock or a RECORD."""
    machine: dict[str, str] = field(default_factory=dict)
    """Files of the machine that may bring other code into a process (`rgs.integrity.manifest_machine`)."""
    started: dict[str, str] = field(default_factory=dict)
    """Path files beside the packages, which a Python that is not isolated runs."""
    places: dict[str, str] = field(default_factory=dict)
    """File of a dependency -> its folder of packages."""
    others: list[str] = field(default_factory=list)
    """Distributions that are not locked, `name==version`: not hashed, and not importable for the server."""
    openssl: set[str] = field(default_factory=set)
    """The folders in which the OpenSSLs of objects and dependencies look for their configuration."""
    certified: str = ""
    """Path of the manifest that all of it was compared with before anything ran; empty if there was none."""

    def listed(self) -> dict[str, object]:
        """The parts that a manifest holds, file by file."""
        names = ("dependencies", "machine", "objects", "python", "started", "stdlib")
        return {name: getattr(self, name) for name in names}


# --- files -----------------------------------------------------------------------------------------------------------


def hash_of(files: Mapping[str, str], name: str = "sha256") -> str:
    """The hash of a listing with lines `<sha256>  <path>`, sorted by path: the format of `sha256sum`."""
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(files.items()))
    return hashlib.new(name, lines.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def digest(path: Path | str, name: str = "sha256") -> str:
    """The hash of a plain file, in hex; UnverifiableError."""
    hashed = hashlib.new(name, usedforsecurity=False)
    for piece in _pieces(path):
        hashed.update(piece)
    return hashed.hexdigest()


def digest_object(path: Path | str, openssl: set[str]) -> str:
    """As `digest`, of a shared object; adds to `openssl` the folders where an OpenSSL in it has its configuration."""
    hashed = hashlib.sha256()
    across = len(_OPENSSL) - 1
    end = b""
    for piece in _pieces(path):
        hashed.update(piece)
        if _OPENSSL in piece or _OPENSSL in end + piece[:across]:
            return _digest_openssl(path, openssl)
        end = (end + piece[-across:])[-across:]
    return hashed.hexdigest()


def _digest_openssl(path: Path | str, openssl: set[str]) -> str:
    """As `digest_object`, of a file that holds an OpenSSL: what is searched are the bytes that are hashed."""
    content = b"".join(_pieces(path))
    start = content.find(_OPENSSL)
    while start >= 0:
        end = content.find(b'"', start := start + len(_OPENSSL))
        openssl.add(content[start : max(start, end)].decode("utf-8", "surrogateescape"))
        start = content.find(_OPENSSL, start)
    return hashlib.sha256(content).hexdigest()


def _pieces(path: Path | str) -> Iterator[bytes]:
    """The bytes of a plain file in pieces that fit into a processor's cache; UnverifiableError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            known = os.fstat(descriptor)
            if not stat.S_ISREG(known.st_mode):
                raise UnverifiableError(f"{path} is no plain file")
            size = min(known.st_size + 1, _PIECE)  # no more memory than a small file needs
            while piece := os.read(descriptor, size):
                yield piece
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnverifiableError(f"{path} cannot be read: {error.strerror}") from None


def walk(
    folder: Path | str, skip: Iterable[str] = (CACHE,), prefix: str = ""
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry below that is no folder, with its path relative to `folder`; not those in folders named in `skip`."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise UnverifiableError(f"{folder} cannot be listed: {error.strerror}") from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in skip:
                yield from walk(entry.path, skip, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def own_files(root: Path) -> tuple[dict[str, Path], list[Finding]]:
    """Our files by logical path, as a manifest lists them; findings for odd files and those that shadow a library."""
    files: dict[str, Path] = {}
    findings = []
    if not root.is_dir():
        raise UnverifiableError(f"{root} is no folder")
    for top in (*PACKAGES, PROTOS):
        if not (root / top).is_dir():
            continue
        if (root / top).is_symlink():
            findings.append(Finding("odd", top))
        for path, entry in walk(root / top, ()):
            if not entry.is_file(follow_symlinks=False):
                findings.append(Finding("odd", f"{top}/{path}"))
            elif CACHE in path.split("/"):
                if not path.endswith(CACHED):  # a folder of caches is a folder of modules to who names it
                    findings.append(Finding("unlisted", f"{top}/{path}"))
            elif f"{top}/{path}" != f"rgs/{LOCK}":
                files[f"{top}/{path}"] = Path(entry.path)
    findings += twice(files)
    for lock in (root / "rgs" / LOCK, root / LOCK):
        if lock.is_file():
            files[LOCK] = lock
            break
    if not any(root.glob("*.dist-info")):  # a folder that is ours alone holds nothing else that could be imported
        findings += [Finding("unlisted", path.name) for path in sorted(root.iterdir()) if _shadows(path)]
    return files, findings


def is_server(path: str) -> bool:
    """Whether one of our own files is the server's: not the contract's, and not the devkit's."""
    return not path.startswith((f"{PROTOS}/", DEVKIT))


def twice(files: Iterable[str]) -> list[Finding]:
    """The modules of a listing that have two files, such as `x.py` and `x/__init__.py`: Python takes one."""
    modules: dict[str, list[str]] = {}
    for path in files:
        if path.endswith((".py", ".pyc", *COMPILED)):
            folder, _, name = path.rpartition("/")
            stem = name.partition(".")[0]
            modules.setdefault(folder if stem == "__init__" else f"{folder}/{stem}".lstrip("/"), []).append(path)
    return [Finding("twice", " and ".join(sorted(paths))) for paths in modules.values() if len(paths) > 1]


def _shadows(path: Path) -> bool:
    """Whether an entry at the top of a checkout would be imported before a library of its name, or a part of one."""
    if not path.is_dir():
        return path.suffix in IMPORTABLE
    if path.name in BESIDE or not path.name.isidentifier():
        return False
    return any(name.endswith(IMPORTABLE) for name, _ in walk(path))


# --- dependencies ----------------------------------------------------------------------------------------------------


def canonical_name(name: str) -> str:
    """The one form of a distribution's name."""
    return _NAME.sub("-", name).lower()


def parse_lock(text: str) -> dict[str, tuple[str, list[str]]]:
    """Name -> version and SHA-256 of the archives, as `requirements/runtime.txt` pins them."""
    found: dict[str, tuple[str, list[str]]] = {}
    hashes: list[str] = []
    for line in text.splitlines():
        if pinned := re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", line):
            hashes = []
            found[canonical_name(pinned[1])] = (pinned[2], hashes)
        elif hashed := re.match(r"\s+--hash=sha256:([0-9a-f]{64})", line):
            hashes.append(hashed[1])
    return found


def read_record(info: Path) -> dict[str, str]:
    """Path -> SHA-256 in base64, empty if the RECORD has none. Paths that lead out of the folder stay as written."""
    try:
        text = (info / "RECORD").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UnverifiableError(f"{info.name} has no RECORD that can be read") from None
    rows: dict[str, str] = {}
    for row in csv.reader(text.splitlines()):
        is_hash = len(row) == 3 and (row[1] == "" or row[1].startswith("sha256="))
        if not is_hash or row[0] in rows or not _is_path(row[0]):
            raise UnverifiableError(f"{info.name}/RECORD has a malformed line: {','.join(row)[:80]}")
        rows[row[0]] = row[1].removeprefix("sha256=")
    return rows


def _is_path(path: str) -> bool:
    """Whether a path is in normal form: it leads out of its folder at its beginning only."""
    if path and path[0] not in "./" and path[-1] != "/" and "//" not in path and "/." not in path:
        return True  # nearly all of the thousands
    while path.startswith("../"):
        path = path.removeprefix("../")
    return not {"", ".", ".."} & set(path.removeprefix("/").split("/"))


def _hex(encoded: str) -> str:
    """A hash of a RECORD (unpadded base64) as hex; empty if malformed."""
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
    except binascii.Error:
        return ""


def examine_site(site: Path, locked: Mapping[str, str], into: Surroundings) -> None:
    """Hash the locked distributions in a folder of packages by their RECORDs, and find contradictions.

    In the folders of a locked distribution every file must be in its own RECORD, whichever other RECORD lists it. Of
    other distributions, such as a developer's tools, only the names are read: they must not stand for a module of a
    locked one, and the server imports nothing of them.
    """
    listed: dict[str, str] = {}
    claimed: set[str] = set()
    known: set[str] = set()
    for info in sorted(site.glob("*.dist-info")):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        name = canonical_name(name)
        rows = read_record(info)
        ours = name == "rgs" and "rgs/__init__.py" in rows
        if name not in locked and not ours:
            claimed.update(path.partition("/")[0] for path in rows)
            into.others.append(f"{name}=={version}")
            continue
        if name in known:
            into.findings.append(Finding("twice", f"{name}: {info.name}"))
            continue
        known.add(name)
        if not ours and locked[name] != version:
            into.findings.append(Finding("changed", f"{name}: {version} is installed, {locked[name]} is locked"))
        files = {path: sha256 for path, sha256 in rows.items() if _counts(path, info.name)}
        into.findings += [Finding("twice", path) for path in files if path in listed]
        if ours:
            tops = {*PACKAGES, info.name}
            into.findings += [Finding("unlisted", path) for path in files if path.partition("/")[0] not in tops]
        hashed = _hash_listed(site, files, into)
        counted = {path: sha256 for path, sha256 in hashed.items() if not path.startswith(DEVKIT)}
        into.dependencies.setdefault(f"{name}=={version}", {}).update(counted)
        into.places.update(dict.fromkeys(hashed, str(site)))
        listed |= files
    into.findings += twice(listed)
    tops = {path.partition("/")[0] for path in listed}
    for top in sorted(tops):
        if (site / top).is_dir():
            for path, entry in walk(site / top, (), f"{top}/"):
                if path not in listed and not _is_harmless(path, entry, listed):
                    into.findings.append(Finding("unlisted", path))
    _examine_top(site, tops, claimed, into)


def _is_harmless(path: str, entry: os.DirEntry[str], listed: Mapping[str, str]) -> bool:
    """Whether an unlisted file is the bytecode of a listed one, or no code in a distribution's own folder."""
    if not entry.is_file():
        return False
    folder, _, name = path.rpartition("/")
    if folder.endswith(f"/{CACHE}") and name.endswith(".pyc"):
        return f"{folder.removesuffix(CACHE)}{name.partition('.')[0]}.py" in listed
    return path.partition("/")[0].endswith(".dist-info") and not path.endswith(IMPORTABLE)


def _examine_top(site: Path, tops: set[str], claimed: set[str], into: Surroundings) -> None:
    """Examine the top of a folder of packages, beside the tops of locked distributions."""
    modules = {top.partition(".")[0] for top in tops if not top.endswith(".dist-info")} | {*PACKAGES}
    for entry in sorted(os.scandir(site), key=lambda entry: entry.name):
        module, _, suffix = entry.name.partition(".")
        if entry.name in tops:
            continue
        if entry.name.endswith(".pth") or entry.name in VIRTUALENV:
            into.started[entry.name] = digest(entry.path)
        if entry.name == CACHE:
            stray = [path for path, _ in walk(entry.path, ()) if not _is_cached(site, path)]
            into.findings += [Finding("unlisted", f"{CACHE}/{path}") for path in stray]
        elif (
            (module in modules and (not suffix or entry.name.endswith(IMPORTABLE)))
            or entry.name.endswith(ARCHIVES)
            or (entry.name not in claimed | VIRTUALENV and _leads_somewhere(entry))
        ):
            into.findings.append(Finding("unlisted", entry.name))


def _is_cached(site: Path, path: str) -> bool:
    return path.endswith(".pyc") and "/" not in path and (site / f"{path.partition('.')[0]}.py").is_file()


def _counts(path: str, info: str) -> bool:
    """Whether a line of a RECORD is about code or data that is the same wherever it is installed."""
    if path.startswith(("../", "/")) or path.endswith((".pyc", ".pth")):
        return False
    return not (path.startswith(f"{info}/") and path[len(info) + 1 :] in INSTALLER)


def _hash_listed(site: Path, listed: Mapping[str, str], into: Surroundings) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, sha256 in listed.items():
        file = f"{site}/{path}"
        try:
            found[path] = digest_object(file, into.openssl) if path.endswith(COMPILED) else digest(file)
        except UnverifiableError:
            into.findings.append(Finding("missing", path))
            continue
        if sha256 and found[path] != _hex(sha256):
            into.findings.append(Finding("changed", path))
    return found


def _leads_somewhere(entry: os.DirEntry[str]) -> bool:
    """Whether an entry at the top of a folder of packages can be imported, or leads to code."""
    if not entry.is_dir():
        return entry.name.endswith(IMPORTABLE)
    return entry.name.isidentifier() and entry.name != CACHE and any(True for _ in walk(entry.path))


# --- interpreter -----------------------------------------------------------------------------------------------------


def measure_stdlib(stdlib: Path) -> dict[str, str]:
    """Hash the standard library, without its tests and the packages below it."""
    skip = (
        CACHE,
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "idlelib",
        "ensurepip",
        "lib2to3",
        "tkinter",
        "turtledemo",
    )
    return {
        path: digest(entry.path) for path, entry in walk(stdlib, skip) if path.endswith(IMPORTABLE) and entry.is_file()
    }


def measure(sites: Sequence[Path], lock: str, executable: str, stdlib: Path, objects: Sequence[str]) -> Surroundings:
    """Hash everything that the server runs on, except its own files. `sites` are the folders of packages."""
    found = Surroundings(".".join(map(str, sys.version_info[:3])))
    for path in sorted({os.path.realpath(executable), *objects}):
        found.objects[path] = digest_object(path, found.openssl)
    found.stdlib = measure_stdlib(stdlib)
    locked = {name: version for name, (version, _) in parse_lock(lock).items()}
    for site in sites:
        examine_site(site, locked, found)
    return found


def misled(program: Path, stdlib: Path) -> list[Finding]:
    """Files around an interpreter that lead it to another standard library, whatever its options."""
    real = Path(os.path.realpath(program))
    beside = [path for folder in {program.parent, real.parent} for path in folder.glob("*._pth")]
    beside += [*stdlib.parent.glob("python3*.zip"), *real.parent.glob("pybuilddir.txt")]
    findings = [Finding("unlisted", str(path)) for path in beside]
    for settings in (folder / "pyvenv.cfg" for folder in (program.parent, program.parent.parent)):
        lines = settings.read_text("utf-8", "replace").splitlines() if settings.is_file() else []
        homes = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip().lower() == "home"]
        findings += [Finding("odd", f"{settings}: {home}") for home in homes if Path(home).resolve() != real.parent]
    return findings


def machine_of(paths: Iterable[str]) -> dict[str, str]:
    """Hashes of these files of the machine; of the names of settings in a folder for a path that ends in a slash."""
    found = {}
    for path in paths:
        if not Path(path).exists():
            found[path] = ABSENT
        elif path.endswith("/"):
            names = sorted(name for name in os.listdir(path) if name.lower().endswith((".cnf", ".conf")))  # noqa: PTH208
            found[path] = hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()
        else:
            found[path] = digest(path)
    return found


def environment_of(venv: Path) -> tuple[Path, str, Path]:
    """Folder of packages, interpreter and standard library of a virtual environment, from its files."""
    executable = os.path.realpath(venv / "bin" / "python")
    sites = sorted(venv.glob("lib/python3.*/site-packages"))
    stdlibs = [Path(executable).parent.parent / site.parent.relative_to(venv) for site in sites]
    if len(sites) != 1 or not (stdlibs[0] / "os.py").is_file():
        raise UnverifiableError(f"{venv} is not a virtual environment with one Python")
    return sites[0], executable, stdlibs[0]


# --- comparing -------------------------------------------------------------------------------------------------------


def read_manifest(path: Path) -> dict[str, Any]:
    """The parsed manifest; UnverifiableError."""
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise UnverifiableError(f"{path} has the format {document['format']}, not {FORMAT}")
        if not document["files"]:
            raise UnverifiableError(f"{path} lists no files")
        for entry in document["files"]:
            entry["path"], entry["sha256"], entry["sha1"]
        for part in ("dependencies", "machine", "objects", "started", "stdlib"):
            document["surroundings"][part].items()
    except OSError as error:
        raise UnverifiableError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnverifiableError(f"{path} is no manifest") from None
    return dict(document)


def compare_files(manifest: Mapping[str, Any], root: Path) -> list[Finding]:
    """Compare our own files below `root` with the manifest; both hashes count."""
    files, findings = own_files(root)
    listed = {entry["path"]: entry for entry in manifest["files"]}
    if not (root / PROTOS).is_dir():
        listed = {path: entry for path, entry in listed.items() if not path.startswith(f"{PROTOS}/")}
    for path, entry in listed.items():
        if path not in files:
            findings.append(Finding("missing", path))
        elif (digest(files[path]), digest(files[path], "sha1")) != (entry["sha256"], entry["sha1"]):
            findings.append(Finding("changed", path))
    return sorted([*findings, *(Finding("unlisted", path) for path in files if path not in listed)])


def compare_surroundings(manifest: Mapping[str, Any], found: Surroundings) -> list[Finding]:
    """Compare what the server runs on with the manifest. A path file of the manifest may be missing."""
    listed = manifest["surroundings"]
    findings = list(found.findings)
    findings += differences(listed["objects"], found.objects, "")
    findings += differences(listed["machine"], found.machine)
    findings += [one for one in differences(listed["started"], found.started) if one.what != "missing"]
    findings += differences(listed["stdlib"], found.stdlib, "standard library: ")
    findings += differences(dict.fromkeys(listed["dependencies"], ""), dict.fromkeys(found.dependencies, ""), "")
    for name, files in found.dependencies.items():
        findings += differences(listed["dependencies"].get(name, files), files, f"{name}: ")
    return sorted(set(findings))


def differences(listed: Mapping[str, str], found: Mapping[str, str], where: str = "") -> Iterator[Finding]:
    """The differences of two listings of path and hash."""
    for path in sorted(listed.keys() | found.keys()):
        if path not in found:
            yield Finding("missing", where + path)
        elif path not in listed:
            yield Finding("unlisted", where + path)
        elif listed[path] != found[path]:
            yield Finding("changed", where + path)


def verify(manifest: Mapping[str, Any], root: Path, venv: Path | None) -> tuple[list[Finding], list[str]]:
    """All findings, and the parts that were not compared."""
    findings = compare_files(manifest, root)
    skipped = [] if (root / PROTOS).is_dir() else [f"{PROTOS} (not here)"]
    if venv is None:
        skipped.append("dependencies, interpreter and standard library (--venv)")
    else:
        site, executable, stdlib = environment_of(venv)
        lock = own_files(root)[0].get(LOCK)
        objects = [path for path in manifest["surroundings"]["objects"] if Path(path).exists()]
        text = "" if lock is None else lock.read_text("utf-8")
        found = measure([site], text, executable, stdlib, objects)
        found.machine = machine_of(manifest["surroundings"]["machine"])
        findings += [*misled(venv / "bin" / "python", stdlib), *compare_surroundings(manifest, found)]
        if found.others:
            skipped.append(f"{', '.join(found.others)}: not locked, and not importable for a server started isolated")
    caches = sum(1 for top in PACKAGES for _ in (root / top).rglob(f"{CACHE}/*.pyc"))
    if caches:
        skipped.append(f"{caches} files of bytecode, which a server that was started isolated does not read")
    return findings, skipped


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print the result; the exit status."""
    import argparse  # noqa: PLC0415 - the server measures with this module and has no need of it

    parser = argparse.ArgumentParser(
        prog="certify manifest verify", description="Compare files with a manifest: changed, missing, unlisted."
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST", help="what `certify manifest --json` wrote")
    parser.add_argument("--root", type=Path, required=True, metavar="DIR", help="the folder that holds rng and rgs")
    parser.add_argument("--venv", type=Path, metavar="DIR", help="the virtual environment that the server runs in")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args(argv)
    try:
        content = read_manifest(options.manifest)
        findings, skipped = verify(content, options.root, options.venv)
        name = digest(options.manifest)
    except UnverifiableError as error:
        sys.stderr.write(f"certify manifest verify: {error}\n")
        return 2
    if options.json:
        result = {
            "findings": [{"what": finding.what, "path": finding.path} for finding in findings],
            "manifest": name,
            "not_compared": skipped,
        }
        sys.stdout.write(json.dumps(result, indent=2, sort_keys=True) + "\n")
    else:
        lines = [*map(str, findings), *(f"not compared: {what}" for what in skipped)]
        verdict = f"{len(findings)} DIFFERENCES from" if findings else f"{len(content['files'])} files are as listed in"
        sys.stdout.write("\n".join([*lines, f"{verdict} manifest {name}"]) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
