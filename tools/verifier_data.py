"""Writes what the verifier in TypeScript has to know as data: `python -m tools.verifier_data`.

These are the shapes of the statements, from docs/schemas, and the canonical forms of the rulesets and jurisdictions
(docs/formats.md 15), all versions. `tests/unit/test_verifier_data.py` refuses files that are out of date.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "sdk/typescript/verifier/src/data"
HEAD: Final = "// Written by `python -m tools.verifier_data`; do not edit.\n"
FIRST: Final = "v1"
"""The version of most kinds; a kind that has more is named with each of the others."""
PATTERN_HEAD: Final = "^(?:"
PATTERN_TAIL: Final = ")$"


def shape(schema: dict[str, Any]) -> Any:
    """A schema in short: a pattern, `true` for a boolean, [items, most], or an object; `?` ends an optional key."""
    if schema["type"] == "string":
        return schema["pattern"].removeprefix(PATTERN_HEAD).removesuffix(PATTERN_TAIL)
    if schema["type"] == "boolean":
        return True
    if schema["type"] == "array":
        return [shape(schema["items"]), schema["maxItems"]]
    required = set(schema["required"]) if "required" in schema else set()
    return {key if key in required else f"{key}?": shape(one) for key, one in schema["properties"].items()}


def shapes() -> str:
    """The file of all shapes, by the kind's name; of a later version by `<kind>.v<version>`."""
    lines = [
        HEAD,
        'import type { Shape } from "../json.js";\n\n',
        "export const SHAPES: { readonly [kind: string]: Shape } = {\n",
    ]
    for file in sorted((ROOT / "docs/schemas").glob("*.json")):
        made = json.dumps(shape(json.loads(file.read_text("ascii"))), separators=(",", ":"))
        kind, version = file.stem.split(".")
        name = kind if version == FIRST else json.dumps(file.stem)
        lines.append(f"  {name}: {made},\n")
    return "".join([*lines, "};\n"])


def canonical(file: Path) -> str:
    """The canonical form of a TOML document."""
    return json.dumps(tomllib.loads(file.read_text("utf-8")), sort_keys=True, separators=(",", ":"))


def documents(name: str, folder: str) -> str:
    """A file of canonical forms."""
    found = sorted((ROOT / folder).glob("*.toml"))
    rows = [f"  {json.dumps(canonical(file))},\n" for file in found]
    return "".join([HEAD, f"export const {name}: readonly string[] = [\n", *rows, "];\n"])


def files() -> dict[str, str]:
    """All files of the folder, by name."""
    return {
        "jurisdictions.ts": documents("JURISDICTIONS", "rgs/core/jurisdiction_data"),
        "rulesets.ts": documents("RULESETS", "rgs/core/games/rulesets"),
        "shapes.ts": shapes(),
    }


def main() -> int:
    """Write the files."""
    for name, text in files().items():
        (TARGET / name).write_text(text, "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
