"""The embedded wallet and the test regulator, for demo and development, and their books as files for reconciliation.

Durable, over files of `rgs.store`. Refused outside the jurisdictions that allow them.
"""
