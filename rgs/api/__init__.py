"""The gRPC face of the server: the contract of protos/rgs/v1 over the services. Thin: no rule of a game, no money."""
