"""What every test runs under: one printed seed, and hypothesis without a clock."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest

from tests import databases
from tests.logcheck import missing

# No deadline: no test is gated on a time. The blob of a failing example is printed, to be replayed as it is.
hypothesis.settings.register_profile("house", deadline=None, print_blob=True)
hypothesis.settings.register_profile("thorough", parent=hypothesis.settings.get_profile("house"), max_examples=2000)
hypothesis.settings.load_profile("house")


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads the option
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_seed") is None:
        from_controller = getattr(config, "workerinput", {}).get("seed")
        config.option.hypothesis_seed = from_controller or str(int.from_bytes(os.urandom(4)))


def pytest_unconfigure() -> None:
    databases.leave()


@pytest.hookimpl(optionalhook=True)  # called with pytest-xdist only
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seed"] = node.config.getoption("hypothesis_seed")


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"seed: {config.getoption('hypothesis_seed')} (again with --hypothesis-seed=...)",
        f"independent check of the log, in Go: {missing() or 'built from tools/logcheck'}",
    ]
