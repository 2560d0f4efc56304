"""Three-way reconciliation: sources read, books compared, reports written, signed and shown as pages.

Works over files; knows no server. How two rows are matched is `rgs.core.reconcile`'s to say.
"""
