"""Asks a server for its health over mutual TLS, for keepers whose own gRPC probe knows no TLS (Kubernetes, compose).

    /opt/rgs/bin/python -I examples/health_probe.py HOME [SERVICE]

Uses the home's server certificate's own name check (localhost), `tls/servers.pem` or `tls/ca.pem` as authority, and
`tls/peers.pem` as the client's certificate. SERVICE empty: the whole server; rgs.v1.PlayService: whether new rounds
start. Exit status 0: SERVING. 1: anything else; the line on standard error says what.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2

TIMEOUT_S = 4.0
METHOD = "/grpc.health.v1.Health/Check"


def main(arguments: list[str]) -> int:
    """Ask once; the exit status."""
    if not 1 <= len(arguments) <= 2:
        print("usage: health_probe.py HOME [SERVICE]", file=sys.stderr)
        return 1
    home = Path(arguments[0])
    tls = home / "tls"
    port = tomllib.loads((home / "rgs.toml").read_text("utf-8")).get("listen", "127.0.0.1:50551").rpartition(":")[2]
    authority = next(path for path in (tls / "servers.pem", tls / "ca.pem") if path.is_file())
    credentials = grpc.ssl_channel_credentials(
        authority.read_bytes(), (tls / "peers.key").read_bytes(), (tls / "peers.pem").read_bytes()
    )
    with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
        check = channel.unary_unary(
            METHOD,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(service="".join(arguments[1:])), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            print(f"localhost:{port} does not answer: {error.code().name}", file=sys.stderr)
            return 1
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    if status != "SERVING":
        print(f"localhost:{port} is {status}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
