"""Which addresses may be connected to."""

import pytest

from common.errors import UserError
from harness.web.addresses import is_allowed, parse_networks

NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1",
    "::", "::1", "::7f00:1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1",
    "2001:db8::1", "5f00::1", "3fff::1", "2001::1", "4000::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",  # IPv4-mapped
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",  # NAT64
    "2002:7f00:1::1", "2002:a00:1::", "2002:808:808::1", "2001:0:7f00:1::1",  # 6to4, Teredo
]  # fmt: skip
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255", "198.20.0.1",
    "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808",
]  # fmt: skip


@pytest.mark.parametrize("address", [*NOT_PUBLIC, *PUBLIC])
def test_what_is_public_alone_is_allowed(address: str) -> None:
    assert is_allowed(address, ()) == (address in PUBLIC)


def test_an_allowed_network_is_that_network_only_however_it_is_written() -> None:
    allowed = parse_networks(["127.0.0.2/32", "fd00::/8"])
    for address in ("127.0.0.2", "::ffff:127.0.0.2", "64:ff9b::7f00:2", "fd12::1"):
        assert is_allowed(address, allowed)
    for address in ("127.0.0.1", "127.0.0.3", "::ffff:127.0.0.1", "fc00::1", "10.0.0.1", "::1"):
        assert not is_allowed(address, allowed)


@pytest.mark.parametrize("text", ["localhost", "10.0.0.1/8", "10.0.0.0/33", "", "10.0.0.0-10.1.0.0"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"allow_networks has '.*', which is no network: .* such as 10\.1\.0\.0/16"):
        parse_networks([text])
