"""Tools for developers and integrators: demo, simulators, conformance checks, terminal client, child processes.

The server cannot import this room. The room calls a server over gRPC as an outsider, or builds one from `rgs.node`.
"""
