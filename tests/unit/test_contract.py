"""The contract for other languages: one folder that compiles by itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tools.protos import DETAILS, PROTOS, ROOT, contract, protos

# `python -m grpc_tools.protoc` would put a folder of its own beside ours.
PROTOC = "import sys; from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))"


def compiled(folder: Path, names: list[str]) -> FileDescriptorSet:
    """What protoc makes of the files with nothing else on its path."""
    out = folder.with_suffix(".binpb")
    command = [sys.executable, "-c", PROTOC, f"-I{folder}", "--include_imports", f"--descriptor_set_out={out}", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return FileDescriptorSet.FromString(out.read_bytes())


def test_the_folder_compiles_alone(tmp_path: Path) -> None:
    folder = tmp_path / "contract"
    written = contract(folder)
    assert set(written) >= {*protos(), *DETAILS, "google/protobuf/any.proto", "google/protobuf/timestamp.proto"}
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == written
    found = compiled(folder, written)
    assert sorted(file.name for file in found.file) == written
    services = {service.name for file in found.file for service in file.service}
    assert services >= {"SessionService", "PlayService", "WalletService", "RegulatorService"}
    for name in protos():
        assert (folder / name).read_bytes() == (PROTOS / name).read_bytes()


def test_one_of_its_files_brings_all_that_it_needs(tmp_path: Path) -> None:
    folder = tmp_path / "contract"
    contract(folder)
    names = {file.name for file in compiled(folder, ["rgs/v1/play.proto"]).file}
    assert {"google/rpc/status.proto", "google/protobuf/any.proto", "rgs/v1/common.proto"} <= names


def test_a_file_that_is_missing_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "contract"
    contract(folder)
    (folder / "google/rpc/status.proto").unlink()
    with pytest.raises(AssertionError, match=r"google/rpc/status\.proto"):
        compiled(folder, ["rgs/v1/play.proto"])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SystemExit, match="is not empty"):
        contract(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_example_of_the_errors_page_names_files_of_the_folder(tmp_path: Path) -> None:
    """The example in Node was run by hand; what it loads has to be there."""
    written = contract(tmp_path / "contract")
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    loaded = re.findall(r'"([a-z0-9_/]+\.proto)"', page)
    assert len(loaded) >= 3
    assert set(loaded) <= set(written)


def test_the_node_client_has_every_service_for_callers() -> None:
    source = ROOT / "sdk/typescript/client/src"
    connected, exported = ((source / name).read_text("utf-8") for name in ("connect.ts", "index.ts"))
    for path in sorted((PROTOS / "rgs/v1").glob("*.proto")):
        services = re.findall(r"^service (\w+)", path.read_text("utf-8"), re.MULTILINE)
        assert [service for service in services if f"serviceOf({service}, " not in connected] == [], path
        assert f'export * from "../build/rgs/v1/{path.stem}_pb.js";' in exported
