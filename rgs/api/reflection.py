"""gRPC reflection under both of its names, `grpc.reflection.v1` and `grpc.reflection.v1alpha`.

grpcio-reflection has v1alpha only, and newer tools ask for v1 first. Both have the same messages with the same bytes,
so one servicer answers both. The descriptor of v1 is that of v1alpha with its package renamed. Callers need a
certificate of the authority, as for health, but their party is not looked up: the contract is public.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection, reflection_pb2

V1ALPHA: Final = reflection.SERVICE_NAME
V1: Final = "grpc.reflection.v1.ServerReflection"
SERVICES: Final = (V1, V1ALPHA)
METHOD: Final = "ServerReflectionInfo"

_FILE: Final = "grpc/reflection/v1/reflection.proto"
_PACKAGES: Final = (".grpc.reflection.v1alpha.", ".grpc.reflection.v1.")
"""The beginnings of type names, before and after."""


def handler(services: Iterable[str]) -> grpc.RpcMethodHandler[Any, Any]:
    """The handler of METHOD, for each of SERVICES. `services` are the others that it shows."""
    _know_v1()
    servicer = reflection.aio.ReflectionServicer((*services, *SERVICES))
    return grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )


def _know_v1() -> None:
    """Add the descriptor of v1 to the default pool, where the servicer looks symbols up."""
    known = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(known)
    known.name, known.package = _FILE, _PACKAGES[1].strip(".")
    fields = (field for message in known.message_type for field in message.field)
    for field in (field for field in fields if field.type_name):
        field.type_name = field.type_name.replace(*_PACKAGES)
    for method in (method for service in known.service for method in service.method):
        method.input_type = method.input_type.replace(*_PACKAGES)
        method.output_type = method.output_type.replace(*_PACKAGES)
    descriptor_pool.Default().Add(known)  # a second time the same is no error
