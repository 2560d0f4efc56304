"""What auditors and regulators read: signed statements, the transparency log, events and totals.

Reads alone: nothing here changes a row.
"""
