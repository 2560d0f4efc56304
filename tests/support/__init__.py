"""Helpers that tests share, and no tests: every service without a wire (`service`), the server over mutual TLS (`api`),
signed statements without a server (`records`), logs (`log`), peers (`adapters`), databases (`store`), child processes
(`process`), fuzzing (`fuzz`). Loose here is what all of them use: clocks, seeded chance, waiting, skips.
"""
