"""What a test lab or an auditor runs. Imports `rng`, `rgs.core` and `rgs.integrity` only, never the server."""
