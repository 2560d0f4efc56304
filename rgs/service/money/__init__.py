"""Moving money with the operator's wallet, each transfer once in effect, and when a peer is asked again.

Knows the wallet's contract and no game. `rgs.service.play` decides which transfer is due.
"""
