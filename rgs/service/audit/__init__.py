"""Reads for auditors and regulators: signed statements, the transparency log, events and totals.

Nothing here changes a row.
"""
