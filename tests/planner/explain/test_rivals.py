"""The cheapest run on any other offer, bounded first, against pricing every other offer."""

import random

import pytest

from planner.candidates.gather import over
from planner.choice import cheapest, in_words
from planner.explain.rivals import cheapest_rival
from planner.settings import PlannerSettings
from tests.planner.phases.cases import found_for
from tests.planner.small_catalogues import allowed, every_configuration, random_columns, random_job

SETTINGS = PlannerSettings()


@pytest.mark.parametrize("seed", range(60))
def test_the_rival_costs_what_a_loop_over_every_other_offer_finds(seed: int) -> None:
    draw = random.Random(f"rivals {seed}")
    columns, job = random_columns(draw, types=1, offers=30), random_job(draw)
    found = found_for(job, columns)
    broken = over(found.table, job.deadline_hours, job.budget_usd)
    chosen = cheapest(found.table, broken == 0)
    if chosen is None:
        return
    offer = in_words(found, found.table, chosen).offer
    every = [each for each in every_configuration(job, columns, SETTINGS) if allowed(each, job)]
    others = [each.usd * 1e6 for each in every if each.offer.key != offer.key]
    rival = cheapest_rival(found, broken, chosen)
    assert rival == (pytest.approx(min(others), rel=1e-9, abs=3) if others else None)
