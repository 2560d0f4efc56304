"""What this server costs, as ratios inside one run: ours over a yardstick, smaller is better (ARCHITECTURE 5).

Measures: CPU of the server process per call of a played round over CPU per empty unary echo on the same stack (same
process, event loop, mutual TLS); latency of one caller; how many changes share a commit; CPU of a draw, and of the
replay of an export. Compared programs alternate within a run, at least five times; what is told is the median of the
ratios of each repeat, with their spread.

Does not measure: other machines or a network between them, the rate that a server can bear, a disk that honours its
flushes, operators' wallets or a regulator's system (the embedded ones answer), PostgreSQL, several nodes, start-up,
memory. An absolute figure of a shared machine means nothing beside one of another day; nothing is gated on any.
"""
