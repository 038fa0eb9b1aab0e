"""A configuration in an answer: alone, as a phase with what it moves, and as a standby."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypedDict, cast

from gpuplan.catalog.model.money import usd_text
from gpuplan.catalog.model.offer import Offer
from gpuplan.planner.cost.cost_quantiles import cost_with_price
from gpuplan.planner.model import shared
from gpuplan.planner.model.learned import NO_CORRECTION, AcceleratorCorrection
from gpuplan.planner.model.outcome import Choice, CostMicros, Moved, PhaseChoice, StandbyChoice
from gpuplan.planner.serialization.rounded_figures import count, maybe_rounded, rounded, to_second


class MachineFields(TypedDict):
    """The fields of `shared.Machines`."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerators_per_node: int | float
    nodes: int
    slice_hosts: int | None
    price_kind: str
    usd_per_node_hour: Decimal


class CostAndHours(TypedDict):
    """The fields that `shared.Configuration` has besides its machines."""

    cost_usd: Decimal
    cost_p95_usd: Decimal
    hours: float
    hours_confident: float


class _StandbyFields(TypedDict, total=False):
    """The fields of `shared.Phase` that only a standby has."""

    probability: float
    switch_by: datetime
    switch_by_hours: float
    switch_share: float | None


def configuration(choice: Choice) -> shared.Configuration:
    """One configuration with its cost and time."""
    return shared.Configuration(**machines(choice), **cost_and_hours(choice))


def machines(choice: Choice) -> MachineFields:
    """What is rented, where, and at which price."""
    offer = choice.offer
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "accelerator": choice.accelerator,
        "accelerators_per_node": count(choice.accelerators_per_node),
        "nodes": choice.nodes,
        "slice_hosts": choice.instance_type.fixed_nodes,
        "price_kind": offer.price_kind,
        "usd_per_node_hour": usd(offer.usd_micros_per_hour),
    }


def cost_and_hours(choice: Choice) -> CostAndHours:
    """The mean and the quantiles of cost and hours."""
    return {
        "cost_usd": usd(choice.cost.expected),
        "cost_p95_usd": usd(cost_with_price(choice).p95),
        "hours": rounded(choice.hours.expected),
        "hours_confident": rounded(choice.hours.confident),
    }


def usd(micros: int) -> Decimal:
    """Micro-dollars as the amount that the wire shows."""
    return Decimal(usd_text(micros))


def phase_answer(phase: PhaseChoice, start: datetime) -> shared.Phase:
    """A phase of a plan that begins at `start`: machines, price, speed, share, cost and what it moves."""
    choice, offer = phase.choice, phase.choice.offer
    return shared.Phase(
        **machines(choice),
        role=phase.role,
        starts_at=to_second(start + timedelta(hours=phase.begins_hours)),
        share=rounded(phase.share),
        cost_usd=shared.ExpectedCost(expected=usd(choice.cost.expected), breakdown=breakdown(choice.cost)),
        moved=None if phase.moved is None else _moved(phase.moved),
        **_standby(phase, start),
        price_observed_at=to_second(offer.observed_at),
        price_observed_approximately=offer.observed_approximately,
        price_source=offer.source,
        price_estimate=_price_estimate(offer),
        hours=rounded(choice.hours.expected),
        training_hours=rounded(phase.training_hours),
        hours_with_goodput=rounded(phase.hours_with_goodput),
        precision=phase.precision,
        layout=cast(shared.Layout, phase.layout),
        throughput=shared.Figure(value=rounded(phase.throughput), unit=phase.unit),
        mfu=rounded(phase.mfu),
        memory_gib_per_accelerator=rounded(phase.memory_gib),
        capacity_gib_per_accelerator=rounded(phase.capacity_gib),
        log_sigma=rounded(phase.log_sigma),
        interruptions_per_node_hour=rounded(phase.interruptions_per_hour),
        checkpoint_interval_hours=maybe_rounded(phase.checkpoint_interval_hours),
        expected_preemptions=rounded(phase.expected_preemptions),
        modelled=tuple(offer.modelled),
        preemption_wait_hours=maybe_rounded(phase.wait_hours),
        setup_hours=rounded(phase.setup_hours),
        learned=_corrected(phase),
    )


def _price_estimate(offer: Offer) -> shared.PriceEstimate | None:
    """The observed price behind an expected one, and its band."""
    estimate = offer.price_estimate
    if estimate is None:
        return None
    return shared.PriceEstimate(
        observed_usd_per_node_hour=usd(estimate.observed_usd_micros_per_hour),
        low_usd_per_node_hour=usd(estimate.low_usd_micros_per_hour),
        high_usd_per_node_hour=usd(estimate.high_usd_micros_per_hour),
        age_days=estimate.age_days,
    )


