"""Measures the cost of the server as ratios inside one run: ours over a yardstick, smaller is better.

Measures: CPU of the server process per call of a played round over CPU per empty unary echo on the same stack (same
event loop, mutual TLS), over SQLite and over PostgreSQL; latency of one caller; how many changes share a commit; what a
long history adds, and a page deep in a list; memory over a long run; CPU of a draw, and of the replay of an export;
the rate that a server bears and which part is full then; what a second worker adds; idle streams; latency under a
steady load.
Compared programs alternate within a run, at least five times; the figure is the median of the ratios of each repeat,
with their spread.

Does not measure: other machines or a network between them, a disk that honours its flushes, operators' wallets or a
regulator's system (the embedded ones answer), several nodes, a standby, start-up. An absolute figure of a shared
machine cannot be compared with one of another day; no test depends on any figure.
"""
