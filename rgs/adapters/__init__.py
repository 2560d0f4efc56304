"""Who answers at the ports: `grpc` the systems of operator and regulator, `embedded` our own for demo and development.

Each implements a contract of `rgs.ports`. No use case lives here, and no SQL: the embedded books are in `rgs.store`.
"""
