"""All questions of the corpus."""

from functools import cache

from tests.golden.families.explanations import estimates, frontiers, infeasible, verified, why
from tests.golden.families.many_jobs import decisions, portfolios
from tests.golden.families.plans import plans
from tests.golden.families.runs import replans, spot_policies
from tests.golden.families.surroundings import catalogue, owned_machines, refusals, settings
from tests.golden.question import Question

_FAMILIES = (
    plans,
    infeasible,
    estimates,
    why,
    frontiers,
    verified,
    replans,
    spot_policies,
    portfolios,
    decisions,
    owned_machines,
    settings,
    refusals,
    catalogue,
)


@cache
def corpus() -> tuple[Question, ...]:
    """Every question, in the order in which it is recorded."""
    gathered = tuple(question for family in _FAMILIES for question in family())
    keys = [question.key for question in gathered]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ValueError(f"two questions have one name: {', '.join(twice)}")
    return gathered
