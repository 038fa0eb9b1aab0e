"""Sentences of a plan on its objective: what is minimised, the basis of its carbon, and places of unknown carbon."""

import numpy as np

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_carbon import ASSUMED, kg_per_kwh, node_kw, weighs_carbon
from gpuplan.planner.model.job import TrainingJob
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
