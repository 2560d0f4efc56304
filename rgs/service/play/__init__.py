"""Playing: sessions, rounds, decks, settlement, history, the catalog, and the steps that follow one another durably.

May use money and the regulator's reports. What admins do to a round is in `rgs.service.admin`.
"""
