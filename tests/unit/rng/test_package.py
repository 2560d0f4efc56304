"""The house rules of the certified unit, read from its source."""

import ast
import re
import sys
from pathlib import Path

import pytest

import rng
from rng import errors

ROOT = Path(rng.__file__).parent
FILES = sorted(ROOT.glob("**/*.py"))
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
RANDOM = re.compile(r"\b(urandom|getrandom|getentropy|/dev/u?random|SystemRandom|RAND_bytes|token_bytes|uuid4)\b")
CLOCKS = {"time", "datetime"}


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_only_the_standard_library_is_imported_and_no_second_source(path: Path) -> None:
    found = imports(ast.parse(path.read_text()))
    assert found <= set(sys.stdlib_module_names) | {"rng"}
    assert not found & {"random", "secrets", "ssl", "uuid", "ctypes", *CLOCKS}


def test_one_file_touches_the_operating_systems_source() -> None:
    def calls(path: Path) -> bool:
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        return any(RANDOM.search(name) for name in names)

    assert [path.name for path in FILES if calls(path)] == ["entropy.py"]


def test_one_file_turns_bytes_into_numbers() -> None:
    def takes_remainders(path: Path) -> bool:
        return any(isinstance(node, ast.Mod) for node in ast.walk(ast.parse(path.read_text())))

    # health formats a pattern with %, kat asks whether a count of bits is whole bytes
    assert [path.name for path in FILES if takes_remainders(path)] == ["health.py", "kat.py", "scaling.py"]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_file_is_long_and_each_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 250
    assert ast.get_docstring(ast.parse(text))


def test_no_assert_guards_anything() -> None:
    # python -O drops them
    assert not [
        path for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)
    ]


def test_errors_are_named_so_and_share_one_base() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(found) == 9
    assert all(issubclass(error, errors.RngError) and error.__name__.endswith("Error") for error in found)
    error = errors.TranscriptError("REASON", "detail")
    assert (error.reason, error.detail, str(error)) == ("REASON", "detail", "REASON: detail")


def test_the_tests_that_the_readme_names_exist() -> None:
    named = set(re.findall(r"\btest_\w+", (ROOT / "README.md").read_text()))
    tests = Path(__file__).parents[2]
    written = [path.read_text() for path in [*tests.glob("unit/rng/*.py"), *tests.glob("property/test_rng_*.py")]]
    assert len(named) > 10
    assert named == {name for name in named if any(f"def {name}(" in text for text in written)}


def test_the_version_is_whole() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", rng.__version__)
