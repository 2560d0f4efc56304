"""The isolated start of the server (GLI-19 2.3.2): what Python runs is what lies there as source, hashed before.

`rgs serve` begins itself again through this file, as `python -I -S -B -X pycache_prefix=… rgs/integrity/launcher.py
serve …`; whoever starts a server for others to rely on does so at once (docs/manifest.md). In that process

    -I -S   no PYTHON* variable is heard, no .pth file, sitecustomize or usercustomize is run, no folder is on the path
    -B -X   bytecode is neither read nor written: the prefix lies below the null device, where nothing can lie imports
    from listings of hashes alone (`rgs.integrity.imports`): ours, the standard library, what the lock pins and its own
            RECORDs list. No folder is searched, so that nothing that lies beside them can be imported. `rgs.devkit` is
            not listed: no isolated process can import it, so a change of it is no change of the server

First the files of the machine are looked at that bring in other code; then everything is hashed, and compared with
`certified.json` of the home; then the first module is imported that is not of the standard library or one of the three
files named in TOOLS, which are run from their bytes.

Refuses variables that tell the dynamic linker or the libraries to load other code, dependencies that are not what lock
and RECORD say, what lies unlisted beside them, and two files for one module. In a checkout the files around this one
are the server, whatever they are; installed from a wheel they too are held against their RECORD. Who can change the
interpreter, its standard library, this file or those three can make it say anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from pathlib import Path

    from rgs.integrity.manifest_verify import Surroundings

PREFIX: Final = f"{os.devnull}/none"
"""Where bytecode would be looked for."""
FLAGS: Final = ("-I", "-S", "-B", "-X", f"pycache_prefix={PREFIX}")
OWN: Final = ("certification", "rgs", "rng")
LINKER: Final = ("LD_", "DYLD_")
LOADERS: Final = frozenset({"GCONV_PATH", "OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_ENGINES", "OPENSSL_MODULES"})
"""With all that begins as in LINKER: variables that bring other code into a process."""
HOPELESS: Final = 3
"""Exit status of a server that cannot start until a person changes something: whoever keeps it does not begin it again.
"""
TOOLS: Final = ("rgs.integrity.manifest_machine", "rgs.integrity.manifest_verify", "rgs.integrity.imports")
"""What the launcher works with: compiled from the files beside it, whatever else bears their names."""
HOME: Final = ("var/rgs", "rgs.toml", "certified.json")
"""Where a home is, and in it the settings and the manifest, if nothing else is said (`rgs.node.config`)."""
_OURS: Final = tuple(f"{name}/" for name in OWN)
_RUN: Final[dict[str, bytes]] = {}
"""Of TOOLS, the bytes that were run."""
_TOLD_MAX: Final = 12
"""So many findings are told of one refusal."""


class SurroundingsError(Exception):
    """What the server would run on is not what it has to be."""


def isolated_command(*arguments: str) -> list[str]:
    """The command line of a process of ours that is isolated from its first instruction."""
    if not sys.executable:
        raise SurroundingsError("this Python does not know its own program: an isolated process cannot be started")
    return [sys.executable, *FLAGS, _here(), *arguments]


def is_isolated() -> bool:
    """Whether this process was started so."""
    flags = sys.flags
    return bool(flags.isolated and flags.no_site and flags.dont_write_bytecode) and sys.pycache_prefix == PREFIX


def become_isolated(arguments: Sequence[str]) -> NoReturn:
    """This process, begun again. SurroundingsError."""
    verify_environment(os.environ)
    command = isolated_command(*arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, unheard(os.environ))  # noqa: S606 - our own command, in our own place


def verify_environment(environment: Mapping[str, str]) -> None:
    """SurroundingsError naming the variables that would bring in other code."""
    found = sorted(name for name, value in environment.items() if value and _loads_code(name))
    if found:
        raise SurroundingsError(f"{', '.join(found)} would load code that nobody has certified: unset it")


def unheard(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what is meant for Python: an isolated one does not hear it, nor shall its children."""
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
    """The folders of packages: ours, where we are installed; for a checkout those of the interpreter's environment."""
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
    """SurroundingsError for a file of the machine that brings in other code. Before anything is hashed: the hashes are
    OpenSSL's, which reads its configuration first.
    """
    machine = tool("rgs.integrity.manifest_machine")
    try:
        _, refused = machine.examine(machine.folder_of_python())
    except OSError as error:
        raise SurroundingsError(f"{error.filename} cannot be read: {error.strerror}") from None
    if refused:
        raise SurroundingsError(_in_one_line(refused))


