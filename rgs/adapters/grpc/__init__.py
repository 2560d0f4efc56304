"""Wallet and regulator over gRPC: one connection a peer, with a circuit breaker and a limit of calls in flight.

Speaks the contracts of protos/rgs/wallet and protos/rgs/regulator. Decides nothing about money: an answer is read, or
the call is unknown.
"""
