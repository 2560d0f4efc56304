"""`rgs call METHOD JSON`: calls one method of the server from a shell, without grpcurl.

The JSON is protobuf's own mapping with the field names of the contract: 64-bit integers may be numbers and come back as
strings, bytes are base64, enums are names. A missing `request_id` is filled in and printed to stderr, so that the same
request can be sent again. A method with a stream of requests (`Play`) reads one JSON object a line from stdin; a stream
of answers is printed one a line.

The answer goes to stdout, everything else to stderr. The exit status is 1 for an error, also for one inside a stream.
The command never repeats a call by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import grpc
import typer
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2

from rgs.cli.options import HOME, HomeOption, new_app, note
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.devkit.client import CallError, Client, ClientIdentity, OutcomeUnknownError, address_of, refusal_of
from rgs.node.config import check_address, open_home
from rgs.service.roles import Role
from rgs.v1 import (
    admin_pb2,
    audit_pb2,
    catalog_pb2,
    free_bet_pb2,
    history_pb2,
    play_pb2,
    reconciliation_pb2,
    report_pb2,
    session_pb2,
    support_pb2,
    table_pb2,
)

CONTRACT: Final = (
    session_pb2,
    play_pb2,
    free_bet_pb2,
    history_pb2,
    report_pb2,
    support_pb2,
    audit_pb2,
    catalog_pb2,
    admin_pb2,
    reconciliation_pb2,
    table_pb2,
    health_pb2,
)
DETAILS: Final = error_details_pb2
"""Imported so that the details of an error inside a stream can be written as JSON."""
TIMEOUT_S: Final = 10.0
_REQUEST_ID: Final = "request_id"
_READ_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ContractMethod:
    """A method of the contract."""

    descriptor: MethodDescriptor

    @property
    def name(self) -> str:
        """Service and method: `SessionService/GetSession`."""
        return f"{self.descriptor.containing_service.name}/{self.descriptor.name}"

    @property
    def path(self) -> str:
        """The path of gRPC: `/rgs.v1.SessionService/GetSession`."""
        return f"/{self.descriptor.containing_service.full_name}/{self.descriptor.name}"

    def __str__(self) -> str:
        kind = self.descriptor
        takes, gives = ("stream " * bool(flag) for flag in (kind.client_streaming, kind.server_streaming))
        return f"{self.name}({takes}{kind.input_type.name}) -> {gives}{kind.output_type.name}"


def methods() -> dict[str, ContractMethod]:
    """Every method of the contract by its name, in the order of the contract."""
    services = [service for module in CONTRACT for service in module.DESCRIPTOR.services_by_name.values()]
    every = [ContractMethod(method) for service in services for method in service.methods]
    return {method.name: method for method in every}


def find(name: str) -> ContractMethod:
    """The method of a name: `SessionService/GetSession`, with the package before it, or without the service.

    InvalidFieldError if no method or several methods have the name.
    """
    every = methods()
    plain = name.removeprefix("/")
    found = [one for one in every.values() if plain in {one.name, one.path[1:], one.descriptor.name}]
    if len(found) != 1:
        several = ", ".join(one.name for one in found)
        what = f"{name[:60]} is more than one method: {several}" if found else f"there is no method {name[:60]}"
        raise InvalidFieldError(f"{what} (see `rgs call --list`)", field="method", value=name[:60])
    return found[0]


# --- requests --------------------------------------------------------------------------------------------------------


def read_request(kind: type[Message], text: str, new_id: Callable[[], str]) -> Message:
    """The message of a JSON object. A missing request id is filled in and printed to stderr. FormatError."""
    try:
        message: Message = Parse(text, kind())
    except (ParseError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise FormatError(f"cannot read a {kind.DESCRIPTOR.name}: {why}", field="json") from None
    inner = _inner(message)
    if inner is not None and not getattr(inner, _REQUEST_ID):
        setattr(inner, _REQUEST_ID, new_id())
        note(f"rgs: request_id {getattr(inner, _REQUEST_ID)}")
    return message


def _inner(message: Message) -> Message | None:
    """The message that carries the request id: this one, or the one inside a request of a stream; None if neither."""
    descriptor = message.DESCRIPTOR
    if _REQUEST_ID in descriptor.fields_by_name:
        return message
    held = [message.WhichOneof(oneof.name) for oneof in descriptor.oneofs]
    inner = getattr(message, held[0]) if held and held[0] is not None else None
    return inner if inner is not None and _REQUEST_ID in inner.DESCRIPTOR.fields_by_name else None


def _lines(descriptor: int) -> Iterator[str]:
    """The lines of a file as they come, without empty ones.

    They are read without Python's buffer: the reading thread may still wait when the process ends.
    """
    rest = b""
    while data := os.read(descriptor, _READ_BYTES):
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole if line.strip())
    if rest.strip():
        yield rest.decode("utf-8", "replace")


class _Requests:
    """The requests of a stream, one a line. A line that cannot be read ends the stream and is kept as `error`."""

    def __init__(self, lines: Iterator[str], read: Callable[[str], Message]) -> None:
        self._lines = lines
        self._read = read
        self.error: FormatError | None = None

    def __iter__(self) -> Iterator[Message]:
        for line in self._lines:
            try:
                message = self._read(line)
            except FormatError as error:
                self.error = error
                return
            yield message


# --- the call --------------------------------------------------------------------------------------------------------


def invoke(client: Client, method: ContractMethod, text: str | None, timeout_s: float | None) -> bool:
    """Call the method and print the answers; returns whether no answer in a stream was an error.

    Raises CallError, FormatError.
    """
    takes, gives = (GetMessageClass(kind) for kind in (method.descriptor.input_type, method.descriptor.output_type))
    # `Any`, because the stubs of gRPC want both types to be known.
    coding: dict[str, Any] = {"request_serializer": takes.SerializeToString, "response_deserializer": gives.FromString}

    def read(line: str) -> Message:
        return read_request(takes, line, client.request_id)

    channel: Any = client.channel
    try:
        if method.descriptor.client_streaming:
            if text not in {None, "-"}:
                raise InvalidFieldError(f"{method.name} reads its requests from stdin, one a line", field="json")
            requests = _Requests(_lines(sys.stdin.fileno()), read)
            is_good = _print(channel.stream_stream(method.path, **coding)(iter(requests), timeout=timeout_s))
            if requests.error is not None:
                raise requests.error
            return is_good
        request = read((sys.stdin.read() if text == "-" else text) or "{}")
        if method.descriptor.server_streaming:
            return _print(channel.unary_stream(method.path, **coding)(request, timeout=timeout_s))
        answer = channel.unary_unary(method.path, **coding)(request, timeout=timeout_s or TIMEOUT_S)
    except grpc.RpcError as error:
        raise refusal_of(error) from None
    print(format_answer(answer))
    return True


def _print(answers: Iterator[Message]) -> bool:
    is_good = True
    for answer in answers:
        print(format_answer(answer, indent=None), flush=True)
        is_good = is_good and not ("error" in answer.DESCRIPTOR.fields_by_name and answer.HasField("error"))
    return is_good


def format_answer(answer: Message, indent: int | None = 2) -> str:
    """A message as JSON with the field names of the contract; `indent` None gives one line."""
    return str(MessageToJson(answer, preserving_proto_field_name=True, indent=indent, ensure_ascii=False))


def error_lines(error: CallError) -> list[str]:
    """An error for people: its message and reason, then its metadata, one a line."""
    lines = [f"rgs: {error.message} [{error.reason or error.code.name}]"]
    lines += [f"  {name}: {value}" for name, value in sorted(error.metadata.items())]
    if isinstance(error, OutcomeUnknownError):
        lines.append("  no answer: the call may have taken effect; send the same request with the same request_id")
    return lines


def described(method: ContractMethod) -> list[str]:
    """A method and the fields of its request, one a line."""
    return [str(method), *_fields(method.descriptor.input_type, "  ", set())]


def _fields(descriptor: Descriptor, margin: str, seen: set[str]) -> Iterator[str]:
    for field in descriptor.fields:
        yield f"{margin}{field.name}: {'repeated ' * bool(field.is_repeated)}{_type(field)}"
        kind = field.message_type
        if kind is not None and kind.full_name.startswith("rgs.") and kind.full_name not in seen:
            yield from _fields(kind, margin + "  ", seen | {kind.full_name})


_TYPES: Final[Mapping[int, str]] = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes, base64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
}


def _type(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return " | ".join(value.name for value in field.enum_type.values if value.number)
    if field.message_type is not None:
        return str(field.message_type.name)
    return _TYPES[field.type]


# --- the command -----------------------------------------------------------------------------------------------------


app = new_app()


@app.command()
def call(
    method: Annotated[str | None, typer.Argument(help="SessionService/GetSession, or GetSession.")] = None,
    json: Annotated[str | None, typer.Argument(help="The request; default: {}; - reads it from stdin.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List the methods; with METHOD, its fields.")] = False,
    role: Annotated[Role, typer.Option("--as", help="Call as the development party of this role.")] = Role.OPERATOR,
    party: Annotated[str | None, typer.Option(help="Call as this party; its certificate must be in the home.")] = None,
    server: Annotated[str | None, typer.Option(help="HOST:PORT; default: the home's server.")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Time limit in seconds; default: 10, and none for streams.", min=0.1)
    ] = None,
    home: HomeOption = HOME,
) -> int:
    """Call one method of the server, JSON in and out."""
    if show or method is None:
        print("\n".join(described(find(method)) if method is not None else map(str, methods().values())))
        return 0 if show else 2
    chosen = find(method)
    config = open_home(home)
    address = check_address("server", server) if server else address_of(config)
    with Client(address, ClientIdentity.of_party(config, party or f"demo-{role}")) as client:
        try:
            return 0 if invoke(client, chosen, json, timeout) else 1
        except CallError as error:
            note("\n".join(error_lines(error)))
            return 1
