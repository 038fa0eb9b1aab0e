"""The sentence that compares a plan with the machines that a launch script asks for."""

from gpuplan.api.presentation.text_formatting import duration, located, percent, plain, usd
from gpuplan.api.services.machines_as_asked import Asked, CostAsAsked
from gpuplan.catalog.model.money import usd_exactly
from gpuplan.planner.model.shared import Usd


def cost_sentence(asked: Asked, cost: CostAsAsked | None, *, limit_hours: float | None, plan_usd: Usd) -> str:
    """`asks for 4 x 8 A100: 9.1 h and $1,234.00 on 4 x p4d.24xlarge, aws us-east-1, on demand; the plan costs 61 % less`."""
    machine = plain(asked.instance_type) or f"{asked.per_node} {plain(asked.accelerator)}"
    machines = f"asks for {asked.nodes:,} x {machine}"
    if cost is None and asked.instance_type:
        return f"{machines}, which nobody in the catalogue sells on demand"
    if cost is None:
        return f"{machines}, which nobody in the catalogue sells in machines of {asked.per_node}"
    where = f"{asked.nodes:,} x {plain(cost.instance_type)}, {cost.provider} {located(cost.region, None)}, on demand"
    limit = ""
    if limit_hours is not None:
        limit = f", {usd(usd_exactly(cost.usd_per_hour * limit_hours))} at its limit of {duration(limit_hours)}"
    if cost.hours is None or cost.usd is None:
        return f"{machines}, where the job does not fit by the estimate of its memory ({where}{limit})"
    saved = 1 - float(plan_usd) / cost.usd
    than = f"{percent(abs(saved))} {'less' if saved >= 0 else 'more'}"
    return (
        f"{machines}: {duration(cost.hours)} and {usd(usd_exactly(cost.usd))} on {where}{limit}; the plan costs {than}"
    )
