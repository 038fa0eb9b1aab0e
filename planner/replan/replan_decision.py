"""The cheapest way to finish a running job: continue, change machines or node count, or several of these in turn.

Everything is planned from now, over the remaining work. The machines that run the job are configurations like all others,
with three differences: they need no set-up, the data are in place, and hours billed so far are not billed again. They
come first or not at all. For any other configuration, the checkpoint is written first (by the old machines, billed
meanwhile) and then moved: egress from its region, and transfer time. So the planner's search covers all cases, and its
proof does too.

Another number of nodes means that all of them start anew: in synchronous training every process restarts with the node
count, and nodes that stay are billed while others are set up. The checkpoint is in the region already.
"""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.catalog.model.accelerators import accelerators
from gpuplan.catalog.model.owned_machine import OwnedMachine
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.candidates.candidate_set import Candidates, candidates, estimated_up, migration_class, over
from gpuplan.planner.candidates.configuration_choice import in_words
from gpuplan.planner.candidates.configurations import Configurations, of_a_share
from gpuplan.planner.candidates.job_requirements import BIT
from gpuplan.planner.candidates.markets import Market, markets
from gpuplan.planner.candidates.place_costs import copied
from gpuplan.planner.candidates.planning_problem import Question
from gpuplan.planner.candidates.setup_hours import setup_hours_of
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_gb
from gpuplan.planner.explain.assumptions_and_warnings import warnings
from gpuplan.planner.model.current_placement import Origin
from gpuplan.planner.model.frameworks import runs_on
from gpuplan.planner.model.job import REQUIREMENTS, TrainingJob
from gpuplan.planner.model.learned import NOTHING, LearnedCorrections
from gpuplan.planner.model.outcome import Choice, Moved, NoPlan, Planned
from gpuplan.planner.model.replan import Measured
from gpuplan.planner.model.settings import PlannerSettings
from gpuplan.planner.performance.estimator_request import REASONS
from gpuplan.planner.performance.learned_corrections import learned_from
from gpuplan.planner.performance.past_runs import PastRun
from gpuplan.planner.planning import best_plan
from gpuplan.planner.replan.replan_answer import GoingOn, Replanned
from gpuplan.planner.replan.running_job import Left, On, UnderWay, learned_on_this_machine, left_of, measured
from gpuplan.planner.replan.running_machines import running_market
from gpuplan.planner.replan.stays_optimal import stays_optimal_until
from gpuplan.planner.strategies.schedule import on_one_configuration
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import Work


def replan(
    job: TrainingJob,
    columns: Columns,
    *,
    running: UnderWay,
    owned: tuple[OwnedMachine, ...] = (),
    settings: PlannerSettings,
    past_runs: tuple[PastRun, ...] = (),
) -> Replanned:
    """The best plan from now for a job in the state `running`, compared with continuing as it is.

    The job is stated as at its start: deadline and budget are those of the whole job. Raises `UnusableInput` as `plan`
    does, and at fields under `running` for contradictions.
    """
    work = work_of(job.workload, job.training)
    left = left_of(job, work, running)
    rest = work if left.share == 1 else replace(work, units_total=work.units_total * left.share)
    question = Question(
        job=left.job,
        work=rest,
        markets=markets(columns, owned, settings, running.now, job.constraints.quotas),
        start=running.now,
        settings=settings,
        learned=learned_from(past_runs, work.task),
    )
    if running.on is None:
        return Replanned(
            job=job,
            running=running,
            left=left,
            machines=None,
            going_on=None,
            best=best_plan(candidates(question)),
            action="start",
            leads=0,
            stays_optimal=None,
            measured=None,
            assumptions=(),
        )
    placement = _placement(
        question, work, running, left, on=running.on, columns=columns, owned=owned, past_runs=past_runs
    )
    rest_of_job = _for_code_that_runs(question.job, placement.machines)
    return _from_placement(
        replace(question, job=rest_of_job, learned=placement.learned, origin=placement.origin),
        job,
        running,
        left,
        placement,
    )


