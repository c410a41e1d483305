"""Where a webhook may go: rules for its URL, and a check of every address that is connected to."""

import errno
import ipaddress
import re
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver

URL_MIN_LENGTH = 8
URL_MAX_LENGTH = 2048
_HOST_MAX_LENGTH = 253
_CONNECTIONS_MAX = 1024  # far above what the sender has in flight: a request that waits here loses its 5 s
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PLAIN = re.compile(r"[!-\[\]-~]*", re.ASCII)  # printable ASCII without space and backslash

# `is_global` of Python calls several of these global, so they are spelled out; first match gives the reason.
_FORBIDDEN_V4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.169.254/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "documentation"),
        ("192.31.196.0/24", "reserved for AS112"),
        ("192.52.193.0/24", "reserved for AMT"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "reserved for AS112"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_FORBIDDEN_V6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("fd00:ec2::254/128", "cloud metadata"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("100::/64", "discard"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("2001:2::/48", "benchmarking"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001::/23", "reserved for protocols"),
        ("2620:4f:8000::/48", "reserved for AS112"),
    )
)
# Addresses that carry an IPv4 address: (network, bits to the right of it, mask of inversion, name).
_EMBEDDING = tuple(
    (IPv6Network(network), shift, flip, name)
    for network, shift, flip, name in (
        ("::ffff:0:0/96", 0, 0, "IPv4-mapped"),
        ("::ffff:0:0:0/96", 0, 0, "IPv4-translated"),
        ("64:ff9b::/96", 0, 0, "NAT64"),
        ("2002::/16", 80, 0, "6to4"),
        ("2001::/32", 0, 0xFFFFFFFF, "Teredo"),
        ("::/96", 0, 0, "IPv4-compatible"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_ISATAP_MARKS = frozenset({0x0000_5EFE, 0x0200_5EFE, 0x0100_5EFE, 0x0300_5EFE})


class ForbiddenAddress(OSError):  # noqa: N818  it names the refusal, as the errors of the kit do
    """A connection to an address that webhooks must not reach was refused before it began."""

    def __init__(self, address: str, reason: str) -> None:
        # Equal words for all addresses of a name: aiohttp then raises this error and no mixture of errors.
        super().__init__(errno.EACCES, "the address is not on the public internet")
        self.address = address
        self.reason = reason


def forbidden_reason(address: str) -> str | None:
    """Say why an IP address must not be reached, or None for plain global unicast."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "not an IP address"
    return _reason_v4(parsed) if isinstance(parsed, IPv4Address) else _reason_v6(parsed)


def check_url(url: str, *, allow_loopback_http: bool) -> str | None:
    """Say what is wrong with an endpoint's URL, or None; names are looked at again when connecting."""
    if not URL_MIN_LENGTH <= len(url) <= URL_MAX_LENGTH:
        return f"must be {URL_MIN_LENGTH} to {URL_MAX_LENGTH} characters"
    if not _PLAIN.fullmatch(url):
        return "must be printable ASCII without spaces and backslashes (write other names in punycode)"
    if "#" in url:
        return "must not have a fragment"
    try:
        parts = urlsplit(url)
        host, sender_host = parts.hostname or "", yarl.URL(url).raw_host or ""
    except ValueError:
        return "is not a valid URL"
    # What is checked here must be what the sender will connect to, and the two read URLs separately.
    if host != sender_host and (_literal(host) is None or _literal(host) != _literal(sender_host)):
        return "must have a host that is written plainly"
    return _wrong_authority(parts) or _wrong_host(parts.scheme, host, allow_loopback_http=allow_loopback_http)


def guarded_connector(*, live: bool, resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
    """Return the connector of the sender; in live mode it opens sockets to public addresses only.

    The check stands where the socket is made, on the address that will be connected to: names, numbers in
    URLs, answers that change between two look-ups and redirects all end there.
    """
    factory: Callable[..., socket.socket] | None = _guarded_socket if live else None
    return aiohttp.TCPConnector(
        limit=_CONNECTIONS_MAX,
        ttl_dns_cache=30,
        resolver=resolver,
        socket_factory=factory,
    )


def _guarded_socket(addr_info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    family, kind, protocol, _, address = addr_info
    host = str(address[0])
    reason = forbidden_reason(host) if family in (socket.AF_INET, socket.AF_INET6) else "not an IP address"
    if reason is not None:
        raise ForbiddenAddress(host, reason)
    return socket.socket(family, kind, protocol)


def _reason_v4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in _FORBIDDEN_V4 if address in network), None)


def _reason_v6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "scoped"
    if address.is_unspecified:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    carrier = _embedded(address)
    if carrier is not None:
        # Forbidden whatever it carries; the reason tells what was hidden in it.
        name, inner = carrier
        return f"{name} ({_reason_v4(inner) or 'IPv4 in disguise'})"
    for network, reason in _FORBIDDEN_V6:
        if address in network:
            return reason
    return None if address in _GLOBAL_UNICAST else "not global unicast"


def _embedded(address: IPv6Address) -> tuple[str, IPv4Address] | None:
    number = int(address)
    for network, shift, flip, name in _EMBEDDING:
        if address in network:
            return name, IPv4Address((number >> shift & 0xFFFFFFFF) ^ flip)
    if number >> 32 & 0xFFFFFFFF in _ISATAP_MARKS:
        return "ISATAP", IPv4Address(number & 0xFFFFFFFF)
    return None


def _wrong_authority(parts: SplitResult) -> str | None:
    if not parts.hostname:
        return "must name a host"
    if "@" in parts.netloc:
        return "must not have user information"
    if "[" in parts.netloc and not isinstance(_literal(parts.hostname), IPv6Address):
        return "must have an IPv6 host in its brackets"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        return "must have a port of 1 to 65535, or none"
    return None


def _wrong_host(scheme: str, host: str, *, allow_loopback_http: bool) -> str | None:
    address = _literal(host)
    if address is None and not _is_sane_name(host):
        return "must have a host that is a plain name or a canonical IP address"
    loopback = host == "localhost" if address is None else address.is_loopback
    if scheme == "http" and allow_loopback_http:
        return None if loopback else "must be https, or http to a loopback address"
    if scheme != "https":
        return "must be https"
    if allow_loopback_http:
        return None
    if host == "localhost" or host.endswith(".localhost"):
        return "must not lead to a forbidden address: loopback"
    reason = forbidden_reason(host) if address is not None else None
    return reason and f"must not lead to a forbidden address: {reason}"


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_sane_name(host: str) -> bool:
    """Tell whether a host is a DNS name and no number: `2130706433`, `0x7f.1`, `0177.0.0.1` are 127.0.0.1."""
    labels = host.split(".")
    plain = len(host) <= _HOST_MAX_LENGTH and all(_LABEL.fullmatch(label) for label in labels)
    return plain and not _NUMBER.fullmatch(labels[-1])
