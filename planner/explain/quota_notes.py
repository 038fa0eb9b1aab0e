"""What the known quotas mean for a plan: whether to ask for more, and what a larger quota would save."""

from datetime import UTC, date, datetime

import numpy as np

from gpuplan.catalog.model.money import usd_display
from gpuplan.planner.candidates.candidate_set import Candidates, over
from gpuplan.planner.candidates.configuration_choice import cheapest, in_words
from gpuplan.planner.candidates.job_requirements import QUOTA
from gpuplan.planner.candidates.quota_limits import binding, units_per_node
from gpuplan.planner.model.outcome import Choice
from gpuplan.planner.model.quota import Quota

#: A larger quota is named if it saves at least this part of the cost.
_LEAST_SAVING = 0.01


def quota_assumption(quotas: tuple[Quota, ...], start: datetime) -> str:
    """What the plan takes the quotas to be, and how old they are at the start."""
    basis = "cost and hours count from when the machines are obtained"
    if not quotas:
        return f"{basis}; no quota is known"
    known = f"the {len(quotas)} quotas that are known{_age(quotas, start)}"
    return f"{basis}; the plan keeps to {known} and takes all others to be large enough"


def _age(quotas: tuple[Quota, ...], start: datetime) -> str:
    """The day on which the oldest of the quotas was read, and its age; empty if all were written by hand."""
    days = sorted(quota.read_on for quota in quotas if quota.read_on)
    if not days:
        return ""
    age = (start.astimezone(UTC).date() - date.fromisoformat(days[0])).days
    return f" ({'the oldest ' if days[0] != days[-1] else ''}read on {days[0]}, {max(age, 0)} days before the start)"


def known_quota(quotas: tuple[Quota, ...], choice: Choice) -> Quota | None:
    """The quota that limits these machines, which is large enough for them; None if none is known."""
    return binding(quotas, choice.instance_type, choice.offer.region, choice.offer.price_kind)


def larger_quota(candidates: Candidates, cost_micros: int) -> tuple[str, ...]:
    """A sentence on the cheapest configuration that only a quota forbids, if it saves enough over `cost_micros`."""
    job, table = candidates.question.job, candidates.over_quota
    if job.objective != "cost" or table is None:
        return ()
    best = cheapest(table, over(table, job.deadline_hours, job.budget_usd) == QUOTA)
    if best is None:
        return ()
    choice = in_words(candidates, table, best)
    saved = cost_micros - choice.cost.expected
    market = candidates.question.markets[int(table.market[best])]
    quota = binding(market.quotas, choice.instance_type, choice.offer.region, choice.offer.price_kind)
    if quota is None or saved < _LEAST_SAVING * cost_micros:
        return ()
    units = units_per_node(quota, choice.instance_type) * choice.nodes
    asked = f"{units:,.0f} {quota.unit}" if np.isfinite(units) else f"more {quota.unit}"
    named = f" of {quota.code}" if quota.code else ""
    kind = choice.offer.price_kind.replace("_", " ")
    sentence = (
        f"a quota of {asked}{named} in {choice.offer.provider} {choice.offer.region} (now {quota.limit:,.0f}) would save "
        f"{usd_display(saved)} ({saved / cost_micros:.0%}) with {choice.nodes} x {choice.instance_type.name}, {kind}"
    )
    return (sentence,)
