"""Which addresses and URLs webhooks may have."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.webhooks.guard import check_url, forbidden_reason

FORBIDDEN = {
    "0.0.0.0": "this network",
    "0.1.2.3": "this network",
    "10.0.0.0": "private",
    "10.255.255.255": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "169.254.0.1": "link-local",
    "169.254.169.254": "cloud metadata",
    "169.254.170.2": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved for protocols",
    "192.0.0.192": "reserved for protocols",
    "192.0.2.1": "documentation",
    "192.31.196.1": "AS112",
    "192.52.193.1": "AMT",
    "192.88.99.1": "6to4 relay",
    "192.168.0.1": "private",
    "192.168.255.255": "private",
    "192.175.48.1": "AS112",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::2": "IPv4-compatible",
    "::127.0.0.1": "IPv4-compatible (loopback)",
    "::8.8.8.8": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped (loopback)",
    "::ffff:10.1.2.3": "IPv4-mapped (private)",
    "::ffff:169.254.169.254": "IPv4-mapped (cloud metadata)",
    "::ffff:a9fe:a9fe": "IPv4-mapped (cloud metadata)",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "::ffff:0:127.0.0.1": "IPv4-translated (loopback)",
    "64:ff9b::127.0.0.1": "NAT64 (loopback)",
    "64:ff9b::a9fe:a9fe": "NAT64 (cloud metadata)",
    "64:ff9b::8.8.8.8": "NAT64",
    "64:ff9b:1::10.0.0.1": "local NAT64",
    "64:ff9b:1:ffff::1": "local NAT64",
    "64:ff9b:2::1": "not global unicast",
    "2002:7f00:1::": "6to4 (loopback)",
    "2002:a9fe:a9fe::1": "6to4 (cloud metadata)",
    "2002:c0a8:101::1": "6to4 (private)",
    "2002:808:808::1": "6to4",
    "2001:0:4136:e378:8000:63bf:80ff:fffe": "Teredo (loopback)",
    "2001::1": "Teredo",
    "fe80::5efe:10.0.0.1": "ISATAP (private)",
    "2606:4700::5efe:127.0.0.1": "ISATAP (loopback)",
    "2606:4700::200:5efe:192.168.1.1": "ISATAP (private)",
    "fc00::1": "private",
    "fd00:ec2::254": "cloud metadata",
    "fd12:3456:789a::1": "private",
    "fe80::1": "link-local",
    "fe80::1%eth0": "scoped",
    "2606:4700::1111%1": "scoped",
    "febf::1": "link-local",
    "fec0::1": "site-local",
    "feff::1": "site-local",
    "ff02::1": "multicast",
    "ff0e::1": "multicast",
    "100::1": "discard",
    "2001:2::1": "benchmarking",
    "2001:10::1": "reserved for protocols",
    "2001:20::1": "reserved for protocols",
    "2001:1ff::1": "reserved for protocols",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "2620:4f:8000::1": "AS112",
    "4000::1": "not global unicast",
    "5f00::1": "not global unicast",
    "1::1": "not global unicast",
    "": "not an IP address",
    "localhost": "not an IP address",
    "2130706433": "not an IP address",
    "0177.0.0.1": "not an IP address",
    "127.1": "not an IP address",
    "8.8.8.8 ": "not an IP address",
    "8.8.8.8/32": "not an IP address",
}
ALLOWED = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "200.160.2.3",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2804:14c::1",
    "2a00:1450::1",
]


@pytest.mark.parametrize(("address", "reason"), FORBIDDEN.items())
def test_forbidden_addresses_and_why(address, reason):
    said = forbidden_reason(address)
    assert said is not None
    assert reason in said


@pytest.mark.parametrize("address", ALLOWED)
def test_public_addresses_are_allowed(address):
    assert forbidden_reason(address) is None


@given(st.ip_addresses())
def test_nothing_is_allowed_that_python_calls_special(address):
    """Our table is stricter than the library's: what the library knows as special never passes."""
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or not address.is_global
    )
    if special:
        assert forbidden_reason(str(address)) is not None


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:", "::", "64:ff9b::", "2606:4700::5efe:"]))
def test_no_ipv4_address_passes_inside_an_ipv6_address(inner, prefix):
    assert forbidden_reason(prefix + str(inner)) is not None
    sixtofour = ipaddress.IPv6Address(0x2002 << 112 | int(inner) << 80 | 1)
    assert forbidden_reason(str(sixtofour)) is not None


GOOD_URLS = [
    "https://example.com",
    "https://example.com/",
    "https://EXAMPLE.com/Hook?x=1&y=a%20b",
    "HTTPS://example.com/hook",
    "https://example.com:8443/hook",
    "https://example.com:1/",
    "https://example.com:65535/",
    "https://sub_domain.example.com/",
    "https://xn--so-joo-xta.example/",
    "https://1.example.com/",
    "https://8.8.8.8/hook",
    "https://[2606:4700:4700::1111]:8443/hook",
    "https://[2606:4700:0:0::1]/",
    "https://example.com/a@b",
    "https://example.com/?q=a@b",
    "https://a.b/",
    "https://example.com/" + "x" * (2048 - 20),
]


