"""`rgs demo`: its players, its misbehaving peers, and the proof at the end. It checks everything over gRPC or files."""
