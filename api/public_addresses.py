"""Which addresses belong to the internet, and which to this machine or to a network behind it."""

import ipaddress
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network

type Address = IPv4Address | IPv6Address

#: The prefix by which IPv6-only networks reach IPv4 addresses, which stand in the last 32 bits (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")
#: A public number that leads every machine of Azure to its own host
#: (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_AZURE_HOST = IPv4Address("168.63.129.16")


def literal_address(host: str) -> Address | None:
    """The address that `host` is in any notation that a resolver takes (`127.1`, `0x7f000001`); None for a name."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    with suppress(OSError):
        return IPv4Address(socket.inet_aton(host))
    return None


def is_public(address: Address) -> bool:
    """Whether the address, or the IPv4 address that it carries, is one that the whole internet reaches."""
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return is_public(carried)
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved and address != _AZURE_HOST


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
