"""Statistics of what the generator gives: SP 800-22 on bits, the shuffle battery on decks, programs of others on bytes.

docs/statistics.md says what is tested, why, and what no statistic can show. Nothing here is part of the server.
"""
