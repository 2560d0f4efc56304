"""The gRPC face of the server: the contract of protos/rgs/v1 over the services.

Thin: mapping, errors, roles, limits. No rule of a game, no money, no store.
"""
