"""The typed answer of a procurement decision: figures rounded, money in USD, no wall-clock values."""

import hashlib
import json
import math
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, TypedDict, cast

from gpuplan.catalog.model.money import usd_micros
from gpuplan.planner.model.procurement import (
    BindingLimit,
    BreakEven,
    ExistingCapacity,
    ForecastSweep,
    JobRuns,
    MachinePurchase,
    NodeCommitment,
    ProcurementBreakdown,
    ProcurementCertificate,
    ProcurementCost,
    ProcurementPlan,
    ProcurementRisk,
    ProcurementSensitivity,
    RentedRuns,
    Room,
    RoomLimits,
    Scenario,
    ScenarioCost,
    SpendingCommitment,
    SpendingRate,
    SweepStep,
    UnboughtMachine,
    UnconsideredMachine,
    UnservedForecast,
    UnservedJob,
)
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.wire import wire
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.procurement.procurement_plan import (
    Binding,
    Commit,
    Costs,
    Decided,
    Impossible,
    Instead,
    Proof,
    Purchase,
    Rent,
    Risk,
    Spend,
    Step,
    Sweep,
    Use,
)
from gpuplan.planner.procurement.procurement_sensitivity import PRECISION
from gpuplan.planner.serialization.phase_document import configuration, usd
from gpuplan.planner.serialization.rounded_figures import to_second

#: The figure of the forecast that a sweep multiplies.
Swept = Literal["times_the_runs", "times_the_price"]


class _ForecastFields(TypedDict):
    """The fields that a decision and its absence share: the forecast as it was read, and what it was decided on."""

    name: str
    start: datetime
    currency: Literal["USD"]
    horizon_years: float
    discount_rate: float
    electricity_usd_per_kwh: float | None
    scenarios: tuple[Scenario, ...]
    turned_down: tuple[UnconsideredMachine, ...]
    snapshot_id: str
    version: str


