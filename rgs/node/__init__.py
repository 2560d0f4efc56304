"""One process put together: configuration, keys, TLS, peers, logs, workers, clock, and the server that wires them.

May import every inner room. Imports no command line, and no devkit.
"""
