"""Three-way reconciliation: signed statements, the operator's books, the regulator's records (docs/reconciliation.md).

Records are matched by id first, never by amount alone, with zero tolerance for amounts. No file is read here.
"""
