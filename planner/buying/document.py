"""A decision as the JSON object that every door gives: money as decimal strings of dollars, nothing clock-bound."""

import hashlib
import json
import math
from datetime import datetime, timedelta
from typing import Any

from catalog.money import usd_micros, usd_text
from planner.buying.answer import (
    Binding,
    Commit,
    Decided,
    Impossible,
    Instead,
    Purchase,
    Rent,
    Risk,
    Spend,
    Step,
    Sweep,
    Use,
)
from planner.buying.finance import HOURS_PER_YEAR
from planner.buying.forecast import Forecast
from planner.buying.sensitivity import PRECISION
from planner.document_figures import moment
from planner.phase_document import choice_document
from planner.settings import PlannerSettings

Document = dict[str, Any]


def document(outcome: Decided | Impossible, settings: PlannerSettings, *, version: str) -> Document:
    """`{"outcome": "decided", "decision": ...}` or `{"outcome": "infeasible", "infeasible": ...}`."""
    common = _forecast(outcome.forecast) | {"snapshot_id": outcome.snapshot_id, "version": version}
    if isinstance(outcome, Impossible):
        jobs = [{"job": j, "name": outcome.forecast.jobs[j].job.name} for j in outcome.jobs]
        return {"outcome": "infeasible", "infeasible": common | {"jobs": jobs, "reason": outcome.reason}}
    body = common | _decision(outcome, settings)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {"outcome": "decided", "decision": {"id": f"buy-{digest[:20]}"} | body}


def _forecast(forecast: Forecast) -> Document:
    return {
        "name": forecast.name,
        "start": moment(forecast.start),
        "currency": "USD",
        "horizon_years": forecast.horizon_years,
        "discount_rate": forecast.discount_rate,
        "electricity_usd_per_kwh": forecast.electricity_usd_per_kwh,
        "scenarios": [{"name": name, "probability": probability} for name, probability in forecast.scenarios],
        "turned_down": [{"name": name, "reason": reason} for name, reason in forecast.turned_down],
    }


def _decision(found: Decided, settings: PlannerSettings) -> Document:
    costs, proof, forecast = found.costs, found.proof, found.forecast
    return {
        "use": [_use(each, forecast) for each in found.use],
        "buy": [_purchase(each, forecast) for each in found.buy],
        "commit": [_commit(each, forecast) for each in found.commit],
        "commit_spend": [_spend(each, forecast) for each in found.spend],
        "rent": [_rent(j, each, forecast) for j, each in enumerate(found.rent)],
        "cost_usd": {
            "total": _usd(costs.total_usd),
            "breakdown": {
                "machines": _usd(costs.machines_usd),
                "commitments": _usd(costs.terms_usd),
                "running": _usd(costs.running_usd),
                "renting": _usd(costs.renting_usd),
            },
            "rent_only": _maybe_usd(costs.rent_only_usd),
            "without_buying": _maybe_usd(costs.stay_usd),
            "saves": None if costs.stay_usd is None else _usd(max(0.0, costs.stay_usd - costs.total_usd)),
        },
        "risk": None if found.risk is None else _risk(found.risk),
        "binding": [_binding(each) for each in found.binding],
        "not_bought": [_instead(each) for each in found.instead],
        "upfront_usd": _usd(found.upfront_usd),
        "room": {"slots": found.slots, "watts": _round(found.watts), "limits": _limits(forecast)},
        "sensitivity": {
            "utilisation": _sweep(found.sensitivity.utilisation, "times_the_runs", precision=PRECISION),
            "electricity": None
            if found.sensitivity.electricity is None
            else _sweep(found.sensitivity.electricity, "times_the_price", precision=0.0),
        },
        "certificate": {
            "objective_usd": _usd(proof.objective_usd),
            "bound_usd": _usd(proof.bound_usd),
            "gap": proof.gap,
            "machines_considered": proof.machines,
            "commitments_considered": proof.terms,
            "blocks_of_load": proof.blocks,
            "variables": proof.variables,
            "solver": proof.solver,
        },
        "cost_basis": settings.cost_basis,
        "assumptions": list(found.assumptions),
        "warnings": list(found.warnings),
    }


def _purchase(each: Purchase, forecast: Forecast) -> Document:
    machine = each.machine
    return {
        "name": machine.name,
        "accelerator": machine.whole.instance_type.accelerator,
        "accelerators": machine.accelerators,
        "machines": each.units,
        "usd_each": _usd(machine.usd),
        "upfront_usd": _usd(machine.usd * each.units),
        "power_watts_each": _round(machine.watts),
        "life_years": machine.life_years,
        "residual_usd_each": _usd(machine.residual_usd),
        "busy_share": _round(each.busy),
        "runs_per_year": _runs(each.runs_per_year, forecast),
        "break_even": _break_even(each.breaks_even_years, forecast.start),
        "saves_usd": _maybe_usd(each.saves_usd),
        "modelled": list(machine.modelled),
        "price_source": machine.source,
        "price_as_of": machine.as_of or None,
    }


