"""Real clusters of two workers on this machine, for the engines of `certify`. Each is tested where its library is
installed: Dask's with the other tests, Ray's by `make ray-test`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any, Final

import pytest

_MODULES: Final = {"ray": "ray", "dask": "distributed"}


@contextlib.contextmanager
def cluster(name: str) -> Iterator[str]:
    """The address of a cluster of Ray or Dask that runs while the block does."""
    with _ray() if name == "ray" else _dask() as address:
        yield address


@contextlib.contextmanager
def _ray() -> Iterator[str]:
    """Two nodes, each with a worker."""
    node: dict[str, Any] = {"num_cpus": 1, "include_dashboard": False}
    nodes = importlib.import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=node)
    try:
        nodes.add_node(num_cpus=1)
        yield nodes.address
    finally:
        nodes.shutdown()


@contextlib.contextmanager
def _dask() -> Iterator[str]:
    distributed = importlib.import_module("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        yield local.scheduler_address


def clustered(name: str) -> list[pytest.MarkDecorator]:
    """The marks of a test that needs such a cluster."""
    module = _MODULES[name]
    return [
        pytest.mark.filterwarnings("default"),  # theirs are not ours to mend
        pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed"),
        pytest.mark.timeout(600),
    ]


CLUSTERS: Final = [pytest.param(name, marks=clustered(name)) for name in _MODULES]
"""Parameters of a test that runs on each."""
