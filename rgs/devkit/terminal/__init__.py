"""The terminal client: a player's front end in small, and what a player can verify while playing.

Shows what the server's views say; keeps no state that matters, and computes no game.
"""
