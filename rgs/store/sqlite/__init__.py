"""The main store in one SQLite file: commits, erasure, and what recovery needs.

Behind the interface of `rgs.store.interface`, as `rgs.store.postgres` is. One process writes.
"""
