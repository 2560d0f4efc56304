"""The measured start: launcher, imports from listings of hashes, software manifest, and the outsider's verifier.

The standard library alone, nothing else of ours: it runs before anything else is believed. `certification` imports
this, never the other way round.
"""
