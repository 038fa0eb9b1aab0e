"""The parts of a decision, read from the solved model: work, payments and cost of each source."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.model.procurement_sources import ExistingCapacity, JobRuns
from gpuplan.planner.procurement.capacity_expansion import Expanded
from gpuplan.planner.procurement.commitments import Node, Spending
from gpuplan.planner.procurement.forecast import Forecast, Machine
from gpuplan.planner.procurement.present_value import HOURS_PER_YEAR
from gpuplan.planner.procurement.procurement_model import Model, Unit
from gpuplan.planner.procurement.procurement_plan import Commit, Costs, Rent, Spend
from gpuplan.planner.procurement.rounded_figures import six_digits
from gpuplan.planner.procurement.served_jobs import Served, Source, is_there

Floats = NDArray[np.float64]


def source_name(given: Served, source: Source) -> str:
    """`HGX-H100-8`, `p5.48xlarge (reserved_3y)`, `savings_plan_1y on p5 in us-east-1`."""
    match source:
        case Machine():
            return source.owned.instance_type.name if source.owned else source.name
        case Node():
            offer = given.market.columns.offer(int(given.market.snapshot.original[source.place]))
            return f"{offer.instance_type} in {offer.region} ({offer.price_kind})"
        case Spending():
            what = [source.pool.price_kind, f"on {source.pool.family}" if source.pool.family else "on any machine"]
            what += [f"in {source.pool.region}"] if source.pool.region else []
            return " ".join(what)


def in_words(given: Served, model: Model, units: Floats) -> str:
    """`buy 2 x HGX-H100-8, commit to 3 x p5.48xlarge (reserved_3y)`, or `rent everything`."""
    priced_configurations, terms, has_existing = [], [], False
    for u, unit in enumerate(model.units):
        source = given.sources[unit.source]
        if is_there(source):
            has_existing = True
        elif units[u] > 1e-9:
            name = source_name(given, source)
            if isinstance(source, Machine):
                priced_configurations.append(f"{units[u]:.0f} x {name}")
            elif isinstance(source, Node):
                terms.append(f"{units[u]:.0f} x {name}")
            else:
                terms.append(f"{units[u]:.2f} USD/h of {name}")
    sentences = [f"buy {', '.join(priced_configurations)}"] if priced_configurations else []
    sentences += [f"commit to {', '.join(terms)}"] if terms else []
    return ", ".join(sentences) or ("buy nothing" if has_existing else "rent everything")


def machines_to_purchase(given: Served, model: Model) -> list[int]:
    """The units that are machines to buy."""
    return [
        u
        for u, unit in enumerate(model.units)
        if isinstance(source := given.sources[unit.source], Machine) and source.owned is None
    ]


def machine_hours(model: Model, best: Expanded) -> Floats:
    """[blocks, units]: busy machines of each unit in each block."""
    able = np.where(np.isfinite(model.expansion.machine_hours), model.expansion.machine_hours, 0.0)
    return np.asarray(np.einsum("blj,lj,bj->bl", best.share, able, model.expansion.runs_per_hour), np.float64)


def _years(model: Model) -> Floats:
    """Undiscounted years of each block: its share of its period."""
    lengths = np.array([sum(duration for _, duration in period.spans) for period in model.periods])
    return np.asarray(lengths[model.period_of] * model.chance_of, np.float64)


def busy_share(model: Model, best: Expanded, u: int) -> float:
    """The busy share of the hours in a unit's periods, over all units of its kind."""
    years = _years(model) * model.expansion.lasts[u]
    return float((machine_hours(model, best)[:, u] * years).sum() / (years.sum() * best.units[u]))


def runs_a_year(forecast: Forecast, model: Model, best: Expanded, u: int) -> tuple[float, ...]:
    """Average runs per year of each job on a unit over the horizon."""
    per_hour = best.share[:, u, :] * model.expansion.runs_per_hour
    total = (per_hour * _years(model)[:, None]).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    return tuple(float(count) for count in total)


def job_runs(runs: tuple[float, ...], forecast: Forecast) -> tuple[JobRuns, ...]:
    """The jobs with any of these runs per year."""
    return tuple(
        JobRuns(job=j, name=forecast.jobs[j].job.name, runs_per_year=six_digits(count))
        for j, count in enumerate(runs)
        if count > 0
    )


