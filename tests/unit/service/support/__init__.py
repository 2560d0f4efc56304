"""Lookups for support staff."""
