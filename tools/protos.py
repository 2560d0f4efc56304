"""Build steps of the contract: generates Python code from `protos/`, and compares it with the committed code.

`generate` writes the packages. `drift` compares them with a fresh generation. `third-party DIR` copies the imports that
come with installed packages, for buf. `contract DIR` writes the whole contract for other languages into an
empty folder.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))  # google/rpc/*.proto lie here (googleapis-common-protos)
WELL_KNOWN = Path(str(files("grpc_tools"))) / "_proto"  # google/protobuf/*.proto
DETAILS = ("google/rpc/code.proto", "google/rpc/error_details.proto", "google/rpc/status.proto")
"""The messages of errors (docs/errors.md). Clients need all of them; our own files import only some."""
INIT = '"""Generated from `protos/`, never edited: change the contract and run `make protos`."""\n'


def protos() -> list[str]:
    """The contract's files as import paths, `rgs/v1/x.proto`."""
    return sorted(path.relative_to(PROTOS).as_posix() for path in PROTOS.rglob("*.proto"))


def generate(out: Path) -> None:
    """Write the packages of all contract files under `out`: messages, services, and typed stubs for both."""
    names = protos()
    if not names:
        return
    # A file without a service would yield an empty gRPC module.
    services = [name for name in names if re.search(r"^service\s", (PROTOS / name).read_text("utf-8"), re.MULTILINE)]
    compile_protos(names, f"--python_out={out}", f"--mypy_out=quiet:{out}")
    if services:
        compile_protos(services, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}")
    for package in packages(names):
        (out / package / "__init__.py").write_text(INIT, "utf-8")


def compile_protos(names: list[str], *outputs: str) -> None:
    """Run the protobuf compiler that grpcio-tools carries."""
    scripts = Path(sys.executable).parent  # not resolved: the plugins are in the virtual environment
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc"),
        *(f"-I{PROTOS}", f"-I{WELL_KNOWN}", f"-I{SITE_PACKAGES}"),
        *(f"--plugin=protoc-gen-{plugin}={scripts / f'protoc-gen-{plugin}'}" for plugin in ("mypy", "mypy_grpc")),
        *outputs,
        *names,
    ]
    if subprocess.run(command, check=False, cwd=ROOT).returncode:
        sys.exit("the contract does not compile")


def packages(names: list[str]) -> list[str]:
    """Folders that hold only generated code: every folder of a contract file below the hand-written `rgs`."""
    folders = {parent.as_posix() for name in names for parent in Path(name).parents}
    return sorted(folders - {".", "rgs"})


def contents(root: Path, folders: list[str]) -> dict[str, bytes]:
    """All files in the generated folders of `root`, by path."""
    found = (path for folder in folders for path in (root / folder).glob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def write() -> None:
    """Replace the committed code."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        for folder in packages(protos()):
            for stale in contents(ROOT, [folder]).keys() - contents(Path(scratch), [folder]).keys():
                (ROOT / stale).unlink()
            shutil.copytree(Path(scratch) / folder, ROOT / folder, dirs_exist_ok=True)


def drift() -> list[str]:
    """The committed files that differ from a fresh generation, one line each."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = contents(Path(scratch), packages(protos()))
    committed = contents(ROOT, packages(protos()))
    # Remove the code of contract files that no longer exist.
    committed |= {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "rgs").rglob("*_pb2*")
        if path.suffix in {".py", ".pyi"}
    }
    return [
        f"{path}: {'stale' if path not in fresh else 'missing' if path not in committed else 'differs'}"
        for path in sorted(fresh.keys() | committed.keys())
        if fresh.get(path) != committed.get(path)
    ]


def third_party(folder: Path) -> None:
    """Copy the contract files of google/rpc to `folder`, which buf.yaml names. buf has google/protobuf itself."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "google/rpc").mkdir(parents=True)
    for path in sorted((SITE_PACKAGES / "google/rpc").glob("*.proto")):
        shutil.copy(path, folder / "google/rpc")


def contract(folder: Path) -> list[str]:
    """Write every contract file and all its imports, as import paths below `folder`. Returns the paths.

    Loaders of other languages need nothing else.
    """
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; give a new or empty folder")
    written: dict[str, None] = {}
    waiting = [*protos(), *DETAILS]
    while waiting:
        name = waiting.pop(0)
        if name in written:
            continue
        source = next(root / name for root in (PROTOS, SITE_PACKAGES, WELL_KNOWN) if (root / name).is_file())
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        written[name] = None
        waiting += re.findall(r'(?m)^import\s+(?:public\s+)?"([^"]+)";', source.read_text("utf-8"))
    return sorted(written)


def main() -> int:
    """Run one step. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("generate", help="write the generated packages")
    steps.add_parser("drift", help="compare them with a fresh generation")
    steps.add_parser("third-party", help="lay out imported contract files for buf").add_argument("folder", type=Path)
    steps.add_parser("contract", help="write the contract with its imports").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.step == "generate":
        write()
    elif arguments.step == "third-party":
        third_party(arguments.folder)
    elif arguments.step == "contract":
        print(*contract(arguments.folder), sep="\n")
    elif found := drift():
        print("the generated code differs from protos/; run `make protos`:", *found, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
