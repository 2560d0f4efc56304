"""Copies of a store, and the drill that restores one (docs/backup.md). Keys, KEK and log are not in them."""
