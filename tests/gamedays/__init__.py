"""Game days: what goes wrong once a year, done on purpose to real processes (docs/game-days.md)."""