def uses(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[ExistingCapacity, ...]:
    """The use of existing machines and commitments, including idle ones."""
    uses_by_source = []
    for u, unit in enumerate(model.units):
        source = given.sources[unit.source]
        if not is_there(source) or not unit.periods:
            continue
        whole = replace(best, units=np.full(len(best.units), unit.most))
        uses_by_source.append(
            ExistingCapacity(
                name=source_name(given, source),
                units=six_digits(unit.most),
                busy_share=six_digits(busy_share(model, whole, u)),
                runs_per_year=job_runs(runs_a_year(forecast, model, best, u), forecast),
            )
        )
    return tuple(uses_by_source)


def commitments(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Commit, ...]:
    """The new commitments to nodes."""
    terms = []
    market = given.market
    for u, unit in enumerate(model.units):
        node = given.sources[unit.source]
        if not isinstance(node, Node) or node.held is not None or not best.units[u]:
            continue
        first, last = _span(model, unit)
        terms.append(
            Commit(
                offer=market.columns.offer(int(market.snapshot.original[node.place])),
                accelerator=market.columns.instance_types[int(market.snapshot.type_index[node.place])].accelerator,
                units=round(float(best.units[u])),
                from_year=first,
                until_year=last,
                obligation_usd=_paid(unit) * float(best.units[u]),
                busy=busy_share(model, best, u),
                runs_per_year=runs_a_year(forecast, model, best, u),
            )
        )
    return tuple(terms)


def spending(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Spend, ...]:
    """The new commitments to spend per hour."""
    spendings = []
    for u, unit in enumerate(model.units):
        plan = given.sources[unit.source]
        if isinstance(plan, Spending) and plan.existing_usd is None and best.units[u] > _LEAST_SPENT:
            first, last = _span(model, unit)
            spendings.append(
                Spend(
                    plan=plan,
                    usd_per_hour=float(best.units[u]),
                    from_year=first,
                    until_year=last,
                    obligation_usd=_paid(unit) * float(best.units[u]),
                    busy=busy_share(model, best, u),
                    runs_per_year=runs_a_year(forecast, model, best, u),
                )
            )
    return tuple(spendings)


#: AWS accepts commitments from a tenth of a cent per hour.
_LEAST_SPENT = 1e-3


def _span(model: Model, unit: Unit) -> tuple[float, float]:
    """Start and end of a commitment in years."""
    spans = [span for p in unit.periods for span in model.periods[p].spans]
    return min(start for start, _ in spans), max(start + duration for start, duration in spans)


def _paid(unit: Unit) -> float:
    """The total obligation of one unit in undiscounted dollars."""
    return sum(duration * usd for _, duration, usd in unit.even_usd) + sum(usd for _, usd in unit.sums_usd)


def rents(forecast: Forecast, given: Served, model: Model, best: Expanded) -> tuple[Rent, ...]:
    """The rentals, one element per job."""
    demand = model.expansion.runs_per_hour
    years = _years(model)[:, None]
    wanted = (demand * years).sum(axis=0) * HOURS_PER_YEAR / forecast.horizon_years
    left = (demand * np.maximum(0.0, 1.0 - best.share.sum(axis=1)) * years).sum(axis=0)
    left *= HOURS_PER_YEAR / forecast.horizon_years
    rented = []
    for j, choice in enumerate(given.rented):
        share = float(left[j] / wanted[j]) if wanted[j] > 0 else 0.0
        share = 0.0 if share < _NOTHING else share
        rented_choice: Choice | None = choice if share else None
        rented.append(Rent(choice=rented_choice, runs_per_year=float(left[j]) if share else 0.0, share=share))
    return tuple(rented)


#: A share of runs below this is the solver's tolerance and is not rented.
_NOTHING = 1e-7


def costs_of(given: Served, model: Model, best: Expanded, stay: Expanded | None) -> Costs:
    """The cost by part; the parts sum to the objective."""
    data = model.expansion
    fixed = data.fixed_usd * best.units
    is_owned = np.zeros(len(fixed), np.bool_)
    is_owned[machines_to_purchase(given, model)] = True
    runs = best.share * data.runs_per_hour[:, None, :] * data.hours[:, None, None]
    running = float((runs * np.where(np.isfinite(data.running_usd), data.running_usd, 0.0)).sum())
    rentable = np.isfinite(data.rent_usd)
    total = (data.runs_per_hour * data.hours[:, None]).sum(axis=0)
    rest = np.maximum(0.0, total - runs.sum(axis=(0, 1)))
    renting = float((rest * np.where(rentable, data.rent_usd, 0.0)).sum())
    return Costs(
        machines_usd=float(fixed[is_owned].sum()),
        terms_usd=float(fixed[~is_owned].sum()),
        running_usd=running,
        renting_usd=renting,
        rent_only_usd=float(total @ data.rent_usd) if rentable.all() else None,
        stay_usd=None if stay is None else stay.objective_usd,
    )


def upfront_of_terms(model: Model, best: Expanded) -> float:
    """The upfront payments for all terms, undiscounted."""
    return float(
        sum(float(best.units[u]) * usd for u, unit in enumerate(model.units) for at, usd in unit.sums_usd if at == 0)
    )
