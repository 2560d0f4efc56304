"""The transparency log as a process keeps it: committed statements become leaves of a tree that strangers can verify.

Sequencer, folders, the asking of witnesses, receipts (ARCHITECTURE 2.15). The formats are in `rgs.core.tlog`; no use
case and no gRPC lives here.
"""
