"""Peers that misbehave on purpose: an operator's wallet and a regulator's central system as real gRPC servers.

Each is an honest, durable book (the embedded wallet, the test register) behind a wire and a plan of faults: for tests,
for the demo, for operators who try us. Refuses real money: what they answer counts for nothing.
"""
