"""The C2SP formats of transparency logs: Merkle trees, tiles, notes, checkpoints, policies, proofs, witnesses.

Pure, and usable alone: imports `cryptography` and nothing else of this project. What only our log has (shards, key
paths) is in `rgs.core`; what reads and writes folders is in `rgs.tlog`.
"""
