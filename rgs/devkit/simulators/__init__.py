"""Peers that misbehave on purpose: an operator's wallet and a regulator's system, for tests and the demo.

Each is a gRPC server over an honest, durable book (embedded wallet, test regulator) and a plan of faults.
"""
