"""Notes of a plan on its terms and its objective: quotas, set-up times, when a commitment is paid, time and carbon."""

import math
from datetime import UTC, date, datetime

import numpy as np

from gpuplan.catalog.model.money import usd_display
from gpuplan.catalog.model.payment_terms import payment_terms
from gpuplan.catalog.model.price_kinds import price_kinds
from gpuplan.catalog.model.setup_times import SLOWEST, setup_times
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_carbon import ASSUMED, kg_per_kwh, node_kw, weighs_carbon
from gpuplan.planner.candidates.configuration_choice import cheapest, in_words
from gpuplan.planner.candidates.job_requirements import QUOTA
from gpuplan.planner.candidates.quota_limits import binding, units_per_node
from gpuplan.planner.candidates.setup_hours import parts_of_one_node
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import Choice, PhaseChoice
from gpuplan.planner.model.quota import Quota
from gpuplan.planner.strategies.strategy_choice import plans_one_configuration

#: A sentence lists at most so many names.
MOST_NAMES = 5

_LEAST = {
    "time": "objective time: the fastest run within the requirements, of equally fast ones the cheapest",
    "carbon": "objective carbon: the least kg CO2e within the requirements, of equal amounts the cheapest",
}
_ONE_CONFIGURATION = "one configuration from start to finish: moves between configurations are planned for cost alone"


def objective_notes(job: TrainingJob) -> tuple[str, ...]:
    """The objective, if it is not cost, and the basis of carbon; empty for an ordinary job."""
    notes = [_LEAST[job.objective]] if job.objective in _LEAST else []
    if plans_one_configuration(job):
        notes.append(_ONE_CONFIGURATION)
    if weighs_carbon(job):
        notes.append(ASSUMED)
    return tuple(notes)


def unknown_carbon(candidates: Candidates) -> tuple[str, ...]:
    """Places and accelerators that the job allows but that are left out, since their carbon is unknown."""
    if not weighs_carbon(candidates.question.job):
        return ()
    places: set[str] = set()
    chips: set[str] = set()
    owned_machines: set[str] = set()
    for market, screened in zip(candidates.question.markets, candidates.screened, strict=True):
        lead = market.snapshot.lead[screened.allowed]
        regions = np.unique(market.snapshot.region_index[lead])
        types = np.unique(market.snapshot.type_index[lead])
        if market.owned:
            machines = [market.owned[i] for i in types.tolist()]
            owned_machines.update(
                machine.instance_type.name for machine in machines if machine.grams_co2_per_kwh is None
            )
            continue
        unknown = np.isnan(kg_per_kwh(market.columns))
        places.update(":".join(market.columns.regions[i]) for i in regions[unknown[regions]].tolist())
        powerless = np.isnan(node_kw(market.columns))
        chips.update(market.columns.instance_types[i].accelerator for i in types[powerless[types]].tolist())
    whose = (
        ("nobody publishes the grid of", places),
        ("nobody publishes the power of", chips),
        ("the inventory has no grams_co2_per_kwh of", owned_machines),
    )
    return tuple(
        f"carbon unknown: {what} {_listed(names)}; left out, since unknown does not count as zero"
        for what, names in whose
        if names
    )


def _listed(names: set[str]) -> str:
    shown = sorted(names)
    others = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    return ", ".join(shown[:MOST_NAMES]) + others


def payments_to_make(choice: Choice) -> list[str]:
    """First payments, credit and spend limits that stand between the user and the machines of a phase."""
    offer, terms = choice.offer, payment_terms(choice.offer.provider)
    if price_kinds()[offer.price_kind].owned:
        return []
    hourly = offer.usd_micros_per_hour * choice.nodes
    sentences = []
    if terms.first_payment_micros is not None:
        sentences.append(
            f"a new account at {offer.provider} first pays at least {usd_display(terms.first_payment_micros)}"
        )
    if terms.prepaid:
        sentences.append(
            f"pay {offer.provider} in advance: about {usd_display(choice.cost.p95)} so that the machines do not stop when "
            "the credit ends"
        )
    elif terms.credit_hours is not None:
        need = usd_display(round(hourly * terms.credit_hours))
        sentences.append(f"{offer.provider} starts machines if the credit lasts {terms.credit_hours:g} h: {need}")
    limit = terms.spend_limit_micros_per_hour
    if limit is not None and hourly > limit:
        sentences.append(
            f"ask {offer.provider} for a higher spend limit: these machines cost {usd_display(hourly)} per hour, and "
            f"the usual limit is {usd_display(limit)}"
        )
    return sentences


