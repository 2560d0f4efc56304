"""The remote game server: casino card games over gRPC, every round a signed, replayable record."""

__version__ = "0.1.0"
