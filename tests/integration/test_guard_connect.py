"""The guard at the socket: whatever a name resolves to, no forbidden address is ever connected to."""

import asyncio
import contextlib
import ipaddress
import socket

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from lastro.webhooks.guard import ForbiddenAddress, check_url, guarded_connector

TIMEOUT = aiohttp.ClientTimeout(total=20)


class Listener:
    """A small HTTP server on loopback that remembers how many connections it saw."""

    def __init__(self) -> None:
        self.connections = 0
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
        writer.close()


@pytest.fixture
async def listener():
    seen = Listener()
    server = await asyncio.start_server(seen.answer, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    yield seen
    server.close()
    await server.wait_closed()


class Answers(AbstractResolver):
    """A resolver that answers every name with the addresses that a hostile zone would hold."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, host, port=0, family=socket.AF_INET):
        hosts = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in hosts
        ]

    async def close(self):
        pass


async def fetch(url: str, *, live: bool, resolver: AbstractResolver | None = None) -> str:
    connector = guarded_connector(live=live, resolver=resolver)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session,
        session.post(url, data=b"{}", allow_redirects=False) as response,
    ):
        return await response.text()


HOSTILE_ANSWERS = [
    ["127.0.0.1"],
    ["127.0.0.1", "127.0.0.2"],
    ["::ffff:127.0.0.1"],
    ["::ffff:127.0.0.1", "127.0.0.1", "::1"],
    ["0.0.0.0"],
    ["::1"],
    ["::"],
    ["::127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["2002:7f00:1::"],
    ["169.254.169.254"],
    ["10.0.0.1", "192.168.0.1", "172.16.0.1"],
    ["fe80::1"],
]


@pytest.mark.parametrize("hosts", HOSTILE_ANSWERS)
async def test_no_hostile_answer_is_connected_to(listener, hosts):
    url = f"http://public-name.test:{listener.port}/hook"
    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await fetch(url, live=True, resolver=Answers(hosts))
    assert isinstance(refused.value.os_error, ForbiddenAddress)
    # An IPv6 answer may be spelled out differently on its way: compare addresses, not letters.
    known = {ipaddress.ip_address(host) for host in hosts}
    assert ipaddress.ip_address(refused.value.os_error.address) in known
    assert refused.value.os_error.reason
    assert listener.connections == 0


@pytest.mark.parametrize("hosts", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["0.0.0.0"]])
async def test_without_the_guard_the_same_answers_do_reach_the_listener(listener, hosts):
    """The sandbox may reach loopback; and the test above would see a connection if there were one."""
    url = f"http://public-name.test:{listener.port}/hook"
    assert await fetch(url, live=False, resolver=Answers(hosts)) == "ok"
    assert listener.connections == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost", "0x7f.1"])
async def test_numbers_and_local_names_in_the_url_are_caught_too(listener, host):
    """Plain numbers never pass through a resolver, and the system's resolver reads hexadecimal ones."""
    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await fetch(f"http://{host}:{listener.port}/hook", live=True)
    assert isinstance(refused.value.os_error, ForbiddenAddress)
    assert listener.connections == 0


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "127.1"])
async def test_odd_numbers_are_refused_before_a_socket_is_asked_for(listener, host):
    """aiohttp refuses these by itself today; this test notices when that changes."""
    with pytest.raises(aiohttp.ClientError):
        await fetch(f"http://{host}:{listener.port}/hook", live=True)
    assert listener.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1"])
async def test_the_sandbox_reaches_loopback_by_number_and_name(listener, host):
    assert await fetch(f"http://{host}:{listener.port}/hook", live=False) == "ok"
    assert listener.connections == 1


async def test_a_name_that_changes_its_answer_is_checked_at_every_connection(listener):
    """Harmless when the URL was registered, hostile when it is used: the first look-up is no proof."""
    url = f"https://rebinding.test:{listener.port}/hook"
    assert check_url(url, allow_loopback_http=False) is None
    resolver = Answers(["8.8.8.8"], ["127.0.0.1"])
    assert (await resolver.resolve("rebinding.test"))[0]["host"] == "8.8.8.8"
    with pytest.raises(aiohttp.ClientConnectorError):
        await fetch(url, live=True, resolver=resolver)
    assert resolver.asked == 2
    assert listener.connections == 0


async def test_an_answer_that_is_a_name_is_not_resolved_again(listener):
    """The event loop would look a name up by itself, behind the guard's back."""
    with pytest.raises(aiohttp.ClientConnectorError):
        await fetch(f"http://x.test:{listener.port}/", live=True, resolver=Answers(["localhost"]))
    assert listener.connections == 0


async def test_a_public_address_gets_its_socket():
    """Nothing is sent anywhere: only the making of the socket is asked for."""
    connector = guarded_connector(live=True)
    factory = connector._socket_factory
    await connector.close()
    assert factory is not None
    with factory((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 443))) as made:
        assert made.family == socket.AF_INET
    with pytest.raises(ForbiddenAddress):
        factory((socket.AF_UNIX, socket.SOCK_STREAM, 0, "", ("/run/docker.sock",)))
