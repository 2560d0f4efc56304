"""What the server asks of an operator's wallet and of a regulator: contracts, messages, readings of connections.

Imports `rgs.core` alone. No gRPC, no SQL, no waiting: who answers is in `rgs.adapters`.
"""
