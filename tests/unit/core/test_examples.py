"""The examples in public docstrings do what they show."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from rgs.core import cards, hands, ids, money, times
from rgs.core.tlog import merkle, tiles

MODULES = (cards, hands, ids, money, times, merkle, tiles)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_examples_do_what_they_show(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
