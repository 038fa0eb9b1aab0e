"""What the internet reaches is told by IANA's registries, not by the table of the Python that happens to run."""

import ipaddress

import pytest

from gpuplan.api.security.public_addresses import is_public
from gpuplan.catalog.model.data_tables import data_table

PUBLIC = (
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.32.0.1",
    "192.0.0.9",  # anycast of PCP, inside a block that is not reachable
    "192.31.196.1",
    "192.88.98.1",
    "198.20.0.1",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2001:1::3",
    "2001:20::1",
    "2606:4700::1",
    "64:ff9b::808:808",
    "::ffff:8.8.8.8",
)
NOT_PUBLIC = (
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.88.99.2",
    "192.168.1.1",
    "198.19.0.1",
    "224.0.0.1",
    "239.1.2.3",
    "255.255.255.255",
    "::",
    "::1",
    "::8.8.8.8",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:808:808::1",
    "3fff::1",
    "3fff:fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
)


@pytest.mark.parametrize("text", PUBLIC)
def test_what_the_whole_internet_reaches_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_what_the_registries_reserve_is_not(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


def test_every_block_says_whence_and_of_when_it_is() -> None:
    rows = data_table("special_addresses.csv")
    assert len({row["block"] for row in rows}) == len(rows)
    for row in rows:
        ipaddress.ip_network(row["block"])
        assert row["globally_reachable"] in {"yes", "no", "not stated"}
        assert row["source"].startswith("https://www.iana.org/assignments/")
        assert row["as_of"] == "2025-10-09"


def test_a_block_that_python_calls_private_is_not_public_here_but_for_anycast_and_later_registrations() -> None:
    """An independent look: what Python calls private is not public here, but for what was registered since."""
    registered_since = ("192.0.0.9", "192.0.0.10", "2001:1::1", "2001:1::2", "2001:1::3", "2001:3::", "2001:4:112::")
    for row in data_table("special_addresses.csv"):
        first = ipaddress.ip_network(row["block"]).network_address
        if first.is_private and str(first) not in (*registered_since, "2001:20::", "2001:30::"):
            assert not is_public(first), row
