"""The contracts of an operator's wallet and of a regulator: methods, messages, readings of connections.

Imports `rgs.core` alone. No gRPC and no SQL: the implementations are in `rgs.adapters`.
"""
