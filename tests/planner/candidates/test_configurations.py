"""Tables of configurations keep the right cost inputs when they are cut and joined."""

from dataclasses import fields, replace

import numpy as np
import pytest

from gpuplan.planner.candidates import priced_configurations
from gpuplan.planner.candidates.configurations import joined, run_of
from gpuplan.planner.candidates.priced_configurations import Pairs, Terms, cached_offers_of, run_on
from gpuplan.planner.cost.cost_breakdown import cost_breakdown, outline
from gpuplan.planner.cost.run_inputs import RUN_ARRAYS
from tests.planner.strategies.phased.cases import booked_case, found_for


@pytest.mark.parametrize("seed", range(8))
def test_the_inputs_of_selected_configurations_are_those_computed_again(seed: int) -> None:
    candidates_ = found_for(*booked_case(seed))
    draw = np.random.default_rng(seed)
    some = candidates_.shares.take(np.flatnonzero(draw.random(len(candidates_.shares)) < 0.7))
    twice = joined([some, some.take(np.arange(len(some))[::-1])])
    for number, market in enumerate(candidates_.question.markets):
        mine = np.flatnonzero(twice.market == number)
        pairs = Pairs(offer=mine, place=twice.place[mine], nodes=twice.nodes[mine], row=twice.row[mine])
        run = run_on(candidates_.question, market, pairs, candidates_.estimated[number], candidates_.costs[number])
        for name in RUN_ARRAYS:
            np.testing.assert_array_equal(getattr(twice.take(mine).run(), name), getattr(run, name))


@pytest.mark.parametrize("seed", range(8))
def test_the_outline_has_the_figures_of_the_cost_breakdown(seed: int) -> None:
    candidates_ = found_for(*booked_case(seed))
    job, settings = candidates_.question.job, candidates_.question.settings
    run = run_of(candidates_.question, candidates_.shares, candidates_.estimated, candidates_.costs)
    brief, whole = outline(run, job.confidence, settings), cost_breakdown(run, job.confidence, settings)
    for name in ("hours_at_confidence", "sigma", "cost_usd"):
        np.testing.assert_array_equal(getattr(brief, name), getattr(whole, name))


def test_the_cache_of_a_market_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates_ = found_for(*booked_case(1))
    market, ready = candidates_.question.markets[0], candidates_.estimated[0]
    asked = (candidates_.screened[0], ready.rows, ready.able, candidates_.costs[0])
    terms = Terms.of(candidates_.question)
    pairs, run, kg_rate = cached_offers_of(market)(*asked, terms=terms)
    assert cached_offers_of(market)(*asked, terms=terms)[0] is pairs
    arrays = [
        kg_rate,
        *(getattr(pairs, field.name) for field in fields(pairs)),
        *(getattr(run, name) for name in RUN_ARRAYS),
    ]
    assert len(pairs.place) > 0
    monkeypatch.setattr(
        priced_configurations, "MOST_BYTES", sum({id(array): array.nbytes for array in arrays}.values())
    )
    fits = replace(market)
    assert cached_offers_of(fits)(*asked, terms=terms)[0] is cached_offers_of(fits)(*asked, terms=terms)[0]
    other = replace(terms, checkpoint_hours=terms.checkpoint_hours + 1.0)
    first = cached_offers_of(fits)(*asked, terms=terms)[0]
    cached_offers_of(fits)(*asked, terms=other)
    assert cached_offers_of(fits)(*asked, terms=terms)[0] is not first
