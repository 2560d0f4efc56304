"""`certify schemas DIRECTORY`: writes the JSON Schemas of all statements, from the shapes that the server signs by.

They are for parsers in other languages and lie in docs/schemas; a test fails if they differ from the shapes. Schema
2020-12. They do not say everything: the replay checks the canonical form, whether times exist, and what a statement
means (docs/formats.md, docs/verify.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certification.replay import refused
from rgs.core.statements.kinds import KIND_OF_PAYLOAD_TYPE
from rgs.core.statements.lines import PRIVATE_BLOCK
from rgs.core.statements.shapes import json_schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> Mapping[str, str]:
    """The text of every schema by its file name: one a kind of statement, and the private block."""
    documents: dict[str, dict[str, Any]] = {}
    for kind in KIND_OF_PAYLOAD_TYPE.values():
        documents[f"{kind.name}.v{kind.version}.json"] = {
            "$schema": _DIALECT,
            "$id": f"urn:rgs:statement:{kind.name}:v{kind.version}",
            "title": kind.payload_type,
            "description": f"Signed by a key of role {', '.join(sorted(kind.roles))}.",
            **json_schema(kind.shape),
        }
    documents["private_block.v1.json"] = {
        "$schema": _DIALECT,
        "$id": "urn:rgs:private_block:v1",
        "title": "private block",
        "description": "Stands beside a statement that holds its salted hash.",
        **json_schema(PRIVATE_BLOCK),
    }
    return {name: json.dumps(document, indent=2, sort_keys=True) + "\n" for name, document in documents.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the schemas into a directory that exists; the exit status."""
    parser = argparse.ArgumentParser(prog="certify schemas", description="Write the JSON Schemas of all statements.")
    parser.add_argument("directory", type=Path, metavar="DIRECTORY")
    directory: Path = parser.parse_args(argv).directory
    try:
        for name, text in schemas().items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        return refused("schemas", error)
    return 0
