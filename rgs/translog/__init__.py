"""The transparency log: committed statements as leaves of a tree that strangers can verify (ARCHITECTURE 2.15)."""
