"""Does a peer keep the contract? Named checks for an operator's wallet and a regulator's gateway.

Refuses to guess where the contract leaves two answers open.
"""
