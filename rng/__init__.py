"""The certified unit: everything that turns entropy of the operating system into the order of a deck, and nothing else.

Hash_DRBG SHA-512 (NIST SP 800-90A Rev. 1) -> one byte at a time -> rejection -> Fisher-Yates. Hashed, versioned and
released on its own; imports only the standard library, and never `random` or `secrets`. See `README.md` beside it
for the table clause -> function -> test, and for what may and may not be claimed.
"""

__version__ = "1.0.0"
