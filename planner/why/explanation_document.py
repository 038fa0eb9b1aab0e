"""The typed answer of an explanation. Its id is a hash of everything else in it."""

from dataclasses import replace
from typing import cast

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.candidates.configuration_carbon import ASSUMED
from gpuplan.planner.explain.binding_requirements import Binding
from gpuplan.planner.explain.break_even import BreakEven, Joining
from gpuplan.planner.explain.constraint_steps import Change, Step, Steps, carbon_of
from gpuplan.planner.explain.infeasibility import searched_nodes
from gpuplan.planner.explain.pareto_cost_time_carbon import CarbonFrontier
from gpuplan.planner.model import explanation as model
from gpuplan.planner.model.job import TrainingJob
from gpuplan.planner.model.outcome import LeastChange, NoPlan, Planned
from gpuplan.planner.model.shared import Figure, ObjectiveName, ObjectiveOf
from gpuplan.planner.serialization.content_ids import answer_id
from gpuplan.planner.serialization.phase_document import breakdown, configuration, cost_and_hours, machines, usd
from gpuplan.planner.serialization.rounded_figures import UNITS, maybe_rounded, rounded, to_second
from gpuplan.planner.why.explanation import About, Run, Why
from gpuplan.planner.why.explanation_text import summary

KNEE_RULE = (
    "the point whose cost, time and carbon exceed the least of the points considered by the smallest factor: no other "
    "point stays within a smaller multiple of the best in all three"
)
#: The unit of one more of each requirement.
_PER = {"deadline": "hour", "budget_usd": "usd", "constraints.carbon_budget_kg": "kg"}


def why_answer(why: Why, job: JsonObject, *, version: str) -> model.Why:
    """The explanation of a plan, or of why a job has none; `job` is the echoed job."""
    chosen = why.chosen
    answer = model.Why(
        id="",
        job=job,
        snapshot_id=chosen.snapshot_id,
        version=version,
        start=to_second(why.start),
        currency="USD",
        objective=ObjectiveName(of=cast(ObjectiveOf, chosen.job.objective), unit=UNITS[chosen.job.objective]),
        summary=tuple(summary(why)),
        plan=_plan(chosen) if isinstance(chosen, Planned) else None,
        infeasible=_ruled_out(chosen, None) if isinstance(chosen, NoPlan) else None,
        about=None if why.about is None else _about(why.about, chosen),
        without_chosen=_other(why.without_chosen, chosen),
        requirements=tuple(_binding(binding, chosen.job.objective) for binding in why.bindings),
        steps=None if why.steps is None else _steps(why.steps, chosen.job.objective),
        frontier=frontier_document(why.frontier),
        assumptions=_assumptions(chosen.job),
        warnings=tuple(chosen.warnings),
    )
    return replace(answer, id=answer_id(answer, "why"))


def _plan(plan: Run) -> model.ShortPlan:
    """A short form of a plan."""
    return model.ShortPlan(
        cost_usd=usd(plan.cost.expected),
        breakdown=breakdown(plan.cost),
        hours=rounded(plan.hours.expected),
        hours_confident=rounded(plan.hours.confident),
        carbon_kg=maybe_rounded(carbon_of(plan.phases)),
        phases=tuple(
            model.ShortPhase(
                **machines(phase.choice), **cost_and_hours(phase.choice), role=phase.role, share=rounded(phase.share)
            )
            for phase in plan.phases
        ),
    )


def _extra(other: Run, plan: Planned) -> model.Extra:
    """Extra cost, hours and carbon of another plan, part by part; negative is less."""
    kg, chosen_kg = carbon_of(other.phases), carbon_of(plan.phases)
    return model.Extra(
        usd=usd(other.cost.expected - plan.cost.expected),
        breakdown=breakdown(other.cost, less=plan.cost),
        hours_confident=rounded(other.hours.confident - plan.hours.confident),
        carbon_kg=None if kg is None or chosen_kg is None else rounded(kg - chosen_kg),
    )


def _other(other: Run | NoPlan | None, plan: Planned | NoPlan) -> model.OtherOutcome | None:
    """Another outcome of the same job, compared with the plan."""
    if other is None:
        return None
    if isinstance(other, NoPlan):
        return model.OtherOutcome(outcome="infeasible", plan=None, extra=None, ruled_out=_ruled_out(other, plan))
    extra = _extra(other, plan) if isinstance(plan, Planned) else None
    return model.OtherOutcome(outcome="planned", plan=_plan(other), extra=extra, ruled_out=None)


def _about(about: About, plan: Planned | NoPlan) -> model.About:
    named = about.named
    return model.About(
        named=model.Named(text=named.text, field=named.field, names=tuple(named.names)),
        verdict=about.verdict,
        best=_other(about.best, plan),
        wins_at=None if about.break_even is None else _wins_at(about.break_even),
        joins_at=None if about.joining is None else _joins_at(about.joining),
        without=_other(about.without, plan),
    )


def _wins_at(break_even: BreakEven) -> model.WinsAt:
    return model.WinsAt(
        usd_per_node_hour=usd(break_even.wins_at),
        now_usd_per_node_hour=usd(break_even.price),
        on=configuration(break_even.choice),
        discount_percent=rounded(break_even.discount_percent),
    )


