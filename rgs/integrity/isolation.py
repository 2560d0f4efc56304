"""The isolated process: how it is started, what it runs on, and what it may import (GLI-19 2.3.2).

`isolated_command` starts a process of ours as

    python -I -S -B -X pycache_prefix=… rgs/integrity/launcher.py serve …

    -I -S   Python ignores PYTHON* variables, .pth files, sitecustomize and usercustomize; no folder is on the path
    -B -X   bytecode is neither read nor written: the prefix lies below the null device, where nothing can lie

`measure_surroundings` hashes what the process runs on. `import_measured` then lets it import from listings of hashes
alone (`rgs.integrity.imports`): our own files, the standard library, and the locked libraries. No folder is searched,
so a file that lies beside them cannot be imported.

The launcher runs this file before it has hashed anything. So it imports the standard library alone, and nothing that
starts OpenSSL. In a checkout the files around this one are the server, whatever they are; files that were installed
from a wheel are compared with their RECORD.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from rgs.integrity.manifest_verify import Finding, Surroundings

PREFIX: Final = f"{os.devnull}/none"
"""Where bytecode would be looked for."""
FLAGS: Final = ("-I", "-S", "-B", "-X", f"pycache_prefix={PREFIX}")
LINKER: Final = ("LD_", "DYLD_")
"""Variables with these prefixes, and those in LOADERS, bring other code into a process."""
LOADERS: Final = frozenset({"GCONV_PATH", "OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_ENGINES", "OPENSSL_MODULES"})
HOPELESS: Final = 3
"""Exit status of a server that cannot start until a person changes something: its keeper does not start it again."""
KEPT: Final = (["serve"], ["generator"])
"""First words of commands that are kept running, isolated on measured software."""
HOME: Final = ("var/rgs", "rgs.toml", "certified.json")
"""The defaults of `rgs.node.config`: the home, and in it the settings and the manifest."""
_ROOT: Final = Path(__file__).parents[2]
"""The folder in which `rgs` lies."""
_OURS: Final = ("certification/", "rgs/", "rng/")
_REPORTED_MAX: Final = 12
"""An error names so many findings."""


class SurroundingsError(ImportError):
    """The server would run on software, files or variables that it must not run on."""


def isolated_command(*arguments: str) -> list[str]:
    """The command line of a process of ours that is isolated from its first instruction."""
    if not sys.executable:
        raise SurroundingsError("this Python does not know its own program: an isolated process cannot be started")
    return [sys.executable, *FLAGS, str(_ROOT / "rgs/integrity/launcher.py"), *arguments]


def is_isolated() -> bool:
    """Whether this process was started with `isolated_command`."""
    flags = sys.flags
    return bool(flags.isolated and flags.no_site and flags.dont_write_bytecode) and sys.pycache_prefix == PREFIX


def verify_isolated() -> None:
    """SurroundingsError unless this process is isolated."""
    if not is_isolated():
        raise SurroundingsError("this process was not started isolated: start the server with `rgs serve`")


def become_isolated(arguments: Sequence[str]) -> NoReturn:
    """Start this process again, isolated. SurroundingsError for variables that load code."""
    verify_environment(os.environ)
    command = isolated_command(*arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, unheard(os.environ))  # noqa: S606 - our own command, in our own place


def verify_environment(environment: Mapping[str, str]) -> None:
    """SurroundingsError for variables that bring other code into a process."""
    found = sorted(name for name, value in environment.items() if value and _loads_code(name))
    if found:
        raise SurroundingsError(f"{', '.join(found)} would load code that nobody has certified: unset it")


def unheard(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without PYTHON* variables: an isolated process ignores them, and so do its children."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON")}


def standard_library() -> list[str]:
    """The folders of the standard library, which are the isolated path. SurroundingsError."""
    archives = [entry for entry in sys.path if os.path.isfile(entry)]  # noqa: PTH113
    if archives:
        raise SurroundingsError(f"unlisted  {archives[0]}: an archive that lies before the standard library")
    stdlib = os.path.dirname(os.__file__)  # noqa: PTH120
    folders = [entry for entry in sys.path if os.path.isdir(entry)]  # noqa: PTH112
    for folder in folders:
        if folder != stdlib and not folder.startswith(f"{stdlib}/"):
            raise SurroundingsError(f"unlisted  {folder}: a folder on the path that is not of the standard library")
    return folders


def sites(root: str) -> list[str]:
    """The folders of packages: `root` itself if we are installed there, else those of the interpreter's environment."""
    if any(name.endswith(".dist-info") for name in os.listdir(root)):  # noqa: PTH208
        return [root]
    program = os.path.dirname(os.path.abspath(sys.executable))  # noqa: PTH100, PTH120
    above = os.path.dirname(program)  # noqa: PTH120
    is_venv = any(os.path.isfile(f"{folder}/pyvenv.cfg") for folder in (program, above))  # noqa: PTH113
    prefix = above if is_venv else sys.prefix
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = [f"{prefix}/{library}/{version}/site-packages" for library in ("lib", "lib64")]
    distinct = {os.path.realpath(folder): folder for folder in reversed(found) if os.path.isdir(folder)}  # noqa: PTH112
    return list(reversed(distinct.values()))


