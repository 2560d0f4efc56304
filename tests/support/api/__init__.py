"""The server behind its wire: harnesses, clients, several servers at once."""
