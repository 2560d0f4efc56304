"""All SQL of the platform: two SQLite files, one for accounts and play, one for the wallet's book."""
