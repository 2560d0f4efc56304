"""The isolated start of the server (GLI-19 2.3.2): what Python runs is what lies there as source, hashed before.

`rgs serve` begins itself again through this file, as `python -I -S -B -X pycache_prefix=… rgs/launch.py serve …`;
whoever starts a server for others to rely on does so at once (docs/manifest.md). In that process

    -I -S   no PYTHON* variable is heard, no .pth file, sitecustomize or usercustomize is run, no folder is on the path
    -B -X   bytecode is neither read nor written: the prefix lies below the null device, where nothing can lie
    path    standard library, then site-packages; put together here, from files. Our own packages are found by their
            names: nothing else that lies beside them in a checkout can be imported

Interpreter, shared objects, standard library and dependencies are hashed before any of the dependencies is imported.
Refuses variables that tell the dynamic linker or the libraries to load other code, dependencies that are not what lock
and RECORD say, and what lies unlisted beside them. In a checkout the files beside this one are the server, whatever
they are; installed from a wheel they too are held against their RECORD.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from pathlib import Path

    from certification.manifest_verify import Surroundings

PREFIX: Final = f"{os.devnull}/none"
"""Where bytecode would be looked for."""
FLAGS: Final = ("-I", "-S", "-B", "-X", f"pycache_prefix={PREFIX}")
OWN: Final = ("certification", "rgs", "rng")
LINKER: Final = ("LD_", "DYLD_")
LOADERS: Final = frozenset({"GCONV_PATH", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES"})
"""With all that begins as in LINKER: variables that bring other code into a process."""
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


class OwnPackages:
    """Finds our packages beside this file, before anybody else does."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Of a top package of ours; None for every other name."""
        return PathFinder.find_spec(name, [_root()]) if name in OWN else None


def search_path() -> list[str]:
    """The isolated path: standard library, packages. SurroundingsError."""
    stdlib = [entry for entry in sys.path if os.path.isdir(entry)]  # noqa: PTH112
    archives = [entry for entry in sys.path if os.path.isfile(entry)]  # noqa: PTH113
    if archives:
        raise SurroundingsError(f"unlisted  {archives[0]}: an archive that lies before the standard library")
    return [*stdlib, *sites(_root())]


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


def measure_surroundings(objects: Sequence[str] | None = None) -> Surroundings:
    """Hash what this isolated process runs on; of shared objects those that are in it now, unless they are named.

    SurroundingsError for what contradicts lock or RECORD, or cannot be read.
    """
    from pathlib import Path  # noqa: PLC0415 - on the path only once there is one

    from certification import manifest_verify  # noqa: PLC0415

    root = Path(_root())
    folders = [Path(folder) for folder in sites(str(root))]
    stdlib = Path(os.__file__).parent
    try:
        if objects is None:
            objects = manifest_verify.mapped_objects([stdlib, *folders])
        files, beside = manifest_verify.own_files(root)
        findings = [finding for finding in beside if "/" in finding.path or _is_meant(finding.path, folders)]
        lock = files[manifest_verify.LOCK].read_text("utf-8") if manifest_verify.LOCK in files else ""
        found = manifest_verify.measure(folders, lock, sys.executable, stdlib, objects)
        found.server = {
            name: manifest_verify.digest(path)
            for name, path in files.items()
            if not name.startswith(f"{manifest_verify.PROTOS}/")
        }
    except manifest_verify.UnverifiableError as error:
        raise SurroundingsError(str(error)) from None
    compiled = tuple(suffix for suffix in manifest_verify.IMPORTABLE if suffix != ".py")
    findings += [manifest_verify.Finding("unlisted", path) for path in files if path.endswith(compiled)]
    findings += found.findings
    if findings:
        told = [" ".join(str(finding).split()) for finding in sorted(set(findings))]
        more = f"; and {len(told) - _TOLD_MAX} more" if len(told) > _TOLD_MAX else ""
        raise SurroundingsError("; ".join(told[:_TOLD_MAX]) + more)
    return found


def main() -> int:
    """Run one command of `rgs` in this process, which has to be isolated; the exit status."""
    arguments = sys.argv[1:]
    try:
        if not is_isolated():
            become_isolated(arguments)
        verify_environment(os.environ)
        for name in os.environ.keys() - unheard(os.environ).keys():
            del os.environ[name]
        sys.path[:] = search_path()
        sys.meta_path.insert(0, OwnPackages)
        found = measure_surroundings() if arguments[:1] == ["serve"] else None
    except SurroundingsError as error:
        sys.stderr.write(f"rgs: {error}\n")
        return 1
    if found is not None:  # a server draws no traceback in colours, and structlog loads a tenth of all code for it
        sys.modules["rich"] = None  # type: ignore[assignment]
    from rgs.__main__ import run_measured  # noqa: PLC0415

    return run_measured(arguments, found)


def verify_isolated() -> None:
    """SurroundingsError unless this process was started so."""
    if not is_isolated():
        raise SurroundingsError("this process was not started isolated: start the server with `rgs serve`")


def _here() -> str:
    return os.path.abspath(__file__)  # noqa: PTH100


def _root() -> str:
    return os.path.dirname(os.path.dirname(_here()))  # noqa: PTH120 - the search path itself is made of it


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
