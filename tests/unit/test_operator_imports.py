"""The reference operator is an outsider: of our code it imports what is generated from the contract, and no more."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from tools import tidy

ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = sorted((ROOT / "examples/operator/operator_platform").rglob("*.py"))
GENERATED: Final = ("rgs.v1.", "rgs.wallet.v1.")


def ours(path: str, source: str) -> set[str]:
    """What a file of the platform imports of our packages, the platform's own modules left out."""
    found = {target for _, target in tidy.imports(path, ast.parse(source))}
    own = "examples.operator.operator_platform"
    return {name for name in found if name.split(".")[0] in tidy.PROJECT and not tidy.reaches(name, own)}


def strange(path: str, source: str) -> set[str]:
    """Those of them that are not generated."""
    return {
        name
        for name in ours(path, source)
        if not (name.startswith(GENERATED) and any(part.endswith(("_pb2", "_pb2_grpc")) for part in name.split(".")))
    }


def test_the_platform_imports_generated_code_only() -> None:
    assert len(FILES) > 20
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in FILES}
    assert {path: found for path, source in sources.items() if (found := strange(path, source))} == {}
    used = {name.split(".")[-1] for path, source in sources.items() for name in ours(path, source)}
    assert used >= {"play_pb2", "wallet_pb2", "table_pb2"}


@pytest.mark.parametrize(
    "line",
    [
        "import rgs",
        "from rgs import core",
        "from rgs.core.cards import Card",
        "from rgs.v1 import server",
        "import rng",
        "from certification import replay",
        "from examples import minimal_client",
        "from tools.protos import contract",
    ],
)
def test_anything_else_of_ours_is_found(line: str) -> None:
    assert strange("examples/operator/operator_platform/x.py", f"from rgs.v1 import play_pb2\n{line}\n")
