"""Which addresses belong to the internet, and which to this machine or to a network behind it.

IANA's registries of special-purpose addresses are carried as a table (`catalog/data/special_addresses.csv`, with source
and date): those that Python knows differ from release to release.
"""

import ipaddress
import socket
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from catalog.data_tables import data_table

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network

#: The prefix by which IPv6-only networks reach IPv4 addresses, which stand in the last 32 bits (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")
#: All that IANA has given to anybody in IPv6 (iana.org/assignments/ipv6-address-space).
_GLOBAL_UNICAST = IPv6Network("2000::/3")
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
        if address not in _GLOBAL_UNICAST:
            return False
    return _is_globally_reachable(address) and address != _AZURE_HOST


def _is_globally_reachable(address: Address) -> bool:
    """As the smallest registered block that holds the address says; what stands in none is nobody's special purpose."""
    return next((reachable for block, reachable in _special_blocks() if address in block), True)


@cache
def _special_blocks() -> tuple[tuple[Network, bool], ...]:
    """Every registered block, the smallest first; where the registry does not state it, it is not reachable."""
    rows = data_table("special_addresses.csv")
    blocks = [(ipaddress.ip_network(row["block"]), row["globally_reachable"] == "yes") for row in rows]
    return tuple(sorted(blocks, key=lambda each: -each[0].prefixlen))


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped
