"""Signed statements without a server: honest ones, and each lie with the check that names it."""
