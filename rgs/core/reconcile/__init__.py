"""Three-way reconciliation: signed statements, the operator's books, the regulator's register (docs/reconciliation.md).

Matches by id first, never by amount alone, with zero tolerance. Refuses to read files, to know the time, and to call
sources independent that are not.
"""
