"""What players at boxes gain by telling each other their cards, and whether the record shows that some do
(docs/collusion.md).
"""
