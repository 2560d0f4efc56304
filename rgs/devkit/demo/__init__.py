"""The demo: what its players do, what its peers do wrong, and the proof at the end.

Everything is checked from outside: over gRPC, or over files.
"""
