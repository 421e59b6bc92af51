"""Which network addresses may be connected to for a page: public ones, and networks that the user allows.

Standard library only.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from common.errors import UserError

Network = IPv4Network | IPv6Network

# Lists of our own: what `ipaddress.is_private` and `is_global` say differs between Python's versions.
_NOT_PUBLIC: list[Network] = [  # IANA's special-purpose registries
    *map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
            "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    ),
    *map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")),  # Teredo and 6to4 among them
]  # fmt: skip
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # everything else of IPv6 is loopback, local, multicast or reserved
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64 (RFC 6052): the last 32 bits are an IPv4 address


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks of the option `allow_networks`.

    Raises:
        UserError: If one is not in CIDR notation.
    """
    found = []
    for text in texts:
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise UserError(
                f"allow_networks has {text!r}, which is no network: write an address and a prefix, such as 10.1.0.0/16 "
                "or 127.0.0.1/32."
            ) from error
    return tuple(found)


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    """Whether an address may be connected to: it is public, or in an allowed network.

    An IPv6 address that stands for an IPv4 address is judged as the latter.

    Args:
        text: A numeric address.
        allowed: Networks that are allowed although they are not public.
    """
    address = _ipv4_within(ip_address(text))
    if any(address in network for network in allowed):
        return True
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def _ipv4_within(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _TRANSLATED:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
