"""Scaling laws and the search over sizes, without a planner: prices are made up, so the right answer is known."""

from datetime import UTC, datetime
from math import inf
from typing import cast

import pytest

from gpuplan.api.schemas.job import parse_job
from gpuplan.planner.model.plan import Plan
from gpuplan.planner.scaling.affordable_models import BESIROGLU, HOFFMANN, LAWS, Affordable, LossLaw, Priced, Search
from gpuplan.planner.scaling.dense_models import LADDER, DenseModel
from gpuplan.planner.workload import work_of

NOW = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("flops", [1e19, 1e22, 1e25])
def test_the_preferred_size_has_the_least_loss_of_a_compute_budget(law: LossLaw, flops: float) -> None:
    best = law.best_parameters(flops)
    at = {share: law.loss(best * share, flops / 6 / (best * share)) for share in (0.9, 1.0, 1.1)}
    assert at[1.0] == min(at.values())


def test_the_refit_prefers_about_twenty_tokens_per_parameter_and_the_first_fit_more_than_twice_as_many() -> None:
    # Besiroglu 2024, section 4: the re-fit agrees with 20 tokens per parameter at the budget of Chinchilla, 5.76e23.
    ratios = [5.76e23 / 6 / law.best_parameters(5.76e23) ** 2 for law in (BESIROGLU, HOFFMANN)]
    assert 15 < ratios[0] < 25
    assert ratios[1] > 2 * ratios[0]


@pytest.mark.parametrize("layers", LADDER[::6])
def test_the_size_of_a_rung_is_what_the_planner_counts(layers: int) -> None:
    model = DenseModel(layers=layers)
    job = parse_job({"workload": model.workload(1e12, 4096)}, now=NOW)
    assert work_of(job.workload, job.training).parameters == pytest.approx(model.parameters, rel=1e-6)


def search_with(*, budget: float, data: float = inf, flops_in_time: float = inf) -> Search:
    """Cost is 1e-17 dollars per FLOP and 5 % more for each doubling of the tokens."""

    def price(model: DenseModel, tokens: float) -> Priced | None:
        flops = 6 * model.parameters * tokens
        if flops > flops_in_time:
            return None
        return Priced(tokens=tokens, cost_usd=1e-17 * flops * (tokens / 1e9) ** 0.07, plan=cast(Plan, None))

    return Search(price=price, budget_usd=budget, most_tokens=data)


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"budget": 50_000.0}, "budget"),
        ({"budget": 3.0}, "budget"),
        ({"budget": 1e7, "flops_in_time": 1e22}, "deadline"),
        ({"budget": 50_000.0, "data": 3e10}, "data"),
    ],
)
def test_each_law_gets_the_size_that_trying_every_size_finds(limits: dict[str, float], limit: str) -> None:
    search = search_with(**limits)
    preferred = search.run()
    assert search.plans_made < 60
    all_sizes = search_with(**limits)
    every = [one for rung in range(len(LADDER)) if (one := all_sizes.at(rung)) is not None]
    for law in LAWS:
        best = search.at(preferred[law])
        assert best is not None
        # Tokens are found to a few percent, so of two sizes of almost equal loss either may be preferred.
        assert best.loss(law) <= min(one.loss(law) for one in every) * 1.001
        assert best.limited_by == limit


def limits_of(affordable: Affordable | None, search: Search) -> tuple[float, float]:
    """Shares of the budget used by what was found, and by 7 % more tokens."""
    assert affordable is not None
    longer = search.price(affordable.model, affordable.priced.tokens * 1.07)
    return (
        affordable.priced.cost_usd / search.budget_usd,
        inf if longer is None else longer.cost_usd / search.budget_usd,
    )


@pytest.mark.parametrize("limits", [{"budget": 50_000.0}, {"budget": 1e7, "flops_in_time": 1e22}])
def test_no_model_is_beyond_the_budget_and_a_few_more_tokens_of_each_would_be(limits: dict[str, float]) -> None:
    search = search_with(**limits)
    search.run()
    for affordable in search.affordable.values():
        used, beyond = limits_of(affordable, search)
        assert used <= 1 < beyond


def test_where_nothing_is_affordable_no_size_is_preferred() -> None:
    assert search_with(budget=1e-6).run() == {}