def _break_even(years: float | None, start: datetime) -> Document | None:
    """The day on which a purchase has earned its price, and the years until then."""
    if years is None:
        return None
    day = start + timedelta(hours=math.ceil(years * HOURS_PER_YEAR))
    return {"years": _round(years), "date": day.date().isoformat()}


def _commit(each: Commit, forecast: Forecast) -> Document:
    offer = each.offer
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "accelerator": each.accelerator,
        "price_kind": offer.price_kind,
        "nodes": each.units,
        "usd_per_node_hour": usd_text(offer.usd_micros_per_hour),
        "from_year": _round(each.from_year),
        "until_year": _round(each.until_year),
        "total_obligation_usd": _usd(each.obligation_usd),
        "busy_share": _round(each.busy),
        "runs_per_year": _runs(each.runs_per_year, forecast),
        "modelled": list(offer.modelled),
        "price_source": offer.source,
        "price_observed_at": moment(offer.observed_at),
    }


def _spend(each: Spend, forecast: Forecast) -> Document:
    pool = each.plan.pool
    on = [
        {
            "job": j,
            "name": forecast.jobs[j].job.name,
            "instance_type": offer.instance_type,
            "region": offer.region,
            "usd_per_node_hour": usd_text(offer.usd_micros_per_hour),
            "price_source": offer.source,
            "price_observed_at": moment(offer.observed_at),
        }
        for j, offer in enumerate(each.plan.on)
        if offer is not None and each.runs_per_year[j] > 0
    ]
    return {
        "provider": pool.provider,
        "price_kind": pool.price_kind,
        "region": pool.region or None,
        "family": pool.family or None,
        "usd_per_hour": _usd(each.usd_per_hour),
        "from_year": _round(each.from_year),
        "until_year": _round(each.until_year),
        "total_obligation_usd": _usd(each.obligation_usd),
        "busy_share": _round(each.busy),
        "runs_per_year": _runs(each.runs_per_year, forecast),
        "on": on,
    }


def _use(each: Use, forecast: Forecast) -> Document:
    return {
        "name": each.what,
        "units": _round(each.units),
        "busy_share": _round(each.busy),
        "runs_per_year": _runs(each.runs_per_year, forecast),
    }


def _risk(found: Risk) -> Document:
    return {
        "loses_probability": _round(found.loses_probability),
        "scenarios": [
            {
                "name": each.scenario,
                "probability": each.probability,
                "cost_usd": _usd(each.total_usd),
                "saves_usd": _signed(each.saves_usd),
            }
            for each in found.outcomes
        ],
    }


def _binding(each: Binding) -> Document:
    return {
        "limit": each.limit,
        "used": _round(each.used),
        "available": _round(each.available),
        "short": each.short,
        "without_it": each.instead,
        "would_save_usd": _usd(each.saves_usd),
    }


def _instead(each: Instead) -> Document:
    machine = each.machine
    return {
        "name": machine.name,
        "machines": each.units,
        "usd_each": _usd(machine.usd),
        "extra_cost_usd": _usd(each.extra_usd),
        "electricity_alone_costs_more_than_renting": each.never,
        "price_source": machine.source,
        "price_as_of": machine.as_of or None,
    }


def _rent(j: int, each: Rent, forecast: Forecast) -> Document:
    return {
        "job": j,
        "name": forecast.jobs[j].job.name,
        "share_of_runs": _round(each.share),
        "runs_per_year": _round(each.runs_per_year),
        "on": None if each.choice is None else choice_document(each.choice),
    }


def _runs(runs: tuple[float, ...], forecast: Forecast) -> list[Document]:
    return [
        {"job": j, "name": forecast.jobs[j].job.name, "runs_per_year": _round(each)}
        for j, each in enumerate(runs)
        if each > 0
    ]


def _limits(forecast: Forecast) -> Document:
    limits = forecast.limits
    stated = {
        "slots": limits.slots,
        "power_watts": limits.power_watts,
        "cooling_watts": limits.cooling_watts,
        "machines": limits.machines,
    }
    upfront = {} if limits.upfront_usd is None else {"upfront_usd": _usd(limits.upfront_usd)}
    return {name: value for name, value in stated.items() if value is not None} | upfront


def _sweep(sweep: Sweep, what: str, *, precision: float) -> Document:
    """`precision` is that of the factors of a change, relatively; 0 where they are exact."""
    return {
        "precision": precision,
        "steps": [_step(each, what) for each in sweep.steps],
        "changes_below": None if sweep.below is None else _step(sweep.below, what),
        "changes_above": None if sweep.above is None else _step(sweep.above, what),
    }


def _step(step: Step, what: str) -> Document:
    return {
        what: float(f"{step.factor:.3g}"),
        "answer": step.to or "does not fit into the limits",
        "cost_usd": _maybe_usd(step.total_usd),
        "gap": _round(step.gap),
    }


def _usd(value: float) -> str:
    return usd_text(usd_micros(round(value, 6)))


def _signed(value: float) -> str:
    """A difference that may be a loss."""
    return f"-{_usd(-value)}" if value < 0 else _usd(value)


def _maybe_usd(value: float | None) -> str | None:
    return None if value is None else _usd(value)


def _round(value: float) -> float:
    """Six significant digits: more than a forecast has."""
    return float(f"{value:.6g}")
