"""Use cases, by subject: play, money, regulator, admin, audit, reconciliation; here what several of them share.

Durable state in, pure core, one commit, a view out. No gRPC, no SQL, no files of a home: a node hands those in.
"""
