"""Classification of addresses: public internet, this machine, or a private network.

IANA's registries of special-purpose addresses are included as a table (`catalog/data/special_addresses.csv`, with
source and date), because Python's built-in list changes between releases.
"""

import ipaddress
import socket
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from gpuplan.catalog.model.data_tables import data_table

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network

#: The prefix by which IPv6-only networks reach IPv4 addresses, which are in the last 32 bits (RFC 6052).
_NAT64 = IPv6Network("64:ff9b::/96")
#: All IPv6 space that IANA has allocated (iana.org/assignments/ipv6-address-space).
_GLOBAL_UNICAST = IPv6Network("2000::/3")
#: A public address that leads every Azure machine to its own host
#: (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
_AZURE_HOST = IPv4Address("168.63.129.16")


def literal_address(host: str) -> Address | None:
    """The address that `host` is in any notation that resolvers accept (`127.1`, `0x7f000001`); None for a name."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    with suppress(OSError):
        return IPv4Address(socket.inet_aton(host))
    return None


def is_public(address: Address) -> bool:
    """Whether the address, or the IPv4 address embedded in it, is public."""
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return is_public(carried)
        if address not in _GLOBAL_UNICAST:
            return False
    return _is_globally_reachable(address) and address != _AZURE_HOST


def _is_globally_reachable(address: Address) -> bool:
    """The property of the smallest registered block that contains the address; addresses outside all blocks are public."""
    return next((reachable for block, reachable in _special_blocks() if address in block), True)


@cache
def _special_blocks() -> tuple[tuple[Network, bool], ...]:
    """Every registered block, the smallest first; a block without a stated property is not reachable."""
    rows = data_table("special_addresses.csv")
    blocks = [(ipaddress.ip_network(row["block"]), row["globally_reachable"] == "yes") for row in rows]
    return tuple(sorted(blocks, key=lambda block: -block[0].prefixlen))


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped
