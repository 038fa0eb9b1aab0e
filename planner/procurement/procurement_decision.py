"""Own, commit or rent: the answer to a forecast."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.procurement import ProcurementCertificate, UnboughtMachine
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.procurement.binding_limits import binding
from gpuplan.planner.procurement.capacity_expansion import Expanded, expand
from gpuplan.planner.procurement.commitments import Node, Spending
from gpuplan.planner.procurement.cost_over_years import cost_over_years
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.procurement_model import Model, model_of, refuse_what_is_too_large
from gpuplan.planner.procurement.procurement_parts import (
    busy_share,
    commitments,
    costs_of,
    in_words,
    machines_to_purchase,
    rents,
    runs_a_year,
    spending,
    upfront_of_terms,
    uses,
)
from gpuplan.planner.procurement.procurement_plan import Decided, Impossible, Purchase
from gpuplan.planner.procurement.procurement_sensitivity import MOST_SHARES, sensitivity
from gpuplan.planner.procurement.procurement_warnings import assumptions, warnings
from gpuplan.planner.procurement.purchase_break_even import breaks_even
from gpuplan.planner.procurement.rounded_figures import money
from gpuplan.planner.procurement.scenario_risk import risk
from gpuplan.planner.procurement.served_jobs import Served, is_there, served

Floats = NDArray[np.float64]


def decide(
    forecast: Forecast, columns: Columns, settings: PlannerSettings, owned: tuple[OwnedMachine, ...] = ()
) -> Decided | Impossible:
    """The purchases, commitments and rentals with the least present value for the forecast.

    `owned` machines and the existing commitments of `settings` serve the jobs too; they are already paid for. Raises
    `UnusableInput` for jobs that contradict themselves or the catalogue, and for a forecast that is too large.
    """
    given = served(forecast, columns, settings, owned)
    homeless = _homeless(forecast, given)
    if homeless:
        reason = "nothing that may be bought, committed to or rented runs it in time and within its requirements"
        return Impossible(forecast=forecast, snapshot_id=columns.snapshot_id, jobs=homeless, reason=reason)
    model = model_of(forecast, given)
    refuse_what_is_too_large(model.expansion)
    best = expand(model.expansion)
    if best is None:
        owned_only = tuple(j for j, choice in enumerate(given.rented) if choice is None)
        reason = "nothing can be rented for it, and the machines for it do not fit into the limits"
        return Impossible(forecast=forecast, snapshot_id=columns.snapshot_id, jobs=owned_only, reason=reason)
    return _decided(forecast, columns, given, model, best)


def _homeless(forecast: Forecast, given: Served) -> tuple[int, ...]:
    """Jobs that no source can run and that cannot be rented."""
    able = np.isfinite(given.machine_hours).any(axis=0)
    return tuple(
        j
        for j, job in enumerate(forecast.jobs)
        if not able[j] and given.rented[j] is None and max(job.runs_per_year) > 0
    )


def _decided(forecast: Forecast, columns: Columns, given: Served, model: Model, best: Expanded) -> Decided:
    buy = _purchased_machines(given, forecast, model, best)
    commit = commitments(forecast, given, model, best)
    spend = spending(forecast, given, model, best)
    rent = rents(forecast, given, model, best)
    stay = _without(model, best, _new(given, model))
    return Decided(
        forecast=forecast,
        snapshot_id=columns.snapshot_id,
        use=uses(forecast, given, model, best),
        buy=buy,
        commit=commit,
        spend=spend,
        rent=rent,
        costs=costs_of(given, model, best, stay),
        risk=None if stay is None else risk(forecast, model, best, stay),
        over_years=cost_over_years(forecast, given, model, best),
        binding=binding(given, model, best, lambda units: in_words(given, model, units)),
        instead=_instead(given, model, best),
        upfront_usd=sum(purchase.units * purchase.machine.usd for purchase in buy) + upfront_of_terms(model, best),
        watts=sum(purchase.units * purchase.machine.watts for purchase in buy),
        slots=sum(purchase.units * purchase.machine.slots for purchase in buy),
        sensitivity=sensitivity(forecast, given, model, best),
        proof=ProcurementCertificate(
            objective_usd=money(best.objective_usd),
            bound_usd=money(best.bound_usd),
            gap=best.gap,
            solver=best.solver,
            machines_considered=len(forecast.machines),
            commitments_considered=sum(
                isinstance(source, Node | Spending) and not is_there(source) for source in given.sources
            ),
            blocks_of_load=len(model.expansion.hours),
            variables=best.variables,
        ),
        assumptions=assumptions(forecast, given, model, best, commits=bool(commit or spend)),
        warnings=warnings(forecast, buy, rent, spend, best.gap),
    )


def _new(given: Served, model: Model) -> NDArray[np.bool_]:
    """[units]: the units to decide on; the others already exist."""
    return np.array([not is_there(given.sources[unit.source]) for unit in model.units], np.bool_)


def _without(model: Model, best: Expanded, units: NDArray[np.bool_]) -> Expanded | None:
    """The best answer without these units."""
    if not (best.units[units] > 0).any():
        return best
    return _again(model, best, np.where(units, 0.0, model.expansion.most_units))


#: How many machines that are not bought, but come closest to breaking even, are evaluated.
CLOSEST = 3


def _instead(given: Served, model: Model, best: Expanded) -> tuple[UnboughtMachine, ...]:
    """The extra cost of the best answer with at least one of a machine, for the machines closest to breaking even.

    The distance from breaking even is a share of the machine's price. Machines that cannot run any job are skipped.
    """
    data = model.expansion
    able = np.isfinite(data.machine_hours)
    mine = [u for u in machines_to_purchase(given, model) if not best.units[u] and able[u].any()]
    missing = best.missing_usd / np.maximum(1.0, data.fixed_usd)
    alternatives = []
    for u in sorted(mine, key=lambda u: float(missing[u]))[:CLOSEST]:
        least = data.least_units.copy()
        least[u] = 1.0
        other = expand(replace(data, least_units=least), likely=best.units > 0, most_shares=MOST_SHARES)
        source = given.sources[model.units[u].source]
        if other is not None and isinstance(source, Machine):
            alternatives.append(
                UnboughtMachine(
                    name=source.name,
                    machines=round(float(other.units[u])),
                    usd_each=money(source.usd),
                    extra_cost_usd=money(max(0.0, other.objective_usd - best.objective_usd)),
                    electricity_alone_costs_more_than_renting=bool(
                        (data.running_usd[u] >= data.rent_usd)[able[u]].all()
                    ),
                    price_source=source.source,
                    price_as_of=source.as_of or None,
                )
            )
    return tuple(sorted(alternatives, key=lambda alternative: alternative.extra_cost_usd))


def _purchased_machines(given: Served, forecast: Forecast, model: Model, best: Expanded) -> tuple[Purchase, ...]:
    purchased = []
    for u in machines_to_purchase(given, model):
        machine = given.sources[model.units[u].source]
        if best.units[u] and isinstance(machine, Machine):
            instead = _again(model, best, _none_of(model.expansion.most_units, u))
            missing = _again(model, best, _none_of(best.units, u))
            purchased.append(
                Purchase(
                    machine=machine,
                    units=round(float(best.units[u])),
                    busy=busy_share(model, best, u),
                    runs_per_year=runs_a_year(forecast, model, best, u),
                    breaks_even_years=None if missing is None else breaks_even(forecast, given, model, best, missing),
                    saves_usd=None if instead is None else instead.objective_usd - best.objective_usd,
                )
            )
    return tuple(purchased)


def _again(model: Model, best: Expanded, most_units: Floats) -> Expanded | None:
    """The best answer with at most `most_units` of each source."""
    changed = replace(model.expansion, most_units=most_units)
    return expand(changed, likely=best.units > 0, most_shares=MOST_SHARES)


def _none_of(most_units: Floats, u: int) -> Floats:
    most = most_units.copy()
    most[u] = 0.0
    return most
