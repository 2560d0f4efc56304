"""Use cases by subject: play, tables, money, regulator, admin, audit, reconciliation. Files here are for several.

A use case reads stored state, calls the pure core, makes one commit and returns a view. No gRPC, no SQL, no files of a
home: a node passes those in.
"""