def _moved(moved: Moved) -> shared.Move:
    """The origin of a phase, and the data moved for it."""
    origin = moved.origin
    return shared.Move(
        from_=shared.Place(
            provider=origin.provider, region=origin.region, zone=origin.zone, instance_type=origin.instance_type
        ),
        checkpoint_gb=rounded(moved.checkpoint_gb),
        data_gb=rounded(moved.data_gb),
        egress_usd=usd(moved.egress),
    )


def _standby(phase: PhaseChoice, start: datetime) -> _StandbyFields:
    """Probability and latest call of a standby; empty for phases that always run."""
    if phase.probability is None or phase.switch_by_hours is None:
        return {}
    return {
        "probability": rounded(phase.probability),
        "switch_by": to_second(start + timedelta(hours=phase.switch_by_hours)),
        "switch_by_hours": rounded(phase.switch_by_hours),
        "switch_share": maybe_rounded(phase.switch_share),
    }


def contingency_standby_answer(contingency_standby: StandbyChoice, start: datetime) -> shared.ContingencyStandby:
    """The standby to which a spot run moves if it falls behind."""
    return shared.ContingencyStandby(
        **machines(contingency_standby.standby.choice),
        hours_with_goodput=rounded(contingency_standby.standby.hours_with_goodput),
        ready_hours=rounded(contingency_standby.ready_hours),
        switch_by=to_second(start + timedelta(hours=contingency_standby.switch_by_hours)),
        switch_by_hours=rounded(contingency_standby.switch_by_hours),
        switch_share=rounded(contingency_standby.switch_share),
        probability=rounded(contingency_standby.probability),
        deadline_probability=rounded(contingency_standby.in_time),
        extra_usd=usd(contingency_standby.extra),
    )


def cost_answer(cost: CostMicros, phases: Sequence[PhaseChoice] = ()) -> shared.Cost:
    """Expected cost by part, its median and 95 % quantile, and the mean at both ends of the bands of the phases' prices."""
    low, high = _at_band(cost, phases)
    return shared.Cost(
        expected=usd(cost.expected),
        breakdown=breakdown(cost),
        median=usd(cost.median),
        p95=usd(cost.p95),
        price_low=low,
        price_high=high,
    )


def hours_answer(hours: shared.Hours) -> shared.Hours:
    """The mean and the quantiles of the hours of a plan."""
    return shared.Hours(
        expected=rounded(hours.expected),
        median=rounded(hours.median),
        confident=rounded(hours.confident),
        p95=rounded(hours.p95),
    )


def _at_band(cost: CostMicros, phases: Sequence[PhaseChoice]) -> tuple[Decimal | None, Decimal | None]:
    """The expected cost with every price at the low and at the high end of its band; None without expected prices.

    Machines cost nodes x price x billed hours, so their part of the cost follows the price in proportion.
    """
    ends = [0, 0]
    estimated = [(phase.choice, estimate) for phase in phases if (estimate := phase.choice.offer.price_estimate)]
    if not estimated:
        return None, None
    for choice, estimate in estimated:
        machines_micros = choice.cost.compute + choice.cost.setup
        price = choice.offer.usd_micros_per_hour
        for end, micros in enumerate((estimate.low_usd_micros_per_hour, estimate.high_usd_micros_per_hour)):
            ends[end] += round(machines_micros * (micros - price) / price)
    return usd(cost.expected + ends[0]), usd(cost.expected + ends[1])


def breakdown(cost: CostMicros, *, less: CostMicros | None = None) -> shared.Breakdown:
    """Expected cost by part, or by how much each part exceeds that of `less`."""
    parts = ("compute", "storage", "egress", "power", "setup")
    return shared.Breakdown(
        **{part: usd(getattr(cost, part) - (0 if less is None else getattr(less, part))) for part in parts}
    )


def correction_answer(correction: AcceleratorCorrection) -> shared.Correction:
    """Learned corrections of one accelerator; None: all without runs."""
    return shared.Correction(
        accelerator=correction.accelerator or None,
        hours_factor=rounded(correction.hours.factor),
        hours_runs=correction.hours.runs,
        memory_factor=rounded(correction.memory.factor),
        memory_runs=correction.memory.runs,
        variance_removed=rounded(correction.variance_removed),
    )


def _corrected(phase: PhaseChoice) -> shared.PhaseLearned | None:
    """The learned corrections in a phase's figures, so that runs can be compared with the uncorrected ones."""
    correction = phase.correction
    if correction is NO_CORRECTION:
        return None
    return shared.PhaseLearned(
        hours_factor=rounded(correction.hours.factor),
        memory_factor=rounded(correction.memory.factor),
        log_sigma_before=rounded(math.sqrt(phase.log_sigma**2 + correction.variance_removed)),
    )
