"""The list of metrics in docs/metrics.md, made from the catalogue. `python -m tools.metrics_page docs/metrics.md`
writes it between two marks; a test compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from rgs.observe.catalogue import LABELS, METRICS

BEGIN: Final = "<!-- metrics: made by tools/metrics_page.py -->"
END: Final = "<!-- end of metrics -->"
BETWEEN: Final = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)


def tables() -> str:
    """The two tables: metrics, and labels."""
    lines = ["| metric | kind | of | labels | what it says |", "|---|---|---|---|---|"]
    for metric in METRICS:
        labels = " ".join(f"`{label}`" for label in metric.all_labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {metric.scope} | {labels} | {metric.help} |")
    lines += ["", "| label | what it is |", "|---|---|"]
    lines += [f"| `{label}` | {what} |" for label, what in LABELS.items()]
    return "\n".join(lines)


def updated(page: str) -> str:
    """The page with both tables as the catalogue has them."""
    return BETWEEN.sub(lambda _: f"{BEGIN}\n\n{tables()}\n\n{END}", page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text("utf-8")), "utf-8")
