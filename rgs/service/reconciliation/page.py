"""The reconciliation report as one HTML page that stands alone: no script, no font, nothing is loaded.

The summary comes first, then owed players; details can be opened. The page can be read on paper and in dark mode. The
template engine escapes every value. The page shows only what report.json says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from rgs.core.amounts import format_money
from rgs.service.reconciliation.charts import LABEL, WIDTH, sources, stacked

TEMPLATES: Final = Path(__file__).parent / "templates"
_NBSP: Final = "\u00a0"
"""Keeps an amount and its currency on one line."""
_ROWS_MAX: Final = 200
"""Breaks of one class on the page; all of them are in breaks.csv."""


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = "{:,}".format
    environment.filters["money"] = _money
    return environment.get_template("reconciliation.html.j2")


def _money(amount_minor: int, currency: str) -> str:
    return format_money(amount_minor, currency).replace(" ", _NBSP)


def render_page(document: Mapping[str, Any], sha256: str) -> str:
    """The page of a report. `sha256` is that of report.json."""
    found = [row for row in document["classes"] if row["open"] or row["resolved"]]
    ages = tuple(document["classes"][0]["ages"])
    by_class: dict[str, list[Mapping[str, Any]]] = {}
    for result in document["breaks"]:
        by_class.setdefault(result["class"], []).append(result)
    days = {row["date"] for row in document["totals"]}
    return _template().render(
        report=document,
        sha256=sha256,
        found=found,
        by_class=by_class,
        rows_max=_ROWS_MAX,
        label=LABEL,
        width=WIDTH,
        ages=ages,
        age_chart=stacked([(row["title"], list(row["ages"].values())) for row in found if row["open"]], ages),
        money_charts=[
            (title, currency, chart)
            for name, title in (("bought_minor", "Bought"), ("paid_out_minor", "Paid out"))
            for currency, chart in (sources(document["totals"], name, title.lower()) if len(days) <= 31 else [])
        ],
    )