def verify_machine() -> None:
    """SurroundingsError for a file of the machine that brings in other code.

    This comes before any hashing: hashing starts OpenSSL, which reads its configuration then.
    """
    from rgs.integrity.manifest_machine import examine, folder_of_python  # noqa: PLC0415 - a tool of the launcher

    try:
        _, refused = examine(folder_of_python())
    except OSError as error:
        raise SurroundingsError(f"{error.filename} cannot be read: {error.strerror}") from None
    if refused:
        raise SurroundingsError(in_one_line((), refused))


def measure_surroundings(objects: Sequence[str] | None = None) -> Surroundings:
    """Hash what this isolated process runs on: its shared objects are those that it has now, unless they are given.

    SurroundingsError for a file that contradicts lock or RECORD, or cannot be read.
    """
    from rgs.integrity.manifest_machine import examine, folder_of_python, mapped_objects  # noqa: PLC0415 - as above
    from rgs.integrity.manifest_verify import (  # noqa: PLC0415
        IMPORTABLE,
        LOCK,
        Finding,
        UnverifiableError,
        digest,
        is_server,
        machine_of,
        measure,
        misled,
        own_files,
    )

    folders = [Path(folder) for folder in sites(str(_ROOT))]
    stdlib = Path(os.__file__).parent
    try:
        if objects is None:
            objects = mapped_objects([stdlib, *folders])
        files, beside = own_files(_ROOT)
        findings = [finding for finding in beside if "/" in finding.path or _is_meant(finding.path, folders)]
        lock = files[LOCK].read_text("utf-8") if LOCK in files else ""
        found = measure(folders, lock, sys.executable, stdlib, objects)
        found.server = {name: digest(path) for name, path in files.items() if is_server(name)}
        places, refused = examine([*folder_of_python(), *found.openssl])
        found.machine = machine_of(places)
        findings += misled(Path(sys.executable), stdlib)
    except UnverifiableError as error:
        raise SurroundingsError(str(error)) from None
    except OSError as error:
        raise SurroundingsError(f"{error.filename} cannot be read: {error.strerror}") from None
    compiled = tuple(suffix for suffix in IMPORTABLE if suffix != ".py")
    findings += [Finding("unlisted", path) for path in files if path.endswith(compiled)]
    findings += found.findings
    if findings or refused:
        raise SurroundingsError(in_one_line(findings, refused))
    return found


def certified_of(arguments: Sequence[str], environment: Mapping[str, str]) -> Path:
    """The path of the manifest that the home of a command line may have. SurroundingsError for unreadable settings."""
    home, settings, certified = HOME
    home = environment.get("RGS_HOME") or home
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if option.startswith("--home="):
            home = option.removeprefix("--home=")
        elif option == "--home":
            home = value
    path = Path(home).absolute() / settings
    try:
        said = tomllib.loads(path.read_text("utf-8")).get("certified", certified) if path.is_file() else certified
    except (OSError, ValueError, RecursionError) as error:
        raise SurroundingsError(f"{path} cannot be read: {error}") from None
    return path.parent / (said if isinstance(said, str) else certified)


