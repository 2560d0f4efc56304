"""No circle of imports in the product, and the check sees each kind of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.tidy import check_cycles

ROOT = Path(__file__).resolve().parents[2]


def sources() -> dict[str, str]:
    paths = [path for top in ("rng", "rgs", "certification") for path in (ROOT / top).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def test_the_product_has_no_circle_of_imports() -> None:
    found = sources()
    assert len(found) > 200
    assert [str(finding) for finding in check_cycles(found)] == []


PLANTED = {
    "two": {"rgs/a.py": "import rgs.b", "rgs/b.py": "from rgs.a import x"},
    "in a function": {"rgs/a.py": "def f() -> None:\n    from rgs.b import x", "rgs/b.py": "from rgs import a"},
    "for types": {
        "rgs/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rgs.b import X",
        "rgs/b.py": "from rgs.a import y",
    },
    "by a name": {
        "rgs/a.py": "import importlib\ndef f() -> None:\n    importlib.import_module('rgs.b')",
        "rgs/b.py": "import rgs.a",
    },
    "three": {"rgs/a.py": "import rgs.b", "rgs/b.py": "import rgs.c", "rgs/c.py": "import rgs.a"},
    "over rooms": {"rgs/a.py": "import certification.b", "certification/b.py": "import rgs.a"},
    "by a dot": {"rgs/p/a.py": "from .b import x", "rgs/p/b.py": "from . import a"},
    "a package and its module": {"rgs/p/__init__.py": "from rgs.p.a import x", "rgs/p/a.py": "from rgs.p import y"},
    "through the package of a module": {
        "rgs/p/__init__.py": "from rgs.p.a import x", "rgs/p/a.py": "from rgs.b import y", "rgs/p/c.py": "",
        "rgs/b.py": "from rgs.p.c import z",
    },
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_a_circle_is_found_and_told(what: str) -> None:
    (finding,) = check_cycles(PLANTED[what])
    assert finding.rule == "import cycle"
    names = finding.what.split(" -> ")
    assert names[0] == names[-1]
    assert len(names) > 2


def test_each_arrow_is_an_import() -> None:
    (finding,) = check_cycles(PLANTED["three"])
    assert finding.what in {f"rgs.{a} -> rgs.{b} -> rgs.{c} -> rgs.{a}" for a, b, c in ("abc", "bca", "cab")}


STRAIGHT = {
    "a package that offers its modules": {"rgs/p/__init__.py": "from rgs.p.a import x", "rgs/p/a.py": "import rgs.p.b"}
    | {"rgs/p/b.py": ""},
    "one that many import": {"rgs/a.py": "import rgs.c", "rgs/b.py": "import rgs.a, rgs.c", "rgs/c.py": "import os"},
    "itself by name": {"rgs/a.py": "import rgs.a"},
}


@pytest.mark.parametrize("what", STRAIGHT)
def test_what_is_none_is_not_told(what: str) -> None:
    assert check_cycles(STRAIGHT[what]) == []
