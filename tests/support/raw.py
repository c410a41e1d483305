"""Bytes on a socket, for requests that no client library would send."""

import asyncio
import json
from typing import Any, NamedTuple


class RawReply(NamedTuple):
    """An answer as it came; nothing at all when the connection was closed without one."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    rest: bytes

    def header(self, name: str) -> str | None:
        return next((value for given, value in self.headers if given == name.lower()), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def send_raw(port: int, *parts: bytes, timeout_s: float = 30) -> RawReply:
    """Send bytes and read until the other side closes, or has said a whole answer of known length."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(timeout_s):
            sender = asyncio.create_task(_send(writer, parts))
            said = await read_all(reader)
            sender.cancel()
    finally:
        writer.close()
    return parse_reply(said)


async def _send(writer: asyncio.StreamWriter, parts: tuple[bytes, ...]) -> None:
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
    except OSError:
        return


async def read_all(reader: asyncio.StreamReader) -> bytes:
    said = b""
    try:
        while chunk := await reader.read(65_536):
            said += chunk
    except OSError:
        pass
    return said


def parse_reply(said: bytes) -> RawReply:
    head, _, rest = said.partition(b"\r\n\r\n")
    if not head:
        return RawReply(0, [], b"", b"")
    first, *lines = head.split(b"\r\n")
    assert head.isascii(), head
    assert b"\r" not in head.replace(b"\r\n", b""), head
    assert b"\n" not in head.replace(b"\r\n", b""), head
    headers = []
    for line in lines:
        name, colon, value = line.decode("ascii").partition(":")
        assert colon, line
        headers.append((name.lower(), value.strip()))
    length = next((int(value) for name, value in headers if name == "content-length"), len(rest))
    return RawReply(int(first.split()[1]), headers, rest[:length], rest[length:])


def request(line: str, *headers: bytes, body: bytes | None = None) -> bytes:
    """Write a request that asks to be the last of its connection."""
    lines = [f"{line} HTTP/1.1".encode(), b"Host: test", b"Connection: close", *headers]
    if body is not None:
        lines += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*lines, b"", body or b""])
