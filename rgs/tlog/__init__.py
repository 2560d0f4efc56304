"""The transparency log: committed statements become leaves of a tree that anybody can verify (ARCHITECTURE 2.15).

Sequencer, folders, requests to witnesses, receipts. The formats are in `rgs.core.tlog`; no use case and no gRPC here.
"""
