"""The adapters of the ports: `grpc` calls the systems of operator and regulator, `embedded` stands in for them.

Each implements a contract of `rgs.ports`. No use case lives here, and no SQL: the embedded books are in `rgs.store`.
"""
