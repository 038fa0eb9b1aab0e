"""Configurations in tables: what is bought goes with them, however tables are cut and joined."""

from dataclasses import fields, replace

import numpy as np
import pytest

from planner.candidates import bought
from planner.candidates.bought import Pairs, Terms, kept_of, run_on
from planner.candidates.configurations import joined, run_of
from planner.cost.bill import RUN_ARRAYS, bill, outline
from tests.planner.phases.cases import booked_case, found_for


@pytest.mark.parametrize("seed", range(8))
def test_what_is_bought_in_some_configurations_is_what_it_is_worked_out_to_be(seed: int) -> None:
    found = found_for(*booked_case(seed))
    draw = np.random.default_rng(seed)
    some = found.shares.take(np.flatnonzero(draw.random(len(found.shares)) < 0.7))
    twice = joined([some, some.take(np.arange(len(some))[::-1])])
    for number, market in enumerate(found.question.markets):
        mine = np.flatnonzero(twice.market == number)
        pairs = Pairs(offer=mine, place=twice.place[mine], nodes=twice.nodes[mine], row=twice.row[mine])
        run = run_on(found.question, market, pairs, found.estimated[number], found.costs[number])
        for name in RUN_ARRAYS:
            np.testing.assert_array_equal(getattr(twice.take(mine).run(), name), getattr(run, name))


@pytest.mark.parametrize("seed", range(8))
def test_the_outline_of_a_bill_is_the_bill_in_brief(seed: int) -> None:
    found = found_for(*booked_case(seed))
    job, settings = found.question.job, found.question.settings
    run = run_of(found.question, found.shares, found.estimated, found.costs)
    brief, whole = outline(run, job.confidence, settings), bill(run, job.confidence, settings)
    for name in ("hours_kept", "sigma", "cost_usd"):
        np.testing.assert_array_equal(getattr(brief, name), getattr(whole, name))


def test_what_a_market_keeps_of_jobs_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_for(*booked_case(1))
    market, ready = found.question.markets[0], found.estimated[0]
    asked = (found.screened[0], ready.rows, ready.able, found.costs[0])
    terms = Terms.of(found.question)
    pairs, run, kg_rate = kept_of(market)(*asked, terms=terms)
    assert kept_of(market)(*asked, terms=terms)[0] is pairs
    arrays = [
        kg_rate,
        *(getattr(pairs, each.name) for each in fields(pairs)),
        *(getattr(run, name) for name in RUN_ARRAYS),
    ]
    assert len(pairs.place) > 0
    monkeypatch.setattr(bought, "MOST_BYTES", sum({id(each): each.nbytes for each in arrays}.values()))
    fits = replace(market)
    assert kept_of(fits)(*asked, terms=terms)[0] is kept_of(fits)(*asked, terms=terms)[0]
    other = replace(terms, checkpoint_hours=terms.checkpoint_hours + 1.0)
    first = kept_of(fits)(*asked, terms=terms)[0]
    kept_of(fits)(*asked, terms=other)
    assert kept_of(fits)(*asked, terms=terms)[0] is not first
