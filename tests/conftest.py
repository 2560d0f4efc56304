"""What every test runs under: one printed seed, hypothesis without a clock, files in memory where there is room, an
interrupt key that works. At the end each reason of a skipped test is told in words, and where CI has installed what a
test needs, it is not skipped (`tests/support/skips.py`).
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from structlog.dev import ConsoleRenderer, plain_traceback

from tests.support import skips
from tests.support.log.logcheck import missing
from tests.support.store import databases

# No deadline: no test is gated on a time. The blob of a failing example is printed, to be replayed as it is.
hypothesis.settings.register_profile("ordinary", deadline=None, print_blob=True)
hypothesis.settings.register_profile("thorough", parent=hypothesis.settings.get_profile("ordinary"), max_examples=2000)
hypothesis.settings.load_profile("ordinary")

MEMORY = Path("/dev/shm")  # noqa: S108 - folders of our own in it
MEMORY_BYTES = 2 << 30
"""What has to be free there; a run takes a tenth of it."""


def _into_memory() -> None:
    """Temporary files of this process and its children, unless TMPDIR says where. A quarter of a run was waiting for a
    disk to have written what is deleted a moment later: no test sees the difference, for a kill takes nothing from the
    system's cache. That the stores wait for the disk is read back from their settings.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    room = os.statvfs(MEMORY)
    if room.f_bavail * room.f_frsize >= MEMORY_BYTES and not room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def _let_interrupt() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that. The servers that tests
    start and interrupt have to hear it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _trace_plainly() -> None:
    """Where no log is set up, structlog prints, and would lay out each traceback with the source and all local values,
    which takes seconds.
    """
    ConsoleRenderer.get_active().exception_formatter = plain_traceback


_into_memory()
_let_interrupt()
_trace_plainly()


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads the option
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_seed") is None:
        from_controller = getattr(config, "workerinput", {}).get("seed")
        config.option.hypothesis_seed = from_controller or str(int.from_bytes(os.urandom(4)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector need not look at any of it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    databases.leave()
    gc.unfreeze()  # nanobind, in DuckDB, counts what nobody collects at the very end


@pytest.hookimpl(optionalhook=True)  # called with pytest-xdist only
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seed"] = node.config.getoption("hypothesis_seed")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"seed: {config.getoption('hypothesis_seed')} (again with --hypothesis-seed=...)",
        f"independent check of the log, in Go: {missing() or 'built from tools/logcheck'}",
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of pytest's own, which writes the reason of a skip
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skips.verify_allowed(report)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker's tests are told of by the controller
        skips.emit(terminalreporter)
