"""What admins order and what watches over the server: switches, guards, voids, allow-list, returns, erasure, recovery.

Every change is a signed event. Nobody who plays comes here.
"""
