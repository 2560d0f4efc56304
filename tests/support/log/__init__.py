"""Transparency logs: good and corrupted ones, a sequencer that is killed, the check in Go."""
