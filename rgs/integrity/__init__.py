"""The measured start: launcher, imports from listings of hashes, software manifest, and the outsider's verifier.

Files here import the standard library and each other, because they run before anything else is measured. Only the
launcher, which starts a process, goes on to the command line. `certification` imports this, never the other way round.
"""
