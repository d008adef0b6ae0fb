"""Which URLs and addresses are accepted. A page chooses what is in it, so most are not."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_web import FetchFailed, FetchRefused, is_public
from locus_plugin_web.addresses import AddressGuard

from .kit import Names

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"]
PUBLIC_6 = ["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:81b::200e"]


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_of_the_public_internet_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", [*PUBLIC, *PUBLIC_6])
def test_an_address_of_the_public_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_form_of_an_ipv4_address_within_ipv6_is_public(number: int) -> None:
    inner = IPv4Address(number)
    forms = [f"::ffff:{inner}", f"64:ff9b::{inner}", f"::{inner}", f"::ffff:0:{inner}"]
    sixes = [IPv6Address(each) for each in forms] + [IPv6Address((0x2002 << 112) | (number << 80) | 1)]
    assert not any(map(is_public, sixes))


@settings(max_examples=40, deadline=None)
@given(st.ip_addresses())
def test_what_python_calls_special_is_never_public(address: IPv4Address | IPv6Address) -> None:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    assert not (special and is_public(address))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "whole URL that begins with http"),
        ("example.com", "whole URL"),
        ("/etc/passwd", "whole URL"),
        ("file:///etc/passwd", "whole URL"),
        ("ftp://example.com/", "whole URL"),
        ("gopher://example.com:70/", "whole URL"),
        ("javascript:alert(1)", "whole URL"),
        ("data:text/html,hello", "whole URL"),
        ("http://", "whole URL"),
        ("http:///path", "whole URL"),
        ("http://example.com:22/", "port 22 is not allowed"),
        ("https://example.com:8443/", "port 8443"),
        ("http://example.com:0/", "port 0"),
        ("http://example.com:99999/", "port 99999|not a valid URL"),
        ("http://user@example.com/", "without a user name"),
        ("http://user:secret@example.com/", "without a user name"),
        ("http://example.com\\@evil.example/", "without a user name|not a valid URL"),
        ("http://exa mple.com/", "without blanks"),
        ("http://example.com/\r\nHost: evil", "without blanks"),
        ("http://example.com/\x00", "without blanks"),
        ("http://example.com/\u202e", "without blanks"),
        ("http://[::1", "not a valid URL"),
        ("http://" + "a" * 5_000, "at most 4,000 characters"),
    ],
)
def test_a_url_of_another_form_is_refused(url: str, said: str) -> None:
    with pytest.raises(FetchRefused, match=said) as caught:
        AddressGuard().check(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://Example.COM", "example.com:80"),
        ("https://example.com./x#y", "example.com:443"),
        ("https://example.com:80/", "example.com:80"),
        ("http://[2606:4700::1111]/", "[2606:4700::1111]:80"),
        ("http://bücher.example/", "xn--bcher-kva.example:80"),
    ],
)
def test_a_host_is_named_in_one_way(url: str, place: str) -> None:
    target = AddressGuard().check(url)
    assert (target.place, target.url.fragment) == (place, "")


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost", "localhost.", "①②⑦.⓪.⓪.①", "[::1]", "0"]
)
@pytest.mark.network("0", "0x7f.0.0.1", "127.1", "2130706433")  # names of this machine, which the guard does not know
@pytest.mark.anyio
async def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    # The system's resolver: these are the ones that need no network.
    guard = AddressGuard()
    with pytest.raises(FetchRefused, match=r"not on the public internet|not a valid URL"):
        await guard.addresses(guard.check(f"http://{host}/"))


@pytest.mark.anyio
async def test_of_a_name_with_public_and_private_addresses_the_public_ones_are_left() -> None:
    guard = AddressGuard(resolve=Names(site_example=[["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111", "1.1.1.1"]]))
    assert await guard.addresses(guard.check("http://site.example/")) == ("1.1.1.1", "2606:4700::1111")


@pytest.mark.anyio
async def test_a_name_without_addresses_cannot_be_found() -> None:
    guard = AddressGuard(resolve=Names())
    with pytest.raises(FetchFailed, match=r"nowhere\.example cannot be found"):
        await guard.addresses(guard.check("http://nowhere.example/"))


@pytest.mark.anyio
@pytest.mark.parametrize(("url", "allowed"), [("http://inner.example:8000/", True), ("http://inner.example/", False)])
async def test_what_the_settings_allow_is_reached_at_that_port_alone(url: str, allowed: bool) -> None:
    guard = AddressGuard(("Inner.example:8000",), Names(inner_example=[["10.0.0.1"]]))
    target = guard.check(url)
    if allowed:
        assert await guard.addresses(target) == ("10.0.0.1",)
    else:
        with pytest.raises(FetchRefused, match=r"not on the public internet \(10\.0\.0\.1\)"):
            await guard.addresses(target)