def _joins_at(joining: Joining) -> model.JoinsAt:
    return model.JoinsAt(
        usd_per_node_hour=usd(joining.joins_at),
        now_usd_per_node_hour=usd(joining.price),
        on=configuration(joining.choice),
    )


def _ruled_out(infeasible: NoPlan, plan: Planned | NoPlan | None) -> model.RuledOut:
    """The requirements that leave no plan, and by how much each is missed."""
    return model.RuledOut(
        conflicts=infeasible.conflicts,
        searched_nodes=infeasible.searched_nodes,
        relaxations=tuple(_relaxation(relaxation, infeasible.job, plan) for relaxation in infeasible.relaxations),
        rejected=dict(sorted(infeasible.rejected.items())),
        warnings=tuple(infeasible.warnings),
    )


def _relaxation(relaxation: LeastChange, job: TrainingJob, plan: Planned | NoPlan | None) -> model.WayOut:
    cost = relaxation.choice.cost.expected
    return model.WayOut(
        requirement=" + ".join(relaxation.requirements),
        from_="; ".join(relaxation.asked),
        to="; ".join(relaxation.needed),
        short_by={
            name: short for name in relaxation.requirements if (short := short_by(relaxation, name, job)) is not None
        },
        cost_usd=usd(cost),
        extra_usd=usd(cost - plan.cost.expected) if isinstance(plan, Planned) else None,
        plan=configuration(relaxation.choice),
    )


def short_by(relaxation: LeastChange, name: str, job: TrainingJob) -> Figure | None:
    """The amount by which a numeric requirement is missed; None if it is not numeric or the amount is unknown."""
    choice, limits = relaxation.choice, job.constraints
    misses: dict[str, tuple[float | None, float | None, str]] = {
        "deadline": (choice.hours.confident, job.deadline_hours, "hours"),
        "budget_usd": (choice.cost.expected / 1e6, job.budget_usd, "USD"),
        "constraints.max_nodes": (choice.nodes, limits.max_nodes, "nodes"),
        "constraints.max_accelerators": (
            choice.nodes * choice.instance_type.devices,
            limits.max_accelerators,
            "accelerators",
        ),
        "constraints.carbon_budget_kg": (relaxation.carbon_kg, limits.carbon_budget_kg, "kg CO2e"),
    }
    took, limit, unit = misses.get(name, (None, None, ""))
    return None if took is None or limit is None else Figure(value=rounded(took - limit), unit=unit)


def _binding(binding: Binding, objective: str) -> model.Requirement:
    return model.Requirement(
        requirement=binding.requirement,
        asked=binding.asked,
        binds=binding.gain > 0,
        gain=Figure(value=rounded(binding.gain / 1e6), unit=UNITS[objective]),
        needed=binding.needed,
        plan=None if binding.choice is None else configuration(binding.choice),
    )


def _steps(steps: Steps, objective: str) -> model.Steps:
    return model.Steps(
        slower=tuple(map(_step, steps.slower)),
        faster=tuple(map(_step, steps.faster)),
        changes=tuple(map(_change, steps.changes)),
        duals=tuple(
            model.Dual(requirement=name, value=rounded(worth), unit=f"{UNITS[objective]} per {_PER[name]}")
            for name, worth in steps.duals.items()
        ),
    )


def _step(step: Step) -> model.Step:
    return model.Step(
        deadline_hours=rounded(step.deadline_hours), extra_usd=usd(step.extra), plan=configuration(step.choice)
    )


def _change(change: Change) -> model.Change:
    in_hours = change.requirement == "deadline"
    return model.Change(
        requirement=change.requirement,
        by=model.ChangedBy(value=change.by, unit="hours")
        if in_hours
        else model.ChangedBy(value=usd(round(change.by)), unit="USD"),
        possible=change.extra is not None,
        extra_usd=None if change.extra is None else usd(change.extra),
        extra_hours=maybe_rounded(change.extra_hours),
        extra_carbon_kg=maybe_rounded(change.extra_kg),
        deadline_hours=maybe_rounded(change.deadline_hours),
        phases=tuple(map(configuration, change.phases)),
    )


def frontier_document(frontier: CarbonFrontier) -> model.Frontier:
    """The points of cost, time and carbon with their machines, and the rule of the knee."""
    return model.Frontier(
        points=tuple(
            model.FrontierPoint(
                **machines(point.choice),
                **cost_and_hours(point.choice),
                carbon_kg=rounded(point.carbon_kg),
                within=point.within,
                factor=rounded(point.factor),
            )
            for point in frontier.points
        ),
        knee=frontier.knee,
        knee_rule=KNEE_RULE,
        knee_among=frontier.among,
        configurations=frontier.configurations,
        unknown_carbon=tuple(frontier.unknown),
    )


def _assumptions(job: TrainingJob) -> tuple[str, ...]:
    """The assumptions of the explanation itself."""
    return (
        "the best plan on something named runs on it alone; the best plan without it uses none of it in any phase",
        "the price at which something wins, or is used in part, is that of one offer; the discount is off all its offers",
        f"gains from giving up a requirement are those of runs on one configuration of up to {searched_nodes(job):,} nodes",
        "with moves between configurations, giving up a requirement may gain more",
        "steps, sums of money and the frontier are those of runs on one configuration; a day more or less is planned anew",
        "duals are those of the choice relaxed to a mix of configurations by share of the work",
        "costs hold given that the machines are obtained; where chances decide, a plan begins with another choice than this",
        ASSUMED,
    )
