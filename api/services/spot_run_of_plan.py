"""A saved plan on interruptible machines as the document of a run: its work, machines, zones and on-demand price."""

import math
from typing import Any

import numpy as np

from gpuplan.api.schemas.spot_run import SpotRunDocument
from gpuplan.catalog.model.money import usd_exactly
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.parsing.document_fields import read_as
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.cost.preemption_and_checkpoint_interval import wait_log_spread
from gpuplan.planner.model.plan import Plan, PlanAnswer, PlannedAnswer
from gpuplan.planner.model.shared import Machines, Phase
from gpuplan.planner.model.spot_policy import FinishAsPlanned
from gpuplan.planner.model.stated_settings import stated_settings
from gpuplan.planner.spot_policy.finish_distribution import SpotRun, finish
from gpuplan.planner.spot_policy.latest_switch import Rescue, latest_switch, spot_first
from gpuplan.planner.spot_policy.run_parameters import MOST_ZONES

#: With more, the states of all zones together would need coarse steps; the cheapest are taken.
_ZONES = min(3, MOST_ZONES)


def run_of_plan(answer: PlanAnswer, columns: Columns) -> SpotRunDocument:
    """The run that a spot policy is made for, for a saved answer and the columns of its snapshot.

    Raises `UnusableInput` where the plan is not on interruptible machines alone, has no deadline, or where its
    machines cannot be had on demand in that snapshot.
    """
    plan = answer.plan if isinstance(answer, PlannedAnswer) else None
    standby = None if plan is None else _standby(plan)
    if plan is None or len(plan.phases) != 1 + (standby is not None):
        raise _refused("is no plan of one phase and perhaps a standby; a policy needs one machine that it runs on")
    phase, job = plan.phases[0], plan.job
    if not price_kinds()[phase.price_kind].interruptible:
        raise _refused(f"runs on {phase.price_kind} machines, which nobody takes away; there is nothing to decide")
    if job.get("deadline") is None:
        raise _refused("has no deadline, so there is nothing to be late for; plan the job with one")
    settings, nodes = stated_settings(plan), phase.nodes
    if standby is not None:
        return _run_with_standby(plan, columns, phase, standby)
    demand = _cheapest_on_demand(columns, phase)
    if demand is None:
        raise _refused(f"uses {phase.instance_type}, which {phase.region} does not offer on demand to fall back on")
    return read_as(
        SpotRunDocument,
        {
            "name": job.get("name") or plan.id,
            "work": phase.hours_with_goodput,
            "deadline": float(job["deadline"]),
            "changeover": max(settings.setup_hours_of(phase), settings.restart_hours),
            "nodes": nodes,
            "on_demand_usd_per_hour": demand * nodes,
            "places": [
                {"name": zone or phase.region, "usd_per_hour": usd * nodes}
                for zone, usd in _zones(columns, phase)[:_ZONES]
            ],
            "checkpoint_write": settings.write_hours_of(phase),
        },
    )


def _standby(plan: Plan) -> Phase | None:
    """The phase that stands by for the one before, if there is one."""
    last = plan.phases[-1]
    return last if last.is_standby else None


def _run_with_standby(plan: Plan, columns: Columns, phase: Phase, standby: Phase) -> SpotRunDocument:
    """The run of a plan with a standby: work in the standby's hours, spot at its own speed.

    All ways from spot are taken to be the standby's: its set-up, and its checkpoint from another region.
    """
    settings, job, nodes = stated_settings(plan), plan.job, phase.nodes
    moved, work = standby.moved, standby.hours_with_goodput
    checkpoint_gb = 0.0 if moved is None else moved.checkpoint_gb
    far = moved is not None and (moved.from_.provider, moved.from_.region) != (standby.provider, standby.region)
    way = checkpoint_gb / settings.move_gbs / 3600 if far else 0.0
    return read_as(
        SpotRunDocument,
        {
            "name": job.get("name") or plan.id,
            "work": work,
            "deadline": float(job["deadline"]),
            "changeover": max(settings.setup_hours_of(standby) + way, settings.restart_hours),
            "nodes": nodes,
            "on_demand_usd_per_hour": float(standby.usd_per_node_hour) * standby.nodes,
            "places": [
                {"name": zone or phase.region, "usd_per_hour": usd * nodes, "speed": work / phase.hours_with_goodput}
                for zone, usd in _zones(columns, phase)[:_ZONES]
            ],
            "checkpoint_write": checkpoint_gb / settings.checkpoint_gbs / 3600 / nodes,
        },
    )


