"""Phrases for typed machines: order, place and price."""

from gpuplan.api.presentation.text_formatting import located, number, plain, usd_per_hour
from gpuplan.planner.model.outcome import ordered
from gpuplan.planner.model.plan import Alternative
from gpuplan.planner.model.shared import Machines, Phase

Rented = Machines | Alternative


def machines(what: Rented) -> str:
    """The order and its accelerators: `4 x p5.48xlarge (32 x H100-80GB-SXM)`, or a slice with its hosts."""
    rented = ordered(what.instance_type, what.nodes, what.slice_hosts)
    devices = f"{number(what.nodes * what.accelerators_per_node)} x {what.accelerator}"
    is_slice = (what.slice_hosts or 1) > 1
    return plain(f"{rented.removesuffix(')')}; {devices})" if is_slice else f"{rented} ({devices})")


def configuration(what: Rented, *, names_zone: bool = False) -> str:
    """One line for a table: `4 x p5.48xlarge, aws us-east-1, spot`; a slice counts as one machine."""
    where = located(what.region, what.zone if names_zone else None)
    return plain(
        f"{what.nodes // (what.slice_hosts or 1):,} x {what.instance_type}, {what.provider} {where}, {kind(what)}"
    )


def place(what: Rented) -> str:
    """`aws us-east-1 use1-az4`."""
    return plain(f"{what.provider} {located(what.region, what.zone)}")


def kind(what: Rented) -> str:
    """`on demand`, `spot`, `reserved 1y`."""
    return plain(what.price_kind.replace("_", " "))


def price_estimate(phase: Phase) -> str | None:
    """The observed price of all machines with its date, the expected one and its band; None for a price as observed."""
    estimate = phase.price_estimate
    if estimate is None:
        return None
    observed, expected, low, high = (
        usd_per_hour(usd * phase.nodes)
        for usd in (
            estimate.observed_usd_per_node_hour,
            phase.usd_per_node_hour,
            estimate.low_usd_per_node_hour,
            estimate.high_usd_per_node_hour,
        )
    )
    return f"{expected} expected (80 %: {low}-{high}), {observed} on {phase.price_observed_at.date()}"


def price(what: Rented) -> str:
    """The price of all machines together: `$22.07/h`."""
    return f"{usd_per_hour(what.usd_per_node_hour * what.nodes)}/h"
