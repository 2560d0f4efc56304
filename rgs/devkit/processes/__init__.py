"""Programs of ours as child processes for a while: server, simulated peers, witness; for the demo and for tests.

Refuse to leave a process behind.
"""
