"""How long is fuzzed: one bounded round in the ordinary run, rounds under new seeds for FUZZ_SECONDS on demand.

A round follows from its seed, which is printed before it begins: `--hypothesis-seed=<seed>` begins with that round.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def seeds(config: pytest.Config) -> Iterator[int]:
    """The seeds of the rounds: one, or as many as begin within FUZZ_SECONDS."""
    first = int(config.getoption("hypothesis_seed"))
    end = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "0"))
    number = 0
    while not number or time.monotonic() < end:
        sys.stderr.write(f"fuzz: seed {first + number}\n")
        yield first + number
        number += 1


def run(property_: Callable[..., Any], strategies: dict[str, Any], seed: int, examples: int) -> None:
    """One round of a property under a seed."""
    bounded = settings(
        max_examples=examples,
        database=None,
        phases=[Phase.generate],  # what was sent is printed; a server that has lived does not shrink
        suppress_health_check=CHECKS,
        report_multiple_bugs=False,
    )
    hypothesis.seed(seed)(bounded(hypothesis.given(**strategies)(property_)))()