def typed_answer(
    outcome: Decided | Impossible, settings: PlannerSettings, *, version: str
) -> ProcurementPlan | UnservedForecast:
    """The decision under its id, a hash of its content, or why there is none."""
    forecast = outcome.forecast
    read: _ForecastFields = {
        "name": forecast.name,
        "start": to_second(forecast.start),
        "currency": "USD",
        "horizon_years": forecast.horizon_years,
        "discount_rate": forecast.discount_rate,
        "electricity_usd_per_kwh": forecast.electricity_usd_per_kwh,
        "scenarios": tuple(Scenario(name=name, probability=share) for name, share in forecast.scenarios),
        "turned_down": tuple(UnconsideredMachine(name=name, reason=reason) for name, reason in forecast.turned_down),
        "snapshot_id": outcome.snapshot_id,
        "version": version,
    }
    if isinstance(outcome, Impossible):
        jobs = tuple(UnservedJob(job=j, name=forecast.jobs[j].job.name) for j in outcome.jobs)
        return UnservedForecast(**read, jobs=jobs, reason=outcome.reason)
    plan = _plan(outcome, settings, read)
    content = {name: value for name, value in wire(plan).items() if name != "id"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return replace(plan, id=f"buy-{digest[:20]}")


def _plan(outcome: Decided, settings: PlannerSettings, read: _ForecastFields) -> ProcurementPlan:
    """The decision, as yet without an id."""
    forecast, sensitivity = outcome.forecast, outcome.sensitivity
    return ProcurementPlan(
        id="",
        **read,
        use=tuple(_use(use, forecast) for use in outcome.use),
        buy=tuple(_purchase(purchase, forecast) for purchase in outcome.buy),
        commit=tuple(_commit(commit, forecast) for commit in outcome.commit),
        commit_spend=tuple(_spend(spending, forecast) for spending in outcome.spend),
        rent=tuple(_rent(j, rent, forecast) for j, rent in enumerate(outcome.rent)),
        cost_usd=_cost(outcome.costs),
        risk=None if outcome.risk is None else _risk(outcome.risk),
        binding=tuple(_binding(limit) for limit in outcome.binding),
        not_bought=tuple(_unbought(alternative) for alternative in outcome.instead),
        upfront_usd=_usd(outcome.upfront_usd),
        room=Room(slots=outcome.slots, watts=_round(outcome.watts), limits=_limits(forecast)),
        sensitivity=ProcurementSensitivity(
            utilisation=_sweep(sensitivity.utilisation, "times_the_runs", precision=PRECISION),
            electricity=None
            if sensitivity.electricity is None
            else _sweep(sensitivity.electricity, "times_the_price", precision=0.0),
        ),
        certificate=_certificate(outcome.proof),
        cost_basis=cast(Literal["full", "marginal"], settings.cost_basis),
        assumptions=outcome.assumptions,
        warnings=outcome.warnings,
    )


def _cost(costs: Costs) -> ProcurementCost:
    return ProcurementCost(
        total=_usd(costs.total_usd),
        breakdown=ProcurementBreakdown(
            machines=_usd(costs.machines_usd),
            commitments=_usd(costs.terms_usd),
            running=_usd(costs.running_usd),
            renting=_usd(costs.renting_usd),
        ),
        rent_only=_maybe_usd(costs.rent_only_usd),
        without_buying=_maybe_usd(costs.stay_usd),
        saves=None if costs.stay_usd is None else _usd(max(0.0, costs.stay_usd - costs.total_usd)),
    )


def _certificate(proof: Proof) -> ProcurementCertificate:
    return ProcurementCertificate(
        objective_usd=_usd(proof.objective_usd),
        bound_usd=_usd(proof.bound_usd),
        gap=proof.gap,
        machines_considered=proof.machines,
        commitments_considered=proof.terms,
        blocks_of_load=proof.blocks,
        variables=proof.variables,
        solver=proof.solver,
    )


def _purchase(purchase: Purchase, forecast: Forecast) -> MachinePurchase:
    machine = purchase.machine
    return MachinePurchase(
        name=machine.name,
        accelerator=machine.whole.instance_type.accelerator,
        accelerators=machine.accelerators,
        machines=purchase.units,
        usd_each=_usd(machine.usd),
        upfront_usd=_usd(machine.usd * purchase.units),
        power_watts_each=_round(machine.watts),
        life_years=machine.life_years,
        residual_usd_each=_usd(machine.residual_usd),
        busy_share=_round(purchase.busy),
        runs_per_year=_runs(purchase.runs_per_year, forecast),
        break_even=_break_even(purchase.breaks_even_years, forecast.start),
        saves_usd=_maybe_usd(purchase.saves_usd),
        modelled=machine.modelled,
        price_source=machine.source,
        price_as_of=machine.as_of or None,
    )


def _break_even(years: float | None, start: datetime) -> BreakEven | None:
    """The day on which a purchase has earned its price, and the years until then."""
    if years is None:
        return None
    day = start + timedelta(hours=math.ceil(years * HOURS_PER_YEAR))
    return BreakEven(years=_round(years), date=day.date().isoformat())


def _commit(commit: Commit, forecast: Forecast) -> NodeCommitment:
    offer = commit.offer
    return NodeCommitment(
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        instance_type=offer.instance_type,
        accelerator=commit.accelerator,
        price_kind=offer.price_kind,
        nodes=commit.units,
        usd_per_node_hour=usd(offer.usd_micros_per_hour),
        from_year=_round(commit.from_year),
        until_year=_round(commit.until_year),
        total_obligation_usd=_usd(commit.obligation_usd),
        busy_share=_round(commit.busy),
        runs_per_year=_runs(commit.runs_per_year, forecast),
        modelled=offer.modelled,
        price_source=offer.source,
        price_observed_at=to_second(offer.observed_at),
    )


def _spend(spend: Spend, forecast: Forecast) -> SpendingCommitment:
    pool = spend.plan.pool
    rates = tuple(
        SpendingRate(
            job=j,
            name=forecast.jobs[j].job.name,
            instance_type=offer.instance_type,
            region=offer.region,
            usd_per_node_hour=usd(offer.usd_micros_per_hour),
            price_source=offer.source,
            price_observed_at=to_second(offer.observed_at),
        )
        for j, offer in enumerate(spend.plan.on)
        if offer is not None and spend.runs_per_year[j] > 0
    )
    return SpendingCommitment(
        provider=pool.provider,
        price_kind=pool.price_kind,
        region=pool.region or None,
        family=pool.family or None,
        usd_per_hour=_usd(spend.usd_per_hour),
        from_year=_round(spend.from_year),
        until_year=_round(spend.until_year),
        total_obligation_usd=_usd(spend.obligation_usd),
        busy_share=_round(spend.busy),
        runs_per_year=_runs(spend.runs_per_year, forecast),
        on=rates,
    )


def _use(use: Use, forecast: Forecast) -> ExistingCapacity:
    return ExistingCapacity(
        name=use.what,
        units=_round(use.units),
        busy_share=_round(use.busy),
        runs_per_year=_runs(use.runs_per_year, forecast),
    )


def _risk(risk: Risk) -> ProcurementRisk:
    return ProcurementRisk(
        loses_probability=_round(risk.loses_probability),
        scenarios=tuple(
            ScenarioCost(
                name=outcome.scenario,
                probability=outcome.probability,
                cost_usd=_usd(outcome.total_usd),
                saves_usd=_signed(outcome.saves_usd),
            )
            for outcome in risk.outcomes
        ),
    )


def _binding(binding: Binding) -> BindingLimit:
    return BindingLimit(
        limit=binding.limit,
        used=_round(binding.used),
        available=_round(binding.available),
        short=binding.short,
        without_it=binding.instead,
        would_save_usd=_usd(binding.saves_usd),
    )


def _unbought(instead: Instead) -> UnboughtMachine:
    machine = instead.machine
    return UnboughtMachine(
        name=machine.name,
        machines=instead.units,
        usd_each=_usd(machine.usd),
        extra_cost_usd=_usd(instead.extra_usd),
        electricity_alone_costs_more_than_renting=instead.never,
        price_source=machine.source,
        price_as_of=machine.as_of or None,
    )


def _rent(j: int, rent: Rent, forecast: Forecast) -> RentedRuns:
    return RentedRuns(
        job=j,
        name=forecast.jobs[j].job.name,
        share_of_runs=_round(rent.share),
        runs_per_year=_round(rent.runs_per_year),
        on=None if rent.choice is None else configuration(rent.choice),
    )


def _runs(runs: tuple[float, ...], forecast: Forecast) -> tuple[JobRuns, ...]:
    return tuple(
        JobRuns(job=j, name=forecast.jobs[j].job.name, runs_per_year=_round(count))
        for j, count in enumerate(runs)
        if count > 0
    )


def _limits(forecast: Forecast) -> RoomLimits:
    limits = forecast.limits
    return RoomLimits(
        slots=limits.slots,
        power_watts=limits.power_watts,
        cooling_watts=limits.cooling_watts,
        machines=limits.machines,
        upfront_usd=_maybe_usd(limits.upfront_usd),
    )


def _sweep(sweep: Sweep, swept: Swept, *, precision: float) -> ForecastSweep:
    return ForecastSweep(
        precision=precision,
        steps=tuple(_step(step, swept) for step in sweep.steps),
        changes_below=None if sweep.below is None else _step(sweep.below, swept),
        changes_above=None if sweep.above is None else _step(sweep.above, swept),
    )


def _step(step: Step, swept: Swept) -> SweepStep:
    factor = float(f"{step.factor:.3g}")
    return SweepStep(
        times_the_runs=factor if swept == "times_the_runs" else None,
        times_the_price=factor if swept == "times_the_price" else None,
        answer=step.to or "does not fit into the limits",
        cost_usd=_maybe_usd(step.total_usd),
        gap=_round(step.gap),
    )


def _usd(value: float) -> Decimal:
    return usd(usd_micros(round(value, 6)))


def _signed(value: float) -> Decimal:
    """A difference that may be a loss."""
    return _usd(-value).copy_negate() if value < 0 else _usd(value)


def _maybe_usd(value: float | None) -> Decimal | None:
    return None if value is None else _usd(value)


def _round(value: float) -> float:
    """Six significant digits: more than a forecast has."""
    return float(f"{value:.6g}")
