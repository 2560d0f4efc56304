"""The port of the metrics in the supervisor of several workers: one target for all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from rgs.node.config import Config
from rgs.node.metrics.endpoint import MetricsEndpoint
from rgs.node.metrics.workers import scrape_workers


def of_workers(config: Config) -> Callable[[], AbstractAsyncContextManager[object]]:
    """Makes the endpoint that asks every worker at each scrape. FileRefusedError, InvalidFieldError."""
    endpoint = MetricsEndpoint(config, partial(scrape_workers, config.home, config.workers))
    return lambda: endpoint
