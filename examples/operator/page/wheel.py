"""The built page of the reference operator. `python -m operator_platform --page` takes its folder."""

from pathlib import Path

FOLDER = Path(__file__).parent / "dist"
"""index.html with its files, and verify.html."""
SUMS = Path(__file__).parent / "page.sha256"
"""The SHA-256 of each file, as `sha256sum -c` in the folder reads it. The hash of this file is the page's."""
