"""The shuffle battery: what decks of 52 cards, dealt by the production path, are held against.

Counts add up over chunks of decks, so a run of any length takes bounded memory (16 bytes a deck, for the duplicates).
The laws are exact or derived in `laws`; the cautions of docs/statistics.md are kept: the position table is scaled by
51/52 before it is compared with 2,601 degrees of freedom, runs are those above and below the median, discrete
statistics stay out of uniformity tests.
"""