def verify_certified(path: Path, found: Surroundings) -> None:
    """SurroundingsError with the differences, if there is a manifest of `certify manifest --json` and it lists other
    software.
    """
    from rgs.integrity.manifest_verify import (  # noqa: PLC0415 - as above
        DEVKIT,
        PROTOS,
        UnverifiableError,
        compare_surroundings,
        differences,
        digest,
        own_files,
        read_manifest,
    )

    if not os.path.lexists(path):
        return
    protos = f"{PROTOS}/"
    try:
        content = read_manifest(path)
        known = [name for name in content["surroundings"]["objects"] if Path(name).exists()]
        objects = {**{name: digest(name) for name in known}, **found.objects}
        ours, _ = own_files(_ROOT)
        contract = {name: digest(file) for name, file in ours.items() if name.startswith(protos)}
    except UnverifiableError as error:
        raise SurroundingsError(str(error)) from None
    listed = {entry["path"]: entry["sha256"] for entry in content["files"] if not entry["path"].startswith(DEVKIT)}
    if not contract:
        listed = {name: sha256 for name, sha256 in listed.items() if not name.startswith(protos)}
    findings = [
        *differences(listed, {**found.server, **contract}),
        *compare_surroundings(content, replace(found, objects=objects)),
    ]
    if findings:
        differing = f"this is not the software of {path}, {len(findings)} differences"
        raise SurroundingsError(f"{differing}: {in_one_line(findings)}")
    found.certified = str(path)


def import_measured(found: Surroundings) -> None:
    """From here on this process imports what was measured, from the bytes that were measured, and nothing else."""
    from rgs.integrity.imports import Listing, MeasuredFinder  # noqa: PLC0415 - as above

    stdlib = str(Path(os.__file__).parent)
    ours = {path: (f"{_ROOT}/{path}", sha256) for path, sha256 in found.server.items() if path.startswith(_OURS)}
    listings = [Listing(ours)]
    for folder in sys.path:
        below = f"{folder}/"[len(stdlib) + 1 :]
        files = {path: sha256 for path, sha256 in found.stdlib.items() if path.startswith(below)}
        listed = {path[len(below) :]: (f"{stdlib}/{path}", sha256) for path, sha256 in files.items()}
        listings.append(Listing(listed, whole=False))
    libraries = {
        path: (f"{found.places[path]}/{path}", sha256)
        for files in found.dependencies.values()
        for path, sha256 in files.items()
    }
    listings.append(Listing(libraries))
    described = [f"{found.places[path]}/{path[:-9]}" for path in libraries if path.endswith(".dist-info/METADATA")]
    finder = MeasuredFinder(listings, described=described)
    sys.meta_path[:] = [*(other for other in sys.meta_path if other is not PathFinder), finder]


def in_one_line(findings: Iterable[Finding], refused: Sequence[str] = ()) -> str:
    """What is refused, then the findings in order, each once: the first twelve, and how many more there are."""
    reported = [*refused, *map(str, sorted(set(findings)))]
    more = f"; and {len(reported) - _REPORTED_MAX} more" if len(reported) > _REPORTED_MAX else ""
    return "; ".join(" ".join(line.split()) for line in reported[:_REPORTED_MAX]) + more


def _is_meant(name: str, folders: Sequence[Path]) -> bool:
    """Whether a file at the top of a checkout is refused: it has the name of a module of the standard library or of a
    package, or it is no source file. Any other file there is the developer's own, and cannot be imported.
    """
    module, _, suffix = name.partition(".")
    others = sys.stdlib_module_names | {
        found.name.partition(".")[0] for folder in folders for found in folder.iterdir()
    }
    return module in others or suffix not in ("", "py")


def _loads_code(name: str) -> bool:
    return name.startswith(LINKER) or name in LOADERS
