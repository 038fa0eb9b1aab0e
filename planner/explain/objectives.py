"""What a plan says of its objective: what was made least, what carbon rests on, and which places nobody knows it of."""

import numpy as np

from planner.candidates.carbon import ASSUMED, kg_per_kwh, node_kw, weighs_carbon
from planner.candidates.gather import Candidates
from planner.job import TrainingJob

#: More names than these make no sentence.
MOST_NAMES = 5

_LEAST = {
    "time": "objective time: the fastest run within the requirements, of equally fast ones the cheapest",
    "carbon": "objective carbon: the least kg CO2e within the requirements, of equal amounts the cheapest",
}
_ONE_CONFIGURATION = "one configuration from start to finish: moves between configurations are planned for cost alone"


def plans_one_configuration(job: TrainingJob) -> bool:
    """Whether a plan of this job keeps to one configuration: moves are weighed in dollars, not in hours or kg."""
    return job.objective != "cost" or weighs_carbon(job)


def objective_notes(job: TrainingJob) -> tuple[str, ...]:
    """What was made least, if not cost, and what carbon was counted from; nothing for an ordinary job."""
    said = [_LEAST[job.objective]] if job.objective in _LEAST else []
    if plans_one_configuration(job):
        said.append(_ONE_CONFIGURATION)
    if weighs_carbon(job):
        said.append(ASSUMED)
    return tuple(said)


def unknown_carbon(found: Candidates) -> tuple[str, ...]:
    """Places and accelerators that the job allows but whose carbon nobody publishes, so that they are left out."""
    if not weighs_carbon(found.question.job):
        return ()
    places: set[str] = set()
    chips: set[str] = set()
    own: set[str] = set()
    for market, screened in zip(found.question.markets, found.screened, strict=True):
        lead = market.snapshot.lead[screened.allowed]
        regions = np.unique(market.snapshot.region_index[lead])
        types = np.unique(market.snapshot.type_index[lead])
        if market.owned:
            machines = [market.owned[i] for i in types.tolist()]
            own.update(each.instance_type.name for each in machines if each.grams_co2_per_kwh is None)
            continue
        unknown = np.isnan(kg_per_kwh(market.columns))
        places.update(":".join(market.columns.regions[i]) for i in regions[unknown[regions]].tolist())
        powerless = np.isnan(node_kw(market.columns))
        chips.update(market.columns.instance_types[i].accelerator for i in types[powerless[types]].tolist())
    whose = (
        ("nobody publishes the grid of", places),
        ("nobody publishes the power of", chips),
        ("the inventory has no grams_co2_per_kwh of", own),
    )
    return tuple(
        f"carbon unknown: {what} {_listed(names)}; left out, since what is unknown is not taken for none"
        for what, names in whose
        if names
    )


def _listed(names: set[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    return ", ".join(shown[:MOST_NAMES]) + more