def finish_of_plan(answer: PlanAnswer, run: SpotRunDocument) -> FinishAsPlanned:
    """When the plan ends if it stays on its machines, and until when it may: the model that the plan is costed with.

    Machines are back `restart_hours` after each preemption and the wait that the plan states; `run` is what
    `run_of_plan` gave. Of a plan with a standby, these are its own figures.
    `latest_switch_hours` is None where no moment keeps the asked confidence.
    """
    if not isinstance(answer, PlannedAnswer):
        raise _refused("is no plan")
    plan = answer.plan
    standby = _standby(plan)
    if standby is not None:
        return FinishAsPlanned(
            mean_hours=plan.hours.expected,
            p95_hours=plan.hours.p95,
            probability_in_time=plan.deadline_probability,
            confidence=float(plan.job["confidence"]),
            latest_switch_hours=standby.switch_by_hours,
            spot_first_usd=plan.cost_usd.expected,
            switch_probability=standby.probability,
        )
    phase, settings, confidence = plan.phases[0], stated_settings(plan), float(plan.job["confidence"])
    rate, deadline = settings.preempted_per_hour(phase), run.deadline
    work, setup = run.work, settings.setup_hours_of(phase)
    spot = SpotRun(
        work_hours=work,
        interval_hours=min(phase.checkpoint_interval_hours or work, work),
        checkpoint_hours=run.checkpoint_write,
        restart_hours=settings.restart_hours,
        preemptions_per_hour=rate,
        wait_hours=settings.wait_hours_of(phase),
    )
    rescue = Rescue(changeover_hours=run.changeover, usd_per_hour=run.on_demand_usd_per_hour)
    log_sigma = phase.log_sigma
    ends = finish(spot, log_sigma=log_sigma)
    # Zones differ in their waits, which spreads the hours around their mean.
    between_zones = float(wait_log_spread(np.array(rate), np.array(spot.wait_hours)))
    spread = finish(spot, log_sigma=math.hypot(log_sigma, between_zones)) if between_zones else ends
    latest = latest_switch(spot, rescue, deadline - setup, confidence)
    first = spot_first(spot, rescue, deadline - setup, run.places[0].usd_per_hour)
    return FinishAsPlanned(
        mean_hours=round(setup + ends.mean, 6),
        p95_hours=round(setup + spread.quantile(0.95), 6),
        probability_in_time=round(spread.probability_by(deadline - setup), 6),
        confidence=confidence,
        latest_switch_hours=None if latest is None else round(setup + latest, 6),
        spot_first_usd=usd_exactly(first.usd),
        switch_probability=round(first.switch_probability, 6),
    )


def offer_rows(columns: Columns, phase: Machines) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The rows of the phase's machine in its region that have a whole price."""
    return np.asarray(sold(columns, phase) & columns.plannable)


def sold(columns: Columns, phase: Machines) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """All rows of the phase's machine in its region."""
    types = [
        i
        for i, instance_type in enumerate(columns.instance_types)
        if (instance_type.provider, instance_type.name) == (phase.provider, phase.instance_type)
    ]
    region_indices = [i for i, region in enumerate(columns.regions) if region == (phase.provider, phase.region)]
    return np.asarray(np.isin(columns.type_index, types) & np.isin(columns.region_index, region_indices))


def _cheapest_on_demand(columns: Columns, phase: Machines) -> float | None:
    plain = [i for i, name in enumerate(columns.kinds) if price_kinds()[name].is_plain]
    prices = columns.usd_per_hour[offer_rows(columns, phase) & np.isin(columns.kind_index, plain)]
    return float(prices.min()) if len(prices) else None


def _zones(columns: Columns, phase: Machines) -> list[tuple[str, float]]:
    """Zones that sell the phase's kind, cheapest first."""
    kind = list(columns.kinds).index(phase.price_kind)
    rows = np.flatnonzero(offer_rows(columns, phase) & (columns.kind_index == kind))
    named = {columns.offer(int(row)).zone: float(columns.usd_per_hour[row]) for row in rows}
    return sorted(named.items(), key=lambda item: (item[1], item[0]))


def _refused(why: str) -> UnusableInput:
    return UnusableInput.at("plan", message=why)
