"""What support staff looks up: players, sessions, rounds, and a round in words. Nothing is changed here."""
