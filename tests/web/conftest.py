"""The environment of the platform beside that of the tests, and one running whole for a module."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
for name in (".venv-web", ".venv-page"):
    site = ROOT / f"{name}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    if site.is_dir():
        sys.path.append(str(site))  # behind the packages of the tests: those stay what they are
MISSING = [name for name in ("aiohttp", "argon2") if importlib.util.find_spec(name) is None]
collect_ignore_glob: list[str] = []
TIMEOUT_S = 400
"""Of one test with the start of its processes, which a busy machine may keep waiting for minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give time to what starts processes. Skip what needs the platform where its packages are not installed, with one
    line that says what to do.
    """
    for item in items:
        if Path(item.path).parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
    if MISSING:
        skip = pytest.mark.skip(reason=f"{', '.join(MISSING)} not installed: run `make web-test`")
        for item in items:
            if Path(item.path).parent == Path(__file__).parent and Path(item.path).name.startswith("test_platform"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def page_needs() -> None:
    """Skips where Chromium, its driver or the built page is missing."""
    from tests.web import page_browser  # noqa: PLC0415 - its packages may be missing

    why = page_browser.why_not() or ("the platform's packages are missing: run `make web-test`" if MISSING else "")
    if why:
        pytest.skip(why)


@pytest.fixture(scope="module")
def browser(page_needs: None) -> Iterator[object]:
    """Chromium.

    It ends with its module: while it runs, its driver's event loop runs too, beside which no asynchronous test can run.
    """
    from tests.web import page_browser  # noqa: PLC0415 - its packages may be missing

    with page_browser.chromium() as started:
        yield started


@pytest.fixture(scope="module")
def qr(browser: object) -> Iterator[Callable[[str, str], Any]]:
    """Makes QR codes: as a GIF, or as rows of dark and light."""
    from tests.web import qr_codes  # noqa: PLC0415 - its packages may be missing

    if not qr_codes.ENCODER.is_file():
        pytest.skip("the page's packages are not installed: run `make page`")
    page = qr_codes.encoder(browser)
    yield lambda text, kind: qr_codes.encode(page, text, kind)
    page.context.close()


@pytest.fixture(scope="session")
def page_whole(page_needs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Game server, wallet and platform for all tests of the page that do not end it."""
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    with Whole(tmp_path_factory.mktemp("page")) as started:
        yield started


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Game server, wallet and platform, for all tests of a process that leave them running; each has its players."""
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    with Whole(tmp_path_factory.mktemp("web")) as started:
        yield started
