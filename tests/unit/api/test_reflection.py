"""Reflection at the wire, under the names v1 and v1alpha: what it lists, and the descriptors that it gives."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2 as pb

from rgs.api import catalog, play
from tests.support.api.harness import Small, authority, channel_of, operator_certificate, small

NAMES = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]
"""Of the standard, in the order in which tools try them."""
LISTED = {catalog.SERVICE, play.SERVICE, "grpc.health.v1.Health", *NAMES}


def opened(channel: grpc.aio.Channel, name: str) -> Any:
    method = channel.stream_stream(
        f"/{name}/ServerReflectionInfo",
        pb.ServerReflectionRequest.SerializeToString,
        pb.ServerReflectionResponse.FromString,
    )
    return method()


async def requested(harness: Small, name: str, **question: Any) -> pb.ServerReflectionResponse:
    call = opened(harness.channel, name)
    await call.write(pb.ServerReflectionRequest(**question))
    answer: pb.ServerReflectionResponse = await call.read()
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    return answer


def file_in(answer: pb.ServerReflectionResponse) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(answer.file_descriptor_response.file_descriptor_proto[0])


@pytest.mark.parametrize("name", NAMES)
async def test_both_names_list_every_service(name: str) -> None:
    async with small() as harness:
        answer = await requested(harness, name, list_services="")
    assert {service.name for service in answer.list_services_response.service} == LISTED


@pytest.mark.parametrize("name", NAMES)
async def test_both_names_describe_our_services_and_themselves(name: str) -> None:
    async with small() as harness:
        ours = file_in(await requested(harness, name, file_containing_symbol=play.SERVICE))
        itself = file_in(await requested(harness, name, file_containing_symbol=name))
        unknown = await requested(harness, name, file_containing_symbol="rgs.v1.NoService")
    assert [service.name for service in ours.service] == ["PlayService"]
    assert f"{itself.package}.{itself.service[0].name}" == name
    types = [field.type_name for message in itself.message_type for field in message.field if field.type_name]
    (method,) = itself.service[0].method
    assert {kind.rpartition(".")[0] for kind in (*types, method.input_type, method.output_type)} == {
        f".{itself.package}"
    }
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@pytest.mark.parametrize("name", NAMES)
async def test_both_names_need_a_certificate(name: str) -> None:
    async with small() as harness, channel_of(harness.endpoint.port, None) as channel:
        call = opened(channel, name)
        assert await call.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.skipif(shutil.which("grpcurl") is None, reason="skipped, there is no grpcurl here")
async def test_grpcurl_lists_the_services(tmp_path: Path) -> None:
    client = operator_certificate()
    for file, content in (
        ("ca.pem", authority().certificate_pem),
        ("client.pem", client.certificate_pem),
        ("client.key", client.key_pem),
    ):
        (tmp_path / file).write_bytes(content)
    tls = ("-cacert", tmp_path / "ca.pem", "-cert", tmp_path / "client.pem", "-key", tmp_path / "client.key")
    async with small() as harness:
        command = ("grpcurl", *tls, f"localhost:{harness.endpoint.port}", "list")
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=30)
    assert set(done.stdout.split()) == LISTED
