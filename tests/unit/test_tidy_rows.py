"""The api may name the rows that use cases answer, and nothing else of the store."""

from __future__ import annotations

import pytest

from rgs.store import interface
from tools.tidy import ROWS, check


@pytest.mark.parametrize("row", ROWS)
def test_the_api_may_import_a_row_that_a_use_case_answers(row: str) -> None:
    module, _, name = row.rpartition(".")
    assert module == interface.__name__
    assert not any(callable(value) for key, value in vars(getattr(interface, name)).items() if key[0] != "_")
    assert not check("rgs/api/audit.py", f"from {module} import {name}")


@pytest.mark.parametrize("name", ["Store", "Parties", "StoreReads", "*"])
def test_the_api_may_import_no_way_to_the_store(name: str) -> None:
    (finding,) = check("rgs/api/audit.py", f"from rgs.store.interface import {name}")
    assert (finding.rule, finding.path) == ("import", "rgs/api/audit.py")


def test_the_api_may_not_import_the_whole_interface_of_the_store() -> None:
    (finding,) = check("rgs/api/audit.py", "import rgs.store.interface")
    assert finding.rule == "import"
