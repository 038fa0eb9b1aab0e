"""Phrases for jobs, machines, places and prices, the same in every section of an answer."""

from datetime import datetime, timedelta

from gpuplan.api.presentation.text_formatting import count_in_short, located, number, plain, usd_per_hour
from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.model.job import UNNAMED
from gpuplan.planner.model.outcome import ordered
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.model.shared import Machines, Phase


def job_name(job: JsonObject, *, limit: int = 2_000) -> str:
    """The name of a job."""
    return plain(job.get("name") or "this job", limit=limit)


def name_in_list(job: JsonObject, *, limit: int = 2_000) -> str:
    """The name of a job among others, with its work where it has no name of its own: `llama-3-8b, 300B tokens, lora`."""
    name, workload = job_name(job, limit=limit), job["workload"]
    has_own_name = job.get("name") not in (None, UNNAMED, workload.get("model"))
    return name if has_own_name else ", ".join((name, *_work(job)))


def _work(job: JsonObject) -> list[str]:
    """How much a job trains, and its method unless it trains all parameters: `300B tokens`, `lora`."""
    workload, method = job["workload"], job["training"]["method"]
    parts = [f"{count_in_short(workload[unit])} {unit}" for unit in ("tokens", "samples") if workload.get(unit)]
    parts += [f"{workload['total_flops']:.3g} FLOPs"] if "total_flops" in workload else []
    return parts if method == "full" else [*parts, plain(method)]


def machines(what: Machines) -> str:
    """The order and its accelerators: `4 x p5.48xlarge (32 x H100-80GB-SXM)`, or a slice with its hosts."""
    devices = f"{number(what.nodes * what.accelerators_per_node)} x {what.accelerator}"
    is_slice = (what.slice_hosts or 1) > 1
    return f"{rented(what).removesuffix(')')}; {devices})" if is_slice else f"{rented(what)} ({devices})"


def rented(what: Machines) -> str:
    """The order, without its accelerators: `4 x p5.48xlarge`, `tpu-v6e-128 (one slice, 32 hosts)`."""
    return plain(ordered(what.instance_type, what.nodes, what.slice_hosts))


def offer(what: Machines) -> str:
    """The order with its place and kind: `4 x p5.48xlarge, aws us-east-1 use1-az4, spot`."""
    return f"{rented(what)}, {place_and_kind(what)}"


def place_and_kind(what: Machines) -> str:
    """`aws us-east-1 use1-az4, spot`."""
    return f"{place(what)}, {kind(what)}"


def deadline_at(plan: Plan) -> datetime | None:
    """The deadline of a plan's job; None without one."""
    due = plan.job.get("deadline")
    if due is None:
        return None
    return datetime.fromisoformat(due) if isinstance(due, str) else plan.start + timedelta(hours=due)


def identity(what: Machines) -> tuple[object, ...]:
    """What makes two configurations the same: machines, number, place and price."""
    place_, price_ = (what.provider, what.region, what.zone), (what.price_kind, what.usd_per_node_hour)
    return (*place_, what.instance_type, what.nodes, *price_)


def configuration(what: Machines, *, names_zone: bool = False) -> str:
    """One line for a table: `4 x p5.48xlarge, aws us-east-1, spot`; a slice counts as one machine."""
    where = located(what.region, what.zone if names_zone else None)
    return plain(
        f"{what.nodes // (what.slice_hosts or 1):,} x {what.instance_type}, {what.provider} {where}, {kind(what)}"
    )


def configuration_beside(plan: Plan, what: Machines, *, names_zone: bool = False) -> str:
    """A configuration as another way for this plan; `, without bf16` where the plan trains in it and these machines cannot."""
    lacks = (
        any(phase.precision == "bf16" for phase in plan.phases) and accelerators()[what.accelerator].bf16_tflops is None
    )
    return configuration(what, names_zone=names_zone) + (", without bf16" if lacks else "")


def place(what: Machines) -> str:
    """`aws us-east-1 use1-az4`."""
    return plain(f"{what.provider} {located(what.region, what.zone)}")


def kind(what: Machines) -> str:
    """`on demand`, `spot`, `reserved 1y`."""
    return plain(what.price_kind.replace("_", " "))


def mean_leaves_outages_out(plan: Plan) -> bool:
    """Whether rare outages of days count in shares of runs only, not in the mean time: preempted machines return after a wait."""
    return any(phase.preemption_wait_hours for phase in plan.phases)


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


def node_price(what: Machines) -> str:
    """The price of a node, and of all nodes where they are only rented together."""
    per_node = usd_per_hour(what.usd_per_node_hour)
    if (what.slice_hosts or 1) == 1:
        return f"{per_node} per node-hour"
    return f"{per_node} per host-hour, {usd_per_hour(what.usd_per_node_hour * what.nodes)} per hour for all"


def price(what: Machines) -> str:
    """The price of all machines together: `$22.07/h`."""
    return f"{usd_per_hour(what.usd_per_node_hour * what.nodes)}/h"
