"""Commands, installations and child processes."""
