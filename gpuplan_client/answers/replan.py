"""The answer of `POST /v1/replan`: what to do with a job that runs, from now on."""

from typing import Literal, NotRequired, TypedDict

from gpuplan_client.answers.parts import (
    Breakdown,
    Configuration,
    Figure,
    Hours,
    JsonObject,
    Learned,
    Machines,
    Meta,
    Moment,
    PlanCost,
    Usd,
)
from gpuplan_client.answers.plan import Alternative, Certificate, Credits, Fallback, NearestPlan, Phase, RunLimitCost


class Running(TypedDict):
    """Where the job stands, as it was understood."""

    on: Machines | None
    up: bool
    done: float
    kept: float
    """Of the work, what is saved."""
    elapsed_hours: float
    spent_usd: Usd
    measured: dict[str, float | str] | None


class Left(TypedDict):
    """What is left of work, time and money."""

    share: float
    deadline_hours: float | None
    budget_usd: Usd | None


class GoingOn(Configuration):
    """The job to its end on the machines that run it."""

    possible: bool
    breaks: list[str]
    breakdown: Breakdown
    finishes_at: Moment
    deadline_probability: float | None
    throughput: Figure
    carbon_kg: float | None


class FromNow(TypedDict):
    """A plan, all of whose figures count from now."""

    cost_usd: PlanCost
    hours: Hours
    finishes_at: Moment
    deadline_probability: float | None
    carbon_kg: float | None
    phases: list[Phase]
    run_limit: RunLimitCost
    fallback: NotRequired[Fallback]
    certificate: Certificate
    alternatives: list[Alternative]
    credits: NotRequired[Credits]


class Difference(TypedDict):
    """The best less going on: negative is saved."""

    usd: Usd
    breakdown: Breakdown
    hours: float
    hours_confident: float
    deadline_probability: float | None


class Holds(TypedDict):
    """Up to what going on stays the best."""

    usd_per_node_hour: Usd | None
    times_slower: float | None


WayOutFromNow = TypedDict(
    "WayOutFromNow",
    {"requirement": str, "from": str, "to": str, "cost_usd": Usd, "plan": Configuration, "in_all": str},
)


class NoneLeft(TypedDict):
    """Why no plan from now on meets all requirements."""

    conflicts: list[list[str]]
    searched_nodes: int
    relaxations: list[WayOutFromNow]
    nearest_plan: NearestPlan | None
    offers_considered: int
    rejected: dict[str, int]


Replan = TypedDict(
    "Replan",
    {
        "id": str,
        "job": JsonObject,
        "snapshot_id": str,
        "version": str,
        "settings": JsonObject,
        "learned": NotRequired[Learned],
        "currency": Literal["USD"],
        "start": Moment,
        "now": Moment,
        "running": Running,
        "left": Left,
        "summary": list[str],
        "action": Literal[
            "continue", "standby", "move_later", "add_nodes", "shed_nodes", "move", "restart", "start", "none"
        ],
        "continue": GoingOn | None,
        "best": FromNow | None,
        "difference": Difference | None,
        "holds": Holds | None,
        "infeasible": NoneLeft | None,
        "assumptions": list[str],
        "warnings": list[str],
    },
)
"""A job under way, planned anew."""


class ReplanAnswer(TypedDict):
    """What to do from now on."""

    outcome: Literal["replanned", "infeasible"]
    replan: Replan
    meta: Meta
