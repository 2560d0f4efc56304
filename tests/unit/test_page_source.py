"""The page's source: its length, what it may not contain, its own tests. None of it needs a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = Path(__file__).parents[2] / "examples/operator/page"
LINES_MAX: Final = 500


def sources() -> list[Path]:
    """All files that people write."""
    found = [path for folder in ("src", "tests") for path in (PAGE / folder).rglob("*") if path.is_file()]
    return [*found, *PAGE.glob("*.ts"), *PAGE.glob("*.html")]


def test_files_are_short_and_nothing_is_written_into_markup() -> None:
    for path in sources():
        text = path.read_text("utf-8")
        assert text.count("\n") <= LINES_MAX, path
        if path.suffix == ".ts" and "tests" not in path.relative_to(PAGE).parts:
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "unsafeHTML",
                "eval(",
                "styleMap",
                "document.write",
            ):
                assert word not in text, f"{word} in {path}"


def test_the_models_own_tests_pass() -> None:
    node = shutil.which("node")
    if node is None or not (PAGE / "node_modules").is_dir():
        pytest.skip("no Node, or the page was never built: run `make page`")
    npm = [node, str(PAGE / "node_modules/typescript/bin/tsc"), "-p", "tsconfig.test.json"]
    built = subprocess.run(npm, cwd=PAGE, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stdout
    run = [node, "--test", "build/tests/examples/operator/page/tests/"]
    done = subprocess.run(run, cwd=PAGE, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "\n# fail 0" in done.stdout
