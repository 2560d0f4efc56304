"""The C2SP formats of transparency logs: Merkle trees, tiles, notes, checkpoints, policies, proofs, witnesses.

Pure, and usable alone: beside the standard library only `cryptography` is imported. What only our log has (shards, key
paths) is in `rgs.core`; what reads and writes folders is in `rgs.tlog`.
"""
