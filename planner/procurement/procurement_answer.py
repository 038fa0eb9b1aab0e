"""The typed answer of a procurement decision: figures rounded, money in USD, no wall-clock values."""

import hashlib
import json
import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, TypedDict, cast

from gpuplan.planner.model.procurement import (
    ProcurementBreakdown,
    ProcurementCost,
    ProcurementPlan,
    Room,
    RoomLimits,
    Scenario,
    UnconsideredMachine,
    UnservedForecast,
    UnservedJob,
)
from gpuplan.planner.model.procurement_sources import (
    BreakEven,
    MachinePurchase,
    NodeCommitment,
    RentedRuns,
    SpendingCommitment,
    SpendingRate,
)
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.model.wire import wire
from gpuplan.planner.procurement.forecast import Forecast
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.procurement.procurement_parts import job_runs
from gpuplan.planner.procurement.procurement_plan import (
    Commit,
    Costs,
    Decided,
    Impossible,
    Purchase,
    Rent,
    Spend,
)
from gpuplan.planner.procurement.rounded_figures import maybe_money, money, six_digits
from gpuplan.planner.serialization.phase_document import configuration, usd
from gpuplan.planner.serialization.rounded_figures import to_second


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
    forecast = outcome.forecast
    return ProcurementPlan(
        id="",
        **read,
        use=outcome.use,
        buy=tuple(_purchase(purchase, forecast) for purchase in outcome.buy),
        commit=tuple(_commit(commit, forecast) for commit in outcome.commit),
        commit_spend=tuple(_spend(spending, forecast) for spending in outcome.spend),
        rent=tuple(_rent(j, rent, forecast) for j, rent in enumerate(outcome.rent)),
        cost_usd=_cost(outcome.costs),
        risk=outcome.risk,
        over_years=outcome.over_years,
        binding=outcome.binding,
        not_bought=outcome.instead,
        upfront_usd=money(outcome.upfront_usd),
        room=Room(slots=outcome.slots, watts=six_digits(outcome.watts), limits=_limits(forecast)),
        sensitivity=outcome.sensitivity,
        certificate=outcome.proof,
        cost_basis=cast(Literal["full", "marginal"], settings.cost_basis),
        assumptions=outcome.assumptions,
        warnings=outcome.warnings,
    )


def _cost(costs: Costs) -> ProcurementCost:
    return ProcurementCost(
        total=money(costs.total_usd),
        breakdown=ProcurementBreakdown(
            machines=money(costs.machines_usd),
            commitments=money(costs.terms_usd),
            running=money(costs.running_usd),
            renting=money(costs.renting_usd),
        ),
        rent_only=maybe_money(costs.rent_only_usd),
        without_buying=maybe_money(costs.stay_usd),
        saves=None if costs.stay_usd is None else money(max(0.0, costs.stay_usd - costs.total_usd)),
    )


def _purchase(purchase: Purchase, forecast: Forecast) -> MachinePurchase:
    machine = purchase.machine
    return MachinePurchase(
        name=machine.name,
        accelerator=machine.whole.instance_type.accelerator,
        accelerators=machine.accelerators,
        machines=purchase.units,
        usd_each=money(machine.usd),
        upfront_usd=money(machine.usd * purchase.units),
        power_watts_each=six_digits(machine.watts),
        life_years=machine.life_years,
        residual_usd_each=money(machine.residual_usd),
        busy_share=six_digits(purchase.busy),
        runs_per_year=job_runs(purchase.runs_per_year, forecast),
        break_even=_break_even(purchase.breaks_even_years, forecast.start),
        saves_usd=maybe_money(purchase.saves_usd),
        modelled=machine.modelled,
        price_source=machine.source,
        price_as_of=machine.as_of or None,
    )


def _break_even(years: float | None, start: datetime) -> BreakEven | None:
    """The day on which a purchase has earned its price, and the years until then."""
    if years is None:
        return None
    day = start + timedelta(hours=math.ceil(years * HOURS_PER_YEAR))
    return BreakEven(years=six_digits(years), date=day.date().isoformat())


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
        from_year=six_digits(commit.from_year),
        until_year=six_digits(commit.until_year),
        total_obligation_usd=money(commit.obligation_usd),
        busy_share=six_digits(commit.busy),
        runs_per_year=job_runs(commit.runs_per_year, forecast),
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
        usd_per_hour=money(spend.usd_per_hour),
        from_year=six_digits(spend.from_year),
        until_year=six_digits(spend.until_year),
        total_obligation_usd=money(spend.obligation_usd),
        busy_share=six_digits(spend.busy),
        runs_per_year=job_runs(spend.runs_per_year, forecast),
        on=rates,
    )


def _rent(j: int, rent: Rent, forecast: Forecast) -> RentedRuns:
    return RentedRuns(
        job=j,
        name=forecast.jobs[j].job.name,
        share_of_runs=six_digits(rent.share),
        runs_per_year=six_digits(rent.runs_per_year),
        on=None if rent.choice is None else configuration(rent.choice),
    )


def _limits(forecast: Forecast) -> RoomLimits:
    limits = forecast.limits
    return RoomLimits(
        slots=limits.slots,
        power_watts=limits.power_watts,
        cooling_watts=limits.cooling_watts,
        machines=limits.machines,
        upfront_usd=maybe_money(limits.upfront_usd),
    )
