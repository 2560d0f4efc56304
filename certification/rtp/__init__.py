"""Exact returns by complete enumeration: `certify rtp RULESET [--json | --write DIRECTORY | --check]`.

Finds and values best play of the games of RULEBOOK sections 1 to 3, over all 2.78e13 deals, in integers. Nothing is
sampled, and no result holds a float. docs/returns.md says how it is done and what each figure means.
"""