@pytest.mark.parametrize("url", GOOD_URLS)
@pytest.mark.parametrize("sandbox", [False, True])
def test_good_urls(url, sandbox):
    assert check_url(url, allow_loopback_http=sandbox) is None


BAD_URLS = {
    "": "characters",
    "https:/": "characters",
    "https://example.com/" + "x" * (2049 - 20): "characters",
    "http://example.com/": "https",
    "ftp://example.com/": "https",
    "wss://example.com/": "https",
    "file:///etc/passwd": "host",
    "javascript:alert(1)": "host",
    "https:example.com": "",
    "https:///path": "",
    "https://:443/": "",
    "//example.com/": "https",
    "example.com/hook": "host",
    "https://user@example.com/": "user information",
    "https://user:pass@example.com/": "user information",
    "https://@example.com/": "user information",
    "https://:@example.com/": "user information",
    "https://example.com#x": "fragment",
    "https://example.com/#": "fragment",
    "https://exam ple.com/": "ASCII",
    "https://example.com/a b": "ASCII",
    " https://example.com/": "ASCII",
    "https://example.com/\n": "ASCII",
    "https://example.com/\r\nHost: x": "ASCII",
    "https://example.com/\t": "ASCII",
    "https://example.com/\x00": "ASCII",
    "https://example.com/\x7f": "ASCII",
    "https://example.com\\@evil.test/": "ASCII",
    "https:\\\\example.com/": "ASCII",
    "https://exämple.com/": "ASCII",
    "https://①②⑦.0.0.1/": "ASCII",
    "https://example.com:0/": "port",
    "https://example.com:65536/": "",
    "https://example.com:/": "port",
    "https://example.com:http/": "",
    "https://example.com:-1/": "",
    "https://example.com:80:90/": "",
    "https://example..com/": "host",
    "https://.example.com/": "host",
    "https://example.com./": "host",
    "https://-example.com/": "host",
    "https://example-.com/": "host",
    "https://exa%6dple.com/": "host",
    "https://exa;mple.com/": "host",
    "https://exa*mple.com/": "host",
    "https://" + "a" * 64 + ".com/": "host",
    "https://" + "a." * 126 + "com/": "host",
    "https://[::1/": "",
    "https://[v1.a]/": "host",
    "https://[fe80::1%25eth0]/": "host",
    "https://[1.1.1.1]/": "",
    "https://[example.com]/": "",
    "https://2130706433/": "host",
    "https://134744072/": "host",
    "https://0x7f000001/": "host",
    "https://0x7f.1/": "host",
    "https://0x/": "host",
    "https://0177.0.0.1/": "host",
    "https://127.1/": "host",
    "https://127.0.1/": "host",
    "https://1.2.3.4.5/": "host",
    "https://999.1.1.1/": "host",
    "https://example.0x7f/": "host",
    "https://example.1/": "host",
}


@pytest.mark.parametrize(("url", "words"), BAD_URLS.items())
@pytest.mark.parametrize("sandbox", [False, True])
def test_bad_urls(url, words, sandbox):
    said = check_url(url, allow_loopback_http=sandbox)
    assert said is not None
    assert words in said


LIVE_ONLY_BAD = [
    "https://localhost/",
    "https://LOCALHOST/",
    "https://a.localhost/",
    "https://127.0.0.1/",
    "https://10.0.0.1:8443/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[fd00:ec2::254]/",
    "https://0.0.0.0/",
]


@pytest.mark.parametrize("url", LIVE_ONLY_BAD)
def test_literal_forbidden_hosts_are_refused_in_live_mode(url):
    said = check_url(url, allow_loopback_http=False)
    assert said is not None
    assert "forbidden address" in said
    assert check_url(url, allow_loopback_http=True) is None


LOOPBACK_HTTP = [
    "http://127.0.0.1:9000/hook",
    "http://127.9.9.9/hook",
    "http://localhost:9000/hook",
    "http://[::1]:9000/hook",
]


@pytest.mark.parametrize("url", LOOPBACK_HTTP)
def test_http_to_a_loopback_address_is_for_the_sandbox_only(url):
    assert check_url(url, allow_loopback_http=True) is None
    assert check_url(url, allow_loopback_http=False) == "must be https"


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://169.254.169.254/",
        "http://localhost.example.com/",
        "http://a.localhost/",
        "http://127.0.0.1.example.com/",
        "http://[::ffff:127.0.0.1]/",
        "http://127.0.0.1@example.com/",
        "http://2130706433/",
    ],
)
def test_http_to_anything_else_is_refused_in_the_sandbox_too(url):
    assert check_url(url, allow_loopback_http=True) is not None


@given(st.text(max_size=60))
def test_no_text_makes_the_check_fail(text):
    for url in (text, f"https://{text}", f"https://example.com{text}", f"https://[{text}]/"):
        assert isinstance(check_url(url, allow_loopback_http=False), str | None)
