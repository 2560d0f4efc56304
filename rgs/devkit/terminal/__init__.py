"""The terminal client: a small front end for players, which verifies every signed statement while they play.

It shows the server's views, keeps no state that matters, and computes no game.
"""
