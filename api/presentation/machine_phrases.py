"""Phrases for machines, places and prices, the same in every section of an answer."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from gpuplan.api.presentation.text_formatting import located, number, usd_per_hour
from gpuplan.planner.model.outcome import ordered

Part = Mapping[str, Any]


def machines(part: Part) -> str:
    """`4 x p5.48xlarge (32 x H100-80GB-SXM)`, or `tpu-v6e-128 (one slice, 32 hosts; 128 x TPU-v6e)`."""
    total = f"{number(part['nodes'] * part['accelerators_per_node'])} x {part['accelerator']}"
    if _hosts(part) > 1:
        return f"{rented(part).removesuffix(')')}; {total})"
    return f"{rented(part)} ({total})"


def rented(part: Part) -> str:
    """The order, without its accelerators: `4 x p5.48xlarge`, `tpu-v6e-128 (one slice, 32 hosts)`."""
    return ordered(part["instance_type"], int(part["nodes"]), _hosts(part))


def place(part: Part) -> str:
    """`aws us-east-1 use1-az4, spot`."""
    return (
        f"{part['provider']} {located(part['region'], part.get('zone'))}, {str(part['price_kind']).replace('_', ' ')}"
    )


def price(part: Part) -> str:
    """The price of a node, and of all nodes where they are only rented together."""
    node_price = usd_per_hour(part["usd_per_node_hour"])
    if _hosts(part) == 1:
        return f"{node_price} per node-hour"
    return f"{node_price} per host-hour, {usd_per_hour(Decimal(part['usd_per_node_hour']) * part['nodes'])} per hour for all"


def _hosts(part: Part) -> int:
    """Hosts per slice; 1 where machines are rented singly."""
    return int(part.get("slice_hosts") or 1)
