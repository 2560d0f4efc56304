"""The launcher: starts one command of `rgs` in an isolated process, on software that was hashed before (GLI-19 2.3.2).

`rgs serve` begins itself again through this file (`rgs.integrity.isolation`). A server that others rely on is started
with it at once (docs/manifest.md). The order counts:

1. The files named in TOOLS are run from the bytes beside this file, as they are needed. Until step 4 nothing else is
   imported but the standard library.
2. Files of the machine that bring in other code are examined: hashing starts OpenSSL, which reads its configuration.
3. Everything is hashed, and compared with `certified.json` of the home.
4. The bytes of TOOLS are compared with their hashes. From then on imports come from the measured bytes alone.

Refuses variables that load other code, libraries that differ from lock and RECORD, unlisted files beside them, and two
files for one module. Whoever can change the interpreter, its standard library, this file or TOOLS can make it say
anything.

This file and `rgs.__main__` are the ways in. Nothing else imports them, for they alone import the command line.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rgs.integrity.manifest_verify import Surroundings

TOOLS: Final = tuple(
    f"rgs.integrity.{name}" for name in ("isolation", "manifest_machine", "manifest_verify", "imports")
)
"""The modules that the launcher works with: compiled from the files beside it, whatever else has their names."""
_RUN: Final[dict[str, bytes]] = {}
"""The bytes of TOOLS that were run."""


def main() -> int:
    """Run one command of `rgs` in this process, which has to be isolated; the exit status."""
    arguments = sys.argv[1:]
    # `HOPELESS` and `KEPT`, which stand in a file that may not be readable.
    is_kept = arguments[:1] in (["serve"], ["generator"])
    refused = 3 if is_kept else 1
    isolation, machine, *others = TOOLS
    gc.disable()  # until `rgs.cli.run`: what imports make stays, and nobody has to look for cycles in it
    try:
        run_tool(isolation)
        from rgs.integrity.isolation import (  # noqa: PLC0415 - not before its bytes were run
            become_isolated,
            certified_of,
            import_measured,
            is_isolated,
            measure_surroundings,
            standard_library,
            unheard,
            verify_certified,
            verify_environment,
            verify_machine,
        )

        if not is_isolated():
            become_isolated(arguments)
        verify_environment(os.environ)
        for name in os.environ.keys() - unheard(os.environ).keys():
            del os.environ[name]
        sys.path[:] = standard_library()
        run_tool(machine)
        verify_machine()
        for name in others:
            run_tool(name)
        found = measure_surroundings()
        verify_certified(certified_of(arguments, os.environ), found)
        verify_tools(found)
        import_measured(found)
    except ImportError as error:
        sys.stderr.write(f"rgs: {error}\n")
        return refused
    # A server draws no traceback in colours, and structlog loads a tenth of all code for it.
    if is_kept:
        sys.modules["rich"] = None  # type: ignore[assignment]
    return run_measured(arguments, refused, found)


def run_tool(name: str) -> None:
    """Run a module of TOOLS from the bytes beside this file: no folder is searched for it. ImportError."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - without pathlib
    path = f"{folder}/{name.rpartition('.')[2]}.py"
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read()
    except OSError as error:
        raise ImportError(f"{path} cannot be read: {error.strerror}") from None
    module = ModuleType(name)
    module.__file__ = path
    module.__spec__ = ModuleSpec(name, None, origin=path)
    sys.modules[name] = module
    exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own file
    _RUN[name] = content


def verify_tools(found: Surroundings) -> None:
    """ImportError unless each of TOOLS was run from the very bytes that were measured."""
    import hashlib  # noqa: PLC0415 - not before the machine was examined

    for name in TOOLS:
        file = f"{name.replace('.', '/')}.py"
        if found.server.get(file) != hashlib.sha256(_RUN.get(name, b"")).hexdigest():
            raise ImportError(f"changed {file} while it was measured")


def run_measured(arguments: list[str], refused: int, surroundings: Surroundings | None = None) -> int:
    """Hash the certified software, guard its imports, run the command line; the exit status (ARCHITECTURE 2.13: the
    statement of a start names that hash).

    `refused` is the status where the software cannot be measured; `surroundings` is what was measured around this
    process.
    """
    from rgs.integrity.manifest import ManifestError, guard_imports, make_manifest  # noqa: PLC0415 - measured by now

    try:
        manifest = replace(make_manifest(), surroundings=surroundings)
    except ManifestError as error:
        sys.stderr.write(f"rgs: the software cannot be measured: {error}\n")
        return refused
    for entry in manifest.entries:
        if surroundings is not None and surroundings.server.get(entry.path) != entry.sha256:
            sys.stderr.write(f"rgs: {entry.path} has changed since the launcher hashed it\n")
            return refused
    guard_imports(manifest)
    from rgs.cli import run  # noqa: PLC0415 - not before the guard

    return run(arguments, manifest)


if __name__ == "__main__":
    sys.exit(main())