def bid_notice(choice: Choice) -> list[str]:
    """What it means that a spot price is a bid; empty where it is none."""
    offer = choice.offer
    if not (price_kinds()[offer.price_kind].interruptible and payment_terms(offer.provider).spot_is_bid):
        return []
    sentence = (
        f"the spot price at {offer.provider} is the least bid that runs now: whoever bids more stops the machine, and its "
        "disk is charged while it waits"
    )
    return [sentence]


#: What the set-up of every phase is called.
PAID_SETUP = "h of paid set-up before the first step"


def setup_assumption(phase: PhaseChoice, stated_hours: float | None) -> str:
    """Hours of set-up of the phase's machines, and where they come from."""
    if stated_hours is not None:
        return f"{stated_hours:g} {PAID_SETUP} (boot, image, start)"
    choice, slowest = phase.choice, setup_times()[SLOWEST, "", ""]
    boot, image, start = parts_of_one_node(choice.offer.provider, choice.accelerator, choice.offer.price_kind)
    of_one_node, logarithm = (boot, image, start), math.log(choice.nodes)
    low, high = (
        (sum(getattr(part, name) for part in of_one_node) + getattr(slowest, name) * logarithm) / 60
        for name in ("low", "high")
    )
    parts = [
        f"{name} {part.minutes:g} min ({part.basis}: {part.source})"
        for name, part in zip(("boot", "image", "start"), of_one_node, strict=True)
        if part.minutes
    ]
    if choice.nodes > 1:
        parts.append(
            f"{slowest.minutes * logarithm:.2g} min for the slowest of {choice.nodes} nodes "
            f"({slowest.basis}: {slowest.source})"
        )
    return (
        f"{phase.setup_hours:.2g} {PAID_SETUP}, modelled (band {low:.2g} to {high:.2g} h): {'; '.join(parts)}; "
        "set setup_hours to change it"
    )


#: A larger quota is named if it saves at least this part of the cost.
_LEAST_SAVING = 0.01


def quota_assumption(quotas: tuple[Quota, ...], start: datetime) -> str:
    """What the plan takes the quotas to be, and how old they are at the start."""
    basis = "cost and hours count from when the machines are obtained"
    if not quotas:
        return f"{basis}; no quota is known"
    known = f"the {len(quotas)} quotas that are known{_age(quotas, start)}"
    return f"{basis}; the plan keeps to {known} and takes all others to be large enough"


def _age(quotas: tuple[Quota, ...], start: datetime) -> str:
    """The day on which the oldest of the quotas was read, and its age; empty if all were written by hand."""
    days = sorted(quota.read_on for quota in quotas if quota.read_on)
    if not days:
        return ""
    age = (start.astimezone(UTC).date() - date.fromisoformat(days[0])).days
    return f" ({'the oldest ' if days[0] != days[-1] else ''}read on {days[0]}, {max(age, 0)} days before the start)"


def known_quota(quotas: tuple[Quota, ...], choice: Choice) -> Quota | None:
    """The quota that limits these machines, which is large enough for them; None if none is known."""
    return binding(quotas, choice.instance_type, choice.offer.region, choice.offer.price_kind)


def larger_quota(candidates: Candidates, cost_micros: int) -> tuple[str, ...]:
    """A sentence on the cheapest configuration that only a quota forbids, if it saves enough over `cost_micros`."""
    job, table = candidates.question.job, candidates.over_quota
    if job.objective != "cost" or table is None:
        return ()
    best = cheapest(table, over(table, job.deadline_hours, job.budget_usd) == QUOTA)
    if best is None:
        return ()
    choice = in_words(candidates, table, best)
    saved = cost_micros - choice.cost.expected
    market = candidates.question.markets[int(table.market[best])]
    quota = binding(market.quotas, choice.instance_type, choice.offer.region, choice.offer.price_kind)
    if quota is None or saved < _LEAST_SAVING * cost_micros:
        return ()
    units = units_per_node(quota, choice.instance_type) * choice.nodes
    asked = f"{units:,.0f} {quota.unit}" if np.isfinite(units) else f"more {quota.unit}"
    named = f" of {quota.code}" if quota.code else ""
    kind = choice.offer.price_kind.replace("_", " ")
    sentence = (
        f"a quota of {asked}{named} in {choice.offer.provider} {choice.offer.region} (now {quota.limit:,.0f}) would save "
        f"{usd_display(saved)} ({saved / cost_micros:.0%}) with {choice.nodes} x {choice.instance_type.name}, {kind}"
    )
    return (sentence,)
