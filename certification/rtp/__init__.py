"""Exact returns by complete enumeration: `certify rtp RULESET [--json | --write DIRECTORY | --check]`.

Best play of the games of RULEBOOK sections 1 to 3, found and valued over all 2.78e13 deals, in integers.
docs/returns.md tells how it is done and what each figure means. Refuses to sample, and to make a float anywhere in a
result.
"""

from __future__ import annotations

from certification.rtp.command import main

__all__ = ["main"]
