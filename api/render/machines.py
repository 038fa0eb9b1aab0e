"""What is rented, and where: one phrase each, the same in every section of an answer."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from api.render.text import located, number, usd_per_hour
from planner.answer import ordered

Part = Mapping[str, Any]


def machines(part: Part) -> str:
    """`4 x p5.48xlarge (32 x H100-80GB-SXM)`, or `tpu-v6e-128 (one slice, 32 hosts; 128 x TPU-v6e)`."""
    total = f"{number(part['nodes'] * part['accelerators_per_node'])} x {part['accelerator']}"
    if _hosts(part) > 1:
        return f"{rented(part).removesuffix(')')}; {total})"
    return f"{rented(part)} ({total})"


def rented(part: Part) -> str:
    """What is ordered, without what is in it: `4 x p5.48xlarge`, `tpu-v6e-128 (one slice, 32 hosts)`."""
    return ordered(part["instance_type"], int(part["nodes"]), _hosts(part))


def place(part: Part) -> str:
    """`aws us-east-1 use1-az4, spot`."""
    return (
        f"{part['provider']} {located(part['region'], part.get('zone'))}, {str(part['price_kind']).replace('_', ' ')}"
    )


def price(part: Part) -> str:
    """The price of a node, and of all of them where they can only be had together."""
    each = usd_per_hour(part["usd_per_node_hour"])
    if _hosts(part) == 1:
        return f"{each} per node-hour"
    return f"{each} per host-hour, {usd_per_hour(Decimal(part['usd_per_node_hour']) * part['nodes'])} per hour for all"


def _hosts(part: Part) -> int:
    """Hosts of one slice, or 1 where machines are rented one by one."""
    return int(part.get("slice_hosts") or 1)
