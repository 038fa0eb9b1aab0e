"""The cheapest run on any other offer, bounded first, against pricing every other offer."""

import random

import pytest

from gpuplan.planner.candidates.candidate_set import over
from gpuplan.planner.candidates.configuration_choice import cheapest, in_words
from gpuplan.planner.explain.cheapest_rival import cheapest_rival
from tests.planner.small_catalogues import allowed, every_configuration, random_columns, random_job
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import found_for

SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0)


@pytest.mark.slow(reason="60 cases")
@pytest.mark.parametrize("seed", range(60))
def test_the_rival_costs_what_a_loop_over_every_other_offer_finds(seed: int) -> None:
    draw = random.Random(f"rivals {seed}")
    columns, job = random_columns(draw, types=1, offers=30), random_job(draw)
    result = found_for(job, columns, (), SETTINGS)
    broken = over(result.table, job.deadline_hours, job.budget_usd)
    chosen = cheapest(result.table, broken == 0)
    if chosen is None:
        return
    offer = in_words(result, result.table, chosen).offer
    every = [priced for priced in every_configuration(job, columns, SETTINGS) if allowed(priced, job)]
    others = [configuration.usd * 1e6 for configuration in every if configuration.offer.key != offer.key]
    rival = cheapest_rival(result, broken, chosen)
    assert rival == (pytest.approx(min(others), rel=1e-9, abs=3) if others else None)
