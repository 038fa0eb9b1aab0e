"""The typed answer for a replanned job; it does not depend on the clock.

Cost, hours and probabilities are those from `now` on, and shares are of the remaining work.
"""

from dataclasses import replace
from datetime import timedelta
from typing import cast

from gpuplan.catalog.parsing.json_object import JsonObject
from gpuplan.planner.explain.terms_notes import PAID_SETUP
from gpuplan.planner.model import plan as plans
from gpuplan.planner.model import replan as model
from gpuplan.planner.model import shared
from gpuplan.planner.model.outcome import NoPlan, Planned
from gpuplan.planner.replan.replan_answer import GoingOn, Replanned
from gpuplan.planner.replan.replan_text import in_all, summary
from gpuplan.planner.replan.running_job import UnderWay
from gpuplan.planner.serialization.content_ids import answer_id
from gpuplan.planner.serialization.phase_document import breakdown, cost_and_hours, machines, usd
from gpuplan.planner.serialization.plan_document import infeasible_answer, plan_answer
from gpuplan.planner.serialization.rounded_figures import maybe_rounded, rounded, to_second

#: The label of alternatives without a move: continuing is one case, a single move another.
_ONE_CONFIGURATION = "on one configuration from now"


def replan_body(replanned: Replanned, job: JsonObject, *, version: str) -> model.Replan:
    """What to do, under its id; `job` is the echoed job document."""
    if isinstance(replanned.best, Planned):
        body: plans.Plan | plans.Infeasible = plan_answer(replanned.best, job, version)
    else:
        body = infeasible_answer(replanned.best, job, version)
    replan = model.Replan(
        id="",
        job=job,
        snapshot_id=body.snapshot_id,
        version=version,
        settings=body.settings,
        learned=body.learned,
        currency="USD",
        start=to_second(replanned.left.start),
        now=to_second(replanned.running.now),
        running=_running(replanned),
        left=_left(replanned),
        summary=summary(replanned),
        action=cast(model.Action, replanned.action),
        continue_=None if replanned.going_on is None else _going_on(replanned.going_on, replanned.running),
        best=_best(body) if isinstance(body, plans.Plan) else None,
        difference=_difference(replanned),
        holds=_stays_optimal(replanned),
        infeasible=_infeasible(replanned, replanned.best, body)
        if isinstance(replanned.best, NoPlan) and isinstance(body, plans.Infeasible)
        else None,
        assumptions=(*replanned.assumptions, *_assumptions(replanned, body)),
        warnings=body.warnings,
    )
    return replace(replan, id=answer_id(replan, "replan"))


def _assumptions(replanned: Replanned, body: plans.Plan | plans.Infeasible) -> tuple[str, ...]:
    """Those of the plan, without the one on the set-up where the job goes on as it is."""
    if isinstance(body, plans.Infeasible):
        return ()
    goes_on = replanned.action == "continue"
    return tuple(assumption for assumption in body.assumptions if not (goes_on and PAID_SETUP in assumption))


def _running(replanned: Replanned) -> model.Running:
    """The state of the job as it was understood."""
    given = replanned.running
    return model.Running(
        on=None if replanned.machines is None else shared.Machines(**machines(replanned.machines)),
        up=given.up and given.on is not None,
        done=rounded(replanned.left.done),
        kept=rounded(replanned.left.saved_share),
        elapsed_hours=rounded(replanned.left.elapsed_hours),
        spent_usd=usd(round(given.spent_usd * 1e6)),
        measured=None if replanned.measured is None else _measured(replanned.measured),
    )


def _measured(measured: model.Measured) -> model.Measured:
    return replace(
        measured,
        factor=rounded(measured.factor),
        rate=rounded(measured.rate),
        predicted=rounded(measured.predicted),
    )


def _left(replanned: Replanned) -> model.Left:
    return model.Left(
        share=rounded(replanned.left.share),
        deadline_hours=maybe_rounded(replanned.left.job.deadline_hours),
        budget_usd=None
        if replanned.job.budget_usd is None
        else usd(round((replanned.job.budget_usd - replanned.running.spent_usd) * 1e6)),
    )


def _going_on(stays: GoingOn, running: UnderWay) -> model.GoingOn:
    schedule = stays.schedule
    phase = schedule.phases[0]
    return model.GoingOn(
        **machines(phase.choice),
        **cost_and_hours(phase.choice),
        possible=stays.possible,
        breaks=stays.breaks,
        breakdown=breakdown(schedule.cost),
        finishes_at=to_second(running.now + timedelta(hours=schedule.hours.expected)),
        deadline_probability=maybe_rounded(schedule.deadline_probability),
        throughput=shared.Figure(value=rounded(phase.throughput), unit=phase.unit),
        carbon_kg=maybe_rounded(phase.carbon_kg),
    )


def _best(plan: plans.Plan) -> model.FromNow:
    """The plan without what the replan states once for all, or what would mislead for a running job."""
    return model.FromNow(
        cost_usd=plan.cost_usd,
        hours=plan.hours,
        finishes_at=plan.finishes_at,
        deadline_probability=plan.deadline_probability,
        carbon_kg=plan.carbon_kg,
        phases=plan.phases,
        fallback=plan.fallback,
        certificate=plan.certificate,
        alternatives=tuple(
            replace(alternative, label=_ONE_CONFIGURATION) if alternative.label == "without a move" else alternative
            for alternative in plan.alternatives
        ),
        credits=plan.credits,
        run_limit=plan.run_limit,
    )


def _difference(replanned: Replanned) -> model.Difference | None:
    """The best plan minus continuing, part by part: negative is a saving."""
    if replanned.going_on is None or not isinstance(replanned.best, Planned):
        return None
    stays, best = replanned.going_on.schedule, replanned.best
    chances = stays.deadline_probability, best.deadline_probability
    return model.Difference(
        usd=usd(best.cost.expected - stays.cost.expected),
        breakdown=breakdown(best.cost, less=stays.cost),
        hours=rounded(best.hours.expected - stays.hours.expected),
        hours_confident=rounded(best.hours.confident - stays.hours.confident),
        deadline_probability=None if chances[0] is None or chances[1] is None else rounded(chances[1] - chances[0]),
    )


def _stays_optimal(replanned: Replanned) -> model.StaysOptimal | None:
    if replanned.stays_optimal is None:
        return None
    price = replanned.stays_optimal.price
    return model.StaysOptimal(
        usd_per_node_hour=None if price is None else usd(price),
        times_slower=maybe_rounded(replanned.stays_optimal.slower),
    )


def _infeasible(replanned: Replanned, none: NoPlan, body: plans.Infeasible) -> model.NoneLeft:
    """As in a plan; each relaxation also states the value for the job itself, whose limits count from its start."""
    return model.NoneLeft(
        conflicts=body.conflicts,
        searched_nodes=body.searched_nodes,
        nearest_plan=body.nearest_plan,
        offers_considered=body.offers_considered,
        rejected=body.rejected,
        relaxations=tuple(
            model.RelaxationFromNow(
                requirement=shown.requirement,
                from_=shown.from_,
                to=shown.to,
                cost_usd=shown.cost_usd,
                plan=shown.plan,
                in_all="; ".join(in_all(replanned, relaxation.requirements, relaxation.needed, relaxation.choice)),
            )
            for relaxation, shown in zip(none.relaxations, body.relaxations, strict=True)
        ),
    )
