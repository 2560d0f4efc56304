"""The functional core: rules, statements and verification as pure functions. No I/O, no clock, no randomness."""