def measure_surroundings(objects: Sequence[str] | None = None) -> Surroundings:
    """Hash what this isolated process runs on; of shared objects those that are in it now, unless they are named.

    SurroundingsError for what contradicts lock or RECORD, or cannot be read.
    """
    from pathlib import Path  # noqa: PLC0415 - not before the machine was looked at

    machine, verifier = tool("rgs.integrity.manifest_machine"), tool("rgs.integrity.manifest_verify")
    root = Path(_root())
    folders = [Path(folder) for folder in sites(str(root))]
    stdlib = Path(os.__file__).parent
    try:
        if objects is None:
            objects = machine.mapped_objects([stdlib, *folders])
        files, beside = verifier.own_files(root)
        findings = [finding for finding in beside if "/" in finding.path or _is_meant(finding.path, folders)]
        lock = files[verifier.LOCK].read_text("utf-8") if verifier.LOCK in files else ""
        found: Surroundings = verifier.measure(folders, lock, sys.executable, stdlib, objects)
        found.server = {name: verifier.digest(path) for name, path in files.items() if verifier.is_server(name)}
        places, refused = machine.examine([*machine.folder_of_python(), *found.openssl])
        found.machine = verifier.machine_of(places)
        findings += verifier.misled(Path(sys.executable), stdlib)
    except verifier.UnverifiableError as error:
        raise SurroundingsError(str(error)) from None
    except OSError as error:
        raise SurroundingsError(f"{error.filename} cannot be read: {error.strerror}") from None
    compiled = tuple(suffix for suffix in verifier.IMPORTABLE if suffix != ".py")
    findings += [verifier.Finding("unlisted", path) for path in files if path.endswith(compiled)]
    findings += found.findings
    if findings or refused:
        raise SurroundingsError(_in_one_line([*refused, *map(str, sorted(set(findings)))]))
    return found


