"""Orders of admins and the server's own checks: switches, guards, voids, allow-list, returns, erasure, recovery.

Every change is a signed event. No call of a player leads here.
"""
