"""The price at which a plan would use an offer: the search over its pairs finds what the search over all pairs finds."""

import pytest

from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import BEST
from gpuplan.planner.explain.break_even import repriced
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import best_plan
from gpuplan.planner.strategies.schedule import Schedule
from gpuplan.planner.strategies.standby import standby_search
from gpuplan.planner.strategies.standby.standby_search import cheapest_pair
from gpuplan.planner.strategies.strategy_choice import cheapest_below
from gpuplan.planner.why.explanation import why
from gpuplan.planner.why.explanation_text import summary
from tests.planner.strategies.standby.standby_cases import some_offers, terms
from tests.planner.strategies.standby.test_standby_plans import SETTINGS, a_case


def searched_at(
    candidates: Candidates, at: tuple[int, int], micros: int, below: float
) -> tuple[Schedule | None, Schedule | None]:
    """The plan below a cost with the offer `at` a place at another price: over its own pairs, and over all; None if dearer."""
    now = repriced(candidates, at, micros)
    table, job = now.table, now.question.job
    chosen = BEST[job.objective](table, over(table, job.deadline_hours, job.budget_usd) == 0)
    using = (table.market == at[0]) & (table.place == at[1])
    some, some_proven = cheapest_below(now, chosen, below, using=using)
    every, every_proven = cheapest_below(now, chosen, below)
    assert some_proven
    assert every_proven
    return (
        None if some is None or some.cost.expected >= below else some,
        None if every is None or every.cost.expected >= below else every,
    )


def test_pairs_with_an_offer_that_became_cheaper_are_all_that_a_cheaper_plan_may_be() -> None:
    roles = set()
    for seed in (5, 7):
        candidates = a_case(seed)[2]
        planned = best_plan(candidates)
        assert isinstance(planned, Planned)
        used = {phase.choice.offer.key for phase in planned.phases}
        table, columns = candidates.table, candidates.question.markets[0].columns
        original = candidates.question.markets[0].snapshot.original
        for place in sorted(set(table.place.tolist())):
            offer = columns.offer(int(original[place]))
            for share in (0.2, 0.5) if offer.key not in used else ():
                micros = round(share * offer.usd_micros_per_hour)
                some, every = searched_at(candidates, (0, place), micros, float(planned.cost.expected))
                assert (None if some is None else some.cost) == (None if every is None else every.cost)
                if every is not None and every.phases[-1].role == "standby":
                    roles |= {phase.role for phase in every.phases if phase.choice.offer.key == offer.key}
    assert roles == {"planned", "standby"}  # the offer decides in either role


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_prices_few_runs_says_what_it_left_open(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = some_offers(seed, 6, 8)
    every = cheapest_pair(offered, terms())
    assert every.best is not None
    assert cheapest_pair(offered, terms(), all_or_few=True).left_open == 0
    monkeypatch.setattr(standby_search, "MOST_EXACT", 2)
    monkeypatch.setattr(standby_search, "FEW_EXACT", 1)
    few = cheapest_pair(offered, terms(), all_or_few=True)
    assert few.exactly == 1
    assert few.best is not None
    assert few.left_open > 0
    assert every.best.run.usd <= few.best.run.usd
    assert few.left_open_usd < few.best.run.usd
    if few.best.run.usd > every.best.run.usd:
        assert few.left_open_usd <= every.best.run.usd


@pytest.mark.parametrize(("most", "few"), [(1, 0), (2, 1)])
def test_an_explanation_says_when_its_price_is_not_proven(most: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    job, columns, _ = a_case(5)

    def prices() -> tuple[int, bool]:
        explanation = why(job, columns, settings=SETTINGS, not_="gcp-type-1")
        about = explanation.about
        assert about is not None
        assert about.prices_proven != any("not proven" in sentence for sentence in summary(explanation))
        return 0 if about.joining is None else about.joining.joins_at, about.prices_proven

    proven, is_proven = prices()
    assert is_proven
    monkeypatch.setattr(standby_search, "MOST_EXACT", most)
    monkeypatch.setattr(standby_search, "FEW_EXACT", few)
    searched, is_proven = prices()
    assert not is_proven
    assert searched <= proven
