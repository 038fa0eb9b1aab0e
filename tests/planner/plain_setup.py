"""Hours of set-up by hand: minutes of boot, image and start of one node, and 1.5 minutes per ln(nodes)."""

import math

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.planner.model.settings import PlannerSettings

BOOT = {"aws": 2.5, "gcp": 2.2, "azure": 3.3, "lambda": 5.0, "runpod": 0.7, "vast": 0.7}


def plain_setup_hours(provider: str, accelerator: str, price_kind: str, nodes: int, settings: PlannerSettings) -> float:
    """Hours before the first step of so many nodes of a provider."""
    if settings.setup_hours is not None:
        return settings.setup_hours
    together = 2.0 + 1.5 * math.log(nodes)
    if price_kind == "owned":
        return together / 60
    boot = BOOT.get(provider, 3.0)
    if accelerators()[accelerator].architecture == "TPU" or price_kind == "capacity_block":
        boot = 5.0
    return (boot + 4.5 + together) / 60
