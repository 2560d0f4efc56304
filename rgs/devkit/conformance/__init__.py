"""Does a peer keep the contract? Named checks for an operator's wallet and a regulator's gateway."""