def _for_code_that_runs(job: TrainingJob, machines: Choice) -> TrainingJob:
    """The job for the code that it evidently has; a run moves only between machines of one software stack anyway."""
    if runs_on(job.training.framework, accelerators()[machines.accelerator].stack):
        return job
    return replace(job, training=replace(job.training, framework="any"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placement:
    """The present machines, as a market and in words, the origin of a plan from now, and the measurement."""

    market: Market
    machines: Choice
    origin: Origin
    learned: LearnedCorrections
    measured: Measured | None
    notes: tuple[str, ...]


def _placement(
    question: Question,
    work: Work,
    running: UnderWay,
    left: Left,
    *,
    on: On,
    columns: Columns,
    owned: tuple[OwnedMachine, ...],
    past_runs: tuple[PastRun, ...],
) -> _Placement:
    """The present machines as they would do all the work by the plain estimate, and the placement that follows."""
    settings = question.settings
    up_hours = left.elapsed_hours if running.up_hours is None else running.up_hours
    market, notes = running_market(on, columns, owned, settings, now=running.now, up_hours=up_hours)
    alone = replace(question, work=work, markets=(market,), learned=NOTHING)
    estimated, ready = estimated_up(alone)
    if not len(estimated.table):
        reason = REASONS[int(ready.estimates.reason[-1])] or "longer than its price kind or free windows allow"
        message = f"{on.nodes} x {on.instance_type} cannot run this job by the estimate: {reason}; name what it runs on"
        raise UnusableInput.at("running", "on", "instance_type", message=message)
    table = estimated.table
    choice, row = in_words(estimated, table, 0), int(table.row[0])
    speed = measured(
        running,
        left,
        work,
        predicted_rate=float(ready.estimates.units_per_second[row]),
        run_hours=float(table.cost_breakdown.run_hours[0] / table.cost_breakdown.mean_factor[0]),
        setup_hours=_setup_hours_of(market, on.nodes, settings.setup_hours),
    )
    gigabytes = checkpoint_gb(work, question.job.training)
    write_hours = float(table.checkpoint_hours[0]) if running.up else 0.0
    per_hour = float(market.columns.usd_per_hour[0] + market.power_usd_per_node_hour[0]) * on.nodes
    origin = Origin(
        provider=choice.offer.provider,
        region=choice.offer.region,
        migration_class=migration_class(table, market, ready)[0],
        write_hours=write_hours,
        write_usd=write_hours * per_hour,
        far_hours=gigabytes / settings.move_gbs / 3600.0,
    )
    learned = learned_on_this_machine(past_runs, work, choice.accelerator, float(ready.estimates.log_sigma[row]), speed)
    return _Placement(market=market, machines=choice, origin=origin, learned=learned, measured=speed, notes=notes)


def _setup_hours_of(market: Market, nodes: int, stated: float | None) -> float:
    """Hours that the set-up of the machines that are up took, by the settings or the model."""
    columns, kind = market.columns, market.snapshot.kind_index[:1].astype(np.intp)
    type_ = market.snapshot.type_index[:1].astype(np.intp)
    return float(setup_hours_of(columns, type_, kind, np.array([nodes]), stated)[0])


def _from_placement(
    question: Question, job: TrainingJob, running: UnderWay, left: Left, placement: _Placement
) -> Replanned:
    number = len(question.markets)
    if running.up:
        question = replace(question, markets=(*question.markets, placement.market))
    every = candidates(question)
    best = best_plan(every)
    going_on = None
    if running.up:
        stays = of_a_share(question, number, every.screened[number], every.estimated[number], every.costs[number])
        going_on = _going_on(every, stays)
    leads = _leads(best, number) if running.up else 0
    action = _action(best, number if running.up else None, placement.machines, leads)
    if isinstance(best, Planned):
        best = _with_move_in(question, best, number if running.up else None, placement)
    return Replanned(
        job=job,
        running=running,
        left=left,
        machines=placement.machines,
        going_on=going_on,
        best=best,
        action=action,
        leads=leads,
        stays_optimal=stays_optimal_until(every, number) if action == "continue" and job.objective == "cost" else None,
        measured=placement.measured,
        assumptions=(*placement.notes, *_assumptions(running, left, job, placement)),
    )


def _going_on(candidates: Candidates, stays: Configurations) -> GoingOn | None:
    """The job to its end on its present machines; None if they are not available for long enough."""
    table = stays.whole()
    if not len(table):
        return None
    job = candidates.question.job
    bits = int(over(table, job.deadline_hours, job.budget_usd)[0])
    return GoingOn(
        schedule=on_one_configuration(replace(candidates, table=table, shares=stays), 0),
        breaks=tuple(name for name in REQUIREMENTS if bits & int(BIT[name])),
    )


#: Continuing for less than this before a move counts as moving now: it saves seconds of billing at most.
_MOMENT_HOURS = 1 / 60


def _leads(best: Planned | NoPlan, up: int) -> int:
    """The index of the first phase that is worth stating."""
    if isinstance(best, NoPlan) or len(best.phases) < 2 or best.phases[1].role == "standby":
        return 0
    first = best.phases[0]
    return 1 if first.market == up and first.hours_with_goodput < _MOMENT_HOURS else 0


def _action(best: Planned | NoPlan, up: int | None, machines: Choice, leads: int) -> str:
    if isinstance(best, NoPlan):
        return "none"
    first = best.phases[leads]
    if up is not None and first.market == up:
        return "continue" if len(best.phases) == 1 else "standby" if best.phases[1].role == "standby" else "move_later"
    if first.choice.offer.key == machines.offer.key:
        if up is None or first.choice.nodes == machines.nodes:
            return "restart"
        return "add_nodes" if first.choice.nodes > machines.nodes else "shed_nodes"
    return "move"


def _with_move_in(question: Question, best: Planned, up: int | None, placement: _Placement) -> Planned:
    """The plan with the move to its first machines and their start, unless these already run."""
    first, origin = best.phases[0], placement.origin
    if first.market == up:
        # Machines that run already have their quota and their zone: leave out these warnings.
        framework = question.job.training.framework
        known = set(warnings((first,), best.start, framework)) - set(warnings(best.phases[1:], best.start, framework))
        new_warnings = tuple(
            warning for warning in best.warnings if warning not in known or "price" in warning or "modelled" in warning
        )
        return replace(best, warnings=new_warnings)
    offer, data = first.choice.offer, question.job.data
    stays = (offer.provider, offer.region) == (origin.provider, origin.region)
    moved = Moved(
        origin=placement.machines.offer,
        checkpoint_gb=checkpoint_gb(question.work, question.job.training),
        data_gb=0.0 if stays else copied(data, offer.provider, offer.region),
        egress=first.choice.cost.egress,
    )
    begins = max(first.begins_hours, origin.write_hours + (0.0 if stays else origin.far_hours))
    return replace(best, phases=(replace(first, moved=moved, begins_hours=begins), *best.phases[1:]))


def _assumptions(running: UnderWay, left: Left, job: TrainingJob, placement: _Placement) -> tuple[str, ...]:
    """The assumptions on a running job."""
    sentences = ["spent money is sunk: cost, hours and probabilities are those from now on"]
    if running.up:
        sentences += [
            (
                "machines that run continue without set-up, with their data in place; hours already billed are not billed "
                "again; these machines come first in a plan of several phases"
            ),
            (
                "on other machines, or another number of nodes, all start anew from a checkpoint that is written first; "
                "machines that the job leaves are billed until then, not longer"
            ),
        ]
    else:
        lost = left.done - left.saved_share
        sentences.append(
            f"{lost:.3g} of the work was done but not saved: it is done again"
            if lost > 0
            else "all work done counts as saved; give the share at the last checkpoint with saved"
        )
    if placement.origin.far_hours > 0:
        sentences.append("a checkpoint can be resumed only with the software stack and precision that wrote it")
    if job.constraints.carbon_budget_kg is not None:
        sentences.append("constraints.carbon_budget_kg is scaled to the share of the work that is left")
    if placement.measured is not None:
        name = placement.machines.accelerator
        sentences.append(
            f"hours on {name} are {placement.measured.factor:.3g} times the estimate, as measured on this job; other "
            "accelerators learn from it as from a past run"
        )
    return tuple(sentences)
