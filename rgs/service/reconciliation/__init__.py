"""Three-way reconciliation: reads the sources, compares them, writes and signs reports, shows them as pages.

Works over files and knows no server. `rgs.core.reconcile` decides how rows are matched.
"""
