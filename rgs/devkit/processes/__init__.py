"""Our programs as child processes, for the demo and for tests: server, simulated peers, witness."""
