"""What a test lab or an auditor runs. Imports `rng` and `rgs.core` only, never the server."""
