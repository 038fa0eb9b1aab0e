"""Explanations worked out the plain way: loops over every configuration, subsets of requirements, carbon by hand."""

import math
import random
from dataclasses import dataclass, replace
from itertools import combinations

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.grid_carbon import carbon
from gpuplan.catalog.snapshots.offer_columns import Columns, columns_of
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.planning import plan
from tests.planner.small_catalogues import Priced, every_configuration, random_columns, random_job
from tests.planner.spot_settings import replaced_at_once

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)
#: A region of AWS whose grid no source of the carbon table states.
UNKNOWN_GRID = "us-east-2"


def drawn(seed: int, *, offers: int = 12) -> tuple[TrainingJob, Columns]:
    """A job of one configuration, and a catalogue in which nobody knows the grid of one of five places."""
    draw = random.Random(seed)
    columns, job = random_columns(draw, offers=offers), random_job(draw)
    rows = [replace(offer, region=UNKNOWN_GRID) if offer.region == "eu-west-1" else offer for offer in columns.offers]
    columns = columns_of("drawn", columns.observed_at, columns.instance_types, rows)
    return replace(job, constraints=replace(job.constraints, max_phases=1)), columns


def free(seed: int) -> tuple[TrainingJob, Columns]:
    """A drawn job without deadline and budget that has a plan even where carbon must be known: the next seed that does."""
    while True:
        job, columns = drawn(seed)
        job = replace(job, deadline_hours=None, budget_usd=None)
        if isinstance(planned(replace(job, objective="carbon"), columns), Planned):
            return job, columns
        seed += 1000


def planned(job: TrainingJob, columns: Columns) -> Planned | NoPlan:
    return plan(job, columns, settings=SETTINGS)


@dataclass(frozen=True)
class Weighed:
    """One configuration with its carbon, None where nobody knows it."""

    priced: Priced
    kg: float | None


def weighed(job: TrainingJob, columns: Columns) -> list[Weighed]:
    """Every configuration and its kg: watts of the accelerators and 0.82 as many for the host, PUE, grid."""
    weighed_configurations = []
    for priced in every_configuration(job, columns, SETTINGS):
        name = priced.offer.instance_type
        machine = next(a for a in columns.instance_types if (a.provider, a.name) == (priced.offer.provider, name))
        tdp = accelerators()[machine.accelerator].tdp_watts
        place = carbon(priced.offer.provider, priced.offer.region)
        kg = None
        if tdp is not None and place.grid_g_per_kwh is not None and place.pue is not None:
            kw = tdp * float(machine.accelerator_count) * 1.82 / 1000
            kg = priced.nodes * priced.run_hours * kw * place.pue * place.grid_g_per_kwh / 1000
        weighed_configurations.append(Weighed(priced, kg))
    return weighed_configurations


def minimal_sets(names: list[str], broken: list[set[str]]) -> set[frozenset[str]]:
    """Every minimal set of requirements that no configuration meets together, by trying all subsets."""
    sets_so_far: set[frozenset[str]] = set()
    for size in range(1, len(names) + 1):
        for some in combinations(names, size):
            chosen = frozenset(some)
            if not any(smaller <= chosen for smaller in sets_so_far) and all(
                chosen & broken_set for broken_set in broken
            ):
                sets_so_far.add(chosen)
    return sets_so_far


def same(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=3e-6)