def certified_of(arguments: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Where the home of a command line may have a manifest that the software has to be. SurroundingsError."""
    import tomllib  # noqa: PLC0415 - as above
    from pathlib import Path  # noqa: PLC0415

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
    """SurroundingsError, naming what differs, where there is a manifest of `certify manifest --json` and this is other
    software.
    """
    from dataclasses import replace  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    if not os.path.lexists(path):
        return
    verifier = tool("rgs.integrity.manifest_verify")
    protos = f"{verifier.PROTOS}/"
    try:
        content = verifier.read_manifest(path)
        known = [name for name in content["surroundings"]["objects"] if Path(name).exists()]
        objects = {**{name: verifier.digest(name) for name in known}, **found.objects}
        ours, _ = verifier.own_files(Path(_root()))
        contract = {name: verifier.digest(file) for name, file in ours.items() if name.startswith(protos)}
    except verifier.UnverifiableError as error:
        raise SurroundingsError(str(error)) from None
    listed = {entry["path"]: entry["sha256"] for entry in content["files"]}
    listed = {name: sha256 for name, sha256 in listed.items() if not name.startswith(verifier.DEVKIT)}
    if not contract:
        listed = {name: sha256 for name, sha256 in listed.items() if not name.startswith(protos)}
    findings = [
        *verifier.differences(listed, {**found.server, **contract}),
        *verifier.compare_surroundings(content, replace(found, objects=objects)),
    ]
    if findings:
        told = _in_one_line([str(finding) for finding in sorted(set(findings))])
        raise SurroundingsError(f"this is not the software of {path}, {len(findings)} differences: {told}")
    found.certified = str(path)


def import_measured(found: Surroundings) -> None:
    """From here on this process imports what was measured, from the bytes that were measured, and nothing else."""
    import hashlib  # noqa: PLC0415

    imports = tool("rgs.integrity.imports")
    root, stdlib = _root(), os.path.dirname(os.__file__)  # noqa: PTH120
    for name in TOOLS:
        file = f"{name.replace('.', '/')}.py"
        if found.server.get(file) != hashlib.sha256(_RUN.get(name, b"")).hexdigest():
            raise SurroundingsError(f"changed {file} while it was measured")
    ours = {path: (f"{root}/{path}", sha256) for path, sha256 in found.server.items() if path.startswith(_OURS)}
    listings = [imports.Listing(ours)]
    for folder in sys.path:
        below = f"{folder}/"[len(stdlib) + 1 :]
        files = {path: sha256 for path, sha256 in found.stdlib.items() if path.startswith(below)}
        listed = {path[len(below) :]: (f"{stdlib}/{path}", sha256) for path, sha256 in files.items()}
        listings.append(imports.Listing(listed, whole=False))
    libraries = {
        path: (f"{found.places[path]}/{path}", sha256)
        for files in found.dependencies.values()
        for path, sha256 in files.items()
    }
    listings.append(imports.Listing(libraries))
    described = [f"{found.places[path]}/{path[:-9]}" for path in libraries if path.endswith(".dist-info/METADATA")]
    finder = imports.MeasuredFinder(listings, described=described)
    sys.meta_path[:] = [*(other for other in sys.meta_path if other is not PathFinder), finder]


def main() -> int:
    """Run one command of `rgs` in this process, which has to be isolated; the exit status."""
    arguments = sys.argv[1:]
    refused = HOPELESS if arguments[:1] == ["serve"] else 1
    try:
        if not is_isolated():
            become_isolated(arguments)
        verify_environment(os.environ)
        for name in os.environ.keys() - unheard(os.environ).keys():
            del os.environ[name]
        sys.path[:] = standard_library()
        verify_machine()
        found = measure_surroundings()
        verify_certified(certified_of(arguments, os.environ), found)
        import_measured(found)
    except SurroundingsError as error:
        sys.stderr.write(f"rgs: {error}\n")
        return refused
    # A server draws no traceback in colours, and structlog loads a tenth of all code for it.
    if arguments[:1] == ["serve"]:
        sys.modules["rich"] = None  # type: ignore[assignment]
    from rgs.integrity.run import run_measured  # noqa: PLC0415

    return run_measured(arguments, refused, found)


def verify_isolated() -> None:
    """SurroundingsError unless this process was started so."""
    if not is_isolated():
        raise SurroundingsError("this process was not started isolated: start the server with `rgs serve`")


def tool(name: str) -> Any:
    """The module of TOOLS, run from the bytes beside this file: no folder is searched for it."""
    if name in sys.modules:
        return sys.modules[name]
    path = f"{_root()}/{name.replace('.', '/')}.py"
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - without pathlib
            content = file.read()
    except OSError as error:
        raise SurroundingsError(f"{path} cannot be read: {error.strerror}") from None
    module = ModuleType(name)
    module.__file__ = path
    module.__spec__ = ModuleSpec(name, None, origin=path)
    sys.modules[name] = module
    exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own file
    _RUN[name] = content
    return module


def _in_one_line(told: Sequence[str]) -> str:
    more = f"; and {len(told) - _TOLD_MAX} more" if len(told) > _TOLD_MAX else ""
    return "; ".join(" ".join(line.split()) for line in told[:_TOLD_MAX]) + more


def _here() -> str:
    return os.path.abspath(__file__)  # noqa: PTH100


def _root() -> str:
    """Where `rgs` lies: the search path itself is made of it."""
    return os.path.dirname(os.path.dirname(os.path.dirname(_here())))  # noqa: PTH120


def _is_meant(name: str, folders: Sequence[Path]) -> bool:
    """Whether what lies at the top of a checkout is meant to be taken for something else: it bears the name of a module
    that there is, or is none that anybody reads. Anything else there is the developer's own, and cannot be imported.
    """
    module, _, suffix = name.partition(".")
    others = sys.stdlib_module_names | {
        found.name.partition(".")[0] for folder in folders for found in folder.iterdir()
    }
    return module in others or suffix not in ("", "py")


def _loads_code(name: str) -> bool:
    return name.startswith(LINKER) or name in LOADERS


if __name__ == "__main__":
    sys.exit(main())
