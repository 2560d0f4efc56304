"""An HTTP/2 client that behaves as no gRPC library would: frames written by hand (RFC 9113), over mutual TLS."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rgs.node.pki import Issued

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW, CANCEL, ENHANCE_YOUR_CALM = 4, 8, 11


class Frames:
    """A connection: `send` frames, `told` the frames that came, as (kind, flags, stream, payload)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self._writer.write(struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream))
        self._writer.write(payload)

    def call(self, stream: int, method: str, message: bytes) -> None:
        """A unary call, whole."""
        fields = {
            ":method": "POST",
            ":scheme": "https",
            ":path": method,
            ":authority": "localhost",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        literal = [b"\x00%c%s%c%s" % (len(n), n.encode(), len(v), v.encode()) for n, v in fields.items()]
        self.send(HEADERS, END_HEADERS, stream, b"".join(literal))
        self.send(DATA, END_STREAM, stream, b"\x00" + struct.pack(">I", len(message)) + message)

    async def drained(self) -> None:
        await self._writer.drain()

    async def reported(self) -> AsyncIterator[tuple[int, int, int, bytes]]:
        try:
            while True:
                head = await self._reader.readexactly(9)
                length, stream = int.from_bytes(head[:3]), int.from_bytes(head[5:]) & 0x7FFFFFFF
                yield head[3], head[4], stream, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return


@asynccontextmanager
async def connected(
    folder: Path, port: int, client: Issued, ca: Issued, *, window: int = 65_535
) -> AsyncIterator[Frames]:
    """A connection whose streams may be sent `window` bytes each."""
    for name, content in (("ca", ca.certificate_pem), ("pem", client.certificate_pem), ("key", client.key_pem)):
        (folder / name).write_bytes(content)
    context = ssl.create_default_context(cafile=folder / "ca")
    context.load_cert_chain(folder / "pem", folder / "key")
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
    frames = Frames(reader, writer)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    frames.send(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, window))
    frames.send(SETTINGS, ACK, 0)
    try:
        yield frames
    finally:
        writer.transport.abort()
