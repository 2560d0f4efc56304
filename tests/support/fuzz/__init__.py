"""What fuzz tests send, for how long, and what has to hold after every call."""
